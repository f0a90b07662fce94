/** The limits of providers, which each attempt counts. */
import type { Estimate, Units } from '../../spec/usage.ts'
import { type Counting, mayFit } from './counting.ts'
import { firstExceeded, keeping, LimitHold, type Limits, NEW, need, neededOf, type TakeParts } from './hold.ts'
import type { ConfiguredLimits } from './plans.ts'
import type { Counter, Scopes } from './scopes.ts'

/** What is counted for one attempt. An attempt is over before another model takes over its call. */
type AttemptHold = {
  moveTo(): void
  settle(used: Units): void
  cancel(): void
}

type ProviderLimits = {
  limitsProvider(provider_id: string): boolean
  /** Whether the limits of a provider leave place for a call that uses so much. A promise only where it has to wait. */
  mayAttempt(provider_id: string, estimate: Estimate): boolean | Promise<boolean>
  /** The limit that keeps an attempt from a provider now, for an operator; undefined: none is known. Counts nothing. */
  limitOfAttempt(provider_id: string, estimate: Estimate): string | undefined
  /** Counts an attempt at a provider. Undefined: no limit. Throws `rate_limit_exceeded`. A promise only where it has to wait. */
  admitAttempt(provider_id: string, estimate: Estimate): AttemptHold | undefined | Promise<AttemptHold>
}

type ProviderLimitsParts = { config(): ConfiguredLimits; scopes: Scopes; counting: Counting }

/** A provider that Valkey has found at its limit is passed over for so long. */
const FULL_MS = 250

const NO_LISTS: readonly Limits[] = []

class ProviderHold extends LimitHold implements AttemptHold {
  moveTo(): void {}
}

export function createProviderLimits({ config, scopes, counting }: ProviderLimitsParts): ProviderLimits {
  const { clock, sharing, parts, refusalFor } = counting

  function listsOf(provider_id: string, now: number): readonly Limits[] {
    const { providers = {} } = config()
    const rate_limits = Object.hasOwn(providers, provider_id) ? providers[provider_id]?.rate_limits : undefined
    if (rate_limits === undefined) return NO_LISTS
    const limited = scopes.limited(scopes.of('provider', provider_id, now), rate_limits)
    return limited === undefined ? NO_LISTS : [limited]
  }

  function admit(lists: readonly Limits[], expected: Units, now: number): AttemptHold | Promise<AttemptHold> {
    const blocked = firstExceeded(lists, now, NEW)
    if (!blocked) return hold(lists, now, parts)
    if (!mayFit(counting, blocked, now)) throw refusalFor(blocked, now)
    // What was leased when it was asked for may have been returned meanwhile, unused.
    const admitted = sharing.ask(neededOf(lists)).then(() => {
      const then = clock.steady()
      need(expected)
      const blocked = firstExceeded(lists, then, NEW)
      if (blocked) throw refusalFor(blocked, then)
      return hold(lists, then, parts)
    })
    return keeping(lists, admitted)
  }

  /** What Valkey counts is not known here, but for what it has just refused. */
  function exceededNow(lists: readonly Limits[], now: number): Counter | undefined {
    if (sharing.decides?.()) return neededOf(lists).find(({ counter }) => counter.denied_until > now)?.counter
    const blocked = firstExceeded(lists, now, NEW)
    return blocked && !mayFit(counting, blocked, now) ? blocked.counter : undefined
  }

  function hold(lists: readonly Limits[], at: number, taking: TakeParts): AttemptHold {
    const taken = new ProviderHold(lists, parts)
    taken.take(at, taking)
    return taken
  }

  async function admitByCount(lists: readonly Limits[], expected: Units): Promise<AttemptHold> {
    const verdict = await sharing.count(neededOf(lists))
    need(expected)
    const now = clock.steady()
    if (!verdict) return admit(lists, expected, now)
    const { blocked } = verdict
    if (!blocked) return hold(lists, verdict.at, sharing.counted)
    blocked.counter.denied_until = now + Math.min(blocked.wait_ms ?? FULL_MS, FULL_MS)
    throw refusalFor(blocked, now)
  }

  return {
    limitsProvider: (provider_id) => listsOf(provider_id, clock.steady()).length > 0,
    mayAttempt(provider_id, { expected }) {
      const now = clock.steady()
      const lists = listsOf(provider_id, now)
      if (lists.length === 0) return true
      need(expected)
      // The attempt itself asks Valkey.
      if (sharing.decides?.()) return !neededOf(lists).some(({ counter }) => counter.denied_until > now)
      const blocked = firstExceeded(lists, now, NEW)
      if (!blocked || !mayFit(counting, blocked, now)) return blocked === undefined
      return sharing.ask(neededOf(lists)).then(() => {
        need(expected)
        return firstExceeded(lists, clock.steady(), NEW) === undefined
      })
    },
    admitAttempt(provider_id, { expected }) {
      const now = clock.steady()
      const lists = listsOf(provider_id, now)
      if (lists.length === 0) return undefined
      need(expected)
      if (sharing.decides?.()) return keeping(lists, admitByCount(lists, expected))
      return admit(lists, expected, now)
    },
    limitOfAttempt(provider_id, { expected }) {
      const now = clock.steady()
      const lists = listsOf(provider_id, now)
      need(expected)
      const counter = exceededNow(lists, now)
      return counter && `rate limit: ${counter.key} of ${counter.scope.name} is ${counter.limit}`
    },
  }
}
