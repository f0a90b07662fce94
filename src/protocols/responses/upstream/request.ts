/** Encodes a chat request for the Responses API. Unsupported features are refused by name. */
import { isRecord, type JsonRecord } from '../../../kit/json.ts'
import { ChatRequest, type ChatRequestField } from '../../shared/canonical.ts'
import { adapt, hasAudioHistory, NO_AUDIO_HISTORY } from '../../shared/field-rules.ts'
import type { BodyOptions, UpstreamCall } from '../../shared/upstream.ts'
import { type Item, inputOf } from './input.ts'
import { COMMON_EFFORTS, type Effort, type ModelRule, ruleOf } from './model-rules.ts'
import { refused } from './parts.ts'
import { acceptsSampling, effortOf, reasoningOf } from './reasoning.ts'
import { FIELD_MAPPINGS } from './request-fields.ts'
import { toolsOf } from './tools.ts'

/** The operator's settings for a provider of the Responses API. */
export type ResponsesOptions = BodyOptions & {
  /** The operator's corrections of the model's row. */
  rule: Partial<ModelRule>
  /** Accepts the role `developer`. */
  developer_role: boolean
  tools: boolean
  /** Has custom tools; for others they are functions. */
  custom_tools: boolean
  json_schema: boolean
  /** Accepts `input_audio` in messages, which the API's own documentation does not mention. */
  audio: boolean
}

/** Fields that the gateway sets. The operator's lists and defaults cannot replace them. */
const RESERVED = new Set(['model', 'input', 'stream'])
/**
 * Fields that a caller's vendor-specific options may not set: those with canonical fields, so that limits hold, and
 * those that refer to the account at the vendor, which all callers share.
 */
const NOT_FOR_CALLERS = new Set([
  ...RESERVED,
  'instructions',
  'tools',
  'tool_choice',
  'max_output_tokens',
  'background',
  'conversation',
  'previous_response_id',
  'prompt',
  'access_programs',
])
/** The fields of the vendor's token-count endpoint. */
const COUNTED = ['model', 'input', 'tools', 'tool_choice', 'parallel_tool_calls', 'reasoning', 'text']
/** Fields that are sent under the same name. */
const SAME = [
  'user',
  'safety_identifier',
  'metadata',
  'service_tier',
  'prompt_cache_key',
  'prompt_cache_options',
] as const satisfies ChatRequestField[]

/** The vendor's minimum. */
export const MIN_OUTPUT_TOKENS = 16

export function createBodyEncoder(settings: ResponsesOptions) {
  const { fields, request_defaults } = settings
  const defaults = Object.entries(request_defaults)
  const ownDefaults = defaults.filter(([field]) => !isGatewayField(field) && !RESERVED.has(field))
  const gatewayDefaults = defaults.filter(
    ([field]) => isGatewayField(field) && !RESERVED.has(field) && field !== 'messages',
  )
  const isDropped = (field: string) => fields.drop.includes(field)

  /** The request with the operator's defaults, without the fields that the operator drops. */
  function withDefaults(given: ChatRequest): ChatRequest {
    assertSupported(given, settings)
    if (gatewayDefaults.length === 0 && fields.drop.length === 0) return given
    const completed: JsonRecord = { ...given }
    for (const [field, value] of gatewayDefaults) completed[field] ??= value
    for (const field of fields.drop) if (isGatewayField(field) && field !== 'messages') delete completed[field]
    return completed as ChatRequest
  }

  function bodyOf({ model, request: original }: UpstreamCall): JsonRecord {
    const request = withDefaults(original)
    const rule = ruleFor(model, settings)
    const effort = effortOf(request, rule)
    const input = inputOf(request.messages, { ...settings, reasoning: rule.reasons !== false })
    const body: JsonRecord = {
      model,
      input,
      store: request.store ?? false,
      ...(isDropped('max_tokens') ? {} : limitOf(request)),
      ...(acceptsSampling(rule, effort) ? samplingOf(request) : {}),
      ...toolsOf(request, settings.custom_tools),
      ...textOf(request),
      ...includeOf(request, rule, input),
      ...thoughtsOf(request, rule, effort),
    }
    for (const field of SAME) if (request[field] !== undefined) body[field] = request[field]
    if (request.logprobs && request.top_logprobs !== undefined) body.top_logprobs = request.top_logprobs
    addOwn(body, request.provider_options?.['responses-compat'] ?? {})
    const given: JsonRecord = request
    for (const field of fields.allow) if (!RESERVED.has(field) && given[field] != null) body[field] ??= given[field]
    for (const [field, value] of ownDefaults) body[field] ??= value
    return adapt(body, fields, RESERVED)
  }

  return {
    answer: (call: UpstreamCall, stream: boolean) =>
      JSON.stringify({ ...bodyOf(call), ...(stream ? streamOf(call.request) : {}) }),
    /** The body of a token-count request for the same prompt. */
    count(call: UpstreamCall) {
      const body = bodyOf(call)
      return JSON.stringify(Object.fromEntries(COUNTED.map((field) => [field, body[field]])))
    },
    /** The operator's defaults, under the vendor's field names. */
    defaults(model: string) {
      if (defaults.length === 0) return {}
      const { include: _, ...fields } = bodyOf({ model, request: { model, messages: [] } })
      return fields
    },
  }
}

