/** A responses vendor asked by a client that speaks as it does: its own body, but for what the house and the operator demand. */

import { isRecord, type JsonRecord } from '../../../kit/json.ts'
import { adapt } from '../../field-rules.ts'
import type { PassthroughUpstreamCall } from '../../upstream.ts'
import { EFFORTS, type ModelRule } from './model-rules.ts'
import { acceptsSampling } from './reasoning.ts'
import { MIN_OUTPUT_TOKENS, type ResponsesOptions, ruleFor } from './request.ts'

/** Fields that are the house's to say. */
const RESERVED = new Set(['model', 'input', 'stream', 'store'])
/** Where the model's row in the catalogue has a default for them, and where models that reason refuse them. */
const SAMPLING = ['temperature', 'top_p'] as const
/** Known to clients of this dialect, and not to its vendor. */
const UNKNOWN = ['presence_penalty', 'frequency_penalty']
const ENCRYPTED = 'reasoning.encrypted_content'
/** Names that an operator may write, for all vendors alike. */
const VENDORS_NAME: Record<string, string> = {
  max_tokens: 'max_output_tokens',
  max_completion_tokens: 'max_output_tokens',
  reasoning_effort: 'reasoning',
  response_format: 'text',
}

/** The client's body for this vendor. Nothing is kept there: what it wants back has to come here, to be kept here. */
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
  const effort = isRecord(reasoning) ? reasoning.effort : undefined
  return EFFORTS.find((one) => one === effort)
}

/** What the vendor is to tell beside the answer. Asked of models that do not reason, reasoning is an error. */
function includeOf(include: unknown, { reasons, encrypts }: ModelRule, isStored: boolean): unknown[] | undefined {
  const list: unknown[] = Array.isArray(include) ? include : []
  if (reasons === false && list.includes(ENCRYPTED)) return list.filter((one) => one !== ENCRYPTED)
  return isStored && encrypts && !list.includes(ENCRYPTED) ? [...list, ENCRYPTED] : undefined
}
