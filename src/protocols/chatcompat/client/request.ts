/** Decodes a chat-completions request. Errors name the field and the values it may have. */
import Type from 'typebox'
import { checker } from '../../../kit/checker.ts'
import { diagnose } from '../../../kit/diagnose.ts'
import { isRecord, takeRawInteger } from '../../../kit/json.ts'
import { EXTRA_FIELDS } from '../../../spec/chat-request.ts'
import { GatewayError } from '../../../spec/error.ts'
import {
  ChatRequest,
  type ClientChatRequest,
  type HistoryCall,
  type Message,
  type Tool,
} from '../../shared/canonical.ts'
import { customCall, customFunction } from '../../shared/custom-tools.ts'
import { nullRemover } from '../../shared/nulls.ts'
import { assertObject, refusalOf } from '../../shared/request-error.ts'
import { assertOffered } from '../../shared/tool-choice.ts'
import { readAsOpenRouter, withoutTypedReasoning } from './openrouter.ts'

/** `models/limits.ts` checks the extra fields. For a model without them they count as unknown fields. */
const Shared = Type.Omit(ChatRequest, [...EXTRA_FIELDS])
const check = checker(Shared)

/** A body holds messages, which hold parts, which hold data. */
const withoutNulls = nullRemover({
  depth: 4,
  ownData: new Set(['logit_bias', 'metadata', 'parameters', 'prediction', 'provider_options', 'schema']),
  nullable: 'content',
})
const SEARCHES = ['web_search', 'web_search_options'] as const

/**
 * Treats `null` as absent. Unknown top-level fields are not checked: they are forwarded if the operator allows them
 * for the provider. Throws GatewayError with the field and its allowed values.
 */
export function parseChatRequest(body: unknown, client?: { header(name: string): string | null }): ChatRequest {
  assertObject(body)
  let request: Record<string, unknown> = {}
  for (const name in body) {
    // Assigning this key would replace the object's prototype.
    if (body[name] !== null && name !== '__proto__') request[name] = body[name]
  }
  if (Array.isArray(request.messages) && request.messages.some(hasNull))
    request.messages = request.messages.map(plainMessage)
  // Their members are not checked here, or not at all.
  for (const name of SEARCHES) if (request[name] !== undefined) request[name] = withoutNulls(request[name])
  const seed = takeRawInteger(request, 'seed')
  if (!check.Check(request)) {
    // Few clients send nested nulls, so that bodies are searched for them only here.
    request = withoutNulls(request)
    if (!check.Check(request)) throw refusalOf(diagnose(Shared, request))
  }
  if (seed) Object.assign(request, { seed })
  const clientRequest = request as ClientChatRequest
  assertComplete(clientRequest.messages)
  assertChoiceOffered(clientRequest)
  // Whoever asks for the cost needs the usage that contains it.
  if (clientRequest.usage?.include === true && clientRequest.stream) {
    clientRequest.stream_options = { ...clientRequest.stream_options, include_usage: true }
  }
  const decoded = withFunctions(clientRequest)
  if (decoded.messages.some(hasReasoningDetails)) decoded.messages = decoded.messages.map(withoutTypedReasoning)
  if (expectsOpenRouter(request, client?.header('user-agent'))) readAsOpenRouter(decoded, request)
  return decoded
}

/**
 * `content` is required (specification 2.2). In an assistant message it may be `null`, as in an earlier response
 * without text, and it may be absent if the message has other content. A `tool` message names its call.
 */
function assertComplete(messages: ClientMessage[]): void {
  const index = messages.findIndex(isIncomplete)
  const message = messages[index]
  if (!message) return
  if (lacksCall(message)) {
    const param = `messages[${index}].tool_call_id`
    throw new GatewayError('missing_required_parameter', `"${param}" is required in a "tool" message.`, { param })
  }
  const param = `messages[${index}].content`
  const unless = message.role === 'assistant' ? ' in an assistant message without "tool_calls"' : ''
  throw new GatewayError('missing_required_parameter', `"${param}" is required${unless}.`, { param })
}

const lacksCall = ({ role, tool_call_id }: ClientMessage): boolean => role === 'tool' && tool_call_id === undefined

function isIncomplete(message: ClientMessage): boolean {
  if (lacksCall(message)) return true
  const { role, content } = message
  if (content !== undefined && content !== null) return false
  return role !== 'assistant' || (content === undefined && !hasOtherContent(message))
}

const hasOtherContent = ({ tool_calls, function_call, refusal, reasoning_content, audio }: ClientMessage): boolean =>
  Boolean(tool_calls || function_call || refusal || reasoning_content || audio)

