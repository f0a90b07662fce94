/** Maps finish reasons of the vendor to the four of the specification, or to a failure. */
import type { FinishReason } from '../../../spec/chat-completion.ts'

const FINISH_REASONS: Record<string, FinishReason | 'failed' | null> = {
  // The default value, which means nothing.
  FINISH_REASON_UNSPECIFIED: null,
  STOP: 'stop',
  MAX_TOKENS: 'length',
  // The response exceeds what one request may return.
  CONTINUATION: 'length',
  SAFETY: 'content_filter',
  RECITATION: 'content_filter',
  LANGUAGE: 'content_filter',
  BLOCKLIST: 'content_filter',
  PROHIBITED_CONTENT: 'content_filter',
  SPII: 'content_filter',
  MODEL_ARMOR: 'content_filter',
  IMAGE_SAFETY: 'content_filter',
  IMAGE_PROHIBITED_CONTENT: 'content_filter',
  IMAGE_RECITATION: 'content_filter',
  // The model generated something that is not a response.
  MALFORMED_FUNCTION_CALL: 'failed',
  MALFORMED_RESPONSE: 'failed',
  UNEXPECTED_TOOL_CALL: 'failed',
  TOO_MANY_TOOL_CALLS: 'failed',
  MISSING_THOUGHT_SIGNATURE: 'failed',
}

/** Returns null if the response has not ended. An unknown reason counts as a normal stop. */
export function finishOf(value: unknown, hasCalls: boolean): FinishReason | 'failed' | null {
  if (typeof value !== 'string' || value === '') return null
  const reason = Object.hasOwn(FINISH_REASONS, value) ? (FINISH_REASONS[value] ?? null) : 'stop'
  return hasCalls && reason === 'stop' ? 'tool_calls' : reason
}
