/**
 * Prepares a client's own Responses body for the provider: the body changes only where the gateway or the operator
 * requires it.
 */
import { type JsonRecord, memberOf } from '../../../kit/json.ts'
import { adapt } from '../../shared/field-rules.ts'
import type { PassthroughUpstreamCall } from '../../shared/upstream.ts'
import { EFFORTS, type ModelRule } from './model-rules.ts'
import { acceptsSampling } from './reasoning.ts'
import { MIN_OUTPUT_TOKENS, type ResponsesOptions, ruleFor } from './request.ts'

/** Fields that the gateway sets. */
const RESERVED = new Set(['model', 'input', 'stream', 'store'])
/** Fields for which the model's row in the catalogue may have a default, and which models that reason refuse. */
const SAMPLING = ['temperature', 'top_p'] as const
/** Fields that clients of this API may send, but the vendor does not know. */
const UNKNOWN = ['presence_penalty', 'frequency_penalty']
const ENCRYPTED = 'reasoning.encrypted_content'
/** Field names that an operator may use for all vendors. */
const VENDORS_NAME: Record<string, string> = {
  max_tokens: 'max_output_tokens',
  max_completion_tokens: 'max_output_tokens',
  reasoning_effort: 'reasoning',
  response_format: 'text',
}

/**
 * The client's body for this provider. The provider stores nothing, so the gateway must receive and store encrypted
 * content.
 */
export function passthroughBody(
  { model, body, request }: PassthroughUpstreamCall,
  settings: ResponsesOptions,
  defaults: JsonRecord,
): JsonRecord {
  const rule = ruleFor(model, settings)
  const { fields } = settings
  const forwarded: JsonRecord = { ...body, model, store: false }
  if (request.max_tokens !== undefined) forwarded.max_output_tokens = Math.max(request.max_tokens, MIN_OUTPUT_TOKENS)
  for (const [field, value] of Object.entries(defaults)) if (!RESERVED.has(field)) forwarded[field] ??= value
  const isSampling = acceptsSampling(rule, effortIn(forwarded))
  for (const field of SAMPLING) {
    if (!isSampling) delete forwarded[field]
    else if (request[field] !== undefined) forwarded[field] ??= request[field]
  }
  for (const field of UNKNOWN) if (!fields.allow.includes(field)) delete forwarded[field]
  if (rule.reasons === false) delete forwarded.reasoning
  const include = includeOf(forwarded.include, rule, body.store === true)
  if (include) forwarded.include = include
  const drop = fields.drop.map((field) => VENDORS_NAME[field] ?? field)
  return adapt(forwarded, { ...fields, drop }, RESERVED)
}

function effortIn({ reasoning }: JsonRecord): (typeof EFFORTS)[number] | undefined {
  const effort = memberOf(reasoning, 'effort')
  return EFFORTS.find((one) => one === effort)
}

/** The `include` list. Requesting encrypted reasoning from models that do not reason is an error. */
function includeOf(include: unknown, { reasons, encrypts }: ModelRule, isStored: boolean): unknown[] | undefined {
  const list: unknown[] = Array.isArray(include) ? include : []
  if (reasons === false && list.includes(ENCRYPTED)) return list.filter((one) => one !== ENCRYPTED)
  return isStored && encrypts && !list.includes(ENCRYPTED) ? [...list, ENCRYPTED] : undefined
}
