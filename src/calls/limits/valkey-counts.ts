/**
 * Counts rate limits in Valkey: one script for all limits of a call. Each process also counts its own share itself, so that
 * it can write it again after a failure, when it is not known what the server has executed, and after a loss of data.
 */
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { randomAlphanumerics } from '../../kit/secret.ts'
import type { Valkey } from '../../store/engines/valkey.ts'
import { ELSEWHERE } from '../../store/tokens/lease-store.ts'
import type { Change, Needed, Verdict } from './hold.ts'
import { EARLY_MS, type Presence } from './leases.ts'
import { type Counter, shiftTimes } from './scopes.ts'
import { countArguments, keyOf, noteOthers, shareArguments } from './valkey-arguments.ts'
import { COUNT, HELLO, REPLACE } from './valkey-scripts.ts'
import { partAt } from './window.ts'

/** By how much the time of all windows, which Valkey has, is after the steady clock of this process. */
type WindowTime = { shift: number }

type Script = ReturnType<Valkey['script']>

type ValkeyCountsParts = {
  valkey: Pick<Valkey, 'script' | 'isAvailable' | 'opened'>
  time: WindowTime
  counters(): Iterable<Counter>
  /** Tells the other processes, through the database, whether this one counts in Valkey. */
  announce(): void
  /** Asks the database what processes have used that did not count in Valkey. */
  ask(requested: readonly { counter: Counter; amount: 0 }[]): Promise<void>
  clock: Clock
  log: Log
}

/** `answered`: how many scripts were answered since the generation is known. */
type Session = { generation: string; process: string; id: string; answered: number }

/** How often open calls are confirmed, and a connection is tried again. */
const RENEW_MS = 1_000
/** After so long, the database knows what others used before. */
const REPORTED_MS = EARLY_MS + 50
/** Beyond it, all is written again. */
const MOST_STALE = 100_000
/** Corrections are sent with the next call, or after this time. */
const FLUSH_MS = 10
/** In one script: changes, and counters that are replaced. */
const MOST_CHANGES = 256
const MOST_REPLACED = 50
/** At the same time; the connection refuses more than twice as many commands. */
const MOST_RUNNING = 500
/** Beyond it, Valkey is too slow. */
const MOST_WAITING = 20_000
/** A larger difference of the time is not the latency of an answer. */
const SAME_TIME_MS = 1_000
const META = '{limits}:meta'

/** One script for each call, and for what calls give back. */
export class ValkeyCounts {
  readonly #parts: ValkeyCountsParts
  readonly #hello: Script
  readonly #counting: Script
  readonly #replacing: Script
  /** Undefined: what changes is noted as `stale`. */
  #session: Session | undefined
  #last: Session | undefined
  /** Whether all that this process has counted is there. */
  #isComplete = false
  /** Whether all processes count there, as far as the database says. */
  #isShared: boolean | undefined
  /** When Valkey has ceased to decide. */
  #decided_until = Number.NEGATIVE_INFINITY
  /** How many processes have ended that had not written there all that they have used. */
  #apart = 0
  /** What is there may differ from what this process has counted. */
  readonly #stale = new Set<Counter>()
  readonly #open = new Set<Counter>()
  #changes: Change[] = []
  #running = 0
  /** Scripts that wait until fewer are running. */
  readonly #slots: (() => void)[] = []
  #cancelFlush: (() => void) | undefined
  #cancelTick: (() => void) | undefined
  #isReported = false
  #isClosed = false

