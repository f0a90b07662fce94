/**
 * Bounds the tries of a request (their number, one deadline, the time to the first byte of each) and the retries that a
 * provider may get of all requests; and measures how long targets take, which the time of a try depends on.
 */
import type { RoutingConfig } from '../../config/schema/routing-schema.ts'
import type { Target } from '../../providers/provider.ts'

/** What all tries of a request share, over keys, targets and fallback models. */
export type Bounds = {
  tries: number
  /** How many were made with other models. */
  tries_made: number
  /** By the steady clock: none begins after it. */
  deadline: number
}

/** What the caller asks of one call. */
type Asked = { timeout_ms?: number; no_fallback?: true }

/** `arrived`: by the steady clock. */
export const boundsOf = (
  { tries = DEFAULT_TRIES, deadline_seconds = Number.POSITIVE_INFINITY }: RoutingConfig,
  arrived: number,
  asked?: Asked,
): Bounds => ({
  tries: asked?.no_fallback ? 1 : tries,
  tries_made: 0,
  deadline: arrived + Math.min(deadline_seconds * 1000, asked?.timeout_ms ?? Number.POSITIVE_INFINITY),
})

/** Enough to find a target that answers; more would only multiply the load of an outage. */
const DEFAULT_TRIES = 5
/** Until the latency of a target is known. A whole response has no first byte before its text is complete. */
const FIRST_BYTE_MS = { stream: 15_000, whole: 60_000 }
const SHORTEST_FIRST_BYTE_MS = 5_000

type Limited = { settings: RoutingConfig; is_stream: boolean }

type Tried = { target: Target; state: Latency }

/** How long a try may wait for its first byte; undefined: as long as the time limits of its provider allow. `last`: no other target is left. */
export function timeLimit(tried: Tried, left: number, routing: Limited | 'last'): number | undefined {
  const own = routing === 'last' ? (ownLimit(tried.target) ?? Number.POSITIVE_INFINITY) : firstByteLimit(tried, routing)
  const limit = Math.min(own, Math.max(0, left))
  return limit === Number.POSITIVE_INFINITY ? undefined : limit
}

/** What the operator has set for this target; undefined: nothing. */
const ownLimit = ({ timeouts }: Target): number | undefined =>
  timeouts?.first_byte_seconds === undefined ? undefined : timeouts.first_byte_seconds * 1000

/** While another target is left, a silent one is given up long before the time limits of its provider. */
export function firstByteLimit({ target, state }: Tried, { settings, is_stream }: Limited): number {
  const own = ownLimit(target)
  if (own !== undefined) return own
  if (settings.first_byte_seconds !== undefined) return settings.first_byte_seconds * 1000
  const usual = is_stream ? FIRST_BYTE_MS.stream : FIRST_BYTE_MS.whole
  const p99 = usualP99(state)
  // Never longer than the default: a target that is only slow would else be given more and more time.
  return p99 === undefined ? usual : Math.min(usual, Math.max(SHORTEST_FIRST_BYTE_MS, 3 * p99))
}

/** Envoy's defaults: a fifth of the open calls, and always three. */
const MOST_SHARE = 0.2
const ALWAYS_ALLOWED = 3

/** The open calls of a provider, and how many of them are retries. */
export type ProviderLoad = { open: number; retries: number }

/**
 * Bounds how much retries multiply the load of a provider that fails. A call that a provider receives for the second time
 * is a retry for it; one that fails over to it from another provider is not.
 */
export type RetryBudgets = {
  /** A call to the provider begins. Pass the result to `leaveProvider` when it has ended. */
  enter(provider: string, isRetry: boolean): ProviderLoad
  allows(provider: string): boolean
}

export function createRetryBudgets(): RetryBudgets {
  const loads = new Map<string, ProviderLoad>()

  function loadOf(provider: string): ProviderLoad {
    let load = loads.get(provider)
    if (!load) {
      load = { open: 0, retries: 0 }
      loads.set(provider, load)
    }
    return load
  }

  return {
    enter(provider, isRetry) {
      const load = loadOf(provider)
      load.open++
      if (isRetry) load.retries++
      return load
    },
    allows(provider) {
      const { open, retries } = loadOf(provider)
      return retries < Math.max(ALWAYS_ALLOWED, open * MOST_SHARE)
    },
  }
}

