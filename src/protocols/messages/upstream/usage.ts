/** The vendor's token counts, which leave the cache out of the input, in the specification's form, which does not. */

import { isRecord } from '../../../kit/json.ts'
import { type Usage, usageFrom } from '../../../spec/usage.ts'
import { count } from '../../usage.ts'

export type Counts = { input: number; cached?: number; cacheWrite?: number; output: number; reasoning?: number }

/** What is known by now: the counts of a stream are told twice, the later ones in part. A zero takes nothing back. */
export function countsOf(raw: unknown, before: Counts = { input: 0, output: 0 }): Counts {
  if (!isRecord(raw)) return before
  const details = isRecord(raw.output_tokens_details) ? raw.output_tokens_details : {}
  const cached = count(raw.cache_read_input_tokens) || before.cached
  const cacheWrite = count(raw.cache_creation_input_tokens) || before.cacheWrite
  const reasoning = count(details.thinking_tokens) || before.reasoning
  return {
    input: count(raw.input_tokens) || before.input,
    output: count(raw.output_tokens) || before.output,
    ...(cached === undefined ? {} : { cached }),
    ...(cacheWrite === undefined ? {} : { cacheWrite }),
    ...(reasoning === undefined ? {} : { reasoning }),
  }
}

/** undefined where the vendor told nothing: no prompt is empty. */
export function usageOf({ input, cached, cacheWrite, output, reasoning }: Counts): Usage | undefined {
  const whole = input + (cached ?? 0) + (cacheWrite ?? 0)
  if (whole === 0 && output === 0) return undefined
  return usageFrom({ input: whole, output, cached, cache_write: cacheWrite, reasoning })
}
