/** Decodes a chat-completions request. Errors name the field and the values it may have. */

import Type from 'typebox'
import { checker } from '../../../kit/checker.ts'
import { diagnose, foundText } from '../../../kit/diagnose.ts'
import { EXTRA_FIELDS } from '../../../spec/chat-request.ts'
import { GatewayError } from '../../../spec/error.ts'
import { ChatRequest, type Message } from '../../canonical.ts'
import { refusalOf } from '../../request-error.ts'

/** `models/limits.ts` checks the extra fields. For a model without them they count as unknown fields. */
const Shared = Type.Omit(ChatRequest, [...EXTRA_FIELDS])
const check = checker(Shared)

/**
 * Treats `null` as absent. Unknown top-level fields are not checked: they are forwarded if the operator allows them
 * for the provider. Throws GatewayError with the field and its allowed values.
 */
export function parseChatRequest(body: unknown): ChatRequest {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new GatewayError('invalid_type', `The body must be a JSON object, not ${foundText(body)}.`)
  }
  const request: Record<string, unknown> = {}
  const members = body as Record<string, unknown>
  for (const name in members) {
    // Assigning this key would replace the object's prototype.
    if (members[name] !== null && name !== '__proto__') request[name] = members[name]
  }
  if (Array.isArray(request.messages)) request.messages = request.messages.map(withoutNulls)
  if (!check.Check(request)) throw refusalOf(diagnose(Shared, request))
  refuseEmptyMessages(request.messages as Message[])
  return request as ChatRequest
}

/**
 * `content` is required (specification 2.2). In an assistant message it may be `null`, as in an earlier response
 * without text, and it may be absent if the message has other content.
 */
function refuseEmptyMessages(messages: Message[]): void {
  for (const [index, message] of messages.entries()) {
    if (message.content !== undefined && message.content !== null) continue
    const isAnswer = message.role === 'assistant'
    if (isAnswer && (message.content === null || OTHER_CONTENT.some((name) => message[name]))) continue
    const param = `messages[${index}].content`
    const unless = isAnswer ? ' in an assistant message without "tool_calls"' : ''
    throw new GatewayError('missing_required_parameter', `"${param}" is required${unless}.`, { param })
  }
}

const OTHER_CONTENT = ['tool_calls', 'function_call', 'refusal', 'reasoning_content'] as const

/** Removes members that are `null`. Only `content` may be `null`. */
function withoutNulls(message: unknown): unknown {
  if (typeof message !== 'object' || message === null || Array.isArray(message)) return message
  const members = message as Record<string, unknown>
  let copy: Record<string, unknown> | undefined
  for (const name in members) {
    if (members[name] !== null || name === 'content') continue
    copy ??= { ...members }
    delete copy[name]
  }
  return copy ?? message
}
