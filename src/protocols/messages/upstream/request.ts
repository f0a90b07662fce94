/** Encodes a chat request for the Messages API. Unsupported features are refused by name. */
import type { JsonRecord } from '../../../kit/json.ts'
import type { ChatRequest } from '../../shared/canonical.ts'
import { adapt, assertNotRefused, HAS_EFFECT, REPLACED_FIELDS, type RefusedFields } from '../../shared/field-rules.ts'
import { refusedField } from '../../shared/request-error.ts'
import type { BodyOptions, UpstreamCall } from '../../shared/upstream.ts'
import { vendorSchema } from './json-schema.ts'
import { type Conversation, continuesUnsigned, conversationOf } from './messages.ts'
import { type ModelRule, ruleOf } from './model-rules.ts'
import { thinkingOf } from './thinking.ts'
import { isForced, toolsOf } from './tools.ts'

/** The operator's settings for a provider of the Messages API. */
export type MessagesOptions = BodyOptions & {
  /** The operator's corrections of the model's row. */
  rule: Partial<ModelRule>
}

/** Fields that change the meaning and that no model of the vendor supports. */
const REFUSED: RefusedFields = {
  n: { isUsed: HAS_EFFECT.n, instead: 'must be 1' },
  logprobs: { isUsed: HAS_EFFECT.logprobs, instead: 'must be false: the vendor returns none' },
  audio: { isUsed: HAS_EFFECT.audio, instead: 'must be left out: the vendor generates no audio' },
  modalities: { isUsed: HAS_EFFECT.modalities, instead: 'must be ["text"]' },
  ...REPLACED_FIELDS,
}

/** Fields that the gateway sets. The operator's lists and defaults cannot replace them. */
const RESERVED = new Set(['model', 'messages', 'stream'])
/** The fields of the vendor's token-count endpoint. */
export const COUNTED = ['model', 'messages', 'system', 'tools', 'tool_choice', 'thinking', 'output_config']

const JSON_ONLY = 'Answer with one JSON object and nothing else: no text around it and no code fence.'

export function createBodyEncoder(settings: MessagesOptions) {
  const { fields, request_defaults, rule: ruleSettings } = settings
  const defaults = Object.entries(request_defaults).filter(([field]) => !RESERVED.has(field))

  function bodyOf({ model, request }: UpstreamCall): JsonRecord {
    const rule = { ...ruleOf(model), ...ruleSettings }
    assertSupported(request, rule)
    const conversation = conversationOf(request.messages, rule)
    const tools = toolsOf(request, rule)
    const defaultLimit = Number.isInteger(request_defaults.max_tokens) ? Number(request_defaults.max_tokens) : undefined
    const limit = request.max_completion_tokens ?? request.max_tokens ?? defaultLimit
    const isForcing = isForced(tools.tool_choice?.type)
    const thinkingRefused = isForcing ? 'always' : continuesUnsigned(conversation) ? 'budget' : undefined
    const { max_tokens, thinking, effort } = thinkingOf(request, { rule, limit, thinkingRefused })
    const isThinking = thinking !== undefined && thinking.type !== 'disabled'
    const body: JsonRecord = {
      model,
      max_tokens,
      ...systemOf(conversation, request),
      messages: conversation.messages,
      ...tools,
      ...(thinking ? { thinking } : {}),
      ...outputOf(request, effort),
      ...(rule.sampling && !isThinking ? samplingOf(request) : {}),
      ...restOf(request),
    }
    const given: JsonRecord = request
    for (const field of fields.allow) if (!RESERVED.has(field) && given[field] != null) body[field] ??= given[field]
    for (const [field, value] of defaults) body[field] ??= value
    return adapt(body, fields, RESERVED)
  }

  return {
    answer: (call: UpstreamCall, stream: boolean) => JSON.stringify({ ...bodyOf(call), ...(stream ? { stream } : {}) }),
    /** The body of a token-count request for the same prompt. */
    count(call: UpstreamCall) {
      const body = bodyOf(call)
      return JSON.stringify(Object.fromEntries(COUNTED.map((field) => [field, body[field]])))
    },
  }
}

function assertSupported(request: ChatRequest, rule: ModelRule): void {
  assertNotRefused(request, REFUSED)
  if (!rule.json_schema && request.response_format?.type === 'json_schema') {
    throw refusedField(
      'response_format',
      `must not be "json_schema" for the model "${request.model}"; "json_object" may work`,
    )
  }
}

function systemOf({ system }: Conversation, { response_format }: ChatRequest): JsonRecord {
  const blocks = response_format?.type === 'json_object' ? [...system, { type: 'text', text: JSON_ONLY }] : system
  return blocks.length === 0 ? {} : { system: blocks }
}

function outputOf({ response_format: format }: ChatRequest, effort: string | undefined): JsonRecord {
  const config: JsonRecord = effort === undefined ? {} : { effort }
  if (format?.type === 'json_schema') {
    const { schema = { type: 'object' } } = format.json_schema
    config.format = { type: 'json_schema', schema: vendorSchema(schema) }
  }
  return Object.keys(config).length === 0 ? {} : { output_config: config }
}

/** The vendor's maximum temperature is 1. Newer models accept either it or `top_p`, not both. */
function samplingOf({ temperature, top_p, top_k }: ChatRequest): JsonRecord {
  const sampling: JsonRecord = {}
  if (temperature !== undefined) sampling.temperature = Math.min(1, temperature)
  else if (top_p !== undefined) sampling.top_p = top_p
  if (top_k !== undefined) sampling.top_k = top_k
  return sampling
}

/** The canonical value -> the vendor's. Other tiers belong to other vendors and are dropped. */
const TIERS: Record<string, string> = { auto: 'auto', default: 'standard_only', standard_only: 'standard_only' }

function restOf({ stop, user, safety_identifier, service_tier }: ChatRequest): JsonRecord {
  // The vendor refuses stop sequences of only white space.
  const stops = (typeof stop === 'string' ? [stop] : (stop ?? [])).filter((one) => one.trim() !== '')
  const user_id = user ?? safety_identifier
  const tier = service_tier && TIERS[service_tier]
  return {
    ...(stops.length > 0 ? { stop_sequences: stops } : {}),
    ...(user_id === undefined ? {} : { metadata: { user_id } }),
    ...(tier ? { service_tier: tier } : {}),
  }
}
