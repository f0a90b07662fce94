/**
 * Prepares a client's own Messages body for the provider: the body changes only where the gateway or the operator
 * requires it.
 */
import type { JsonRecord } from '../../../kit/json.ts'
import { adapt } from '../../shared/field-rules.ts'
import type { PassthroughUpstreamCall } from '../../shared/upstream.ts'
import { ruleOf } from './model-rules.ts'
import { COUNTED, type MessagesOptions } from './request.ts'

/** Fields that the gateway sets. */
const RESERVED = new Set(['model', 'messages', 'stream'])
/** Fields for which the model's row in the catalogue may have a default. */
const SAMPLING = ['temperature', 'top_p'] as const

/** The client's body with the provider's model name, the model's limits and defaults, and the operator's settings. */
export function passthroughBody(
  { model, body, request }: PassthroughUpstreamCall,
  settings: MessagesOptions,
): JsonRecord {
  const rule = { ...ruleOf(model), ...settings.rule }
  const forwarded: JsonRecord = { ...body, model }
  if (request.max_tokens !== undefined) forwarded.max_tokens = request.max_tokens
  const thinking = body.thinking as { type?: unknown } | null | undefined
  const isThinking = thinking != null && thinking.type !== 'disabled'
  // Newer models accept only one of the two.
  const isSampled = SAMPLING.some((field) => body[field] != null)
  if (rule.sampling && !isThinking && !isSampled) {
    const field = SAMPLING.find((name) => request[name] !== undefined)
    if (field) forwarded[field] = request[field]
  }
  for (const [field, value] of Object.entries(settings.request_defaults))
    if (!RESERVED.has(field)) forwarded[field] ??= value
  return adapt(forwarded, settings.fields, RESERVED)
}

/** Fields that the vendor's token-count endpoint refuses. */
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

/** The body of a token count: the prompt and the client's own fields, without the settings for generation. */
export function countedBody(call: PassthroughUpstreamCall, settings: MessagesOptions): JsonRecord {
  const isClientField = (field: string) => call.body[field] !== undefined && !UNCOUNTED.has(field)
  const fields = Object.entries(passthroughBody(call, settings))
  return Object.fromEntries(fields.filter(([field]) => COUNTED.includes(field) || isClientField(field)))
}
