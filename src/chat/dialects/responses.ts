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
import type { Conversation, KeptResponses } from '../responses-kept.ts'
import type { Places } from './client-words.ts'
import type { Dialect } from './dialect.ts'
import { inClientWords } from './responses-error.ts'
import { historyOf, type PlacedItem } from './responses-history.ts'
import { withoutNulls } from './responses-nulls.ts'
import { outlined, outlineOf } from './responses-outline.ts'
import { nothingPassed } from './responses-passing.ts'
import { responsesRelay } from './responses-relay.ts'
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
  asked: ResponsesRequest
  before: Conversation
  input: InputItem[]
  request: ChatRequest
  /** What vendors call its tools. */
  names: ToolNames
}

type DialectParts = {
  /** Where answers are remembered; without it a request says all of itself, and nothing is kept. */
  kept?: KeptResponses
  /** Takes on a request whose answer is made in the background; absent where none is. */
  queue?(read: ReadResponse, context: Context): Promise<Response>
  clock: Clock
}

export function responsesDialect({ kept, queue, clock }: DialectParts): Dialect {
  const places: Places = new WeakMap()

  /** What a request goes on from, and its items with those in the place of references. */
  async function recalled({ previous_response_id: previous, input }: ResponsesRequest, { token_id }: Caller) {
    const before = kept && previous !== undefined ? await kept.conversation(previous, token_id) : { items: [], ids: [] }
    const own = itemsOf(input)
    return { before, input: kept ? await kept.resolved(own, token_id) : own }
  }

  async function reading(body: unknown, caller: Caller): Promise<ReadResponse> {
    const asked = checkedRequest(body)
    const { before, input } = await recalled(asked, caller)
    return { asked, before, input, ...translatedRequest({ ...asked, input }, before, places) }
  }

  /** The same, or its outline where only its own vendor can take it. */
  async function readingOrOutlining(body: unknown, caller: Caller): Promise<ReadResponse & { refusal?: GatewayError }> {
    try {
      return await reading(body, caller)
    } catch (thrown) {
      if (!(thrown instanceof GatewayError) || !isRecord(body) || !mayPass(body)) throw thrown
      const asked = outlined(withTypes(withoutNulls(body)))
      const { before, input } = await recalled(asked, caller)
      const items = placed(asked, { before, input })
      const { names } = clientTools({})
      return { asked, before, input, request: outlineOf({ asked, items, places }), names, refusal: thrown }
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
      const { asked, before, input, request, names, refusal } = await readingOrOutlining(body, caller)
      const { previous_response_id } = asked
      const keep =
        kept && asked.store !== false ? kept.keeper({ caller, before, input, previous_response_id }) : undefined
      const passed = nothingPassed()
      const tells_encrypted = asked.include?.includes('reasoning.encrypted_content') ?? false
      const passage = { body: body as JsonRecord, before, input, isKept: keep !== undefined, tells_encrypted, passed }
      return {
        request,
        writer: (head, limited) => createResponsesWriter({ head, asked, request: limited, names, keep, clock, passed }),
        ...(mayPass(body) ? { relay: responsesRelay(passage) } : {}),
        ...(refusal ? { refusal } : {}),
      }
    },
    async instead(body, context) {
      if (!queue || !isRecord(body) || body.background !== true) return undefined
      const read = await reading(body, context.caller)
      try {
        return await queue(read, context)
      } catch (error) {
        throw error instanceof GatewayError ? inClientWords(error, read.request, places) : error
      }
    },
    writer(head, request) {
      const { names } = clientTools({})
      return createResponsesWriter({ head, asked: { model: head.model }, request, names, keep: undefined, clock })
    },
    inClientWords: (error, request) => inClientWords(error, request, places),
  }
}

/** `null` is absent, and unknown fields are not looked at. Throws GatewayError naming the client's field and what it may be. */
export function checkedRequest(body: unknown): ResponsesRequest {
  if (!isRecord(body)) throw new GatewayError('invalid_type', `The body must be a JSON object, not ${foundText(body)}.`)
  const request = withTypes(withoutNulls(body))
  refuseWhatCannotBe(request)
  if (!check.Check(request)) throw refusalOf(diagnose(ResponsesRequest, request))
  return request
}

/** The request in the gateway's own form, after what was said `before`, and the names that its tools have there. */
export function translatedRequest(
  asked: ResponsesRequest,
  before: Conversation,
  places: Places = new WeakMap(),
): { request: ChatRequest; names: ToolNames } {
  const instructions: Message[] =
    asked.instructions === undefined || asked.instructions === ''
      ? []
      : [{ role: 'system', content: asked.instructions }]
  for (const message of instructions) places.set(message, 'instructions')
  const items = placed(asked, { before, input: itemsOf(asked.input) })
  const tools = clientTools(asked, items)
  const { names } = tools
  const said = historyOf(items, names, places)
  if (said.length === 0) {
    throw new GatewayError('missing_required_parameter', '"input" is required.', { param: 'input' })
  }
  const request: ChatRequest = {
    model: asked.model,
    messages: [...instructions, ...said],
    ...toolsOf(asked, tools, places),
  }
  for (const field of SAME) if (asked[field] !== undefined) Object.assign(request, { [field]: asked[field] })
  if (asked.max_output_tokens !== undefined) request.max_tokens = asked.max_output_tokens
  const { format, effort } = settingsOf(asked, items)
  const { verbosity } = asked.text ?? {}
  if (verbosity !== undefined) request.verbosity = verbosity
  if (format) request.response_format = formatOf(format)
  const { generate_summary, summary = generate_summary } = asked.reasoning ?? {}
  if (effort !== undefined) request.reasoning_effort = effort
  if (summary !== undefined) request.reasoning_summary = summary
  if (asked.include?.includes('message.output_text.logprobs') || asked.top_logprobs) request.logprobs = true
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

function refuseWhatCannotBe(asked: Record<string, unknown>): void {
  for (const { field, asks, instead } of REFUSED) {
    if (asked[field] === undefined || !asks(asked[field])) continue
    throw unsupported(field, `"${field}" is not supported: ${instead}.`)
  }
  const known: string[] = [...ITEM_TYPES, ...PASSED_OVER]
  for (const [index, item] of (Array.isArray(asked.input) ? asked.input : []).entries()) {
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
