/** The response headers that tell a client where its rate limits stand, as OpenAI and Anthropic name them. */
import type { Clock } from '../kit/clock.ts'
import { durationText, type LimitStatus } from '../limits/status.ts'
import type { Call } from '../pipeline/call.ts'

/** Of the strictest limit of each unit; none without a limit, and for a call that was not admitted or refused yet. */
export function addRateLimitHeaders(headers: Headers, { limits, record }: Call, clock: Clock): void {
  if (limits === undefined) return
  const statuses = limits.statuses()
  if (record?.family === 'messages-compat') addAnthropicHeaders(headers, statuses, clock)
  else addOpenaiHeaders(headers, statuses)
}

/** https://platform.openai.com/docs/guides/rate-limits, "Rate limits in headers": durations such as `1s` and `6m0s`. */
function addOpenaiHeaders(headers: Headers, statuses: readonly LimitStatus[]): void {
  for (const { unit, limit, remaining, reset_ms } of statuses) {
    if (unit !== 'requests' && unit !== 'tokens') continue
    headers.set(`x-ratelimit-limit-${unit}`, String(limit))
    headers.set(`x-ratelimit-remaining-${unit}`, String(remaining))
    headers.set(`x-ratelimit-reset-${unit}`, durationText(reset_ms))
  }
}

const ANTHROPIC_NAMES: Partial<Record<LimitStatus['unit'], string>> = {
  requests: 'requests',
  tokens: 'tokens',
  input_tokens: 'input-tokens',
  output_tokens: 'output-tokens',
}

/** https://docs.anthropic.com/en/api/rate-limits, "Response headers": times in RFC 3339. */
function addAnthropicHeaders(headers: Headers, statuses: readonly LimitStatus[], clock: Clock): void {
  for (const { unit, limit, remaining, reset_ms } of statuses) {
    const name = ANTHROPIC_NAMES[unit]
    if (name === undefined) continue
    const reset = new Date(Math.ceil((clock.now() + reset_ms) / 1000) * 1000)
    headers.set(`anthropic-ratelimit-${name}-limit`, String(limit))
    headers.set(`anthropic-ratelimit-${name}-remaining`, String(remaining))
    headers.set(`anthropic-ratelimit-${name}-reset`, reset.toISOString().replace('.000Z', 'Z'))
  }
}
