/**
 * What bounds the tries of a request: their number, one deadline, the time to the first byte of each, and the retries that a
 * provider may get of all requests.
 */
import type { RoutingConfig } from '../../config/schema/routing-schema.ts'
import type { Target } from '../../providers/provider.ts'
import { usualP99 } from './latency.ts'
import type { TargetState } from './target-state.ts'

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

type Tried = { target: Target; state: TargetState }

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
