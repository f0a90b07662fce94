/** The chat-completions dialect: a client's JSON into the house's words, refused with the place and the rule. */
import Type from 'typebox'
import { EXTRA_FIELDS } from '../../config/schema.ts'
import { checker } from '../../kit/checker.ts'
import { diagnose, foundText } from '../../kit/diagnose.ts'
import { refusalOf } from '../../models/refusal.ts'
import { ChatChunk, ChatCompletion } from '../../spec/chat-completion.ts'
import { ChatRequest } from '../../spec/chat-request.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Message } from '../../spec/message.ts'
import { chatcompatPassthrough } from './chatcompat-passthrough.ts'
import { createChunkWriter, writeWhole } from './chatcompat-writer.ts'
import type { Dialect } from './dialect.ts'

/** The extra fields are left to `models/limits.ts`: to a model that has them not they are unknown fields. */
const Shared = Type.Omit(ChatRequest, [...EXTRA_FIELDS])
const check = checker(Shared)

/** `settings` are read at each answer, so that a reload applies. */
export const chatcompatDialect = (settings: { delta_mirror: boolean }): Dialect => ({
  family: 'chatcompat',
  id_prefix: 'chatcmpl-',
  path: '/v1/chat/completions',
  operation: {
    summary: 'Create a chat completion',
    description:
      'With `stream: true` the answer is a stream of server-sent events, one chunk each, ended by `data: [DONE]`.',
    tag: 'Chat',
    request: ChatRequest,
    response: ChatCompletion,
    stream: ChatChunk,
    example: { model: 'sandbox/general', messages: [{ role: 'user', content: 'What is Gatehouse?' }] },
  },
  parse: parseChatRequest,
  passthrough: chatcompatPassthrough,
  writer: (head, request) => ({
    whole: (answer, usage) => writeWhole(answer, head, { usage, delta_mirror: settings.delta_mirror }),
    ...createChunkWriter(head, { include_usage: request.stream_options?.include_usage === true }),
  }),
})

/**
 * `null` is absent. Unknown top-level fields are not looked at; they go on, for a provider whose operator allows them.
 * Throws GatewayError naming the field and what it may be.
 */
export function parseChatRequest(body: unknown): ChatRequest {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new GatewayError('invalid_type', `The body must be a JSON object, not ${foundText(body)}.`)
  }
  const request: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(body)) {
    // Set by its name, that one would become the object's prototype.
    if (value !== null && name !== '__proto__') request[name] = value
  }
  if (Array.isArray(request.messages)) request.messages = request.messages.map(withoutNulls)
  if (!check.Check(request)) throw refusalOf(diagnose(Shared, request))
  refuseEmptyMessages(request.messages as Message[])
  return request as ChatRequest
}

/**
 * `content` is required (specification 2.2). Of the assistant it may be `null`, which is how an answer of the past that
 * said nothing comes back, and absent where something else was said.
 */
function refuseEmptyMessages(messages: Message[]): void {
  for (const [index, message] of messages.entries()) {
    if (message.content !== undefined && message.content !== null) continue
    const isAnswer = message.role === 'assistant'
    if (isAnswer && (message.content === null || SAID_OTHERWISE.some((name) => message[name]))) continue
    const param = `messages[${index}].content`
    const unless = isAnswer ? ' in a message of the assistant without "tool_calls"' : ''
    throw new GatewayError('missing_required_parameter', `"${param}" is required${unless}.`, { param })
  }
}

const SAID_OTHERWISE = ['tool_calls', 'function_call', 'refusal', 'reasoning_content'] as const

/** A message without the members that are `null`; only `content` may be. */
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
