/**
 * Counts rate limits in Valkey: one script for all limits of a call. Each process also counts its own share itself, so that
 * it can write it again after a failure, when it is not known what the server has executed, and after a loss of data.
 */
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { randomAlphanumerics } from '../kit/secret.ts'
import { ELSEWHERE } from '../store/rate-limit-lease.ts'
import type { Valkey } from '../store/valkey.ts'
import type { Change, Needed, Verdict } from './hold.ts'
import { EARLY_MS, type Presence, storedName } from './leases.ts'
import { type Counter, shiftTimes } from './scopes.ts'
import { countArguments, noteOthers, shareArguments, takeFrom } from './valkey-arguments.ts'
import { COUNT, HELLO, REPLACE } from './valkey-scripts.ts'
import { partAt } from './window.ts'

/** By how much the time of all windows, which Valkey has, is after the steady clock of this process. */
export type WindowTime = { shift: number }

export type ValkeyCounts = {
  /** Whether limits are counted there, because all processes count there. */
  decides(): boolean
  /** Counts all, or none. With `instead`, these changes count only with it. Undefined: Valkey has failed. */
  count(checks: readonly Needed[], instead?: readonly Change[]): Promise<Verdict | undefined>
  /** Notes how much others than this process have used. */
  look(counters: readonly Counter[]): Promise<void>
  /** Counts, or corrects, in the background. */
  changed(counter: Counter, amount: number, at: number): void
  presence: Presence
  /** Sends what has changed. */
  close(): Promise<void>
}

