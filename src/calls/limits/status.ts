/** How a limit stands: for the headers of a response, and for the error of a call that is refused. */
import { GatewayError } from '../../spec/error.ts'
import type { RateLimitKey, RateUnit } from '../../spec/rate-limit.ts'
import type { TaskLimit } from '../../store/tokens/lease-store.ts'
import type { Counter, Limited } from './scopes.ts'
import { emptyAt, expire, freeAt } from './window.ts'

/** The strictest limit of one unit. */
export type LimitStatus = {
  unit: RateUnit
  limit: number
  remaining: number
  /** Until nothing counts any more, if nothing more is used. */
  reset_ms: number
}

export type LimitReport = {
  /** One for each unit that is limited by a window: the one of which the least remains. */
  statuses(): LimitStatus[]
  /** What a task that the call creates must keep, when it is stored. */
  tasks(): TaskLimit[]
}

/** How one limit of a token or a project stands. */
export type LimitState = {
  limit: RateLimitKey
  amount: number
  remaining: number
  /** Until nothing counts any more, if nothing more is used; of open calls unknown. */
  reset_ms: number | undefined
}

export const statesOf = (limited: Pick<Limited, 'counters' | 'limits'> | undefined, now: number): LimitState[] =>
  (limited?.counters ?? []).map((counter, at) => {
    const amount = limited?.limits[at] ?? 0
    const { remaining, reset_ms } = statusOf(counter, amount, now)
    return { limit: counter.key, amount, remaining, reset_ms: counter.is_concurrent ? undefined : reset_ms }
  })

/** What other processes use is known as of the last exchange with them, or the last answer of Valkey. */
export function statusOf(counter: Counter, limit: number, now: number): LimitStatus {
  const { window } = counter
  expire(window, now)
  const others = counter.others_until > now ? counter.others : 0
  const empty_at = window.total === 0 ? now : emptyAt(window, now)
  const isKnown = others > 0 && counter.others_until < Number.POSITIVE_INFINITY
  return {
    unit: window.unit,
    limit,
    remaining: Math.max(0, Math.floor(limit - window.total - others)),
    reset_ms: Math.max(0, (isKnown ? Math.max(empty_at, counter.others_until) : empty_at) - now),
  }
}

/** A call that holds no place is over at an unknown time. */
const OPEN_CALL_MS = 1_000
/** Other processes hold the rest: they give back what they do not use within this time. */
const OTHERS_MS = 2_000

/** The limit that keeps a call from being admitted. `wait_ms`: where others than this process know when it fits. */
export type Exceeded = { counter: Counter; limit: number; amount: number; wait_ms?: number }

/** After how long so much fits; undefined: never. */
export function waitFor({ counter, limit, amount, wait_ms }: Exceeded, now: number): number | undefined {
  if (amount > limit) return undefined
  if (wait_ms !== undefined) return wait_ms
  if (counter.is_concurrent) return OPEN_CALL_MS
  const missing = counter.window.total + amount - limit
  if (missing <= 0) return OTHERS_MS
  const free_at = freeAt(counter.window, missing)
  return free_at === undefined ? OTHERS_MS : Math.max(1, Math.ceil(free_at - now))
}

/** `accepted: 'no'`: nothing was sent. */
export function refusalOf(blocked: Exceeded, now: number): GatewayError {
  const { counter, limit, amount } = blocked
  const found = `Rate limit reached for ${counter.scope.name}: ${counter.key} is ${limit}`
  if (limit === 0) return new GatewayError('rate_limit_exceeded', `${found}, so nothing is admitted.`, NEVER)
  const wait_ms = waitFor(blocked, now)
  if (wait_ms === undefined) {
    const text = `${found}, and this request alone needs ${amount}. Make it smaller.`
    return new GatewayError('rate_limit_exceeded', text, NEVER)
  }
  return new GatewayError('rate_limit_exceeded', `${found}. Try again in ${durationText(wait_ms)}.`, {
    retry_after: wait_ms / 1000,
    accepted: 'no',
  })
}

/** The same request would be refused again. */
const NEVER = { retry: false, accepted: 'no' } as const

/** As OpenAI writes durations, which is as Go does: `120ms`, `1.5s`, `6m0s`, `1h0m0s`. */
export function durationText(ms: number): string {
  const whole = Math.max(0, Math.ceil(ms))
  if (whole < 1_000) return whole === 0 ? '0s' : `${whole}ms`
  const seconds = `${(whole % 60_000) / 1000}s`
  const minutes = Math.floor(whole / 60_000) % 60
  const hours = Math.floor(whole / 3_600_000)
  if (hours > 0) return `${hours}h${minutes}m${seconds}`
  return minutes > 0 ? `${minutes}m${seconds}` : seconds
}
