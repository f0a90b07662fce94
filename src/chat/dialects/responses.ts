/** The responses dialect: a client's JSON into the house's words, refused with the place and the rule. */

import type { Context } from '../../http/context.ts'
import { checker } from '../../kit/checker.ts'
import type { Clock } from '../../kit/clock.ts'
import { diagnose, foundText } from '../../kit/diagnose.ts'
import { isRecord, type JsonRecord } from '../../kit/json.ts'
import { refusalOf } from '../../models/refusal.ts'
import type { ChatRequest } from '../../spec/chat-request.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Message } from '../../spec/message.ts'
import type { Caller } from '../../spec/token.ts'
import type { Conversation, StoredResponses } from '../stored-responses.ts'
import type { Places } from './client-names.ts'
import type { Dialect } from './dialect.ts'
import { errorForClient } from './responses-error.ts'
import { historyOf, type PlacedItem } from './responses-history.ts'
import { minimalRequestOf, outlined } from './responses-minimal.ts'
import { withoutNulls } from './responses-nulls.ts'
import { nothingPassed } from './responses-passing.ts'
import { responsesPassthrough } from './responses-passthrough.ts'
import {
  type InputItem,
  ITEM_TYPES,
  PASSED_OVER,
  ResponsesAnswer,
  ResponsesEvent,
  ResponsesRequest,
} from './responses-schema.ts'
import type { ToolNames } from './responses-tool-names.ts'
import { clientTools, toolsOf } from './responses-tools.ts'
import { createResponsesWriter } from './responses-writer.ts'

const check = checker(ResponsesRequest)

/** A request that was read, with what it goes on from. */
export type ReadResponse = {
  clientRequest: ResponsesRequest
  before: Conversation
  input: InputItem[]
  request: ChatRequest
  /** What vendors call its tools. */
  names: ToolNames
}

type DialectParts = {
  /** Where answers are remembered; without it a request says all of itself, and nothing is kept. */
  storedResponses?: StoredResponses
  /** Takes on a request whose answer is made in the background; absent where none is. */
  queue?(read: ReadResponse, context: Context): Promise<Response>
  clock: Clock
}

