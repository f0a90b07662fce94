/** Decodes a Responses request. Errors name the client's field and the values it may have. */
import { checker } from '../../../kit/checker.ts'
import { diagnose } from '../../../kit/diagnose.ts'
import { isRecord, type JsonRecord, memberOf } from '../../../kit/json.ts'
import { invalidValue, missingField } from '../../../spec/error.ts'
import type { ChatRequest, Message } from '../../shared/canonical.ts'
import { nullRemover } from '../../shared/nulls.ts'
import { assertObject, places, refusalOf, refusedField } from '../../shared/request-error.ts'
import { isCompaction } from './compaction.ts'
import { historyOf } from './history.ts'
import type { Conversation } from './items.ts'
import type { PlacedItem } from './mcp-tools.ts'
import { checkMinimalBody, minimalRequestOf } from './minimal-request.ts'
import { IGNORED_ITEMS, type InputItem, ITEM_TYPES, ResponsesRequest } from './schema.ts'
import type { ToolNames } from './tool-names.ts'
import { clientTools, toolsOf } from './tools.ts'

const check = checker(ResponsesRequest)

/** A body holds items, which hold parts, which hold data; a tool's location is as deep. */
export const withoutNulls = nullRemover({ depth: 4, ownData: new Set(['parameters', 'schema', 'metadata']) })

/**
 * Treats `null` as absent and ignores unknown fields. Throws GatewayError with the client's field and its allowed
 * values.
 */
export function checkedRequest(body: unknown): ResponsesRequest {
  assertObject(body)
  const request = withTypes(withoutNulls(body))
  assertSupported(request)
  if (!check.Check(request)) throw refusalOf(diagnose(ResponsesRequest, request))
  return request
}

/** The canonical request, after the conversation `before`, and the names of its tools. */
export function translatedRequest(
  clientRequest: ResponsesRequest,
  before: Conversation,
): { request: ChatRequest; names: ToolNames } {
  const instructions: Message[] =
    clientRequest.instructions === undefined || clientRequest.instructions === ''
      ? []
      : [{ role: 'system', content: clientRequest.instructions }]
  for (const message of instructions) places.set(message, 'instructions')
  const items = placed(clientRequest, { before, input: itemsOf(clientRequest.input) })
  const tools = clientTools(clientRequest, items)
  const { names } = tools
  const history = historyOf(items, names)
  if (history.length === 0) throw missingField('input')
  const request: ChatRequest = {
    model: clientRequest.model,
    messages: [...instructions, ...history],
    ...toolsOf(clientRequest, tools),
  }
  for (const field of SAME)
    if (clientRequest[field] !== undefined) Object.assign(request, { [field]: clientRequest[field] })
  if (clientRequest.max_output_tokens !== undefined) request.max_tokens = clientRequest.max_output_tokens
  const isSummary = isCompaction(items.map(({ item }) => item))
  // The tools stay, since some providers reject a history of calls without them.
  if (isSummary && request.tools) request.tool_choice = 'none'
  const { format, effort } = settingsOf(clientRequest, items)
  const { verbosity } = clientRequest.text ?? {}
  if (verbosity !== undefined) request.verbosity = verbosity
  if (format && !isSummary) request.response_format = formatOf(format)
  const { generate_summary, summary = generate_summary } = clientRequest.reasoning ?? {}
  if (effort !== undefined) request.reasoning_effort = effort
  if (summary !== undefined) request.reasoning_summary = summary
  if (clientRequest.include?.includes('message.output_text.logprobs') || clientRequest.top_logprobs)
    request.logprobs = true
  return { request, names }
}

/** A request that only a provider of this protocol can serve, as far as the gateway must understand it. */
export const minimalClientRequest = (body: JsonRecord): ResponsesRequest =>
  checkMinimalBody(withTypes(withoutNulls(body)))

/** The canonical form of a minimal request, after the conversation `before`. */
export function minimalTranslation(
  clientRequest: ResponsesRequest,
  { before, input }: { before: Conversation; input: InputItem[] },
): { request: ChatRequest; names: ToolNames } {
  const items = placed(clientRequest, { before, input })
  const { names } = clientTools({})
  return { request: minimalRequestOf(clientRequest, items), names }
}

/** Settings that items of the input may change. The last value applies. */
function settingsOf({ text, reasoning }: ResponsesRequest, items: PlacedItem[]) {
  let format = text?.format
  let effort = reasoning?.effort
  for (const { item } of items) {
    if (item.type !== 'configuration_update') continue
    format = item.text?.format ?? format
    effort = item.reasoning?.effort ?? effort
  }
  return { format, effort }
}

