/**
 * Prepares a client's own contentgen body for the provider: the body changes only where the gateway or the operator
 * requires it.
 */
import { isRecord, type JsonRecord } from '../../../kit/json.ts'
import type { ChatRequest } from '../../shared/canonical.ts'
import { adapt } from '../../shared/field-rules.ts'
import type { PassthroughUpstreamCall } from '../../shared/upstream.ts'
import { UNSIGNED } from './contents.ts'
import { type ModelRule, ruleOf } from './model-rules.ts'
import { mergeOptions } from './own-options.ts'
import { type ContentgenOptions, RESERVED } from './request.ts'

/** Members for which the model's row in the catalogue may have a default. */
const SAMPLING: { [member: string]: keyof ChatRequest } = { temperature: 'temperature', topP: 'top_p' }
const PENALTIES: { [member: string]: keyof ChatRequest } = {
  frequencyPenalty: 'frequency_penalty',
  presencePenalty: 'presence_penalty',
}

/** The client's body with the model's limits and defaults, and the operator's settings. */
export function passthroughBody(
  { model, body, request }: PassthroughUpstreamCall,
  settings: ContentgenOptions,
): JsonRecord {
  const rule = { ...ruleOf(model), ...settings.rule }
  const forwarded: JsonRecord = { ...body }
  const config: JsonRecord = isRecord(body.generationConfig) ? { ...body.generationConfig } : {}
  if (request.max_tokens !== undefined) config.maxOutputTokens = request.max_tokens
  for (const [member, field] of Object.entries({ ...SAMPLING, ...(rule.penalties ? PENALTIES : {}) })) {
    if (request[field] !== undefined) config[member] ??= request[field]
  }
  if (Object.keys(config).length > 0) forwarded.generationConfig = config
  if (Array.isArray(forwarded.contents)) forwarded.contents = withSignatures(forwarded.contents, rule)
  const { contents: _, model: __, ...defaults } = settings.request_defaults
  return adapt(mergeOptions(forwarded, defaults), settings.fields, RESERVED)
}

/** Adds the documented value to a model's turn with calls but no signature: newer models refuse such a turn. */
function withSignatures(contents: unknown[], { requires_signatures }: ModelRule): unknown[] {
  if (!requires_signatures) return contents
  let isSigned = false
  return contents.map((content) => {
    if (!isRecord(content) || content.role !== 'model' || !Array.isArray(content.parts)) {
      isSigned = false
      return content
    }
    const parts: unknown[] = content.parts
    const call = isSigned ? -1 : parts.findIndex((part) => isRecord(part) && (part.functionCall ?? part.function_call))
    const needsSignature = call !== -1 && !parts.some(isWithSignature)
    isSigned ||= needsSignature || parts.some(isWithSignature)
    if (!needsSignature) return content
    return { ...content, parts: parts.with(call, { ...(parts[call] as JsonRecord), thoughtSignature: UNSIGNED }) }
  })
}

const isWithSignature = (part: unknown): boolean =>
  isRecord(part) && Boolean(part.thoughtSignature ?? part.thought_signature)
