/** The chat-completions dialect, inwards: a client's JSON into the house's words, refused with the place and the rule. */
import { Compile } from 'typebox/compile'
import { diagnose, foundText, type Problem, pathText } from '../../kit/diagnose.ts'
import { ChatRequest } from '../../spec/chat-request.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Message } from '../../spec/message.ts'

const check = Compile(ChatRequest)

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
  if (!check.Check(request)) throw refusal(diagnose(ChatRequest, request))
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

function refusal(problem: Problem | undefined): GatewayError {
  if (!problem) return new GatewayError('invalid_value', 'The body does not fit the schema of a chat request.')
  const param = pathText(problem.path)
  if (problem.kind === 'missing') {
    return new GatewayError('missing_required_parameter', `"${param}" is required.`, { param })
  }
  const code = problem.kind === 'type' ? 'invalid_type' : 'invalid_value'
  return new GatewayError(code, `"${param}" must be ${mustBe(problem.expected)}, not ${foundText(problem.found)}.`, {
    param,
  })
}

/** `at least 1 item` reads better as `an array of at least 1 item`. */
const mustBe = (expected: string) => (/ items?$/.test(expected) ? `an array of ${expected}` : expected)
