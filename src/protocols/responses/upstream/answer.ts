/** Decodes a whole response, like the last event of a stream. */

import type { JsonRecord } from '../../../kit/json.ts'
import type { AnswerMessage, ChatChunk, ChatCompletion } from '../../canonical.ts'
import type { Fallback } from '../../upstream.ts'
import { createEventReader } from './events.ts'

/** The last event of a stream without other events. */
export const endOf = (response: JsonRecord): JsonRecord => ({
  type: response.status === 'incomplete' ? 'response.incomplete' : 'response.completed',
  response,
})

export function answerOf(response: JsonRecord, fallback: Fallback): ChatCompletion | undefined {
  const chunk = createEventReader(fallback).take(endOf(response))
  return chunk && wholeOf(chunk)
}

function wholeOf({ choices, usage, ...head }: ChatChunk): ChatCompletion | undefined {
  const [choice] = choices
  if (!choice) return undefined
  const { delta, finish_reason = 'stop', logprobs } = choice
  const { content, refusal, reasoning_content, reasoning_details, tool_calls, annotations } = delta
  const message: AnswerMessage = {
    role: 'assistant',
    // Absent text is null in a whole response.
    content: content || null,
    ...(refusal ? { refusal } : {}),
    ...(reasoning_content ? { reasoning_content } : {}),
    ...(reasoning_details ? { reasoning_details } : {}),
    ...(tool_calls ? { tool_calls: tool_calls.map(({ index: _, ...call }) => call) } : {}),
    ...(annotations ? { annotations } : {}),
  }
  return {
    ...head,
    object: 'chat.completion',
    choices: [{ index: 0, message, finish_reason, ...(logprobs === undefined ? {} : { logprobs }) }],
    ...(usage ? { usage } : {}),
  }
}