export function leaveProvider(load: ProviderLoad, isRetry: boolean): void {
  load.open--
  if (isRetry) load.retries--
}

/** All times are milliseconds of the clock that the caller passes. */
export type Latency = {
  /** The open calls that wait for their first byte, and since when none of them has got it. */
  waiting: number
  silent_since: number
  /** Moving average of the time to the first byte that rises at once and falls slowly. */
  latency_ms: number
  latency_at: number
  /** The last times to the first byte, for quantiles; a ring. */
  readonly samples: number[]
  next_sample: number
  /** The quantiles of `samples`, and how many were taken when they were computed. */
  quantiles: { count: number; p95: number; p99: number } | undefined
  count: number
  /** The p99 of a longer time, and when it last followed that of `samples`. */
  usual_p99: number
  usual_at: number
}

/** The time in which the latency average forgets; Finagle's default for peak EWMA. */
const DECAY_MS = 10_000
const MOST_SAMPLES = 256
/** Quantiles of fewer samples say little. */
const LEAST_SAMPLES = 20
/** In this time the usual p99 at most doubles or halves: a target that is slow for some minutes is not used to being so. */
const USUAL_MS = 600_000

export const newLatency = (): Latency => ({
  waiting: 0,
  silent_since: 0,
  latency_ms: 0,
  latency_at: 0,
  samples: [],
  next_sample: 0,
  quantiles: undefined,
  count: 0,
  usual_p99: 0,
  usual_at: 0,
})

export function observeLatency(state: Latency, ms: number, now: number): void {
  if (ms >= state.latency_ms) state.latency_ms = ms
  else {
    const share = Math.exp(-Math.max(0, now - state.latency_at) / DECAY_MS)
    state.latency_ms = state.latency_ms * share + ms * (1 - share)
  }
  state.latency_at = now
  state.samples[state.next_sample] = ms
  state.next_sample = (state.next_sample + 1) % MOST_SAMPLES
  state.count++
  followUsual(state, now)
}

function followUsual(state: Latency, now: number): void {
  const { quantiles } = state
  const recent = quantilesOf(state)
  if (!recent || recent === quantiles) return
  const most = 2 ** (Math.max(0, now - state.usual_at) / USUAL_MS)
  const { usual_p99: usual } = state
  state.usual_p99 = usual === 0 ? recent.p99 : Math.min(usual * most, Math.max(usual / most, recent.p99))
  state.usual_at = now
}

/** The p99 of its time to the first byte, as it is without the slowness of a few minutes; undefined: not known yet. */
function usualP99(state: Latency): number | undefined {
  const recent = quantilesOf(state)
  return recent && Math.min(recent.p99, state.usual_p99)
}

export const usualLatency = (state: Latency): number =>
  Math.min(state.latency_ms, quantilesOf(state)?.p95 ?? state.latency_ms)

/**
 * The expected cost of one more call: the average time to the first byte squared, for each open call. Squared, because the
 * time of a provider depends little on our calls: a target that takes ten times as long would else still get one call for
 * ten that are open elsewhere. The average fades while no call is sent, so that a target that was slow is tried again.
 */
export function latencyCost(state: Latency & { open: number }, now: number): number {
  const average = state.latency_ms * Math.exp(-Math.max(0, now - state.latency_at) / DECAY_MS)
  const latency = state.waiting === 0 ? average : Math.max(average, now - state.silent_since)
  return latency ** 2 * (state.open + 1)
}

/** Quantiles of the time to the first byte; undefined until enough calls were seen. */
export function quantilesOf(state: Latency): { p95: number; p99: number } | undefined {
  const { length } = state.samples
  if (length < LEAST_SAMPLES) return undefined
  // A quarter of the samples is new: it is sorted again.
  const isRecent = state.quantiles && state.count - state.quantiles.count < Math.max(LEAST_SAMPLES, length / 4)
  if (isRecent) return state.quantiles
  const sorted = Float64Array.from(state.samples).sort()
  state.quantiles = { count: state.count, p95: quantileOf(sorted, 0.95), p99: quantileOf(sorted, 0.99) }
  return state.quantiles
}

const quantileOf = (sorted: Float64Array, share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0
