/** Decodes a whole response, like the last event of a stream. */
import { isRecord, type JsonRecord, parseJsonKeeping } from '../../../kit/json.ts'
import type { AnswerMessage, ChatChunk, ChatCompletion } from '../../shared/canonical.ts'
import { type Fallback, type Faults, holdsError } from '../../shared/upstream.ts'
import { ARGUMENTS, createEventReader, isFailure, isWithoutOutput } from './events.ts'

/** The finished response in the text of a body. Throws the error that the body reports, or why it is no such response. */
export function responseIn(text: string, faults: Faults): JsonRecord {
  const payload = parseJsonKeeping(text, ARGUMENTS)
  if (!isRecord(payload)) throw faults.notUnderstood('answered with something that is not JSON')
  if (holdsError(payload) || isFailure({ response: payload })) {
    throw faults.inAnswer({ response: payload, ...payload })
  }
  if (payload.status === 'in_progress' || payload.status === 'queued') {
    throw faults.notUnderstood('answered before its response was complete')
  }
  if (!Array.isArray(payload.output)) throw faults.notUnderstood('answered with JSON that is not a response')
  if (isWithoutOutput(payload)) throw faults.notUnderstood('answered with an empty response')
  return payload
}

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
