/** Admits calls: counts each against every limit that it must keep, refuses it, or makes it wait. */
import type { Clock } from '../../kit/clock.ts'
import type { Estimate, Units } from '../../spec/usage.ts'
import { createCountedWait } from './counted-wait.ts'
import { type Counting, mayFit } from './counting.ts'
import { firstExceeded, keeping, LimitHold, type Limits, NEW, need, neededOf } from './hold.ts'
import type { LimitedCaller, LimitPlan, Plans } from './plans.ts'
import { createLimitQueue } from './queue.ts'
import type { Scopes } from './scopes.ts'
import { type Exceeded, type LimitReport, waitFor } from './status.ts'

/** Looks up all limits that a request must keep. */
type ListsFor<Moved> = (request: Moved, now: number) => readonly Limits[]

type MovedCall = { estimate: { expected: Units } }

/** The hold of a call, which may move to another model. */
class CallLimitHold<Moved extends MovedCall> extends LimitHold {
  readonly #counting: Counting
  readonly #listsFor: ListsFor<Moved>
  /** How the call has ended, where that came while Valkey was asked about another model. */
  #ended: Units | 'cancelled' | undefined
  #isMoving = false

  constructor(lists: readonly Limits[], counting: Counting, listsFor: ListsFor<Moved>) {
    super(lists, counting.parts)
    this.#counting = counting
    this.#listsFor = listsFor
  }

