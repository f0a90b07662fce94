/** The gate of rate limits: counts each call against every limit that it must keep, refuses it, or makes it wait. */
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { GatewayError } from '../spec/error.ts'
import type { Estimate, Units } from '../spec/units.ts'
import type { RateLimitStore } from '../store/rate-limit-lease.ts'
import type { Valkey } from '../store/valkey.ts'
import {
  type Exceeded,
  firstExceeded,
  type HoldParts,
  keeping,
  LimitHold,
  type Limits,
  lacking,
  NEW,
  need,
  neededOf,
  type TakeParts,
} from './hold.ts'
import { createLeases, type Leases, type WhenStoreFails } from './leases.ts'
import { type ConfiguredLimits, createPlans, type LimitedCaller } from './plans.ts'
import { createProviderLimits, type ProviderLimits } from './provider-limits.ts'
import { createLimitQueue } from './queue.ts'
import { createScopes } from './scopes.ts'
import { type LimitReport, type LimitState, refusalOf, statesOf, waitFor } from './status.ts'
import { createValkeyCounts, type ValkeyCounts, type WindowTime } from './valkey-counts.ts'
import { createValkeyWait } from './valkey-wait.ts'

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
  /** A promise only where limits are counted in Valkey. */
  moveTo(request: LimitRequest): void | Promise<void>
  settle(used: Units): void
  /** As if the call had never been. */
  cancel(): void
}

export type LimitSettings = { max_end_users: number; queue_seconds: number; when_store_fails: WhenStoreFails }

type RateLimiter = ProviderLimits & {
  /** Undefined: no limit. Throws `rate_limit_exceeded`. A promise where the call has to wait, or Valkey counts. */
  admit(request: LimitRequest): CallHold | undefined | Promise<CallHold>
  /** How the limits of the token and of its project stand, without those of open tasks. */
  statesOf(caller: LimitedCaller): States | Promise<States>
  /** How many scopes are counted. */
  readonly scopes: number
  /** How many calls wait. */
  readonly waiting: number
  /** Whether Valkey decides what is admitted. */
  isInValkey(): boolean
  /** Reports what was used. */
  close(): Promise<void>
}

type States = { token: LimitState[]; project: LimitState[] }

type RateLimiterParts = {
  /** Read at each call: another object after a reload. */
  config(): ConfiguredLimits & { limits: LimitSettings }
  /** That of the store. */
  clock: Clock
  log: Log
  /** Told of each refusal. */
  onRefused?: ((scope: string, limit: string) => void) | undefined
  /** Where processes share the limits; undefined: each has all of them for itself. */
  shared: { store: RateLimitStore; process_id: string; valkey?: Valkey | undefined } | undefined
}