function assertChoiceOffered({ tools, tool_choice, functions, function_call }: ClientChatRequest): void {
  if (typeof function_call === 'object') {
    const names = new Set(functions?.map(({ name }) => name))
    assertOffered(function_call.name, names, { param: 'function_call.name', list: 'functions' })
  }
  if (typeof tool_choice === 'object') assertToolOffered(tool_choice, tools)
}

function assertToolOffered(choice: ClientToolChoice, tools: ClientTool[] | undefined): void {
  const names = new Set(tools?.map((tool) => (tool.type === 'custom' ? tool.custom.name : tool.function.name)))
  const list = 'tools'
  if (choice.type === 'function') {
    assertOffered(choice.function.name, names, { param: 'tool_choice.function.name', list })
  } else if (choice.type === 'custom') {
    assertOffered(choice.custom.name, names, { param: 'tool_choice.custom.name', list })
  } else {
    for (const [index, tool] of choice.allowed_tools.tools.entries()) {
      const { type, name } = tool
      const at = `tool_choice.allowed_tools.tools[${index}]`
      const member = type === 'custom' || type === 'function' ? tool[type] : undefined
      if (isRecord(member)) assertOffered(member.name, names, { param: `${at}.${type}.name`, list })
      else if (name !== undefined) assertOffered(name, names, { param: `${at}.name`, list })
    }
  }
}

const hasReasoningDetails = ({ reasoning_details }: Message): boolean => reasoning_details !== undefined

/** Whether a client expects answers in OpenRouter's form: by its name, or by a field that only OpenRouter has. */
const expectsOpenRouter = (
  { reasoning, include_reasoning }: Readonly<Record<string, unknown>>,
  user_agent: string | null | undefined,
): boolean => user_agent?.includes('ai-sdk/openrouter') === true || include_reasoning === true || isRecord(reasoning)

type ClientMessage = ClientChatRequest['messages'][number]
type ClientTool = NonNullable<ClientChatRequest['tools']>[number]
type ClientToolChoice = Extract<ClientChatRequest['tool_choice'], object>
type ClientCall = NonNullable<ClientMessage['tool_calls']>[number]

/** Custom tools, their calls and choices as functions. Returns the same object: it is a copy of the client's. */
function withFunctions(request: ClientChatRequest): ChatRequest {
  const { tools, tool_choice: choice, messages } = request
  if (tools?.some(isCustom)) request.tools = tools.map(toolOf)
  if (typeof choice === 'object' && choice.type === 'custom') {
    request.tool_choice = { type: 'function', function: choice.custom }
  } else if (typeof choice === 'object' && choice.type === 'allowed_tools') {
    const { mode, tools: allowed } = choice.allowed_tools
    request.tool_choice = { type: 'allowed_tools', allowed_tools: { mode, tools: allowed.map(allowedTool) } }
  }
  if (messages.some(hasCustomCall)) request.messages = messages.map(withFunctionCalls)
  return request as ChatRequest
}

const withFunctionCalls = (message: ClientMessage): ClientMessage =>
  message.tool_calls && hasCustomCall(message) ? { ...message, tool_calls: message.tool_calls.map(callOf) } : message

const isCustom = ({ type }: { type?: unknown }): boolean => type === 'custom'
const hasCustomCall = ({ tool_calls }: ClientMessage): boolean => tool_calls?.some(isCustom) ?? false

const toolOf = (tool: ClientTool): Tool => (tool.type === 'custom' ? customFunction(tool.custom) : tool)
const callOf = (call: ClientCall): HistoryCall =>
  call.type === 'custom' ? { ...customCall(call.id, call.custom), ...signatureOf(call) } : call
const signatureOf = ({ opaque }: ClientCall) => (opaque ? { opaque } : {})
/** An allowed tool has the form of an entry of `tools`, or only a name. */
const allowedTool = (tool: Record<string, unknown>): Record<string, unknown> =>
  tool.type === 'custom' ? { type: 'function', function: tool.custom ?? { name: tool.name } } : tool

/** Whether a message has a member that is `null`. Only `content` may be `null`. */
function hasNull(message: unknown): boolean {
  if (!isRecord(message)) return false
  for (const name in message) if (message[name] === null && name !== 'content') return true
  return false
}

function plainMessage(message: unknown): unknown {
  if (!isRecord(message) || !hasNull(message)) return message
  const copy = { ...message }
  for (const name in message) if (message[name] === null && name !== 'content') delete copy[name]
  return copy
}
