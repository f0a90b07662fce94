/** Why the vendor stopped, in the specification's four words. */

import { isRecord, type JsonRecord } from '../../../kit/json.ts'
import type { FinishReason } from '../../../spec/chat-completion.ts'

const REASONS: Record<string, FinishReason> = {
  max_output_tokens: 'length',
  max_messages: 'length',
  content_filter: 'content_filter',
  steered: 'stop',
}

/** Of a response that has ended. An answer that is incomplete for a reason that nobody knows is a short one. */
export function finishOf({ status, incomplete_details: details }: JsonRecord, hasCalls: boolean): FinishReason {
  if (status === 'incomplete') {
    const reason = isRecord(details) && typeof details.reason === 'string' ? details.reason : ''
    return (Object.hasOwn(REASONS, reason) ? REASONS[reason] : undefined) ?? 'length'
  }
  return hasCalls ? 'tool_calls' : 'stop'
}