export function createRateLimiter({ config, clock: own, log, onRefused, shared }: RateLimiterParts): RateLimiter {
  const when_store_fails = () => config().limits.when_store_fails
  const { valkey } = shared ?? {}
  const time: WindowTime = { shift: 0 }
  const clock: Clock = valkey ? { ...own, steady: () => own.steady() + time.shift } : own
  const counters = () => scopes.counters()
  const announce = () => void leases?.report()
  const ask: Leases['ask'] = async (requested) => leases?.ask(requested)
  const counts = valkey && createValkeyCounts({ valkey, time, counters, announce, ask, clock: own, log })
  const leases = shared && createLeases({ ...shared, clock, log, when_store_fails, presence: counts?.presence })
  const scopes = createScopes({ maxEndUsers: () => config().limits.max_end_users, is_shared: leases !== undefined })
  const plans = createPlans(scopes, config)
  const queue = createLimitQueue<CallHold>(own)
  let freed = 0
  function onFreed(): void {
    freed++
    queue.retry()
  }
  const parts: HoldParts = { clock, onUsed: leases?.used, onChanged: counts?.changed, onFreed }
  /** Of what Valkey has counted. */
  const counted: TakeParts = { onUsed: leases?.used }

  /** Also reports it. */
  function refusalFor(blocked: Exceeded, now: number): GatewayError {
    onRefused?.(blocked.counter.scope.kind, blocked.counter.key)
    return refusalOf(blocked, now)
  }

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

  class OpenHold extends LimitHold implements CallHold {
    /** What ends the call, where that came while Valkey was asked about another model. */
    #end: (() => void) | undefined
    #isMoving = false

    override settle(used: Units): void {
      if (this.#isMoving) this.#end = () => super.settle(used)
      else super.settle(used)
    }

    override cancel(): void {
      if (this.#isMoving) this.#end = () => super.cancel()
      else super.cancel()
    }

    moveTo(request: LimitRequest): void | Promise<void> {
      const lists = listsFor(request, clock.steady())
      need(request.estimate.expected)
      if (counts?.decides()) return keeping(lists, this.#moveByValkey(counts, request, lists))
      this.replace(lists, (now) => {
        const blocked = firstExceeded(lists, now, NEW)
        if (blocked) throw refusalFor(blocked, now)
      })
    }

    async #moveByValkey(by: ValkeyCounts, request: LimitRequest, lists: readonly Limits[]): Promise<void> {
      this.#isMoving = true
      try {
        const verdict = await by.count(neededOf(lists), this.reversal())
        if (!verdict) return await this.moveTo(request)
        if (verdict.blocked) throw refusalFor(verdict.blocked, clock.steady())
        need(request.estimate.expected)
        this.takeInstead(lists, verdict.at, counted)
      } finally {
        this.#isMoving = false
        const end = this.#end
        this.#end = undefined
        end?.()
      }
    }
  }

  function holdOf(request: LimitRequest, lists: readonly Limits[], at: number, taking: TakeParts = parts): CallHold {
    const hold = new OpenHold(lists, parts)
    need(request.estimate.expected)
    hold.take(at, taking)
    request.call.limits = hold
    return hold
  }

  /** Waits until the call fits, where that may be soon enough; undefined: it does not wait. */
  function enqueue(request: LimitRequest, lists: readonly Limits[], blocked: Exceeded): Promise<CallHold> | undefined {
    const { caller, signal, record } = request.call
    const arrived = own.steady()
    const ms = config().limits.queue_seconds * 1000
    const wait_ms = waitFor(blocked, clock.steady())
    if (wait_ms === undefined || wait_ms > ms) return undefined
    let last = blocked
    const waitsFor = (next: Exceeded) => {
      last.counter.waiting--
      next.counter.waiting++
      last = next
    }
    blocked.counter.waiting++
    const inValkey = createValkeyWait<CallHold>({
      clock: own,
      count() {
        need(request.estimate.expected)
        return counts?.count(neededOf(lists)) ?? Promise.resolve(undefined)
      },
      onBlocked: waitsFor,
      take: (at) => holdOf(request, lists, at, counted),
      freed: () => freed,
      retry: queue.retry,
    })
    const left = () => {
      last.counter.waiting--
      inValkey.leave()
      if (record) record.queued_ms = own.steady() - arrived
    }
    const entered = queue.enter({
      token_id: caller.token_id,
      signal,
      until: arrived + ms,
      attempt(_, round) {
        if (counts?.decides() || inValkey.isAdmitted()) return inValkey.attempt()
        const now = clock.steady()
        need(request.estimate.expected)
        const next = firstExceeded(lists, now, round)
        if (next && leases?.mayGrow(next.counter, now)) void leases.ask(lacking(lists, now)).then(queue.retry)
        if (!next) return { hold: holdOf(request, lists, now) }
        waitsFor(next)
        next.counter.blocked_in = round
        return { wait_ms: waitFor(next, now) ?? 0 }
      },
      left,
      refusal: () => refusalFor(last, clock.steady()),
    })
    if (!entered) last.counter.waiting--
    return entered && keeping(lists, entered)
  }

  /** Makes the call wait, or throws. */
  function refuse(request: LimitRequest, { lists, blocked, now }: Refused): Promise<CallHold> {
    request.call.limits = new LimitHold(lists, parts)
    const waiting = config().limits.queue_seconds > 0 ? enqueue(request, lists, blocked) : undefined
    if (waiting) return waiting
    throw refusalFor(blocked, now)
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

  function admitByLeases(request: LimitRequest, lists: readonly Limits[], now: number): CallHold | Promise<CallHold> {
    need(request.estimate.expected)
    const blocked = firstExceeded(lists, now, NEW)
    if (!blocked) return holdOf(request, lists, now)
    if (leases && mayFit(blocked, now)) return keeping(lists, admitAfterExchange(leases, { request, lists }))
    return refuse(request, { lists, blocked, now })
  }

  async function admitByValkey(by: ValkeyCounts, request: LimitRequest, lists: readonly Limits[]): Promise<CallHold> {
    need(request.estimate.expected)
    const checks = neededOf(lists)
    const hopeless = checks.find(({ counter, limit, amount }) => amount > limit || counter.waiting > 0)
    if (hopeless) return refuse(request, { lists, blocked: hopeless, now: clock.steady() })
    const verdict = await by.count(checks)
    if (verdict?.blocked) return refuse(request, { lists, blocked: verdict.blocked, now: clock.steady() })
    const { signal } = request.call
    if (!verdict) {
      signal.throwIfAborted()
      return admitByLeases(request, lists, clock.steady())
    }
    const hold = holdOf(request, lists, verdict.at, counted)
    if (!signal.aborted) return hold
    hold.cancel()
    throw signal.reason
  }

  const provided = createProviderLimits({ config, scopes, counts, leases, clock, parts, counted, mayFit, refusalFor })

  return {
    admit(request) {
      const now = clock.steady()
      const lists = listsFor(request, now)
      if (lists.length === 0) return undefined
      if (counts?.decides()) return keeping(lists, admitByValkey(counts, request, lists))
      return admitByLeases(request, lists, now)
    },
    ...provided,
    statesOf(caller) {
      const now = clock.steady()
      const [token, project] = [plans.ofToken(caller, now), plans.ofProject(caller, now)]
      const states = () => ({ token: statesOf(token, clock.steady()), project: statesOf(project, clock.steady()) })
      const all = [...(token?.counters ?? []), ...(project?.counters ?? [])]
      return all.length > 0 && counts?.decides() ? counts.look(all).then(states) : states()
    },
    get scopes() {
      return scopes.size
    },
    get waiting() {
      return queue.size
    },
    isInValkey: () => counts?.decides() === true,
    async close() {
      await counts?.close()
      await leases?.close()
    },
  }
}

type Refused = { lists: readonly Limits[]; blocked: Exceeded; now: number }