/** The model's row with the operator's corrections. A model without a row has the common efforts. */
export function ruleFor(model: string, { rule }: ResponsesOptions): ModelRule {
  const known = ruleOf(model)
  return rule.reasons ? { efforts: COMMON_EFFORTS, ...known, ...rule } : { ...known, ...rule }
}

const isGatewayField = (field: string) => Object.hasOwn(ChatRequest.properties, field)

function assertSupported(request: ChatRequest, { fields, tools, json_schema }: ResponsesOptions): void {
  for (const [field, mapping] of Object.entries(FIELD_MAPPINGS)) {
    if ('refused' in mapping && mapping.isUsed(request)) {
      throw refused(field, `${mapping.refused} for the model "${request.model}"`)
    }
    if ('sent' in mapping && mapping.isUsed?.(request) && fields.drop.includes(field)) {
      throw refused(field, `must be left out for the model "${request.model}"`)
    }
  }
  if (hasAudioHistory(request)) throw refused('messages', `${NO_AUDIO_HISTORY} for the model "${request.model}"`)
  if (!tools && request.tools?.length) throw refused('tools', `must be left out for the model "${request.model}"`)
  if (!json_schema && request.response_format?.type === 'json_schema') {
    throw refused(
      'response_format',
      `must not be "json_schema" for the model "${request.model}"; "json_object" may work`,
    )
  }
}

/** The vendor pads its events unless the client declares its connection trusted with this option. */
function streamOf({ stream_options }: ChatRequest): JsonRecord {
  const { include_obfuscation } = stream_options ?? {}
  return {
    stream: true,
    ...(typeof include_obfuscation === 'boolean' ? { stream_options: { include_obfuscation } } : {}),
  }
}

function limitOf({ max_completion_tokens, max_tokens }: ChatRequest): JsonRecord {
  const limit = max_completion_tokens ?? max_tokens
  return limit === undefined ? {} : { max_output_tokens: Math.max(limit, MIN_OUTPUT_TOKENS) }
}

function samplingOf({ temperature, top_p }: ChatRequest): JsonRecord {
  return { ...(temperature === undefined ? {} : { temperature }), ...(top_p === undefined ? {} : { top_p }) }
}

function textOf({ response_format: format, verbosity }: ChatRequest): JsonRecord {
  const text: JsonRecord = verbosity === undefined ? {} : { verbosity }
  if (format?.type === 'json_object') text.format = { type: 'json_object' }
  if (format?.type === 'json_schema') {
    const { name, description, schema = { type: 'object' }, strict } = format.json_schema
    text.format = {
      type: 'json_schema',
      name,
      ...(description === undefined ? {} : { description }),
      schema,
      strict: strict ?? false,
    }
  }
  return Object.keys(text).length === 0 ? {} : { text }
}

/**
 * The `include` list. The provider stores nothing, so encrypted reasoning is requested in order to send it again
 * later.
 */
function includeOf({ logprobs }: ChatRequest, { encrypts }: ModelRule, input: Item[]): JsonRecord {
  const include: string[] = []
  if (encrypts || input.some(({ type }) => type === 'reasoning')) include.push('reasoning.encrypted_content')
  if (logprobs) include.push('message.output_text.logprobs')
  return include.length === 0 ? {} : { include }
}

function thoughtsOf(request: ChatRequest, rule: ModelRule, effort: Effort | undefined): JsonRecord {
  const reasoning = reasoningOf(request, rule, effort)
  return reasoning ? { reasoning } : {}
}

/** Adds the caller's vendor-specific options. If both set a member, the canonical field wins. */
function addOwn(body: JsonRecord, own: JsonRecord): void {
  for (const [field, value] of Object.entries(own)) {
    if (NOT_FOR_CALLERS.has(field)) continue
    const current = body[field]
    if (Array.isArray(current) && Array.isArray(value)) body[field] = [...new Set([...current, ...value])]
    else if (isRecord(current) && isRecord(value)) body[field] = { ...value, ...current }
    else if (current === undefined) body[field] = value
  }
}
