/** A responses vendor asked by a client that speaks as it does: its own body, but for what the house and the operator demand. */

import { isRecord, type JsonRecord } from '../../../kit/json.ts'
import { adapt } from '../../field-rules.ts'
import type { PassthroughUpstreamCall } from '../../upstream.ts'
import { EFFORTS, type ModelRule } from './model-rules.ts'
import { takesSampling } from './reasoning.ts'
import { MIN_OUTPUT_TOKENS, type ResponsesOptions, ruleFor } from './request.ts'

/** Fields that are the house's to say. */
const OURS = new Set(['model', 'input', 'stream', 'store'])
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
  const relayed: JsonRecord = { ...body, model, store: false }
  if (request.max_tokens !== undefined) relayed.max_output_tokens = Math.max(request.max_tokens, MIN_OUTPUT_TOKENS)
  for (const [field, value] of Object.entries(defaults)) if (!OURS.has(field)) relayed[field] ??= value
  const isSampling = takesSampling(rule, effortIn(relayed))
  for (const field of SAMPLING) {
    if (!isSampling) delete relayed[field]
    else if (request[field] !== undefined) relayed[field] ??= request[field]
  }
  for (const field of UNKNOWN) if (!fields.allow.includes(field)) delete relayed[field]
  if (rule.reasons === false) delete relayed.reasoning
  const include = includeOf(relayed.include, rule, body.store === true)
  if (include) relayed.include = include
  const drop = fields.drop.map((field) => VENDORS_NAME[field] ?? field)
  return adapt(relayed, { ...fields, drop }, OURS)
}

function effortIn({ reasoning }: JsonRecord): (typeof EFFORTS)[number] | undefined {
  const effort = isRecord(reasoning) ? reasoning.effort : undefined
  return EFFORTS.find((one) => one === effort)
}

/** What the vendor is to tell beside the answer. Asked of models that do not reason, reasoning is an error. */
function includeOf(asked: unknown, { reasons, encrypts }: ModelRule, isKept: boolean): unknown[] | undefined {
  const list: unknown[] = Array.isArray(asked) ? asked : []
  if (reasons === false && list.includes(ENCRYPTED)) return list.filter((one) => one !== ENCRYPTED)
  return isKept && encrypts && !list.includes(ENCRYPTED) ? [...list, ENCRYPTED] : undefined
}
