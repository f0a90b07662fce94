/** Decodes a whole Messages response, and splits it into events. */
import { isRecord, type JsonRecord, parseJsonKeeping } from '../../../kit/json.ts'
import type { Annotation } from '../../../spec/chat-completion.ts'
import type { AnswerMessage, ChatCompletion, Reasoning, ToolCall } from '../../shared/canonical.ts'
import { type Fallback, type Faults, holdsError, namedText } from '../../shared/upstream.ts'
import { ARGUMENTS, citationOf, finishOf, opaqueOf, pauseOf, refusalOf } from './events.ts'
import { countsOf, usageOf } from './usage.ts'

type WholeMessage = JsonRecord & { content: unknown[] }

const hasContent = (payload: JsonRecord): payload is WholeMessage => Array.isArray(payload.content)

/** The message in the text of a body. Throws the error that the body reports, or that it is not a message. */
export function messageIn(text: string, faults: Faults): WholeMessage {
  const payload = parseJsonKeeping(text, ARGUMENTS)
  if (!isRecord(payload)) throw faults.notUnderstood('answered with something that is not JSON')
  if (holdsError(payload)) throw faults.inAnswer(payload)
  if (!hasContent(payload)) throw faults.notUnderstood('answered with JSON that is not a message')
  // With a stop reason the model had nothing to say, as after the results of tools.
  if (payload.content.length === 0 && namedText(payload.stop_reason) === undefined) {
    throw faults.notUnderstood('answered with an empty message')
  }
  return payload
}

export function answerOf(payload: WholeMessage, fallback: Fallback): ChatCompletion {
  const message = messageOf(payload.content.filter(isRecord))
  Object.assign(message, refusalOf(payload.stop_details))
  const usage = usageOf(countsOf(payload.usage))
  // A whole response has ended, even if the provider gives no stop reason.
  const hasCalls = message.tool_calls !== undefined
  const finish = finishOf(payload.stop_reason, hasCalls) ?? (hasCalls ? 'tool_calls' : 'stop')
  const sequence = typeof payload.stop_sequence === 'string' ? { stop_sequence: payload.stop_sequence } : {}
  const paused = pauseOf(payload.stop_reason)
  return {
    id: namedText(payload.id) ?? fallback.id,
    object: 'chat.completion',
    created: fallback.created,
    model: namedText(payload.model) ?? fallback.model,
    choices: [{ index: 0, message, finish_reason: finish, ...sequence, ...paused }],
    ...(usage ? { usage } : {}),
  }
}

function messageOf(blocks: JsonRecord[]): AnswerMessage {
  let content: string | null = null
  const thoughts: Reasoning[] = []
  const calls: ToolCall[] = []
  const annotations: Annotation[] = []
  for (const block of blocks) {
    if (block.type === 'text' && typeof block.text === 'string') {
      const start: number = content?.length ?? 0
      content = (content ?? '') + block.text
      for (const raw of Array.isArray(block.citations) ? block.citations : []) {
        const annotation = citationOf(raw, start, content.length)
        if (annotation) annotations.push(annotation)
      }
    } else if (block.type === 'thinking' && typeof block.thinking === 'string') {
      const { thinking: text, signature } = block
      thoughts.push({
        text,
        ...(typeof signature === 'string' && signature !== '' ? { opaque: opaqueOf(signature) } : {}),
      })
    } else if (block.type === 'redacted_thinking' && typeof block.data === 'string') {
      thoughts.push({ opaque: opaqueOf(block.data) })
    } else if (block.type === 'tool_use') {
      const id = namedText(block.id)
      const name = namedText(block.name)
      if (id === undefined || name === undefined) continue
      calls.push({ id, type: 'function', function: { name, arguments: JSON.stringify(block.input ?? {}) } })
    }
  }
  const reasoning = thoughts.map(({ text = '' }) => text).join('')
  return {
    role: 'assistant',
    content,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(thoughts.length > 0 ? { reasoning_details: thoughts } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...(annotations.length > 0 ? { annotations } : {}),
  }
}

/** The events of a message that arrived whole although a stream was requested. */
export function eventsOf(payload: WholeMessage): JsonRecord[] {
  const { content, stop_reason = null, stop_sequence, stop_details, usage, ...message } = payload
  return [
    { type: 'message_start', message: { ...message, usage } },
    ...content.filter(isRecord).flatMap((content_block, index) => [
      { type: 'content_block_start', index, content_block },
      ...citationsOf(content_block).map((citation) => ({
        type: 'content_block_delta',
        index,
        delta: { type: 'citations_delta', citation },
      })),
      { type: 'content_block_stop', index },
    ]),
    { type: 'message_delta', delta: { stop_reason: stop_reason ?? 'end_turn', stop_sequence, stop_details }, usage },
    { type: 'message_stop' },
  ]
}

const citationsOf = ({ citations }: JsonRecord): unknown[] => (Array.isArray(citations) ? citations : [])
