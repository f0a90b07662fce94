/** The gate of rate limits: counts each call against every limit that it must keep, refuses it, or makes it wait. */
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { GatewayError } from '../spec/error.ts'
import type { Estimate, Units } from '../spec/units.ts'
import type { RateLimitStore } from '../store/rate-limit-lease.ts'
import { type Exceeded, firstExceeded, type HoldParts, LimitHold, type Limits, lacking, NEW, need } from './hold.ts'
import { createLeases, type Leases, type WhenStoreFails } from './leases.ts'
import { type ConfiguredLimits, createPlans, type LimitedCaller } from './plans.ts'
import { createLimitQueue } from './queue.ts'
import { createScopes } from './scopes.ts'
import { type LimitReport, type LimitState, refusal, statesOf, waitFor } from './status.ts'

/** As much of a call as limits depend on. */
type LimitedCall = {
  readonly caller: LimitedCaller
  end_user?: string
  readonly signal: AbortSignal
  /** Where its limits stand; set here. */
  limits?: LimitReport
  record?: { queued_ms?: number }
}

type LimitRequest = { call: LimitedCall; model: { id: string }; estimate: Estimate }

/** What is counted for one call until it is settled. */
type CallHold = {
  moveTo(request: LimitRequest): void
  settle(used: Units): void
  /** As if the call had never been. */
  cancel(): void
}

export type LimitSettings = { max_end_users: number; queue_seconds: number; when_store_fails: WhenStoreFails }

type RateLimiter = {
  /** Undefined: no limit. Throws `rate_limit_exceeded`. A promise only where the call has to wait. */
  admit(request: LimitRequest): CallHold | undefined | Promise<CallHold>
  limitsProvider(provider_id: string): boolean
  /** Whether the limits of a provider leave place for a call that uses so much. A promise only where it has to wait. */
  mayAttempt(provider_id: string, estimate: Estimate): boolean | Promise<boolean>
  /** Counts an attempt at a provider. Undefined: no limit. Throws `rate_limit_exceeded`. */
  admitAttempt(provider_id: string, estimate: Estimate): CallHold | undefined
  /** How the limits of the token and of its project stand, without those of open tasks. */
  statesOf(caller: LimitedCaller): { token: LimitState[]; project: LimitState[] }
  /** How many scopes are counted. */
  readonly scopes: number
  /** How many calls wait. */
  readonly waiting: number
  /** Reports what was used. */
  close(): Promise<void>
}

type RateLimiterParts = {
  /** Read at each call: another object after a reload. */
  config(): ConfiguredLimits & { limits: LimitSettings }
  /** That of the store. */
  clock: Clock
  log: Log
  /** Where processes share the limits; undefined: each has all of them for itself. */
  shared: { store: RateLimitStore; process_id: string } | undefined
}

