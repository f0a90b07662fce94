/** Limits the open calls of a provider; further calls wait in a bounded queue that is fair between tokens. */
import type { CallLimits } from '../../config/schema/routing-schema.ts'
import type { Clock } from '../../kit/clock.ts'
import type { Target } from '../../providers/provider.ts'
import { GatewayError } from '../../spec/error.ts'

export type Limiter = {
  /** Whether a call would not have to wait. */
  isFree(): boolean
  /** Whether a call would be rejected at once. */
  isQueueFull(): boolean
  /**
   * Resolves when the call may be sent; call the result when it has ended. Rejects with `rate_limit_exceeded` when the
   * queue is full or the wait took too long, and with the signal's reason. Nothing is awaited where there is room.
   */
  enter(caller: Entering): Release | Promise<Release>
  /** How many calls wait. */
  waiting(): number
  limit(): number
  /** Other limits from now on. Calls that are open still count, calls that wait still wait. */
  configure(limits: CallLimits): void
}

type Entering = { token_id: string; signal: AbortSignal; at_most_ms: number }

/** What the call showed: its time to the first byte in milliseconds, or that the provider failed; absent: nothing. */
export type Release = (seen?: number | 'failed') => void

const DEFAULT_QUEUE = 100
const DEFAULT_QUEUE_SECONDS = 30

/** The adaptive limit: where it begins, its bounds, and how fast it moves. */
const FIRST_LIMIT = 20
const LEAST_LIMIT = 2
const MOST_LIMIT = 2_000
/** A provider's latency varies by itself: only more than this counts as queueing there. */
const TOLERANCE = 1.5
const SMOOTHING = 0.2
/** How far the usual latency follows that of the last calls: hardly upwards while these may have queued there. */
const FOLLOW = 0.05
const FOLLOW_QUEUED = 0.0005
/** With so few calls nothing queues. */
const FEW_CALLS = 5
/** An error of the provider, such as a 429, lowers the limit by this factor. */
const FAILURE = 0.9

type Waiting = { admit(release: Release): void }

export function createLimiter(id: string, given: CallLimits, clock: Clock): Limiter {
  let limits = given
  const adaptive = createAdaptiveLimit()
  const limit = () => (limits.max === 'adaptive' ? adaptive.limit() : limits.max)
  let open = 0
  let waiting = 0
  /** The calls of each token in order; the tokens take turns, the next one first. */
  const queues = new Map<string, Waiting[]>()

  function leave(seen?: number | 'failed'): void {
    if (seen !== undefined && limits.max === 'adaptive') adaptive.observe(open, seen)
    open--
    admitWaiting()
  }

  function admitWaiting(): void {
    while (open < limit() && waiting > 0) admitNext()
  }

  function admitNext(): void {
    const [next] = queues
    if (!next) return
    const [token_id, calls] = next
    const call = calls.shift()
    queues.delete(token_id)
    if (calls.length > 0) queues.set(token_id, calls)
    waiting--
    open++
    call?.admit(once(leave))
  }

  function wait({ token_id, signal, at_most_ms }: Entering): Promise<Release> {
    const { seconds = DEFAULT_QUEUE_SECONDS } = limits.queue ?? {}
    const ms = Math.min(seconds * 1000, Math.max(0, at_most_ms))
    return new Promise((resolve, reject) => {
      const call: Waiting = {
        admit(release) {
          stop()
          resolve(release)
        },
      }
      const give = (reason: unknown) => {
        stop()
        remove(token_id, call)
        reject(reason)
      }
      const onAbort = () => give(signal.reason)
      const cancel = clock.after(ms, () => give(limited(id, `for more than ${ms / 1000} s`, ms / 1000)))
      const stop = () => {
        cancel()
        signal.removeEventListener('abort', onAbort)
      }
      signal.addEventListener('abort', onAbort, { once: true })
      queues.getOrInsertComputed(token_id, () => []).push(call)
      waiting++
    })
  }

  function remove(token_id: string, call: Waiting): void {
    const calls = queues.get(token_id) ?? []
    const index = calls.indexOf(call)
    if (index === -1) return
    calls.splice(index, 1)
    waiting--
    if (calls.length === 0) queues.delete(token_id)
  }

  return {
    isFree: () => open < limit(),
    isQueueFull: () => open >= limit() && waiting >= (limits.queue?.length ?? DEFAULT_QUEUE),
    enter(caller) {
      const { signal } = caller
      if (open < limit()) {
        open++
        return once(leave)
      }
      if (signal.aborted) return Promise.reject(signal.reason)
      const { length = DEFAULT_QUEUE } = limits.queue ?? {}
      if (waiting >= length) return Promise.reject(limited(id, `and ${length} more wait`, 1))
      return wait(caller)
    },
    waiting: () => waiting,
    limit,
    configure(next) {
      limits = next
      admitWaiting()
    },
  }
}