export function responsesDialect({ storedResponses, queue, clock }: DialectParts): Dialect {
  const places: Places = new WeakMap()

  /** What a request goes on from, and its items with those in the place of references. */
  async function recalled({ previous_response_id: previous, input }: ResponsesRequest, { token_id }: Caller) {
    const before =
      storedResponses && previous !== undefined
        ? await storedResponses.conversation(previous, token_id)
        : { items: [], ids: [] }
    const own = itemsOf(input)
    return { before, input: storedResponses ? await storedResponses.resolved(own, token_id) : own }
  }

  async function reading(body: unknown, caller: Caller): Promise<ReadResponse> {
    const clientRequest = checkedRequest(body)
    const { before, input } = await recalled(clientRequest, caller)
    return { clientRequest, before, input, ...translatedRequest({ ...clientRequest, input }, before, places) }
  }

  /** The same, or its outline where only its own vendor can take it. */
  async function readingOrMinimal(body: unknown, caller: Caller): Promise<ReadResponse & { refusal?: GatewayError }> {
    try {
      return await reading(body, caller)
    } catch (thrown) {
      if (!(thrown instanceof GatewayError) || !isRecord(body) || !mayPass(body)) throw thrown
      const clientRequest = outlined(withTypes(withoutNulls(body)))
      const { before, input } = await recalled(clientRequest, caller)
      const items = placed(clientRequest, { before, input })
      const { names } = clientTools({})
      return {
        clientRequest,
        before,
        input,
        request: minimalRequestOf({ clientRequest, items, places }),
        names,
        refusal: thrown,
      }
    }
  }

  return {
    family: 'chatcompat-response',
    id_prefix: 'resp_',
    path: '/v1/responses',
    operation: {
      summary: 'Create a response',
      description:
        'With `stream: true` the answer is a stream of named, numbered server-sent events, ended by `response.completed`, ' +
        '`response.incomplete` or `response.failed`. It is kept for 30 days unless `store` is false.',
      tag: 'Chat',
      request: ResponsesRequest,
      response: ResponsesAnswer,
      stream: ResponsesEvent,
      errors: ['previous_response_not_found', 'upgrade_required'],
      example: { model: 'sandbox/general', input: 'What is Gatehouse?' },
    },
    parse: (body) => translatedRequest(checkedRequest(body), { items: [], ids: [] }, places).request,
    async read(body, { caller }) {
      const { clientRequest, before, input, request, names, refusal } = await readingOrMinimal(body, caller)
      const { previous_response_id } = clientRequest
      const keep =
        storedResponses && clientRequest.store !== false
          ? storedResponses.keeper({ caller, before, input, previous_response_id })
          : undefined
      const passed = nothingPassed()
      const includes_encrypted = clientRequest.include?.includes('reasoning.encrypted_content') ?? false
      const passage = {
        body: body as JsonRecord,
        before,
        input,
        isKept: keep !== undefined,
        includes_encrypted,
        passed,
      }
      return {
        request,
        writer: (head, limited) =>
          createResponsesWriter({ head, clientRequest, request: limited, names, keep, clock, passed }),
        ...(mayPass(body) ? { passthrough: responsesPassthrough(passage) } : {}),
        ...(refusal ? { refusal } : {}),
      }
    },
    async instead(body, context) {
      if (!queue || !isRecord(body) || body.background !== true) return undefined
      const read = await reading(body, context.caller)
      try {
        return await queue(read, context)
      } catch (error) {
        throw error instanceof GatewayError ? errorForClient(error, read.request, places) : error
      }
    },
    writer(head, request) {
      const { names } = clientTools({})
      return createResponsesWriter({
        head,
        clientRequest: { model: head.model },
        request,
        names,
        keep: undefined,
        clock,
      })
    },
    errorForClient: (error, request) => errorForClient(error, request, places),
  }
}

/** `null` is absent, and unknown fields are not looked at. Throws GatewayError naming the client's field and what it may be. */
export function checkedRequest(body: unknown): ResponsesRequest {
  if (!isRecord(body)) throw new GatewayError('invalid_type', `The body must be a JSON object, not ${foundText(body)}.`)
  const request = withTypes(withoutNulls(body))
  assertSupported(request)
  if (!check.Check(request)) throw refusalOf(diagnose(ResponsesRequest, request))
  return request
}

/** The request in the gateway's own form, after what was said `before`, and the names that its tools have there. */
export function translatedRequest(
  clientRequest: ResponsesRequest,
  before: Conversation,
  places: Places = new WeakMap(),
): { request: ChatRequest; names: ToolNames } {
  const instructions: Message[] =
    clientRequest.instructions === undefined || clientRequest.instructions === ''
      ? []
      : [{ role: 'system', content: clientRequest.instructions }]
  for (const message of instructions) places.set(message, 'instructions')
  const items = placed(clientRequest, { before, input: itemsOf(clientRequest.input) })
  const tools = clientTools(clientRequest, items)
  const { names } = tools
  const said = historyOf(items, names, places)
  if (said.length === 0) {
    throw new GatewayError('missing_required_parameter', '"input" is required.', { param: 'input' })
  }
  const request: ChatRequest = {
    model: clientRequest.model,
    messages: [...instructions, ...said],
    ...toolsOf(clientRequest, tools, places),
  }
  for (const field of SAME)
    if (clientRequest[field] !== undefined) Object.assign(request, { [field]: clientRequest[field] })
  if (clientRequest.max_output_tokens !== undefined) request.max_tokens = clientRequest.max_output_tokens
  const { format, effort } = settingsOf(clientRequest, items)
  const { verbosity } = clientRequest.text ?? {}
  if (verbosity !== undefined) request.verbosity = verbosity
  if (format) request.response_format = formatOf(format)
  const { generate_summary, summary = generate_summary } = clientRequest.reasoning ?? {}
  if (effort !== undefined) request.reasoning_effort = effort
  if (summary !== undefined) request.reasoning_summary = summary
  if (clientRequest.include?.includes('message.output_text.logprobs') || clientRequest.top_logprobs)
    request.logprobs = true
  return { request, names }
}

