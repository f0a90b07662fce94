/** Maps finish reasons of the vendor to the four of the specification, or to a failure. */
import { byName } from '../../../kit/by-name.ts'
import type { FinishReason } from '../../../spec/chat-completion.ts'

const FINISH_REASONS = byName<FinishReason | 'failed' | null>(
  // The default value, which means nothing.
  [null, 'FINISH_REASON_UNSPECIFIED'],
  ['stop', 'STOP'],
  // CONTINUATION: the response exceeds what one request may return.
  ['length', 'MAX_TOKENS CONTINUATION'],
  ['content_filter', 'SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII MODEL_ARMOR'],
  ['content_filter', 'IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION'],
  // The model generated something that is not a response.
  ['failed', 'MALFORMED_FUNCTION_CALL MALFORMED_RESPONSE UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS'],
  ['failed', 'MISSING_THOUGHT_SIGNATURE'],
)

/** Returns null if the response has not ended. An unknown reason counts as a normal stop. */
export function finishOf(value: unknown, hasCalls: boolean): FinishReason | 'failed' | null {
  if (typeof value !== 'string' || value === '') return null
  const reason = Object.hasOwn(FINISH_REASONS, value) ? (FINISH_REASONS[value] ?? null) : 'stop'
  return hasCalls && reason === 'stop' ? 'tool_calls' : reason
}
