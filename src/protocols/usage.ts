/** Normalises the token counts of all vendors to those of the specification. */

import { isRecord } from '../kit/json.ts'
import { type Usage, usageFrom } from '../spec/usage.ts'

/** The reported usage; undefined if there is none (all zeros mean none: no prompt is empty). */
export function usageOf(raw: unknown): Usage | undefined {
  if (!isRecord(raw)) return undefined
  const inputDetails = recordOf(raw.prompt_tokens_details) ?? recordOf(raw.input_tokens_details) ?? {}
  const outputDetails = recordOf(raw.completion_tokens_details) ?? recordOf(raw.output_tokens_details) ?? {}
  // As Anthropic reports it, and as other gateways pass it on.
  const written = recordOf(raw.cache_creation) ?? recordOf(inputDetails.cache_creation_token_details)
  const total = count(raw.total_tokens)
  let output = count(raw.completion_tokens) ?? count(raw.output_tokens)
  const input =
    count(raw.prompt_tokens) ??
    count(raw.input_tokens) ??
    (total !== undefined && output !== undefined ? Math.max(0, total - output) : undefined)
  if (input === undefined && output === undefined) return undefined
  output ??= total !== undefined && input !== undefined ? Math.max(0, total - input) : 0
  let reasoning = count(outputDetails.reasoning_tokens) ?? count(raw.reasoning_tokens)
  // Some vendors (xAI, Gemini) leave the reasoning out of completion_tokens. The total shows it.
  const hidden = total === undefined || input === undefined ? 0 : total - input - output
  if (hidden > 0 && (!reasoning || reasoning === hidden)) {
    output += hidden
    reasoning = hidden
  }
  if (!input && !output) return undefined
  return usageFrom({
    input: input ?? 0,
    output,
    cached:
      count(inputDetails.cached_tokens) ??
      count(raw.prompt_cache_hit_tokens) ??
      count(raw.cache_read_input_tokens) ??
      count(raw.cached_tokens),
    cache_write:
      count(inputDetails.cache_write_tokens) ??
      count(inputDetails.cached_creation_tokens) ??
      count(inputDetails.cache_creation_tokens) ??
      count(raw.cache_creation_input_tokens),
    cache_write_1h: count(inputDetails.cache_write_1h_tokens) ?? count(written?.ephemeral_1h_input_tokens),
    input_audio: count(inputDetails.audio_tokens),
    input_image: count(inputDetails.image_tokens),
    output_audio: count(outputDetails.audio_tokens),
    reasoning,
    estimated: raw.estimated === true,
  })
}

const recordOf = (value: unknown) => (isRecord(value) ? value : undefined)

/** A valid token count. */
export const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? Math.round(value) : undefined
