/** The response headers that name the target of a call, and whether it came from the response cache. */
import type { ServerSettings } from '../config/config.ts'
import { headerValue } from '../kit/header-value.ts'
import type { Call } from '../pipeline/call.ts'
import { targetName } from '../providers/provider.ts'
import { CACHE_HEADER, SIMILARITY_HEADER } from './call-options.ts'
import { explanationText, HEADER_CHARACTERS } from './explanation.ts'

/**
 * The target that answered, or failed last, and how many upstream calls were made; the model, where a fallback served the
 * call, and what the response cache did. Empty for a request that did neither.
 */
export function routingHeaders(
  { record }: Call,
  { show_target }: Pick<ServerSettings, 'show_target'>,
): [string, string][] {
  if (record === undefined || (record.target === undefined && record.cache === undefined)) return []
  const headers: [string, string][] = []
  if (record.cache !== undefined) headers.push([CACHE_HEADER, record.cache])
  if (record.cache_age_seconds !== undefined) headers.push(['age', String(record.cache_age_seconds)])
  // Not rounded up: 1.00 would say that the requests are equal.
  if (record.cache_similarity !== undefined) {
    headers.push([SIMILARITY_HEADER, (Math.floor(record.cache_similarity * 100) / 100).toFixed(2)])
  }
  if (show_target && record.target !== undefined) {
    headers.push(['x-gatehouse-target', headerValue(targetName(record.target))])
    headers.push(['x-gatehouse-attempts', String(record.attempts.length)])
  }
  if (record.requested !== undefined) {
    headers.push(['x-model-requested', headerValue(record.requested)])
    headers.push(['x-model-served', headerValue(record.model ?? '')])
  }
  const explanation = explanationText(record, HEADER_CHARACTERS)
  if (explanation !== undefined) headers.push(['x-gatehouse-explain', explanation])
  return headers
}
