/** Converts the fields of a contentgen request other than contents and tools. */
import { invalidValue } from '../../../spec/error.ts'
import type { ChatRequest } from '../../shared/canonical.ts'
import { refusedField } from '../../shared/request-error.ts'
import { isStrict, jsonSchemaOf } from './json-schema.ts'
import type { ContentgenRequest, GenerationConfig, JsonObject } from './schema.ts'

/** Members of `generationConfig` that only change their name. */
export const RENAMED = {
  temperature: 'temperature',
  topP: 'top_p',
  topK: 'top_k',
  maxOutputTokens: 'max_tokens',
  candidateCount: 'n',
  seed: 'seed',
  presencePenalty: 'presence_penalty',
  frequencyPenalty: 'frequency_penalty',
  responseLogprobs: 'logprobs',
  logprobs: 'top_logprobs',
} as const satisfies { [member in keyof GenerationConfig]: keyof ChatRequest }

/**
 * Members that are forwarded unchanged to providers of this API, and ignored by all others because they only tune. By
 * the object that holds them.
 */
export const OWN = {
  '': ['safetySettings', 'labels'],
  generationConfig: ['mediaResolution', 'imageConfig', 'speechConfig', 'audioTimestamp', 'enableEnhancedCivicAnswers'],
  toolConfig: ['retrievalConfig'],
} as const

/** Members that would change the response or its source, and the reason why they are refused. By path. */
export const REFUSED: Record<string, string> = {
  cachedContent: 'a cache is known to one provider only; send the contents themselves',
  continuationToken: 'it is supported only by its own vendor; send the conversation so far',
  'generationConfig.audioTranscriptionConfig': 'it is supported only by its own vendor; leave it out',
  'generationConfig.translationConfig': 'it is supported only by its own vendor; leave it out',
  'generationConfig.routingConfig': 'the path selects the model; leave it out',
  'generationConfig.modelSelectionConfig': 'the path selects the model; leave it out',
}

const THINKING_LEVELS = ['MINIMAL', 'LOW', 'MEDIUM', 'HIGH'] as const
const MODALITIES = ['TEXT', 'IMAGE'] as const
const UNSPECIFIED = ['THINKING_LEVEL_UNSPECIFIED', 'MODALITY_UNSPECIFIED']
/** The vendor's tier -> the canonical tier, where they differ. */
const TIERS = new Map([['standard', 'default']])

/** All fields of the canonical request except the messages and the tools. */
export function fieldsOf(clientRequest: ContentgenRequest): Partial<ChatRequest> {
  const config: JsonObject & GenerationConfig = clientRequest.generationConfig ?? {}
  assertSupported(clientRequest)
  const request: Partial<ChatRequest> = {}
  for (const [member, field] of Object.entries(RENAMED)) {
    if (config[member] !== undefined) Object.assign(request, { [field]: config[member] })
  }
  if (config.stopSequences?.length) request.stop = config.stopSequences
  const tier = clientRequest.serviceTier?.toLowerCase()
  if (tier !== undefined && tier !== 'unspecified') request.service_tier = TIERS.get(tier) ?? tier
  const format = formatOf(config)
  if (format) request.response_format = format
  const modalities = modalitiesOf(config.responseModalities ?? [])
  if (modalities.includes('image')) request.modalities = modalities
  const own = ownOf(clientRequest)
  return {
    ...request,
    ...thinkingOf(config.thinkingConfig),
    ...(Object.keys(own).length === 0 ? {} : { provider_options: { 'contentgen-compat': own } }),
  }
}

function assertSupported(clientRequest: JsonObject): void {
  for (const [path, instead] of Object.entries(REFUSED)) {
    const [name = '', member] = path.split('.')
    const holder = clientRequest[name]
    const value = member === undefined ? holder : (holder as JsonObject | undefined)?.[member]
    if (value !== undefined && value !== '') throw refusedField(path, `is not supported: ${instead}`)
  }
}

