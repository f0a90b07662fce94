/** Shared by the APIs for embeddings, rerank and moderation: the names of input types, and the counts of usage. */
import { byName } from '../kit/by-name.ts'
import { asRecord, isRecord, memberOf } from '../kit/json.ts'

export type InputTypeNames = { query: string; document: string }

/** The values that clients of several providers send, mapped to one of two. */
const KNOWN = byName<keyof InputTypeNames>(
  ['query', 'query search_query retrieval_query retrieval.query'],
  ['document', 'document passage search_document retrieval_document retrieval.passage'],
)

/** The provider's name of an input type; an unknown value may be the provider's own and is passed on. */
export function toVendorInputType(value: string, names: InputTypeNames): string {
  const known = KNOWN[value.toLowerCase()]
  return known === undefined ? value : names[known]
}

/** The token count of an API with input tokens only. */
export function readTokenCount(payload: unknown): number | undefined {
  if (!isRecord(payload)) return undefined
  const usage = asRecord(payload.usage)
  const google = asRecord(payload.usageMetadata)
  const counts = [usage.prompt_tokens, usage.total_tokens, usage.input_tokens, google.promptTokenCount]
  return counts.find(isCount)
}

const isCount = (value: unknown): value is number => typeof value === 'number' && Number.isInteger(value) && value > 0

/** The billed usage: tokens or whole searches. */
export function readBilledUnits(payload: unknown): { prompt_tokens?: number; search_units?: number } {
  const meta = asRecord(memberOf(payload, 'meta'))
  const units = asRecord(meta.billed_units)
  const counted = asRecord(meta.tokens)
  const tokens = readTokenCount(payload) ?? [counted.input_tokens, units.input_tokens].find(isCount)
  const { search_units } = units
  return {
    ...(tokens === undefined ? {} : { prompt_tokens: tokens }),
    ...(isCount(search_units) ? { search_units } : {}),
  }
}