/** What items of the input may change: the last word counts. */
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
  { input: given }: ResponsesRequest,
  { before, input }: Pick<ReadResponse, 'before' | 'input'>,
): PlacedItem[] {
  const isPlain = typeof given === 'string'
  return [
    ...before.items.map((item) => ({ item, at: 'previous_response_id' })),
    ...input.map((item, index) => ({ item, at: isPlain ? 'input' : `input[${index}]` })),
  ]
}

export const itemsOf = (input: ResponsesRequest['input'] = []): InputItem[] =>
  typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : input

/** Fields of the same name and meaning. */
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

/** Messages and references may leave their `type` out: said once here, it need not be guessed anywhere else. */
function withTypes(request: Record<string, unknown>): Record<string, unknown> {
  const { input } = request
  const lacks = (item: unknown) => isRecord(item) && item.type === undefined
  if (!Array.isArray(input) || !input.some(lacks)) return request
  const typeOf = (item: object) =>
    'id' in item && !('role' in item || 'content' in item) ? 'item_reference' : 'message'
  return { ...request, input: input.map((item) => (lacks(item) ? { ...item, type: typeOf(item) } : item)) }
}

/** Fields that would change what the answer is, and why they cannot be honoured. */
export const REFUSED: {
  field: string
  asks(value: unknown): boolean
  instead: string
  /** A vendor of this dialect may have it. */
  passes?: true
}[] = [
  { field: 'conversation', asks: () => true, instead: 'go on from a response with "previous_response_id"' },
  {
    field: 'prompt',
    asks: () => true,
    instead: 'prompts are kept by one vendor; write it out in "instructions" and "input"',
  },
  {
    field: 'moderation',
    asks: () => true,
    instead: 'it is known to its own vendor only; leave it out',
    passes: true,
  },
  // Of chat completions: left unread they would be missed.
  { field: 'messages', asks: () => true, instead: 'the conversation is "input"' },
  { field: 'max_tokens', asks: () => true, instead: 'it is "max_output_tokens"' },
  { field: 'max_completion_tokens', asks: () => true, instead: 'it is "max_output_tokens"' },
  { field: 'response_format', asks: () => true, instead: 'it is "text.format"' },
  { field: 'reasoning_effort', asks: () => true, instead: 'it is "reasoning.effort"' },
  { field: 'stop', asks: () => true, instead: 'ask at /v1/chat/completions' },
  { field: 'n', asks: (value) => value !== 1, instead: 'there is one answer; ask several times' },
]

function assertSupported(clientRequest: Record<string, unknown>): void {
  for (const { field, asks, instead } of REFUSED) {
    if (clientRequest[field] === undefined || !asks(clientRequest[field])) continue
    throw unsupported(field, `"${field}" is not supported: ${instead}.`)
  }
  const known: string[] = [...ITEM_TYPES, ...PASSED_OVER]
  for (const [index, item] of (Array.isArray(clientRequest.input) ? clientRequest.input : []).entries()) {
    const type = isRecord(item) ? item.type : undefined
    if (typeof type !== 'string' || known.includes(type)) continue
    const param = `input[${index}].type`
    throw unsupported(param, `"${param}" is "${type.slice(0, 60)}"; known are ${ITEM_TYPES.join(', ')}.`)
  }
}

/** Whether it means nothing but what a vendor of this dialect can answer at once. */
const mayPass = (body: unknown): boolean =>
  isRecord(body) &&
  body.background !== true &&
  !REFUSED.some(({ field, asks, passes }) => !passes && body[field] != null && asks(body[field]))

const unsupported = (param: string, message: string) => new GatewayError('unsupported_parameter', message, { param })
