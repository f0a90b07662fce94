/** What vendors of embeddings and of rerank say that they counted, wherever they say it. */
import { isRecord } from '../kit/json.ts'

/** What vendors count of texts that only go in. */
export function tokensOf(payload: unknown): number | undefined {
  if (!isRecord(payload)) return undefined
  const usage = isRecord(payload.usage) ? payload.usage : {}
  const google = isRecord(payload.usageMetadata) ? payload.usageMetadata : {}
  const counts = [usage.prompt_tokens, usage.total_tokens, usage.input_tokens, google.promptTokenCount]
  return counts.find(isCount)
}

const isCount = (value: unknown): value is number => typeof value === 'number' && Number.isInteger(value) && value > 0

/** What was counted, tokens or whole searches. */
export function billedIn(payload: unknown): { prompt_tokens?: number; search_units?: number } {
  const meta = isRecord(payload) && isRecord(payload.meta) ? payload.meta : {}
  const units = isRecord(meta.billed_units) ? meta.billed_units : {}
  const counted = isRecord(meta.tokens) ? meta.tokens : {}
  const tokens = tokensOf(payload) ?? [counted.input_tokens, units.input_tokens].find(isCount)
  const { search_units } = units
  return {
    ...(tokens === undefined ? {} : { prompt_tokens: tokens }),
    ...(isCount(search_units) ? { search_units } : {}),
  }
}
