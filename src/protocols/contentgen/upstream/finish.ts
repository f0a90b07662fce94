/** Why the vendor stopped, in the specification's four words, or as the failure that it was. */
import type { FinishReason } from '../../../spec/chat-completion.ts'

const FINISH_REASONS: Record<string, FinishReason | 'failed' | null> = {
  // The vendor's way of saying nothing.
  FINISH_REASON_UNSPECIFIED: null,
  STOP: 'stop',
  MAX_TOKENS: 'length',
  // There is more to say than one request may.
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
  // The model made something that is no answer.
  MALFORMED_FUNCTION_CALL: 'failed',
  MALFORMED_RESPONSE: 'failed',
  UNEXPECTED_TOOL_CALL: 'failed',
  TOO_MANY_TOOL_CALLS: 'failed',
  MISSING_THOUGHT_SIGNATURE: 'failed',
}

/** null where it says that there is no end yet. A word that nobody knows is an end like any other. */
export function finishOf(value: unknown, hasCalls: boolean): FinishReason | 'failed' | null {
  if (typeof value !== 'string' || value === '') return null
  const reason = Object.hasOwn(FINISH_REASONS, value) ? (FINISH_REASONS[value] ?? null) : 'stop'
  return hasCalls && reason === 'stop' ? 'tool_calls' : reason
}
