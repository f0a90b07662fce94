/** Decodes a Messages request. Errors name the client's field and the values it may have. */

import type { TSchema } from 'typebox'
import { checker } from '../../../kit/checker.ts'
import { diagnose, foundText } from '../../../kit/diagnose.ts'
import { isRecord } from '../../../kit/json.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { ChatRequest } from '../../canonical.ts'
import { type Places, refusalOf } from '../../request-error.ts'
import { historyOf, systemText } from './history.ts'
import { CountRequest, MessagesRequest } from './schema.ts'
import { toolsOf } from './tools.ts'

const checkRequest = checker(MessagesRequest)
const checkCount = checker(CountRequest)

/**
 * `null` is absent, and unknown fields are not looked at. Throws GatewayError naming the client's field and what it
 * may be. `places` remembers where messages and parts come from.
 */
export function parseMessages(body: unknown, places: Places = new WeakMap()): ChatRequest {
  return requestOf(checked(body, MessagesRequest, checkRequest), places)
}

/** A request to count its tokens, which needs no `max_tokens`. */
export function parseCount(body: unknown, places: Places = new WeakMap()): ChatRequest {
  return requestOf(checked(body, CountRequest, checkCount) as MessagesRequest, places)
}

function checked(body: unknown, schema: TSchema, check: { Check(value: unknown): boolean }): MessagesRequest {
  if (!isRecord(body)) throw new GatewayError('invalid_type', `The body must be a JSON object, not ${foundText(body)}.`)
  const request = withoutNulls(body, BLOCK_DEPTH)
  if (!check.Check(request)) throw refusalOf(diagnose(schema, request))
  return request as MessagesRequest
}

function requestOf(clientRequest: MessagesRequest, places: Places): ChatRequest {
  assertSupported(clientRequest)
  const { system, messages } = clientRequest
  const before =
    system === undefined || system.length === 0 ? [] : [{ role: 'system' as const, content: systemText(system) }]
  const history = messages.flatMap((message, index) => historyOf(message, `messages[${index}]`, places))
  const request: ChatRequest = {
    model: clientRequest.model,
    messages: [...before, ...history],
    ...toolsOf(clientRequest),
  }
  for (const field of SAME)
    if (clientRequest[field] !== undefined) Object.assign(request, { [field]: clientRequest[field] })
  if (clientRequest.stop_sequences?.length) request.stop = clientRequest.stop_sequences
  if (clientRequest.metadata?.user_id !== undefined) request.user = clientRequest.metadata.user_id
  if (clientRequest.service_tier !== undefined)
    request.service_tier = TIERS.get(clientRequest.service_tier) ?? clientRequest.service_tier
  const { effort, format = clientRequest.output_format } = clientRequest.output_config ?? {}
  if (effort !== undefined) request.reasoning_effort = effort
  if (format) {
    request.response_format = {
      type: 'json_schema',
      json_schema: { name: 'answer', schema: format.schema, strict: true },
    }
  }
  return { ...request, ...reasoningOf(clientRequest.thinking) }
}

/** Fields of the same name and meaning. */
const SAME = ['max_tokens', 'stream', 'temperature', 'top_p', 'top_k'] as const
/** The vendor's word -> the house's. */
const TIERS = new Map([['standard_only', 'default']])

function reasoningOf(thinking: MessagesRequest['thinking']): Partial<ChatRequest> {
  if (thinking?.type === 'enabled') return { thinking_enabled: true, reasoning_budget: thinking.budget_tokens }
  if (thinking?.type === 'adaptive') return { thinking_enabled: true, reasoning_budget: -1 }
  return thinking?.type === 'disabled' ? { thinking_enabled: false, reasoning_budget: 0 } : {}
}

/** Fields that would change what the answer is or where it is made, and that only their own vendor has. */
const REFUSED: { field: 'mcp_servers' | 'inference_geo' | 'container'; isUsed(value: unknown): boolean }[] = [
  { field: 'mcp_servers', isUsed: (value) => Array.isArray(value) && value.length > 0 },
  { field: 'inference_geo', isUsed: (value) => value !== 'global' },
  { field: 'container', isUsed: (value) => isRecord(value) && Array.isArray(value.skills) && value.skills.length > 0 },
]

function assertSupported(clientRequest: MessagesRequest): void {
  for (const { field, isUsed } of REFUSED) {
    if (clientRequest[field] === undefined || !isUsed(clientRequest[field])) continue
    throw new GatewayError('unsupported_parameter', `"${field}" is known to its own vendor only; leave it out.`, {
      param: field,
    })
  }
  if (clientRequest.thread === undefined) return
  // The vendor's client libraries know this code: they ask again without a thread, with the whole conversation.
  throw new GatewayError(
    'thread_unsupported_request',
    '"thread" is not supported for this model: no conversation is kept. Leave it out, and send all messages each time.',
    { param: 'thread' },
  )
}

/** A body holds messages, they blocks, they blocks, they a source, that blocks. */
const BLOCK_DEPTH = 5

/** Members whose value is the client's own data, in which a `null` is one. */
const OWN_DATA = new Set(['input', 'input_schema', 'schema'])

/**
 * An object without the members that are `null`, in it and in what it holds as deep as blocks go: lists count nothing.
 * Nothing is copied where there is none.
 */
function withoutNulls<T>(value: T, depth: number): T {
  if (Array.isArray(value)) return mapped(value, (item) => withoutNulls(item, depth)) as T
  if (!isRecord(value) || depth < 0) return value
  let copy: Record<string, unknown> | undefined
  for (const [name, member] of Object.entries(value)) {
    const cleaned = OWN_DATA.has(name) || member === null ? member : withoutNulls(member, depth - 1)
    if (cleaned === member && member !== null) continue
    copy ??= { ...value }
    if (member === null) delete copy[name]
    else copy[name] = cleaned
  }
  return (copy ?? value) as T
}

/** The same list where nothing in it changes. */
function mapped(list: unknown[], change: (item: unknown) => unknown): unknown[] {
  let copy: unknown[] | undefined
  for (const [index, item] of list.entries()) {
    const changed = change(item)
    if (changed === item) continue
    copy ??= [...list]
    copy[index] = changed
  }
  return copy ?? list
}