  override settle(used: Units): void {
    if (this.#isMoving) this.#ended = used
    else super.settle(used)
  }

  override cancel(): void {
    if (this.#isMoving) this.#ended = 'cancelled'
    else super.cancel()
  }

  /** A promise only where limits are counted in Valkey. */
  moveTo(request: Moved): void | Promise<void> {
    const { clock, sharing, refusalFor } = this.#counting
    const lists = this.#listsFor(request, clock.steady())
    need(request.estimate.expected)
    if (sharing.decides?.()) return keeping(lists, this.#moveByCount(request, lists))
    this.replace(lists, (now) => {
      const blocked = firstExceeded(lists, now, NEW)
      if (blocked) throw refusalFor(blocked, now)
    })
  }

  async #moveByCount(request: Moved, lists: readonly Limits[]): Promise<void> {
    const { clock, sharing, refusalFor } = this.#counting
    this.#isMoving = true
    try {
      const verdict = await sharing.count(neededOf(lists), this.reversal())
      if (!verdict) return await this.moveTo(request)
      if (verdict.blocked) throw refusalFor(verdict.blocked, clock.steady())
      need(request.estimate.expected)
      this.takeInstead(lists, verdict.at, sharing.counted)
    } finally {
      this.#isMoving = false
      const ended = this.#ended
      this.#ended = undefined
      if (ended === 'cancelled') super.cancel()
      else if (ended) super.settle(ended)
    }
  }
}

/** As much of a call as limits depend on. */
type LimitedCall = {
  readonly caller: LimitedCaller
  end_user?: string
  readonly signal: AbortSignal
  /** What was decided for its model; absent: it is looked up. */
  plan?: { readonly model: { id: string }; limits?: LimitPlan } | undefined
  /** Where its limits stand; set here. */
  limits?: LimitReport
  record?: { queued_ms?: number }
}

type LimitRequest = { call: LimitedCall; model: { id: string }; estimate: Estimate }

type Hold = CallLimitHold<LimitRequest>

type CallLimitsParts = {
  counting: Counting
  scopes: Scopes
  plans: Plans
  queue_seconds(): number
  /** Of this process: how long calls wait. */
  clock: Clock
}

type Refused = { lists: readonly Limits[]; blocked: Exceeded; now: number }

export class CallLimits {
  readonly #counting: Counting
  readonly #scopes: Scopes
  readonly #plans: Plans
  readonly #queue_seconds: () => number
  readonly #clock: Clock
  readonly #queue
  #freed = 0

  constructor({ counting, scopes, plans, queue_seconds, clock }: CallLimitsParts) {
    this.#counting = counting
    this.#scopes = scopes
    this.#plans = plans
    this.#queue_seconds = queue_seconds
    this.#clock = clock
    this.#queue = createLimitQueue<Hold>(clock)
    counting.parts.onFreed = () => {
      this.#freed++
      if (this.#queue.size > 0) this.#queue.retry()
    }
  }

  /** How many calls wait. */
  get waiting(): number {
    return this.#queue.size
  }

  /** Undefined: no limit. Throws `rate_limit_exceeded`. A promise where the call has to wait, or Valkey counts. */
  admit(request: LimitRequest): Hold | undefined | Promise<Hold> {
    const { clock, sharing } = this.#counting
    const now = clock.steady()
    const lists = this.#listsFor(request, now)
    if (lists.length === 0) return undefined
    if (sharing.decides?.()) return keeping(lists, this.#admitByCount(request, lists))
    return this.#admitByHeld(request, lists, now)
  }

  readonly #listsFor = ({ call, model }: LimitRequest, now: number): readonly Limits[] => {
    const { own, alone, end_users } = this.#planOf(call, model.id, now)
    if (end_users.length === 0 || !call.end_user) return alone
    const lists: Limits[] = [own]
    for (const { owner, rate_limits } of end_users) {
      const limited = this.#scopes.limited(this.#scopes.endUser(owner, call.end_user, now), rate_limits)
      if (limited) lists.push(limited)
    }
    return lists
  }

  #planOf({ caller, plan }: LimitedCall, model: string, now: number): LimitPlan {
    if (plan?.model.id !== model) return this.#plans.of(caller, model, now)
    if (plan.limits?.version !== this.#scopes.version) plan.limits = this.#plans.of(caller, model, now)
    return plan.limits
  }

  #holdOf(request: LimitRequest, lists: readonly Limits[], at: number, taking = this.#counting.sharing.noting): Hold {
    const hold = new CallLimitHold(lists, this.#counting, this.#listsFor)
    need(request.estimate.expected)
    hold.take(at, taking)
    request.call.limits = hold
    return hold
  }

  /** By what this process holds of each limit. */
  #admitByHeld(request: LimitRequest, lists: readonly Limits[], now: number): Hold | Promise<Hold> {
    need(request.estimate.expected)
    const blocked = firstExceeded(lists, now, NEW)
    if (!blocked) return this.#holdOf(request, lists, now)
    if (mayFit(this.#counting, blocked, now)) return keeping(lists, this.#admitAfterExchange(request, lists))
    return this.#refuse(request, { lists, blocked, now })
  }

  /** Once more if one limit was granted and another one was not asked for yet. */
  async #admitAfterExchange(request: LimitRequest, lists: readonly Limits[]): Promise<Hold> {
    const { clock, sharing } = this.#counting
    for (let count = 0; ; count++) {
      need(request.estimate.expected)
      await sharing.ask(neededOf(lists))
      request.call.signal.throwIfAborted()
      const now = clock.steady()
      need(request.estimate.expected)
      const blocked = firstExceeded(lists, now, NEW)
      if (!blocked) return this.#holdOf(request, lists, now)
      if (count > 0 || !mayFit(this.#counting, blocked, now)) return this.#refuse(request, { lists, blocked, now })
    }
  }

  /** By what all processes have counted. */
  async #admitByCount(request: LimitRequest, lists: readonly Limits[]): Promise<Hold> {
    const { clock, sharing } = this.#counting
    need(request.estimate.expected)
    const checks = neededOf(lists)
    const hopeless = checks.find(({ counter, limit, amount }) => amount > limit || counter.waiting > 0)
    if (hopeless) return this.#refuse(request, { lists, blocked: hopeless, now: clock.steady() })
    const verdict = await sharing.count(checks)
    if (verdict?.blocked) return this.#refuse(request, { lists, blocked: verdict.blocked, now: clock.steady() })
    const { signal } = request.call
    if (!verdict) {
      signal.throwIfAborted()
      return this.#admitByHeld(request, lists, clock.steady())
    }
    const hold = this.#holdOf(request, lists, verdict.at, sharing.counted)
    if (!signal.aborted) return hold
    hold.cancel()
    throw signal.reason
  }

  /** Makes the call wait, or throws. */
  #refuse(request: LimitRequest, { lists, blocked, now }: Refused): Promise<Hold> {
    request.call.limits = new LimitHold(lists, this.#counting.parts)
    const waiting = this.#queue_seconds() > 0 ? this.#enqueue(request, lists, blocked) : undefined
    if (waiting) return waiting
    throw this.#counting.refusalFor(blocked, now)
  }

  /** Waits until the call fits, where that may be soon enough; undefined: it does not wait. */
  #enqueue(request: LimitRequest, lists: readonly Limits[], blocked: Exceeded): Promise<Hold> | undefined {
    const { clock, sharing, refusalFor } = this.#counting
    const { caller, signal, record } = request.call
    const arrived = this.#clock.steady()
    const ms = this.#queue_seconds() * 1000
    const wait_ms = waitFor(blocked, clock.steady())
    if (wait_ms === undefined || wait_ms > ms) return undefined
    let last = blocked
    const waitsFor = (next: Exceeded) => {
      last.counter.waiting--
      next.counter.waiting++
      last = next
    }
    blocked.counter.waiting++
    const counted = createCountedWait<Hold>({
      clock: this.#clock,
      count() {
        need(request.estimate.expected)
        return sharing.count(neededOf(lists))
      },
      onBlocked: waitsFor,
      take: (at) => this.#holdOf(request, lists, at, sharing.counted),
      freed: () => this.#freed,
      retry: this.#queue.retry,
    })
    const entered = this.#queue.enter({
      token_id: caller.token_id,
      signal,
      until: arrived + ms,
      attempt: (_, round) => {
        if (sharing.decides?.() || counted.isAdmitted()) return counted.attempt()
        return this.#attempt(request, lists, { round, waitsFor })
      },
      left: () => {
        last.counter.waiting--
        counted.leave()
        if (record) record.queued_ms = this.#clock.steady() - arrived
      },
      refusal: () => refusalFor(last, clock.steady()),
    })
    if (!entered) last.counter.waiting--
    return entered && keeping(lists, entered)
  }

  /** Tries to admit a call that waits, by what this process holds. */
  #attempt(
    request: LimitRequest,
    lists: readonly Limits[],
    { round, waitsFor }: { round: number; waitsFor(next: Exceeded): void },
  ): { hold: Hold } | { wait_ms: number } {
    const { clock, sharing } = this.#counting
    const now = clock.steady()
    need(request.estimate.expected)
    const next = firstExceeded(lists, now, round)
    if (!next) return { hold: this.#holdOf(request, lists, now) }
    if (sharing.mayGrow(next.counter, now)) void sharing.ask(neededOf(lists)).then(this.#queue.retry)
    waitsFor(next)
    next.counter.blocked_in = round
    return { wait_ms: waitFor(next, now) ?? 0 }
  }
}
