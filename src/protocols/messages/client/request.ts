/** Decodes a Messages request. Errors name the client's field and the values it may have. */

import type { TSchema } from 'typebox'
import { checker } from '../../../kit/checker.ts'
import { diagnose, foundText } from '../../../kit/diagnose.ts'
import { isRecord } from '../../../kit/json.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { ChatRequest } from '../../canonical.ts'
import { nullRemover } from '../../nulls.ts'
import { type Places, refusalOf } from '../../request-error.ts'
import { historyOf, promptText } from './history.ts'
import { CountRequest, MessagesRequest } from './schema.ts'
import { toolsOf } from './tools.ts'

const checkRequest = checker(MessagesRequest)
const checkCount = checker(CountRequest)

/**
 * Treats `null` as absent and ignores unknown fields. Throws GatewayError with the client's field and its allowed
 * values. `places` records the origin of messages and parts.
 */
export function parseMessages(body: unknown, places: Places = new WeakMap()): ChatRequest {
  return requestOf(checked(body, MessagesRequest, checkRequest), places)
}

/** Decodes a token-count request, which needs no `max_tokens`. */
export function parseCount(body: unknown, places: Places = new WeakMap()): ChatRequest {
  return requestOf(checked(body, CountRequest, checkCount) as MessagesRequest, places)
}

function checked(body: unknown, schema: TSchema, check: { Check(value: unknown): boolean }): MessagesRequest {
  if (!isRecord(body)) throw new GatewayError('invalid_type', `The body must be a JSON object, not ${foundText(body)}.`)
  const request = withoutNulls(body)
  if (!check.Check(request)) throw refusalOf(diagnose(schema, request))
  return request as MessagesRequest
}

function requestOf(clientRequest: MessagesRequest, places: Places): ChatRequest {
  assertSupported(clientRequest)
  const { system, messages } = clientRequest
  const prompt = system === undefined ? '' : promptText(system)
  const before = prompt === '' ? [] : [{ role: 'system' as const, content: prompt }]
  const history = messages.flatMap((message, index) => historyOf(message, `messages[${index}]`, places))
  const request: ChatRequest = {
    model: clientRequest.model,
    messages: [...before, ...history],
    ...(clientRequest.tools || clientRequest.tool_choice ? toolsOf(clientRequest) : {}),
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

/** Fields with the same name and meaning. */
const SAME = ['max_tokens', 'stream', 'temperature', 'top_p', 'top_k'] as const
/** The API's value -> the canonical value. */
const TIERS = new Map([['standard_only', 'default']])

function reasoningOf(thinking: MessagesRequest['thinking']): Partial<ChatRequest> {
  if (thinking?.type === 'enabled') return { thinking_enabled: true, reasoning_budget: thinking.budget_tokens }
  if (thinking?.type === 'adaptive') return { thinking_enabled: true, reasoning_budget: -1 }
  return thinking?.type === 'disabled' ? { thinking_enabled: false, reasoning_budget: 0 } : {}
}

/** Fields that would change the response or where it is generated, and that only their own vendor supports. */
const REFUSED: { field: 'mcp_servers' | 'inference_geo' | 'container'; isUsed(value: unknown): boolean }[] = [
  { field: 'mcp_servers', isUsed: (value) => Array.isArray(value) && value.length > 0 },
  { field: 'inference_geo', isUsed: (value) => value !== 'global' },
  { field: 'container', isUsed: (value) => isRecord(value) && Array.isArray(value.skills) && value.skills.length > 0 },
]

function assertSupported(clientRequest: MessagesRequest): void {
  for (const { field, isUsed } of REFUSED) {
    if (clientRequest[field] === undefined || !isUsed(clientRequest[field])) continue
    throw new GatewayError('unsupported_parameter', `"${field}" is supported only by its own vendor; leave it out.`, {
      param: field,
    })
  }
  if (clientRequest.thread === undefined) return
  // The vendor's client libraries recognise this code and retry with the whole conversation instead of a thread.
  throw new GatewayError(
    'thread_unsupported_request',
    '"thread" is not supported for this model: the gateway does not store conversations. Leave it out, and send all messages each time.',
    { param: 'thread' },
  )
}

/** A body holds messages, which hold blocks, which hold blocks with a source, which holds blocks. */
const withoutNulls = nullRemover({ depth: 5, ownData: new Set(['input', 'input_schema', 'schema']) })
