/** A messages vendor asked by a client that speaks as it does: its own body, but for what the house and the operator demand. */

import type { JsonRecord } from '../../../kit/json.ts'
import { adapt } from '../../field-rules.ts'
import type { PassthroughUpstreamCall } from '../../upstream.ts'
import { ruleOf } from './model-rules.ts'
import { COUNTED, type MessagesOptions } from './request.ts'

/** Fields that are the house's to say. */
const RESERVED = new Set(['model', 'messages', 'stream'])
/** Where the model's row in the catalogue has a default for them. */
const SAMPLING = ['temperature', 'top_p'] as const

/** The client's body for this vendor: the model's name, the limits and defaults of its row, the operator's settings. */
export function passthroughBody(
  { model, body, request }: PassthroughUpstreamCall,
  settings: MessagesOptions,
): JsonRecord {
  const rule = { ...ruleOf(model), ...settings.rule }
  const forwarded: JsonRecord = { ...body, model }
  if (request.max_tokens !== undefined) forwarded.max_tokens = request.max_tokens
  const thinking = body.thinking as { type?: unknown } | null | undefined
  const isThinking = thinking != null && thinking.type !== 'disabled'
  // The newer models take one of the two.
  const isSampled = SAMPLING.some((field) => body[field] != null)
  if (rule.sampling && !isThinking && !isSampled) {
    const field = SAMPLING.find((name) => request[name] !== undefined)
    if (field) forwarded[field] = request[field]
  }
  for (const [field, value] of Object.entries(settings.request_defaults))
    if (!RESERVED.has(field)) forwarded[field] ??= value
  return adapt(forwarded, settings.fields, RESERVED)
}

/** Of a request for an answer: the vendor's count refuses them. */
const UNCOUNTED = new Set([
  'max_tokens',
  'metadata',
  'service_tier',
  'stop_sequences',
  'stream',
  'temperature',
  'top_k',
  'top_p',
])

/** Of a prompt: what the client itself says of it, and nothing of how it is to be answered. */
export function countedBody(call: PassthroughUpstreamCall, settings: MessagesOptions): JsonRecord {
  const isClientField = (field: string) => call.body[field] !== undefined && !UNCOUNTED.has(field)
  const fields = Object.entries(passthroughBody(call, settings))
  return Object.fromEntries(fields.filter(([field]) => COUNTED.includes(field) || isClientField(field)))
}