function once(leave: Release): Release {
  let isOver = false
  return (seen) => {
    if (isOver) return
    isOver = true
    leave(seen)
  }
}

/** `accepted: 'no'`: nothing was sent, so another target may be tried whatever the request costs. */
const limited = (id: string, why: string, retry_after: number) =>
  new GatewayError('rate_limit_exceeded', `The provider "${id}" has as many open calls as it may, ${why}.`, {
    retry_after,
    accepted: 'no',
  })

/**
 * Finds the number of calls at which the provider does not yet queue, from the gradient of its latency: the average of the
 * last calls against that of a long time. https://github.com/Netflix/concurrency-limits (Gradient2)
 */
function createAdaptiveLimit() {
  let limit = FIRST_LIMIT
  let usual = 0
  let sum = 0
  let samples = 0
  /** The most open calls while they were taken. */
  let busiest = 0
  return {
    limit: () => Math.floor(limit),
    /** `open`: with the call that ends. */
    observe(open: number, seen: number | 'failed') {
      if (seen === 'failed') {
        limit = Math.max(LEAST_LIMIT, limit * FAILURE)
        return
      }
      sum += Math.max(1, seen)
      busiest = Math.max(busiest, open)
      if (++samples < limit) return
      const latency = sum / samples
      const wasBusy = busiest >= limit / 2
      sum = samples = busiest = 0
      if (usual === 0) usual = latency
      const mayHaveQueued = latency > usual && wasBusy && limit > FEW_CALLS
      usual += (mayHaveQueued ? FOLLOW_QUEUED : FOLLOW) * (latency - usual)
      // Not at its limit: the latency says nothing about more calls.
      if (!wasBusy) return
      const gradient = Math.max(0.5, Math.min(1, (TOLERANCE * usual) / latency))
      const next = limit * gradient + Math.sqrt(limit)
      limit = Math.min(MOST_LIMIT, Math.max(LEAST_LIMIT, limit * (1 - SMOOTHING) + next * SMOOTHING))
    },
  }
}

/** The limiter of each provider that has one; its keys share it. */
export function createLimiters(clock: Clock): (target: Target) => Limiter | undefined {
  const limiters = new Map<string, Limiter>()
  /** By the settings object of the provider, which other providers may have too, and the id of the provider. */
  const found = new WeakMap<CallLimits, Map<string, Limiter>>()

  function limiterFor(id: string, limits: CallLimits): Limiter {
    let limiter = limiters.get(id)
    // Settings that were never seen are those of a reload: the calls that are open still count.
    if (limiter) limiter.configure(limits)
    else limiter = createLimiter(id, limits, clock)
    limiters.set(id, limiter)
    found.getOrInsertComputed(limits, () => new Map()).set(id, limiter)
    return limiter
  }

  return ({ provider: { id, callLimits } }) =>
    callLimits && (found.get(callLimits)?.get(id) ?? limiterFor(id, callLimits))
}
