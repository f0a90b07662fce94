/** The response headers that name the target of a call, and whether it came from the response cache. */
import type { ServerSettings } from '../config/config.ts'
import { headerValue } from '../kit/header-value.ts'
import type { Call } from '../pipeline/call.ts'
import { targetName } from '../providers/provider.ts'
import { nanoText } from '../spec/money.ts'
import { CACHE_HEADER, SIMILARITY_HEADER } from './call-options.ts'
import { explanationText, HEADER_CHARACTERS } from './explanation.ts'

const COST_HEADER = 'x-gatehouse-cost'

/** In units of the ledger's currency, as a decimal number. */
const costText = (amount: number | null): string => (amount === null ? 'unknown' : nanoText(amount))

/**
 * The target that answered, also where its response comes from the cache, or failed last, and how many upstream calls were made: none for a response from the cache; the model, where a fallback served the
 * call, what the response cache did, what the call is charged, and the routing decision for whoever may have it.
 */
export function addRoutingHeaders(
  headers: Headers,
  { record }: Call,
  { show_target, show_cost }: Pick<ServerSettings, 'show_target' | 'show_cost'>,
): void {
  if (record === undefined) return
  if (record.target === undefined && record.cache === undefined && record.decisions === undefined) return
  if (record.cache !== undefined) headers.set(CACHE_HEADER, record.cache)
  if (record.cache_age_seconds !== undefined) headers.set('age', String(record.cache_age_seconds))
  // Not rounded up: 1.00 would say that the requests are equal.
  if (record.cache_similarity !== undefined) {
    headers.set(SIMILARITY_HEADER, (Math.floor(record.cache_similarity * 100) / 100).toFixed(2))
  }
  const target = record.target ? targetName(record.target) : record.cache_target
  if (show_target && target !== undefined) headers.set('x-gatehouse-target', headerValue(target))
  if (show_target && (record.target !== undefined || record.cache === 'hit')) {
    headers.set('x-gatehouse-attempts', String(record.attempts.length))
  }
  // Before a stream has ended, and where a call has failed, its charge is not known.
  const charged = show_cost && record.entries?.[0]
  if (charged) headers.set(COST_HEADER, costText(charged.amount))
  if (record.requested !== undefined) {
    headers.set('x-model-requested', headerValue(record.requested))
    headers.set('x-model-served', headerValue(record.model ?? ''))
  }
  const explanation = explanationText(record, HEADER_CHARACTERS)
  if (explanation !== undefined) headers.set('x-gatehouse-explain', explanation)
}
