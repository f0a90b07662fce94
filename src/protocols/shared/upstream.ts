/** Types of a request to a provider and of its response, as a wire protocol needs them. */
import { byName } from '../../kit/by-name.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import { isRecord, type JsonRecord } from '../../kit/json.ts'
import { randomAlphanumerics } from '../../kit/secret.ts'
import type { FinishReason } from '../../spec/chat-completion.ts'
import type { GatewayError } from '../../spec/error.ts'
import { type Usage, usageFrom } from '../../spec/usage.ts'
import type { ChatRequest } from './canonical.ts'

/** A chat request to a provider. */
export type UpstreamCall = {
  /** The provider's name of the model. */
  model: string
  /** Within the model's limits, defaults filled in, `null`s removed; `request.model` is the full public id. */
  request: ChatRequest
}

/** A chat request of a client that uses the provider's own protocol. */
export type PassthroughUpstreamCall = UpstreamCall & {
  /** The client's body without the fields that only the gateway understands. Its `model` is the client's. */
  body: Readonly<Record<string, unknown>>
}

/** The errors of one provider's responses, with the provider's name and without its secrets. */
export type Faults = {
  /** The provider sent an error in place of a response; `payload` is what it sent. */
  inAnswer(payload: unknown): GatewayError
  notUnderstood(what: string, upstream_status?: number): GatewayError
  cut(): GatewayError
}

/** The body of a response: the next bytes, or `undefined` at its end. */
export type ByteSource = { read(): Promise<Uint8Array | undefined> }

/** Fetches a file that a request refers to by URL. */
export type MediaReader = {
  read(value: string, signal: AbortSignal, param?: string): Promise<{ bytes: Uint8Array; content_type: string }>
}

/** The operator's settings for the fields of a provider's request bodies. */
export type FieldRules = { allow: string[]; drop: string[]; rename: Record<string, string> }

/** The operator's settings that every protocol applies to request bodies. */
export type BodyOptions = { fields: FieldRules; request_defaults: Record<string, unknown> }

/** Replaces what a provider leaves out of its response. */
export type Fallback = { id: string; model: string; created: number }

export const fallbackOf = (
  prefix: string,
  { request_id, model }: { request_id: string; model: string },
  clock: Clock,
): Fallback => ({
  id: `${prefix}${request_id}`,
  model,
  created: unixSeconds(clock),
})

/** A non-empty text. Some providers send a missing id or name as `null` or `None` in quotes. */
export const namedText = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' && value !== 'null' && value !== 'None' ? value : undefined

export const newToolCallId = () => `call_${randomAlphanumerics(24)}`

/** A tool call's arguments as JSON text. Some providers send the object itself. */
export function argumentsText(value: unknown): string {
  if (typeof value === 'string') return value
  return value === undefined || value === null ? '' : JSON.stringify(value)
}

/** Whether the arguments of a call, which arrive in pieces, are a complete object. */
export function isWholeObject(text: string): boolean {
  if (!text.trimEnd().endsWith('}')) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const NO_DETAILS: JsonRecord = {}

/** The reported usage; undefined if there is none (all zeros mean none: no prompt is empty). */
export function usageOf(raw: unknown): Usage | undefined {
  if (!isRecord(raw)) return undefined
  const inputDetails = recordOf(raw.prompt_tokens_details) ?? recordOf(raw.input_tokens_details) ?? NO_DETAILS
  const outputDetails = recordOf(raw.completion_tokens_details) ?? recordOf(raw.output_tokens_details) ?? NO_DETAILS
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

/** Whether an object is, or holds, an error instead of a response. */
export const holdsError = (payload: JsonRecord): boolean =>
  (payload.error !== undefined && payload.error !== null && payload.error !== false && payload.error !== '') ||
  payload.object === 'error' ||
  payload.type === 'error'

const FINISH_REASONS = byName<FinishReason>(
  ['stop', 'stop'],
  ['length', 'length max_tokens max_output_tokens model_length'],
  ['tool_calls', 'tool_calls tool_use tool_call function_call'],
  ['content_filter', 'content_filter safety sensitive recitation prohibited_content refusal'],
)

/** Maps a provider's finish reason to one of the four of the specification; null if the response has not ended. */
export function finishReasonOf(value: unknown, hasToolCalls: boolean): FinishReason | null {
  if (typeof value !== 'string' || value === '' || value === 'null') return null
  const reason = FINISH_REASONS[value] ?? FINISH_REASONS[value.toLowerCase()] ?? 'stop'
  // Clients look for tool calls only with this reason, and some providers send `stop` after them.
  return hasToolCalls && reason === 'stop' ? 'tool_calls' : reason
}