type ValkeyCountsParts = {
  valkey: Pick<Valkey, 'script' | 'isAvailable' | 'opened'>
  time: WindowTime
  /** All that is counted by this process. */
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

export function createValkeyCounts(parts: ValkeyCountsParts): ValkeyCounts {
  const { valkey, time, counters, announce, ask, clock, log } = parts
  const [hello, counting, replacing] = [valkey.script(HELLO), valkey.script(COUNT), valkey.script(REPLACE)]
  /** Undefined: what changes is noted as `stale`. */
  let session: Session | undefined
  let last: Session | undefined
  /** Whether all that this process has counted is there. */
  let isComplete = false
  /** Whether all processes count there, as far as the database says. */
  let isShared: boolean | undefined
  /** When Valkey has ceased to decide. */
  let decided_until = Number.NEGATIVE_INFINITY
  /** How many processes have ended that had not written there all that they have used. */
  let apart = 0
  /** What is there may differ from what this process has counted. */
  const stale = new Set<Counter>()
  const open = new Set<Counter>()
  let changes: Change[] = []
  let running = 0
  /** Scripts that wait until fewer are running. */
  const slots: (() => void)[] = []
  let cancelFlush: (() => void) | undefined
  let cancelTick: (() => void) | undefined
  let isReported = false
  let isClosed = false
  void valkey.opened.then(tick)

  const now = () => clock.steady() + time.shift
  const keyOf = (counter: Counter, { generation }: Session) => `{limits}:${generation}:${storedName(counter)}`

  const decides = () => isComplete && isShared === true

  function markStale(counter: Counter): void {
    if (!last) return // all will be written
    stale.add(counter)
    if (stale.size <= MOST_STALE) return
    stale.clear()
    last.answered = Number.MAX_SAFE_INTEGER // begins a new generation, in which all is written
  }

  function fail(failed: Session | undefined, error: unknown): void {
    if (session !== failed) return
    session = undefined
    if (decides()) decided_until = clock.steady()
    isComplete = false
    isShared = undefined
    for (const { counter } of changes) markStale(counter)
    for (const counter of open) markStale(counter)
    changes = []
    announce()
    report(error instanceof Error ? error.message : 'the server has lost its data, or its clock was set')
  }

  function report(reason: string): void {
    if (!isReported) log.warn('rate limits are not counted in valkey', { reason })
    isReported = true
  }

  /** Undefined, and the counters are stale: it is not known whether the script was executed. */
  async function run(
    script: typeof counting,
    { used, keys, args }: { used: readonly Counter[]; keys: string[]; args: (string | number)[] },
  ): Promise<string[] | undefined> {
    const own = session
    if (!own) return undefined
    if (running >= MOST_RUNNING) await new Promise<void>((resolve) => void slots.push(resolve))
    running++
    let failure: unknown
    try {
      const answer = (await script.run(
        [META, ...keys],
        [own.process, own.id, own.generation, now(), ...args],
      )) as string[]
      if (session === own && answer[0] !== 'over') {
        own.answered++
        follow(Number(answer[1]))
        return answer
      }
    } catch (error) {
      failure = error
    } finally {
      running--
      slots.shift()?.()
    }
    for (const counter of used) markStale(counter)
    fail(own, failure)
    return undefined
  }

  /** The time never runs back: it is that of the process that is ahead. */
  function follow(at: number): void {
    time.shift = Math.max(time.shift, at - clock.steady())
  }

  /** What calls that are open give back later of what they took before is lost if the time changes by much. */
  function begin(at: number, generation: string): void {
    const shift = at - clock.steady()
    const change = shift - time.shift
    if (last?.generation === generation || (last && Math.abs(change) < SAME_TIME_MS)) {
      follow(at)
      return
    }
    time.shift = shift
    for (const counter of counters()) shiftTimes(counter, change)
  }

  async function attach(): Promise<void> {
    running++
    try {
      const { process: own = '', generation: before = '', answered: count = 0 } = last ?? {}
      const known = [own, before, now(), randomAlphanumerics(8), count]
      const [generation = '', process = '', id = '', at] = (await hello.run([META], known)) as string[]
      if (isClosed) return
      begin(Number(at), generation)
      if (generation !== before) {
        for (const counter of counters()) if (counter.window.total > 0) stale.add(counter)
      }
      last = { generation, process, id, answered: generation === before ? count : 0 }
      await complete(last)
    } catch (error) {
      report(error instanceof Error ? error.message : 'its answer is unknown')
    } finally {
      running--
    }
  }

  /** Writes all that is stale; what changes after the last of it was sent is sent after it. */
  async function complete(own: Session): Promise<void> {
    let isSent = false
    while (!isSent) {
      const some = takeFrom(stale, MOST_REPLACED)
      isSent = stale.size === 0
      const args = [
        own.process,
        own.id,
        own.generation,
        now(),
        ...some.flatMap((counter) => shareArguments(counter, now())),
      ]
      if (isSent) session = own
      try {
        const [answer] = (await replacing.run([META, ...some.map((one) => keyOf(one, own))], args)) as string[]
        if (answer !== 'replaced') throw new Error('the session is over')
        own.answered++
      } catch (error) {
        for (const counter of some) stale.add(counter)
        if (isSent) fail(own, error)
        throw error
      }
    }
    if (session !== own) return
    isComplete = true
    announce()
    if (isReported) log.info('rate limits are counted in valkey again')
    isReported = false
  }

  function tick(): void {
    if (isClosed) return
    cancelTick = clock.after(RENEW_MS, tick)
    if (session) {
      for (const counter of open) changes.push({ counter, part: 0, amount: 0 })
      // Without a change as well: the time of the windows goes on.
      void flush(true)
    } else if (running > 0) return
    else if (valkey.isAvailable()) void attach()
    else report('the server cannot be reached')
  }

  async function flush(isForced = false): Promise<void> {
    cancelFlush?.()
    cancelFlush = undefined
    for (let first = isForced; session && (first || changes.length > 0); first = false) {
      if (!(await send([], changes.splice(0, MOST_CHANGES)))) return
    }
  }

  function send(checks: readonly Needed[], done: readonly Change[], undo = ''): Promise<string[] | undefined> {
    const own = session
    if (!own) return Promise.resolve(undefined)
    const { used, args } = countArguments(checks, done, undo)
    return run(counting, { used, keys: used.map((counter) => keyOf(counter, own)), args })
  }

  const note = (checks: readonly Needed[], answer: readonly string[], isCounted: boolean) =>
    noteOthers(checks, answer, { now: now(), isCounted, hasApart: apart > 0 })

  async function count(checks: readonly Needed[], instead?: readonly Change[]): Promise<Verdict | undefined> {
    // Changes that are to be undone with the call are sent alone.
    if (instead) void flush()
    const unknown = apart === 0 ? [] : checks.filter(({ counter }) => counter.apart_until <= now())
    if (unknown.length > 0) await ask(unknown.map(({ counter }) => ({ counter, amount: 0 })))
    const left = checks.map((check) => (apart === 0 ? check : { ...check, limit: check.limit - check.counter.apart }))
    const answer = await send(left, instead ?? changes.splice(0, MOST_CHANGES), instead && 'undo')
    if (!answer) {
      for (const { counter } of instead ?? []) markStale(counter)
      return undefined
    }
    const [outcome, at, place, free_at] = answer
    note(checks, answer, outcome === 'admitted')
    if (outcome === 'admitted') {
      for (const { counter } of checks) if (counter.is_concurrent) open.add(counter)
      return { at: Number(at) }
    }
    const blocked = checks[Number(place)] as Needed
    return { blocked: free_at ? { ...blocked, wait_ms: Math.max(1, Math.ceil(Number(free_at) - now())) } : blocked }
  }

  const nameNow = () => (isComplete ? `${ELSEWHERE}${session?.generation}` : undefined)

  return {
    decides,
    count,
    async look(all) {
      const checks = all.map((counter) => ({ counter, limit: Number.MAX_SAFE_INTEGER, amount: 0 }))
      const answer = await send(checks, changes.splice(0, MOST_CHANGES))
      if (answer) note(checks, answer, false)
    },
    changed(counter, amount, at) {
      if (counter.is_concurrent) {
        if (counter.window.total > 0) open.add(counter)
        else open.delete(counter)
      }
      if (!session) return markStale(counter)
      changes.push({ counter, part: counter.is_concurrent ? 0 : partAt(counter.window, at), amount })
      if (changes.length > MOST_WAITING) fail(session, new Error('too many changes wait'))
      else cancelFlush ??= clock.after(FLUSH_MS, () => void flush())
    },
    presence: {
      name: nameNow,
      decides,
      unreported_ms: () => decided_until + REPORTED_MS - clock.steady(),
      seen(name, found) {
        if (name !== nameNow()) return
        // While the database is away, what it said last counts; before, Valkey alone has to do.
        if (decides() && found?.isEveryone === false) decided_until = clock.steady()
        isShared = found?.isEveryone ?? isShared ?? true
        if (found) apart = found.apart
      },
    },
    async close() {
      isClosed = true
      cancelTick?.()
      cancelFlush?.()
      await flush()
    },
  }
}