function placed(
  { input: given, conversation }: ResponsesRequest,
  { before, input }: { before: Conversation; input: InputItem[] },
): PlacedItem[] {
  const isPlain = typeof given === 'string'
  return [
    ...before.items.map((item) => ({ item, at: conversation ? 'conversation' : 'previous_response_id' })),
    ...input.map((item, index) => ({ item, at: isPlain ? 'input' : `input[${index}]` })),
  ]
}

/** The id of the conversation that a request continues. */
export const conversationId = ({ conversation }: Pick<ResponsesRequest, 'conversation'>): string | undefined =>
  typeof conversation === 'object' ? conversation.id : conversation

export function assertConversationAllowed({ previous_response_id, store }: ResponsesRequest): void {
  if (previous_response_id !== undefined) {
    const message =
      '"conversation" must not be given with "previous_response_id": each names the items before the input.'
    throw invalidValue('conversation', message)
  }
  if (store !== false) return
  const message = '"store" must not be false with "conversation", to which the input and the output are appended.'
  throw invalidValue('store', message)
}

export const itemsOf = (input: ResponsesRequest['input'] = []): InputItem[] =>
  typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : input

/** Fields with the same name and meaning. */
const SAME = [
  'stream',
  'temperature',
  'top_p',
  'presence_penalty',
  'frequency_penalty',
  'parallel_tool_calls',
  'top_logprobs',
  'metadata',
  'user',
  'safety_identifier',
  'service_tier',
  'prompt_cache_key',
] as const

function formatOf(
  format: NonNullable<NonNullable<ResponsesRequest['text']>['format']>,
): NonNullable<ChatRequest['response_format']> {
  if (format.type !== 'json_schema') return format
  const { type, ...json_schema } = format
  return { type, json_schema }
}

/** Messages and references may leave out their `type`. It is added here once, so that no other code has to guess it. */
function withTypes(request: Record<string, unknown>): Record<string, unknown> {
  const { input } = request
  const lacks = (item: unknown) => isRecord(item) && item.type === undefined
  if (!Array.isArray(input) || !input.some(lacks)) return request
  const typeOf = (item: object) =>
    'id' in item && !('role' in item || 'content' in item) ? 'item_reference' : 'message'
  return { ...request, input: input.map((item) => (lacks(item) ? { ...item, type: typeOf(item) } : item)) }
}

/** Fields that would change the response, and the reason why they are refused. */
export const REFUSED: {
  field: string
  isUsed(value: unknown): boolean
  instead: string
  /** A provider of this API may support it. */
  passes?: true
}[] = [
  {
    field: 'prompt',
    isUsed: () => true,
    instead: 'a stored prompt is known to one provider only; write it out in "instructions" and "input"',
  },
  {
    field: 'moderation',
    isUsed: () => true,
    instead: 'it is supported only by its own vendor; leave it out',
    passes: true,
  },
  // Fields of chat completions. If they were ignored, the response would not be what the client expects.
  { field: 'messages', isUsed: () => true, instead: 'the conversation is "input"' },
  { field: 'max_tokens', isUsed: () => true, instead: 'it is "max_output_tokens"' },
  { field: 'max_completion_tokens', isUsed: () => true, instead: 'it is "max_output_tokens"' },
  { field: 'response_format', isUsed: () => true, instead: 'it is "text.format"' },
  { field: 'reasoning_effort', isUsed: () => true, instead: 'it is "reasoning.effort"' },
  { field: 'stop', isUsed: () => true, instead: 'ask at /v1/chat/completions' },
  { field: 'n', isUsed: (value) => value !== 1, instead: 'a response has one choice; send several requests' },
]

function assertSupported(clientRequest: Record<string, unknown>): void {
  for (const { field, isUsed, instead } of REFUSED) {
    if (clientRequest[field] === undefined || !isUsed(clientRequest[field])) continue
    throw refusedField(field, `is not supported: ${instead}`)
  }
  const known: string[] = [...ITEM_TYPES, ...IGNORED_ITEMS]
  for (const [index, item] of (Array.isArray(clientRequest.input) ? clientRequest.input : []).entries()) {
    const type = memberOf(item, 'type')
    if (typeof type !== 'string' || known.includes(type)) continue
    throw refusedField(`input[${index}].type`, `is "${type.slice(0, 60)}"; supported are ${ITEM_TYPES.join(', ')}`)
  }
}

/** Whether a provider of this protocol can serve the request directly. */
export const mayPass = (body: unknown): boolean =>
  isRecord(body) &&
  body.background !== true &&
  !REFUSED.some(({ field, isUsed, passes }) => !passes && body[field] != null && isUsed(body[field]))
