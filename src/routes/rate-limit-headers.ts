/** The response headers that tell a client where its rate limits stand, as OpenAI and Anthropic name them. */
import type { Clock } from '../kit/clock.ts'
import { durationText, type LimitStatus } from '../limits/status.ts'
import type { Call } from '../pipeline/call.ts'

/** Of the strictest limit of each unit; none without a limit, and for a call that was not admitted or refused yet. */
export function addRateLimitHeaders(headers: [string, string][], { limits, record }: Call, clock: Clock): void {
  if (limits === undefined) return
  const statuses = limits.statuses()
  if (record?.family === 'messages-compat') headers.push(...anthropicHeaders(statuses, clock))
  else addOpenaiHeaders(headers, statuses)
}

/** https://platform.openai.com/docs/guides/rate-limits, "Rate limits in headers": durations such as `1s` and `6m0s`. */
function addOpenaiHeaders(headers: [string, string][], statuses: readonly LimitStatus[]): void {
  for (const { unit, limit, remaining, reset_ms } of statuses) {
    if (unit !== 'requests' && unit !== 'tokens') continue
    headers.push(
      [`x-ratelimit-limit-${unit}`, String(limit)],
      [`x-ratelimit-remaining-${unit}`, String(remaining)],
      [`x-ratelimit-reset-${unit}`, durationText(reset_ms)],
    )
  }
}

const ANTHROPIC_NAMES: Partial<Record<LimitStatus['unit'], string>> = {
  requests: 'requests',
  tokens: 'tokens',
  input_tokens: 'input-tokens',
  output_tokens: 'output-tokens',
}

/** https://docs.anthropic.com/en/api/rate-limits, "Response headers": times in RFC 3339. */
function anthropicHeaders(statuses: readonly LimitStatus[], clock: Clock): [string, string][] {
  return statuses.flatMap(({ unit, limit, remaining, reset_ms }): [string, string][] => {
    const name = ANTHROPIC_NAMES[unit]
    if (name === undefined) return []
    const reset = new Date(Math.ceil((clock.now() + reset_ms) / 1000) * 1000)
    return [
      [`anthropic-ratelimit-${name}-limit`, String(limit)],
      [`anthropic-ratelimit-${name}-remaining`, String(remaining)],
      [`anthropic-ratelimit-${name}-reset`, reset.toISOString().replace('.000Z', 'Z')],
    ]
  })
}
