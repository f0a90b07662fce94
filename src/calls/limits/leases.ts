/**
 * Shares limits with other processes: each uses only what it holds, and the sum of what all hold never exceeds a limit. What
 * is used is reported to the store about once a second, outside of calls; only a call that does not fit asks at once.
 */
import { type Clock, pause } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { sha256 } from '../../kit/secret.ts'
import { writeAtTime } from '../../store/store-clock.ts'
import { LEASE_VALID_MS, type Lease, type LeaseWish, type RateLimitStore } from '../../store/tokens/lease-store.ts'
import type { Counter } from './scopes.ts'
import { eachPart, expire, WINDOW_MS } from './window.ts'

/** What a call gets that does not fit into what is held while the store cannot be reached. */
export type WhenStoreFails = 'share' | 'refuse' | 'allow'

type LeasesParts = {
  store: RateLimitStore
  /** Unique among all processes, those of the past included. */
  process_id: string
  /** That of the store: all processes agree on it. */
  clock: Clock
  log: Log
  when_store_fails(): WhenStoreFails
  /** Where processes may count elsewhere, as long as all of them do. */
  presence?: Presence | undefined
}

/** Whether this process counts elsewhere, which the others learn with each exchange. */
export type Presence = {
  /** Where it counts; undefined: it does not. */
  name(): string | undefined
  /** Whether that decides what is admitted, and leases do not. */
  decides(): boolean
  /** For how long the store does not know yet all that was used there. */
  unreported_ms(): number
  /**
   * Whether all processes count there, and how many have ended that did not; undefined: the store cannot be reached.
   */
  seen(name: string, found: { isEveryone: boolean; apart: number } | undefined): void
}

const RENEW_MS = 1_000
/** What is used beyond what is held while it is counted elsewhere. */
export const EARLY_MS = 100
/**
 * How long a call waits for the store. An exchange that takes longer counts as a failure; one that only takes long, because
 * the disk is busy, refuses nobody.
 */
const SLOW_MS = 1_500
/** What is left of fractions after they were added and subtracted is less. */
const LEAST_AMOUNT = 1e-6
/** After the others left nothing, the store is not asked again for this time. */
const DENIED_MS = 250
/** What is held beyond what is used: part of the limit, and what the last second used, so often. */
const AHEAD_PART = 0.01
const AHEAD_TIMES = 2
/** In longer windows no more than that part: a process that is killed may leave as much uncounted. */
const SHORT_WINDOW_MS = 60_000

export class Leases {
  readonly #store: RateLimitStore
  readonly #process_id: string
  readonly #clock: Clock
  readonly #log: Log
  readonly #when_store_fails: () => WhenStoreFails
  readonly #presence: Presence | undefined
  /** What is held or was used since the last exchange. None of it is forgotten: no two counters have one name. */
  readonly #active = new Set<Counter>()
  #cancelTimer: (() => void) | undefined
  #timer_ms = RENEW_MS
  #running: Promise<void> | undefined
  #started_at = 0
  /** The exchange that follows the running one. */
  #next: Promise<void> | undefined
  #processes = 1
  #announced: string | undefined
  #isFailing = false
  #isClosed = false

  constructor({ store, process_id, clock, log, when_store_fails, presence }: LeasesParts) {
    this.#store = store
    this.#process_id = process_id
    this.#clock = clock
    this.#log = log
    this.#when_store_fails = when_store_fails
    this.#presence = presence
  }

