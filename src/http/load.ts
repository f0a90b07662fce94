/** Keeps a process from taking more than it can do: refuses requests while it is overloaded, and bounds the bytes in memory. */
import { defaultBytesInFlight } from '../config/config.ts'
import { fairShare } from '../kit/fair-share.ts'
import type { Log } from '../kit/log.ts'
import { GatewayError } from '../spec/error.ts'

type LoadSettings = {
  /** The delay of the event loop above which new requests are refused; 0: never. */
  max_delay_ms: number
}

type Load = {
  /** Called once for each request, before its body is read. Throws `server_is_overloaded`. */
  admit(token_id: string): void
  start(): void
  stop(): void
}

type LoadParts = {
  settings: LoadSettings
  /** Monotonic milliseconds, and a repeated timer whose delay is measured; replaced by tests. */
  now?: () => number
  every?: (ms: number, work: () => void) => () => void
  /** Told of each measured delay, in milliseconds. */
  onDelay?: ((ms: number) => void) | undefined
  log: Log
}

/** How often the delay is measured. */
const TICK_MILLISECONDS = 50
/** The delay counts only if it never falls below the limit for this long: one large body is no overload. */
const INTERVAL_MILLISECONDS = 1_000
const LEAST_TICKS = 3
/** The most by which the capacity is reduced after one interval, and by which it grows again. */
const LEAST_FACTOR = 0.3
const GROWTH = 1.25
const RETRY_SECONDS = 2

/** Following CoDel (RFC 8289): the least delay of an interval shows a queue that does not empty. */
export function createLoad({ settings, log, onDelay, now = () => performance.now(), every = repeat }: LoadParts): Load {
  let isShedding = false
  /** Requests of each token since the interval began; counted only while requests are refused. */
  let demands = new Map<string, number>()
  let arrived = 0
  let admitted = 0
  let refused = 0
  /** What each token may have admitted in this interval. */
  let share = Number.POSITIVE_INFINITY
  /** What all tokens together may; known for the first interval of an overload, when the demands are not. */
  let capacity = Number.POSITIVE_INFINITY
  let least_delay = Number.POSITIVE_INFINITY
  let last_tick = 0
  let interval_began = 0
  let ticks = 0
  let cancel = () => {}

  function tick(): void {
    const time = now()
    const delay = Math.max(0, time - last_tick - TICK_MILLISECONDS)
    onDelay?.(delay)
    least_delay = Math.min(least_delay, delay)
    last_tick = time
    ticks++
    if (ticks < LEAST_TICKS || time - interval_began < INTERVAL_MILLISECONDS) return
    endInterval()
    interval_began = time
    ticks = 0
    least_delay = Number.POSITIVE_INFINITY
  }

  function endInterval(): void {
    const limit = settings.max_delay_ms
    if (limit > 0 && least_delay > limit) reduce(limit / least_delay)
    else if (isShedding) grow()
    demands = new Map()
    arrived = 0
    admitted = 0
    refused = 0
  }

  function reduce(factor: number): void {
    if (!isShedding)
      log.warn('overloaded: requests are refused', { delay_ms: Math.round(least_delay), requests: arrived })
    const served = isShedding ? admitted : arrived
    capacity = Math.max(1, Math.floor(served * Math.max(LEAST_FACTOR, factor)))
    share = isShedding ? fairShare(demands.values(), capacity) : Number.POSITIVE_INFINITY
    isShedding = true
  }

  function grow(): void {
    // Nobody was refused for a whole interval, and the event loop has kept up.
    if (refused === 0) {
      isShedding = false
      log.info('no longer overloaded')
      return
    }
    capacity = Math.ceil(admitted * GROWTH) + 1
    share = fairShare(demands.values(), capacity)
  }

  return {
    admit(token_id) {
      arrived++
      if (!isShedding) return
      const own = (demands.get(token_id) ?? 0) + 1
      demands.set(token_id, own)
      // At least one request of each token: a share may be less than one.
      if (own <= Math.max(1, share) && (share !== Number.POSITIVE_INFINITY || admitted < capacity)) {
        admitted++
        return
      }
      refused++
      throw new GatewayError('server_is_overloaded', 'The gateway has more requests than it can serve; try again.', {
        retry_after: RETRY_SECONDS,
      })
    },
    start() {
      last_tick = interval_began = now()
      cancel = every(TICK_MILLISECONDS, tick)
    },
    stop: () => cancel(),
  }
}

function repeat(ms: number, work: () => void): () => void {
  const timer = setInterval(work, ms)
  timer.unref()
  return () => clearInterval(timer)
}

type ByteLimits = {
  /** Undefined: a part of the memory of this machine or container. */
  max_bytes_in_flight: number | undefined
  /** Undefined: half of that. */
  max_token_bytes_in_flight: number | undefined
}

export type ByteBudget = {
  /**
   * Counts a body that is about to be read. Throws server_is_overloaded, or rate_limit_exceeded where only this token is
   * over its limit. A body alone, of a token or in all, is never refused, since waiting would not help it.
   */
  take(token_id: string, bytes: number): void
  /** Counts what is in memory already, such as an answer. It is not refused, but leaves less for the next bodies. */
  add(token_id: string, bytes: number): void
  release(token_id: string, bytes: number): void
  held(): number
}

const BYTES_RETRY_SECONDS = 1
/** Tokens that hold nothing are forgotten beyond so many: deleting and adding one for each call makes a new table every few calls. */
const KEPT_TOKENS = 1_000

export function createByteBudget(limits: ByteLimits): ByteBudget {
  const of_token = new Map<string, number>()
  let total = 0
  let derived: number | undefined

  const most = (): number => {
    derived ??= defaultBytesInFlight()
    return limits.max_bytes_in_flight ?? derived
  }

  function add(token_id: string, bytes: number): void {
    total += bytes
    of_token.set(token_id, (of_token.get(token_id) ?? 0) + bytes)
  }

  return {
    take(token_id, bytes) {
      const limit = most()
      if (total > 0 && total + bytes > limit) {
        throw new GatewayError(
          'server_is_overloaded',
          `Open requests hold ${total} bytes, and this body would exceed the limit of ${limit}; try again.`,
          { retry_after: BYTES_RETRY_SECONDS },
        )
      }
      const own = of_token.get(token_id) ?? 0
      const own_limit = limits.max_token_bytes_in_flight ?? limit / 2
      if (own > 0 && own + bytes > own_limit) {
        throw new GatewayError(
          'rate_limit_exceeded',
          `The open requests of this token hold ${own} bytes, and this body would exceed its limit of ` +
            `${own_limit}; wait until one of them has ended.`,
          { retry_after: BYTES_RETRY_SECONDS },
        )
      }
      add(token_id, bytes)
    },
    add,
    release(token_id, bytes) {
      total -= bytes
      const left = (of_token.get(token_id) ?? 0) - bytes
      if (left > 0 || of_token.size <= KEPT_TOKENS) of_token.set(token_id, left)
      else of_token.delete(token_id)
    },
    held: () => total,
  }
}
