/** How long a target takes to its first byte: a moving average, quantiles, and for how long its open calls wait. */

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
export function usualP99(state: Latency): number | undefined {
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
