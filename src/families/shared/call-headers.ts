/** The response headers of a call: how it was routed, and where its rate limits stand. */
import type { Call, CallRecord } from '../../calls/call.ts'
import { durationText, type LimitStatus } from '../../calls/limits/status.ts'
import { targetName } from '../../calls/routing/target-state.ts'
import type { ServerSettings } from '../../config/config.ts'
import type { Clock } from '../../kit/clock.ts'
import { headerValue } from '../../kit/header-value.ts'
import type { Target } from '../../providers/provider.ts'
import { nanoText } from '../../spec/price.ts'
import { CACHE_HEADER, SIMILARITY_HEADER } from './call-options.ts'
import { explanationText, HEADER_CHARACTERS } from './explanation.ts'

type Headers = Record<string, string>
type Shown = Pick<ServerSettings, 'show_target' | 'show_cost'>

/** Adds those of a call, and none for a request that is no call. `settings` are read for each, since a reload changes them. */
export function callHeaders({ settings, clock }: { settings: Shown; clock: Clock }) {
  return (headers: Headers, { record, limits }: Call): void => {
    if (record !== undefined) addRoutingHeaders(headers, record, settings)
    // Without a limit there are none, and a call that was not admitted or refused yet has none.
    if (limits === undefined) return
    const statuses = limits.statuses()
    if (record?.family === 'messages-compat') addAnthropicHeaders(headers, statuses, clock)
    else addOpenaiHeaders(headers, statuses)
  }
}

/**
 * The target that answered, also where its response comes from the cache, or failed last, and how many upstream calls were
 * made: none for a response from the cache; the model, where a fallback served the call, what the response cache did, what
 * the call is charged, and the routing decision for whoever may have it.
 */
function addRoutingHeaders(headers: Headers, record: CallRecord, { show_target, show_cost }: Shown): void {
  if (record.target === undefined && record.cache === undefined && record.decisions === undefined) return
  if (record.cache !== undefined) headers[CACHE_HEADER] = record.cache
  if (record.cache_age_seconds !== undefined) headers.age = String(record.cache_age_seconds)
  // Not rounded up: 1.00 would say that the requests are equal.
  if (record.cache_similarity !== undefined) {
    headers[SIMILARITY_HEADER] = (Math.floor(record.cache_similarity * 100) / 100).toFixed(2)
  }
  const target = shownTarget(record)
  if (show_target && target !== undefined) headers['x-gatehouse-target'] = target
  if (show_target && (record.target !== undefined || record.cache === 'hit')) {
    headers['x-gatehouse-attempts'] = String(record.attempts.length)
  }
  // Before a stream has ended, and where a call has failed, its charge is not known.
  const charged = show_cost && record.entries?.[0]
  if (charged) headers['x-gatehouse-cost'] = costText(charged.amount)
  if (record.requested !== undefined) {
    headers['x-model-requested'] = headerValue(record.requested)
    headers['x-model-served'] = headerValue(record.model ?? '')
  }
  const explanation = record.call.is_explained ? explanationText(record, HEADER_CHARACTERS) : undefined
  if (explanation !== undefined) headers['x-gatehouse-explain'] = explanation
}

/** The names of targets as header values. */
const shownNames = new WeakMap<Target, string>()

function shownTarget({ target, cache_target }: CallRecord): string | undefined {
  if (!target) return cache_target && headerValue(cache_target)
  const known = shownNames.get(target)
  if (known !== undefined) return known
  const name = headerValue(targetName(target))
  shownNames.set(target, name)
  return name
}

/** In units of the ledger's currency, as a decimal number. */
const costText = (amount: number | null): string => (amount === null ? 'unknown' : nanoText(amount))

type Names = { limit: string; remaining: string; reset: string }

const openaiNames = (unit: string): Names => ({
  limit: `x-ratelimit-limit-${unit}`,
  remaining: `x-ratelimit-remaining-${unit}`,
  reset: `x-ratelimit-reset-${unit}`,
})
const anthropicNames = (unit: string): Names => ({
  limit: `anthropic-ratelimit-${unit}-limit`,
  remaining: `anthropic-ratelimit-${unit}-remaining`,
  reset: `anthropic-ratelimit-${unit}-reset`,
})
type NamesByUnit = Partial<Record<LimitStatus['unit'], Names>>

/** https://platform.openai.com/docs/guides/rate-limits, "Rate limits in headers". */
const OPENAI_NAMES: NamesByUnit = { requests: openaiNames('requests'), tokens: openaiNames('tokens') }
/** https://docs.anthropic.com/en/api/rate-limits, "Response headers". */
const ANTHROPIC_NAMES: NamesByUnit = {
  requests: anthropicNames('requests'),
  tokens: anthropicNames('tokens'),
  input_tokens: anthropicNames('input-tokens'),
  output_tokens: anthropicNames('output-tokens'),
}

/** Whether less than this part of a limit is left, by the headers of a response. */
export const isNearLimit = (headers: { get(name: string): string | null }, part: number): boolean =>
  [OPENAI_NAMES, ANTHROPIC_NAMES].flatMap(Object.values<Names>).some((names) => {
    const [limit, left] = [headers.get(names.limit), headers.get(names.remaining)]
    return limit !== null && left !== null && Number(left) < part * Number(limit)
  })

/** The strictest limit of each unit. Durations such as `1s` and `6m0s`. */
function addOpenaiHeaders(headers: Headers, statuses: readonly LimitStatus[]): void {
  for (const status of statuses) {
    const names = OPENAI_NAMES[status.unit]
    if (names === undefined) continue
    headers[names.limit] = limitText(status.limit)
    headers[names.remaining] = String(status.remaining)
    headers[names.reset] = durationText(status.reset_ms)
  }
}

/** Limits are few: their texts are not made for each response. */
function limitText(limit: number): string {
  let text = limitTexts.get(limit)
  if (text !== undefined) return text
  text = String(limit)
  if (limitTexts.size < MAX_TEXTS) limitTexts.set(limit, text)
  return text
}

const limitTexts = new Map<number, string>()
const MAX_TEXTS = 1_000

/** Times in RFC 3339. */
function addAnthropicHeaders(headers: Headers, statuses: readonly LimitStatus[], clock: Clock): void {
  for (const status of statuses) {
    const names = ANTHROPIC_NAMES[status.unit]
    if (names === undefined) continue
    const reset = new Date(Math.ceil((clock.now() + status.reset_ms) / 1000) * 1000)
    headers[names.limit] = String(status.limit)
    headers[names.remaining] = String(status.remaining)
    headers[names.reset] = reset.toISOString().replace('.000Z', 'Z')
  }
}