export function createRateLimiter({ config, clock, log, shared }: RateLimiterParts): RateLimiter {
  const when_store_fails = () => config().limits.when_store_fails
  const leases = shared && createLeases({ ...shared, clock, log, when_store_fails })
  const scopes = createScopes({ maxEndUsers: () => config().limits.max_end_users, is_shared: leases !== undefined })
  const plans = createPlans(scopes, config)
  const queue = createLimitQueue<CallHold>(clock)
  const parts: HoldParts = { clock, onUsed: leases?.used, onFreed: queue.retry }

  /** All that a call must keep. */
  function listsFor({ call, model }: LimitRequest, now: number): readonly Limits[] {
    const { own, alone, end_users } = plans.of(call.caller, model.id, now)
    if (end_users.length === 0 || !call.end_user) return alone
    const lists: Limits[] = [own]
    for (const { owner, rate_limits } of end_users) {
      const limited = scopes.limited(scopes.endUser(owner, call.end_user, now), rate_limits)
      if (limited) lists.push(limited)
    }
    return lists
  }

  function listsOfProvider(provider_id: string, now: number): readonly Limits[] {
    const { providers = {} } = config()
    const rate_limits = Object.hasOwn(providers, provider_id) ? providers[provider_id]?.rate_limits : undefined
    if (rate_limits === undefined) return NO_LISTS
    const limited = scopes.limited(scopes.of('provider', provider_id, now), rate_limits)
    return limited === undefined ? NO_LISTS : [limited]
  }

  class OpenHold extends LimitHold implements CallHold {
    moveTo(request: LimitRequest): void {
      const lists = listsFor(request, clock.steady())
      need(request.estimate.expected)
      this.replace(lists, (now) => {
        const blocked = firstExceeded(lists, now, NEW)
        if (blocked) throw refusalOf(blocked, now)
      })
    }
  }

  /** An attempt is over before another model takes over its call. */
  class ProviderHold extends LimitHold implements CallHold {
    moveTo(): void {}
  }

  function holdOf(request: LimitRequest, lists: readonly Limits[], now: number): CallHold {
    const hold = new OpenHold(lists, parts)
    hold.take(now)
    request.call.limits = hold
    return hold
  }

  /** Waits until the call fits, where that may be soon enough; undefined: it does not wait. */
  function enqueue(request: LimitRequest, lists: readonly Limits[], blocked: Exceeded): Promise<CallHold> | undefined {
    const { caller, signal, record } = request.call
    const arrived = clock.steady()
    const ms = config().limits.queue_seconds * 1000
    const wait_ms = waitFor(blocked, arrived)
    if (wait_ms === undefined || wait_ms > ms) return undefined
    let last = blocked
    const waitsFor = (next: Exceeded) => {
      last.counter.waiting--
      next.counter.waiting++
      last = next
    }
    blocked.counter.waiting++
    const left = () => {
      last.counter.waiting--
      if (record) record.queued_ms = clock.steady() - arrived
    }
    const entered = queue.enter({
      token_id: caller.token_id,
      signal,
      until: arrived + ms,
      attempt(now, round) {
        need(request.estimate.expected)
        const next = firstExceeded(lists, now, round)
        if (next && leases?.mayGrow(next.counter, now)) void leases.ask(lacking(lists, now)).then(queue.retry)
        if (!next) return { hold: holdOf(request, lists, now) }
        waitsFor(next)
        next.counter.blocked_in = round
        return { wait_ms: waitFor(next, now) ?? 0 }
      },
      left,
      refusal: () => refusalOf(last, clock.steady()),
    })
    if (!entered) last.counter.waiting--
    return entered
  }

  /** Makes the call wait, or throws. */
  function refuse(request: LimitRequest, { lists, blocked, now }: Refused): Promise<CallHold> {
    request.call.limits = new LimitHold(lists, parts)
    const waiting = config().limits.queue_seconds > 0 ? enqueue(request, lists, blocked) : undefined
    if (waiting) return waiting
    throw refusalOf(blocked, now)
  }

  /** Whether the call would fit if this process held more. */
  const mayFit = ({ counter, limit, amount }: Exceeded, now: number): boolean =>
    counter.window.total + amount <= limit && counter.waiting === 0 && leases?.mayGrow(counter, now) === true

  /** Once more if one limit was granted and another one was not asked for yet. */
  async function admitAfterExchange(
    shares: Leases,
    { request, lists }: Pick<Refused, 'lists'> & { request: LimitRequest },
  ) {
    for (let count = 0; ; count++) {
      need(request.estimate.expected)
      await shares.ask(lacking(lists, clock.steady()))
      request.call.signal.throwIfAborted()
      const now = clock.steady()
      need(request.estimate.expected)
      const blocked = firstExceeded(lists, now, NEW)
      if (!blocked) return holdOf(request, lists, now)
      if (count > 0 || !mayFit(blocked, now)) return refuse(request, { lists, blocked, now })
    }
  }

  return {
    admit(request) {
      const now = clock.steady()
      const lists = listsFor(request, now)
      if (lists.length === 0) return undefined
      need(request.estimate.expected)
      const blocked = firstExceeded(lists, now, NEW)
      if (!blocked) return holdOf(request, lists, now)
      if (leases && mayFit(blocked, now)) return admitAfterExchange(leases, { request, lists })
      return refuse(request, { lists, blocked, now })
    },
    limitsProvider: (provider_id) => listsOfProvider(provider_id, clock.steady()).length > 0,
    mayAttempt(provider_id, { expected }) {
      const now = clock.steady()
      const lists = listsOfProvider(provider_id, now)
      if (lists.length === 0) return true
      need(expected)
      const blocked = firstExceeded(lists, now, NEW)
      if (!blocked || !leases || !mayFit(blocked, now)) return blocked === undefined
      return leases.ask(lacking(lists, now)).then(() => {
        need(expected)
        return firstExceeded(lists, clock.steady(), NEW) === undefined
      })
    },
    admitAttempt(provider_id, { expected }) {
      const now = clock.steady()
      const lists = listsOfProvider(provider_id, now)
      if (lists.length === 0) return undefined
      need(expected)
      const blocked = firstExceeded(lists, now, NEW)
      if (blocked) throw refusalOf(blocked, now)
      const hold = new ProviderHold(lists, parts)
      hold.take(now)
      return hold
    },
    statesOf(caller) {
      const now = clock.steady()
      return { token: statesOf(plans.ofToken(caller, now), now), project: statesOf(plans.ofProject(caller, now), now) }
    },
    get scopes() {
      return scopes.size
    },
    get waiting() {
      return queue.size
    },
    close: async () => leases?.close(),
  }
}

const NO_LISTS: readonly Limits[] = []

type Refused = { lists: readonly Limits[]; blocked: Exceeded; now: number }

function refusalOf(blocked: Exceeded, now: number): GatewayError {
  const { counter, limit, amount } = blocked
  return refusal({ scope: counter.scope, key: counter.key, limit, amount, wait_ms: waitFor(blocked, now) })
}
