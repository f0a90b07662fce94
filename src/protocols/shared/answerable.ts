/** Refuses a conversation that leaves a provider nothing to answer, before it is sent. */
import { invalidValue } from '../../spec/error.ts'
import type { Message } from './canonical.ts'

/** Whether a provider refuses a text, so that it is left out. */
type EmptyText = (text: string) => boolean
export const isNoText: EmptyText = (text) => text === ''

/**
 * Throws invalid_value that names the last message where nothing but instructions is left (`hasTurns`), or where the turn
 * of the user after an earlier response is empty, which would let the model continue that response. Without `isEmpty`
 * every text is sent.
 */
export function assertAnswerable(messages: Message[], hasTurns: boolean, isEmpty?: EmptyText): void {
  const index = messages.findLastIndex(isTurn)
  const last = messages[index]
  const isUnasked = isEmpty && last && isEmptyUser(last, isEmpty) && isAfterResponse(messages, isEmpty)
  if (hasTurns && !isUnasked) return
  const param = last ? `messages[${index}].content` : 'messages'
  const rule = last ? 'must not be empty' : 'must have a message of the user beside the instructions'
  throw invalidValue(param, `"${param}" ${rule}.`)
}

const isTurn = ({ role }: Message): boolean => role !== 'system' && role !== 'developer'

/** Whether the last turn with content is not of the user and not the result of a tool. */
function isAfterResponse(messages: Message[], isEmpty: EmptyText): boolean {
  const before = messages.findLast((message) => isTurn(message) && !isEmptyUser(message, isEmpty))
  return before === undefined || before.role === 'assistant'
}

const isEmptyUser = ({ role, content }: Message, isEmpty: EmptyText): boolean =>
  role === 'user' &&
  (typeof content === 'string'
    ? isEmpty(content)
    : (content ?? []).every((part) => part.type === 'text' && isEmpty(part.text)))