  /** Notes that something was used of it. */
  readonly used = (counter: Counter): void => {
    // What others do not know of is told to them soon: one that counts by leases alone relies on it.
    if (this.#presence?.decides() && counter.window.total > counter.held) this.#schedule(EARLY_MS)
    if (this.#active.has(counter)) return
    this.#activate(counter)
    this.#schedule()
  }

  /** Whether it may be of use to ask for more. */
  mayGrow({ denied_until, held_until, held, limit }: Counter, now: number): boolean {
    return held_until <= now || (held < limit && (denied_until <= now || this.#isFailing))
  }

  /** Asks for so much more of each. Resolves once the store has answered, or after a short time. */
  async ask(requested: readonly { counter: Counter; amount: number }[]): Promise<void> {
    const unreported_ms = this.#presence?.unreported_ms() ?? 0
    if (unreported_ms > 0 && !this.#isFailing) await pause(this.#clock, unreported_ms)
    for (const { counter } of requested) this.#activate(counter)
    if (this.#isFailing) this.#schedule()
    else await this.#exchangeFor(requested)
    const now = this.#clock.steady()
    if (!this.#isFailing && !(this.#running && now - this.#started_at > SLOW_MS)) return
    for (const { counter } of requested) this.#fallBack(counter, now)
  }

  /** Waits for the store, or as long as a call may wait. */
  async #exchangeFor(requested: readonly { counter: Counter; amount: number }[]): Promise<void> {
    // Until the calls have taken it: the next exchange may begin before, and must not give it back.
    for (const { counter, amount } of requested) counter.asked += amount
    const late = Promise.withResolvers<void>()
    const cancel = this.#clock.after(SLOW_MS, late.resolve)
    await Promise.race([this.report(), late.promise])
    cancel()
    for (const { counter, amount } of requested) {
      const left = counter.asked - amount
      counter.asked = left < LEAST_AMOUNT ? 0 : left
    }
  }

  /** Reports what was used and is requested now, in one exchange: after the running one, if there is one. */
  report(): Promise<void> {
    if (!this.#running) return this.#exchange()
    this.#next ??= this.#running.then(() => {
      this.#next = undefined
      return this.#exchange()
    })
    return this.#next
  }

  /** Reports what was used, and gives back the rest. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelTimer?.()
    await this.#running
    await this.#exchange()
  }

  #schedule(ms = RENEW_MS): void {
    if ((this.#cancelTimer && ms >= this.#timer_ms) || this.#isClosed) return
    this.#cancelTimer?.()
    this.#timer_ms = ms
    this.#cancelTimer = this.#clock.after(ms, () => {
      this.#cancelTimer = undefined
      void this.report()
    })
  }

  #activate(counter: Counter): void {
    if (this.#active.has(counter)) return
    this.#active.add(counter)
    counter.users++
    // Where others are told of it early, each use is looked at.
    counter.is_noted = this.#presence === undefined
  }

  /** Where nothing of it was used since it was reported. */
  #release(counter: Counter): void {
    if (isUsed(counter) && !this.#isClosed) return
    this.#active.delete(counter)
    counter.users--
    counter.is_noted = false
  }

  #exchange(): Promise<void> {
    this.#running = this.#exchangeNow().finally(() => {
      this.#running = undefined
      if (this.#active.size > 0 || this.#isExpected()) this.#schedule()
    })
    return this.#running
  }

  /** Whether the other processes may come to count where this one does. */
  #isExpected(): boolean {
    return this.#presence?.name() !== undefined && !this.#presence.decides()
  }

  async #exchangeNow(): Promise<void> {
    const counters = [...this.#active]
    const here = this.#presence?.name()
    if (counters.length === 0 && here === this.#announced && !this.#isExpected()) return
    const now = this.#clock.steady()
    this.#started_at = now
    const unused = counters.filter((counter) => this.#isClosed || !isUsed(counter))
    const wishes = counters.map((counter) => this.#wishOf(counter, now))
    if (this.#announced && this.#announced !== here) wishes.push(presenceIn(this.#announced, 0))
    if (here) wishes.push(presenceIn(here, 1))
    try {
      const found = await writeAtTime(this.#clock, ({ now_ms, moves }) => {
        const at = { now_ms: now_ms - Math.ceil(this.#clock.steady() - now), moves }
        return this.#store.exchange(this.#process_id, wishes, at, here)
      })
      this.#processes = found.processes
      this.#announced = here
      const leases = new Map(found.leases.map((lease) => [lease.counter, lease]))
      if (here) {
        const isEveryone = (leases.get(here)?.others ?? 0) + 1 >= found.processes
        this.#presence?.seen(here, { isEveryone, apart: found.apart })
      }
      for (const counter of unused) this.#release(counter)
      for (const counter of counters) this.#adopt(counter, leases.get(storedName(counter)), now)
      if (this.#isFailing) this.#log.info('rate limits are shared again')
      this.#isFailing = false
    } catch (error) {
      const processes = this.#processes
      if (!this.#isFailing)
        this.#log.error('rate limits are not shared: the store cannot be reached', { processes }, error)
      this.#isFailing = true
      if (here) this.#presence?.seen(here, undefined)
    }
  }

  /** What is no longer needed is not used from here on, since the store may grant it to others. */
  #wishOf(counter: Counter, now: number): LeaseWish {
    const { window, limit, is_concurrent, asked, recent } = counter
    expire(window, now)
    const isNeeded = isUsed(counter)
    const ahead = Math.ceil(limit * AHEAD_PART)
    const isShort = is_concurrent || window.length_ms <= SHORT_WINDOW_MS
    const more = isNeeded ? Math.max(asked, ahead, isShort ? AHEAD_TIMES * recent : 0) + (asked > 0 ? ahead : 0) : 0
    const requested = Math.min(window.total + more, Math.max(limit, window.total))
    counter.held = counter.held_until <= now ? 0 : Math.min(counter.held, requested)
    counter.recent = 0
    if (!isNeeded || this.#isClosed) counter.held = 0
    const parts: [number, number][] = []
    if (!is_concurrent) eachPart(window, (at, amount) => void (amount > 0 && parts.push([Math.ceil(at - now), amount])))
    const window_ms = is_concurrent ? 0 : window.length_ms
    return { counter: storedName(counter), limit, window_ms, total: window.total, requested, parts }
  }

  #adopt(counter: Counter, lease: Lease | undefined, now: number): void {
    if (!lease) return
    counter.apart = lease.apart
    counter.apart_until = now + LEASE_VALID_MS
    if (!this.#active.has(counter)) return
    counter.held = lease.held
    if (this.#presence?.decides()) {
      // To be asked for again, once leases decide: until then others may use what is held here.
      counter.held_until = 0
      return
    }
    counter.held_until = now + LEASE_VALID_MS
    counter.others = lease.others
    counter.others_until = Number.POSITIVE_INFINITY
    if (lease.others > 0 && lease.held + lease.others >= counter.limit) counter.denied_until = now + DENIED_MS
  }

  /** What a process may use on its own while the store cannot be reached. */
  #fallBack(counter: Counter, now: number): void {
    const policy = this.#when_store_fails()
    if (policy === 'refuse') return
    counter.held = Math.max(
      counter.held_until > now ? counter.held : 0,
      policy === 'allow' ? Number.POSITIVE_INFINITY : Math.floor(counter.limit / this.#processes),
    )
    counter.held_until = now + RENEW_MS
  }
}

/** Since the last exchange, or now. */
const isUsed = ({ asked, recent, is_concurrent, window }: Counter): boolean =>
  asked > 0 || recent > 0 || (is_concurrent && window.total > 0)

/** One for each process that takes part; those that have ended are known as long as what they have used. */
const presenceIn = (counter: string, total: 0 | 1): LeaseWish => ({
  counter,
  limit: Number.MAX_SAFE_INTEGER,
  window_ms: WINDOW_MS.day,
  total,
  requested: total,
  parts: [],
})

/** Names of end users may be personal, and long. */
export function storedName({ scope, key }: Counter): string {
  scope.lease_name ??= scope.kind === 'end_user' ? `end_user:${sha256(scope.id).slice(0, 32)}` : scope.id
  return `${scope.lease_name}/${key}`
}
