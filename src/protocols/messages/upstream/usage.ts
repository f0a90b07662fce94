/** Converts the vendor's token counts: its input tokens exclude the cache, those of the specification include it. */
import { isRecord } from '../../../kit/json.ts'
import { type Usage, usageFrom } from '../../../spec/usage.ts'
import { count } from '../../shared/upstream.ts'

export type Counts = {
  input: number
  cached?: number | undefined
  /** All that was written to the cache, and the part of it that is kept for an hour. */
  cacheWrite?: number | undefined
  cacheWrite1h?: number | undefined
  output: number
  reasoning?: number | undefined
}

const NONE: Counts = { input: 0, output: 0 }

/** The counts so far. A stream reports them twice, the second time partly. A zero does not replace a count. */
export function countsOf(raw: unknown, before = NONE): Counts {
  if (!isRecord(raw)) return before
  const written = isRecord(raw.cache_creation) ? raw.cache_creation : undefined
  const details = isRecord(raw.output_tokens_details) ? raw.output_tokens_details : undefined
  return {
    input: count(raw.input_tokens) || before.input,
    cached: count(raw.cache_read_input_tokens) || before.cached,
    cacheWrite: count(raw.cache_creation_input_tokens) || before.cacheWrite,
    cacheWrite1h: count(written?.ephemeral_1h_input_tokens) || before.cacheWrite1h,
    output: count(raw.output_tokens) || before.output,
    reasoning: count(details?.thinking_tokens) || before.reasoning,
  }
}

/** Returns undefined if the vendor reported nothing: no prompt is empty. */
export function usageOf({ input, cached, cacheWrite, cacheWrite1h, output, reasoning }: Counts): Usage | undefined {
  const whole = input + (cached ?? 0) + (cacheWrite ?? 0)
  if (whole === 0 && output === 0) return undefined
  return usageFrom({ input: whole, output, cached, cache_write: cacheWrite, cache_write_1h: cacheWrite1h, reasoning })
}
