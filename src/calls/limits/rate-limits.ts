/** The gate of rate limits: the limits of calls, and those of attempts at providers. */
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { CallLimits } from './call-limits.ts'
import type { Counting } from './counting.ts'
import type { WhenStoreFails } from './leases.ts'
import { type ConfiguredLimits, createPlans, type LimitedCaller } from './plans.ts'
import { createProviderLimits } from './provider-limits.ts'
import { createScopes } from './scopes.ts'
import { createSharing, type SharedLimits, unshared } from './sharing.ts'
import { type LimitState, refusalOf, statesOf } from './status.ts'

export type LimitSettings = { max_end_users: number; queue_seconds: number; when_store_fails: WhenStoreFails }

type States = { token: LimitState[]; project: LimitState[] }

type RateLimiterParts = {
  /** Read at each call: another object after a reload. */
  config(): ConfiguredLimits & { limits: LimitSettings }
  /** That of the store. */
  clock: Clock
  log: Log
  onRefused?: ((scope: string, limit: string) => void) | undefined
  /** Where processes share the limits; undefined: each has all of them for itself. */
  shared: SharedLimits | undefined
}

export function createRateLimiter({ config, clock: own, log, onRefused, shared }: RateLimiterParts) {
  const settings = () => config().limits
  const scopes = createScopes({ maxEndUsers: () => settings().max_end_users, is_shared: shared !== undefined })
  const when_store_fails = () => settings().when_store_fails
  const sharing = shared
    ? createSharing({ ...shared, counters: scopes.counters, clock: own, log, when_store_fails })
    : unshared(own)
  const { clock } = sharing
  const counting: Counting = {
    clock,
    sharing,
    parts: { clock, ...sharing.noting },
    refusalFor(blocked, now) {
      onRefused?.(blocked.counter.scope.kind, blocked.counter.key)
      return refusalOf(blocked, now)
    },
  }
  const plans = createPlans(scopes, config)
  const calls = new CallLimits({ counting, scopes, plans, queue_seconds: () => settings().queue_seconds, clock: own })

  return {
    name: 'rate limits',
    /** Whether calls of the caller at the model keep any limit, as things are configured. */
    applies: (caller: LimitedCaller, model: { id: string }) => plans.applies(caller, model.id),
    admit: calls.admit.bind(calls),
    ...createProviderLimits({ config, scopes, counting }),
    /** How the limits of the token and of its project stand, without those of open tasks. */
    statesOf(caller: LimitedCaller): States | Promise<States> {
      const now = clock.steady()
      const [token, project] = [plans.ofToken(caller, now), plans.ofProject(caller, now)]
      const states = () => ({ token: statesOf(token, clock.steady()), project: statesOf(project, clock.steady()) })
      const all = [...(token?.counters ?? []), ...(project?.counters ?? [])]
      return all.length > 0 && sharing.decides?.() ? sharing.look(all).then(states) : states()
    },
    /** How many scopes are counted. */
    get scopes() {
      return scopes.size
    },
    /** How many calls wait. */
    get waiting() {
      return calls.waiting
    },
    isInValkey: () => sharing.decides?.() ?? false,
    close: sharing.close,
  }
}
