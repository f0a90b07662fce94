/** Converts the vendor's token counts: its input tokens exclude the cache, those of the specification include it. */

import { isRecord } from '../../../kit/json.ts'
import { type Usage, usageFrom } from '../../../spec/usage.ts'
import { count } from '../../usage.ts'

export type Counts = { input: number; cached?: number; cacheWrite?: number; output: number; reasoning?: number }

/** The counts so far. A stream reports them twice, the second time partly. A zero does not replace a count. */
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

/** Returns undefined if the vendor reported nothing: no prompt is empty. */
export function usageOf({ input, cached, cacheWrite, output, reasoning }: Counts): Usage | undefined {
  const whole = input + (cached ?? 0) + (cacheWrite ?? 0)
  if (whole === 0 && output === 0) return undefined
  return usageFrom({ input: whole, output, cached, cache_write: cacheWrite, reasoning })
}