  constructor(parts: ValkeyCountsParts) {
    const { valkey } = parts
    this.#parts = parts
    this.#hello = valkey.script(HELLO)
    this.#counting = valkey.script(COUNT)
    this.#replacing = valkey.script(REPLACE)
    void valkey.opened.then(this.#tick)
  }

  readonly presence: Presence = {
    name: () => (this.#isComplete ? `${ELSEWHERE}${this.#session?.generation}` : undefined),
    decides: () => this.decides(),
    unreported_ms: () => this.#decided_until + REPORTED_MS - this.#parts.clock.steady(),
    seen: (name, found) => {
      if (name !== this.presence.name()) return
      // While the database is away, what it said last counts; before, Valkey alone has to do.
      if (this.decides() && found?.isEveryone === false) this.#decided_until = this.#parts.clock.steady()
      this.#isShared = found?.isEveryone ?? this.#isShared ?? true
      if (found) this.#apart = found.apart
    },
  }

  /** Whether limits are counted there, because all processes count there. */
  decides(): boolean {
    return this.#isComplete && this.#isShared === true
  }

  /** Counts all, or none. With `instead`, these changes count only with it. Undefined: Valkey has failed. */
  async count(checks: readonly Needed[], instead?: readonly Change[]): Promise<Verdict | undefined> {
    // Changes that are to be undone with the call are sent alone.
    if (instead) void this.#flush()
    const unknown = this.#apart === 0 ? [] : checks.filter(({ counter }) => counter.apart_until <= this.#now())
    if (unknown.length > 0) await this.#parts.ask(unknown.map(({ counter }) => ({ counter, amount: 0 })))
    const isAlone = this.#apart === 0
    const left = isAlone ? checks : checks.map((check) => ({ ...check, limit: check.limit - check.counter.apart }))
    const answer = await this.#send(left, instead ?? this.#changes.splice(0, MOST_CHANGES), instead && 'undo')
    if (!answer) {
      for (const { counter } of instead ?? []) this.#markStale(counter)
      return undefined
    }
    const [outcome, at, place, free_at] = answer
    this.#note(checks, answer, outcome === 'admitted')
    if (outcome === 'admitted') {
      for (const { counter } of checks) if (counter.is_concurrent) this.#open.add(counter)
      return { at: Number(at) }
    }
    const blocked = checks[Number(place)] as Needed
    if (!free_at) return { blocked }
    return { blocked: { ...blocked, wait_ms: Math.max(1, Math.ceil(Number(free_at) - this.#now())) } }
  }

  /** Notes how much others than this process have used. */
  async look(counters: readonly Counter[]): Promise<void> {
    const checks = counters.map((counter) => ({ counter, limit: Number.MAX_SAFE_INTEGER, amount: 0 }))
    const answer = await this.#send(checks, this.#changes.splice(0, MOST_CHANGES))
    if (answer) this.#note(checks, answer, false)
  }

  /** Counts, or corrects, in the background. */
  changed(counter: Counter, amount: number, at: number): void {
    if (counter.is_concurrent) {
      if (counter.window.total > 0) this.#open.add(counter)
      else this.#open.delete(counter)
    }
    if (!this.#session) this.#markStale(counter)
    else this.#changes.push({ counter, part: counter.is_concurrent ? 0 : partAt(counter.window, at), amount })
    if (this.#changes.length > MOST_WAITING) this.#fail(this.#session, new Error('too many changes wait'))
    else if (this.#session) this.#cancelFlush ??= this.#parts.clock.after(FLUSH_MS, () => void this.#flush())
  }

  /** Sends what has changed. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelTick?.()
    this.#cancelFlush?.()
    await this.#flush()
  }

  #now(): number {
    return this.#parts.clock.steady() + this.#parts.time.shift
  }

  #markStale(counter: Counter): void {
    if (!this.#last) return // all will be written
    this.#stale.add(counter)
    if (this.#stale.size <= MOST_STALE) return
    this.#stale.clear()
    this.#last.answered = Number.MAX_SAFE_INTEGER // begins a new generation, in which all is written
  }

  #fail(failed: Session | undefined, error: unknown): void {
    if (this.#session !== failed) return
    this.#session = undefined
    if (this.decides()) this.#decided_until = this.#parts.clock.steady()
    this.#isComplete = false
    this.#isShared = undefined
    for (const { counter } of this.#changes) this.#markStale(counter)
    for (const counter of this.#open) this.#markStale(counter)
    this.#changes = []
    this.#parts.announce()
    this.#report(error instanceof Error ? error.message : 'the server has lost its data, or its clock was set')
  }

  #report(reason: string): void {
    if (!this.#isReported) this.#parts.log.warn('rate limits are not counted in valkey', { reason })
    this.#isReported = true
  }

  /** Undefined, and the counters are stale: it is not known whether the script was executed. */
  async #run(
    script: Script,
    { used, keys, args }: { used: readonly Counter[]; keys: string[]; args: (string | number)[] },
  ): Promise<string[] | undefined> {
    const own = this.#session
    if (!own) return undefined
    if (this.#running >= MOST_RUNNING) await new Promise<void>((resolve) => void this.#slots.push(resolve))
    this.#running++
    let failure: unknown
    try {
      const state = [own.process, own.id, own.generation, this.#now()]
      const answer = (await script.run([META, ...keys], [...state, ...args])) as string[]
      if (this.#session === own && answer[0] !== 'over') {
        own.answered++
        this.#follow(Number(answer[1]))
        return answer
      }
    } catch (error) {
      failure = error
    } finally {
      this.#running--
      this.#slots.shift()?.()
    }
    for (const counter of used) this.#markStale(counter)
    this.#fail(own, failure)
    return undefined
  }

  /** The time never runs back: it is that of the process that is ahead. */
  #follow(at: number): void {
    this.#parts.time.shift = Math.max(this.#parts.time.shift, at - this.#parts.clock.steady())
  }

  /** What calls that are open give back later of what they took before is lost if the time changes by much. */
  #begin(at: number, generation: string): void {
    const shift = at - this.#parts.clock.steady()
    const change = shift - this.#parts.time.shift
    if (this.#last?.generation === generation || (this.#last && Math.abs(change) < SAME_TIME_MS)) {
      this.#follow(at)
      return
    }
    this.#parts.time.shift = shift
    for (const counter of this.#parts.counters()) shiftTimes(counter, change)
  }

  async #attach(): Promise<void> {
    this.#running++
    try {
      const { process: own = '', generation: before = '', answered: count = 0 } = this.#last ?? {}
      const known = [own, before, this.#now(), randomAlphanumerics(8), count]
      const [generation = '', process = '', id = '', at] = (await this.#hello.run([META], known)) as string[]
      if (this.#isClosed) return
      this.#begin(Number(at), generation)
      if (generation !== before) {
        for (const counter of this.#parts.counters()) if (counter.window.total > 0) this.#stale.add(counter)
      }
      this.#last = { generation, process, id, answered: generation === before ? count : 0 }
      await this.#complete(this.#last)
    } catch (error) {
      this.#report(error instanceof Error ? error.message : 'its answer is unknown')
    } finally {
      this.#running--
    }
  }

  /** Writes all that is stale; what changes after the last of it was sent is sent after it. */
  async #complete(own: Session): Promise<void> {
    let isSent = false
    while (!isSent) {
      const some = this.#stale.values().take(MOST_REPLACED).toArray()
      for (const counter of some) this.#stale.delete(counter)
      isSent = this.#stale.size === 0
      const shares = some.flatMap((counter) => shareArguments(counter, this.#now()))
      const args = [own.process, own.id, own.generation, this.#now(), ...shares]
      if (isSent) this.#session = own
      try {
        const [answer] = (await this.#replacing.run(
          [META, ...some.map((one) => keyOf(one, own.generation))],
          args,
        )) as string[]
        if (answer !== 'replaced') throw new Error('the session is over')
        own.answered++
      } catch (error) {
        for (const counter of some) this.#stale.add(counter)
        if (isSent) this.#fail(own, error)
        throw error
      }
    }
    if (this.#session !== own) return
    this.#isComplete = true
    this.#parts.announce()
    if (this.#isReported) this.#parts.log.info('rate limits are counted in valkey again')
    this.#isReported = false
  }

  readonly #tick = (): void => {
    if (this.#isClosed) return
    this.#cancelTick = this.#parts.clock.after(RENEW_MS, this.#tick)
    if (this.#session) {
      for (const counter of this.#open) this.#changes.push({ counter, part: 0, amount: 0 })
      // Without a change as well: the time of the windows goes on.
      void this.#flush(true)
    } else if (this.#running > 0) return
    else if (this.#parts.valkey.isAvailable()) void this.#attach()
    else this.#report('the server cannot be reached')
  }

  async #flush(isForced = false): Promise<void> {
    this.#cancelFlush?.()
    this.#cancelFlush = undefined
    for (let first = isForced; this.#session && (first || this.#changes.length > 0); first = false) {
      if (!(await this.#send([], this.#changes.splice(0, MOST_CHANGES)))) return
    }
  }

  #send(checks: readonly Needed[], done: readonly Change[], undo = ''): Promise<string[] | undefined> {
    const own = this.#session
    if (!own) return Promise.resolve(undefined)
    const { used, args } = countArguments(checks, done, undo)
    return this.#run(this.#counting, { used, keys: used.map((counter) => keyOf(counter, own.generation)), args })
  }

  #note(checks: readonly Needed[], answer: readonly string[], isCounted: boolean): void {
    noteOthers(checks, answer, { now: this.#now(), isCounted, hasApart: this.#apart > 0 })
  }
}