/** Requesting thoughts requests thinking. The vendor's own models think by default. */
function thinkingOf(clientRequest: GenerationConfig['thinkingConfig']): Partial<ChatRequest> {
  const { includeThoughts, thinkingBudget: budget, thinkingLevel } = clientRequest ?? {}
  const at = 'generationConfig.thinkingConfig.thinkingLevel'
  const level = enumValue(thinkingLevel, { known: THINKING_LEVELS, at })
  const isOn = budget === undefined ? level !== undefined || includeThoughts === true : budget !== 0
  return {
    ...(isOn ? { thinking_enabled: true } : {}),
    ...(budget === 0 ? { thinking_enabled: false } : {}),
    ...(budget === undefined ? {} : { reasoning_budget: budget }),
    ...(level === undefined ? {} : { reasoning_effort: level }),
    ...(includeThoughts && isOn ? { reasoning_summary: 'auto' } : {}),
  }
}

const modalitiesOf = (clientRequest: string[]): string[] =>
  clientRequest.flatMap((one, index) => {
    const at = `generationConfig.responseModalities[${index}]`
    return enumValue(one, { known: MODALITIES, at, isUnsupported: true }) ?? []
  })

type EnumValues<T extends string> = { known: readonly T[]; at: string; isUnsupported?: true }

/** A value of an enum, in lower case; undefined if it is unspecified. */
function enumValue<T extends string>(
  value: string | undefined,
  { known, at, isUnsupported }: EnumValues<T>,
): Lowercase<T> | undefined {
  if (value === undefined || UNSPECIFIED.includes(value)) return undefined
  const found = known.find((one) => one === value.toUpperCase())
  if (found !== undefined) return found.toLowerCase() as Lowercase<T>
  const rule = `must be one of ${known.join(', ')}, not ${JSON.stringify(value.slice(0, 60))}`
  throw isUnsupported ? refusedField(at, rule) : invalid(at, rule)
}

function formatOf(config: GenerationConfig): ChatRequest['response_format'] {
  const { responseMimeType: type = '', responseSchema, responseJsonSchema } = config
  const at = 'generationConfig.responseMimeType'
  const rule = `must be "application/json", "text/x.enum" or "text/plain", not ${JSON.stringify(type.slice(0, 60))}`
  if (!['', 'application/json', 'text/x.enum', 'text/plain'].includes(type)) throw invalid(at, rule)
  const schema = responseJsonSchema ?? (responseSchema && (jsonSchemaOf(responseSchema) as JsonObject))
  if (type === 'text/x.enum') return enumFormat(schema)
  if (schema !== undefined && type !== 'text/plain') {
    const strict = isStrict(schema) ? { strict: true } : {}
    return { type: 'json_schema', json_schema: { name: 'answer', schema, ...strict } }
  }
  return type === 'application/json' ? { type: 'json_object' } : undefined
}

/** One value of an enum. Providers support only objects as a whole response, so the value is a member of one. */
function enumFormat(schema: JsonObject | undefined): ChatRequest['response_format'] {
  if (!Array.isArray(schema?.enum) || schema.enum.length === 0) {
    throw invalid('generationConfig.responseSchema', 'must have "enum" for the "responseMimeType" "text/x.enum"')
  }
  const { enum: values, description } = schema
  const value = { type: 'string', enum: values, ...(description === undefined ? {} : { description }) }
  return {
    type: 'json_schema',
    json_schema: {
      name: ENUM_FORMAT,
      schema: { type: 'object', properties: { value }, required: ['value'], additionalProperties: false },
      strict: true,
    },
  }
}

/** The name of the format distinguishes it from a client's own schema. */
const ENUM_FORMAT = 'enum_value'
export const isEnumRequest = ({ response_format: format }: ChatRequest): boolean =>
  format?.type === 'json_schema' && format.json_schema.name === ENUM_FORMAT

function ownOf(clientRequest: JsonObject): JsonObject {
  const own: JsonObject = {}
  for (const [holder, members] of Object.entries(OWN)) {
    const from = (holder === '' ? clientRequest : clientRequest[holder]) as JsonObject | undefined
    const given = Object.fromEntries(
      members.flatMap((name) => (from?.[name] === undefined ? [] : [[name, from[name]]])),
    )
    if (Object.keys(given).length === 0) continue
    if (holder === '') Object.assign(own, given)
    else own[holder] = given
  }
  return own
}

const invalid = (param: string, rule: string) => invalidValue(param, `"${param}" ${rule}.`)
