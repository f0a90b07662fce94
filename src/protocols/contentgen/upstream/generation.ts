/** Encodes the `generationConfig` of a request. */
import type { JsonRecord, RawNumber } from '../../../kit/json.ts'
import type { ChatRequest } from '../../shared/canonical.ts'
import { refusedField } from '../../shared/request-error.ts'
import { vendorSchema } from './json-schema.ts'
import type { ModelRule } from './model-rules.ts'
import { thinkingOf } from './thinking.ts'
import type { VendorTools } from './tools.ts'

/** Fields that only change their name. */
const RENAMED: { [field in keyof ChatRequest]?: string } = {
  temperature: 'temperature',
  top_p: 'topP',
  n: 'candidateCount',
  logprobs: 'responseLogprobs',
}
/** The same, for models that accept them. */
const PENALTIES: { [field in keyof ChatRequest]?: string } = {
  frequency_penalty: 'frequencyPenalty',
  presence_penalty: 'presencePenalty',
}
/** The vendor's seeds are signed integers of 32 bits. */
const MAX_SEED = 2 ** 31

export function generationOf(request: ChatRequest, rule: ModelRule, tools: VendorTools): JsonRecord {
  const { top_k, seed, stop, logprobs, top_logprobs } = request
  const config: JsonRecord = {}
  const given: JsonRecord = request
  for (const [field, name] of Object.entries({ ...RENAMED, ...(rule.penalties ? PENALTIES : {}) })) {
    if (given[field] !== undefined) config[name] = given[field]
  }
  if (config.candidateCount === 1) delete config.candidateCount
  const limit = request.max_completion_tokens ?? request.max_tokens
  if (limit !== undefined) config.maxOutputTokens = limit
  if (top_k) config.topK = top_k
  if (seed !== undefined) config.seed = seedOf(seed)
  const stops = (typeof stop === 'string' ? [stop] : (stop ?? [])).filter((one) => one !== '')
  if (stops.length > 0) config.stopSequences = stops
  if (logprobs && top_logprobs) config.logprobs = top_logprobs
  if (request.modalities?.includes('image')) config.responseModalities = ['TEXT', 'IMAGE']
  const thinkingConfig = thinkingOf(request, rule)
  return { ...config, ...formOf(request, rule, tools), ...(thinkingConfig ? { thinkingConfig } : {}) }
}

const seedOf = (seed: number | RawNumber): number =>
  typeof seed === 'number' ? Math.abs(seed) % MAX_SEED : Number(BigInt.asUintN(31, BigInt(seed.rawJSON)))

function formOf({ response_format: format, model }: ChatRequest, rule: ModelRule, tools: VendorTools): JsonRecord {
  // A forced call is the whole response, so no format applies.
  if (format === undefined || format.type === 'text' || tools.isForced) return {}
  if (tools.hasFunctions && !rule.mixes) {
    throw refusedField('response_format', `must not be "${format.type}" together with "tools" for the model "${model}"`)
  }
  const json = { responseMimeType: 'application/json' }
  const schema = format.type === 'json_schema' ? format.json_schema.schema : undefined
  return schema === undefined ? json : { ...json, responseJsonSchema: vendorSchema(schema) }
}
