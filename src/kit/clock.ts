/** The clock, passed in wherever time matters, so that tests control it; its timers, and work with a time limit. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { type Linked, LinkedItem, LinkedSet } from './linked-set.ts'

/** Of the runtime: `set` calls `work` once after `ms`, and does not keep the process alive. */
type Timers = { now(): number; set(ms: number, work: () => void): void }

/** What waits for a time, in a list of others. */
interface Waiting extends Linked<Waiting> {
  due: number
  work(): void
}

/** Others are timers of their own: a list for each of many durations would be searched in vain. */
const STEP_MILLISECONDS = 1_000
const LONGEST_MILLISECONDS = 86_400_000
const MOST_LISTS = 64

type TimerLists = {
  /** Runs `work` once after `ms`; the result cancels it. Undefined for a duration that has no list. */
  after(ms: number, work: () => void): (() => void) | undefined
  /** The same for an object; false: no list. To cancel it, delete it from its set. */
  wait(ms: number, waiting: Waiting): boolean
}

export function createTimerLists(timers: Timers): TimerLists {
  /** By their duration: the limits that the configuration sets are few. */
  const lists = new Map<number, TimerList>()

  function listFor(ms: number): TimerList | undefined {
    const known = lists.get(ms)
    if (known) return known
    if (ms < STEP_MILLISECONDS || ms > LONGEST_MILLISECONDS || ms % STEP_MILLISECONDS !== 0) return undefined
    if (lists.size >= MOST_LISTS) return undefined
    const list = new TimerList(ms, timers)
    lists.set(ms, list)
    return list
  }

  return {
    after(ms, work) {
      const list = listFor(ms)
      return list && cancelOf(list, { due: 0, work, set: undefined, earlier: undefined, later: undefined })
    },
    wait(ms, waiting) {
      const list = listFor(ms)
      list?.add(waiting)
      return list !== undefined
    },
  }
}

function cancelOf(list: TimerList, waiting: Waiting): () => void {
  list.add(waiting)
  return () => waiting.set?.delete(waiting)
}

class TimerList {
  readonly #ms: number
  readonly #timers: Timers
  readonly #waiting = new LinkedSet<Waiting>()
  #isSet = false

  constructor(ms: number, timers: Timers) {
    this.#ms = ms
    this.#timers = timers
  }

  add(waiting: Waiting): void {
    waiting.due = this.#timers.now() + this.#ms
    this.#waiting.add(waiting)
    if (!this.#isSet) this.#set(this.#ms)
  }

  #set(ms: number): void {
    this.#isSet = true
    this.#timers.set(ms, this.#run)
  }

  /**
   * Where one throws, the runtime reports it as that of any other timer, and the rest follow. What is added meanwhile sets no
   * timer: others that wait may be due before it.
   */
  readonly #run = () => {
    try {
      for (let next = this.#waiting.first; next && next.due <= this.#timers.now(); next = this.#waiting.first) {
        this.#waiting.delete(next)
        next.work()
      }
    } finally {
      this.#isSet = false
      const { first } = this.#waiting
      if (first) this.#set(Math.max(1, Math.ceil(first.due - this.#timers.now())))
    }
  }
}

export type Clock = {
  /** Milliseconds since 1970: for what is shown, stored or agreed with others. May jump when the machine's clock is set. */
  now(): number
  /** Milliseconds that never jump: for intervals within this process. */
  steady(): number
  /** For stored due times: follows a jump, once they were moved with it. Absent where nothing is to be done. */
  align?(): Promise<void> | undefined
  /** How often stored due times were moved, as far as this clock follows it. */
  moves?(): number
  /** The same as `align`, where the store says that they were moved more often. */
  realign?(): Promise<void>
  /** Runs `work` once after `ms`, as soon as possible where that is not positive; the result cancels it. A waiting timer does not keep the process alive. */
  after(ms: number, work: () => void): () => void
  /** The same for an object in a list, without a closure: see `TimeLimited`. Absent or false: there is no such list. */
  wait?(ms: number, waiting: Waiting): boolean
}

/** A timer of many works is set outside of any call: otherwise all of them would run in the trace of the first one's call. */
const outsideCalls = AsyncLocalStorage.snapshot()

const lists = createTimerLists({
  now: () => performance.now(),
  set: (ms, work) => outsideCalls(() => void setTimeout(work, ms).unref()),
})

/** Read once: it does not change, and reading it takes longer than the time does. */
const ORIGIN = performance.timeOrigin

export const systemClock: Clock = {
  now: () => Date.now(),
  steady: () => ORIGIN + performance.now(),
  after: (ms, work) => lists.after(ms, work) ?? afterAlone(ms, work),
  wait: lists.wait,
}

/** A longer timer of the runtime fires at once. */
const LONGEST_TIMER_MILLISECONDS = 2 ** 31 - 1

function afterAlone(ms: number, work: () => void): () => void {
  if (ms > LONGEST_TIMER_MILLISECONDS) return afterLong(ms, work)
  // A time that is past is due now: the runtime would print a warning.
  const timer = setTimeout(work, Math.max(0, ms))
  timer.unref()
  return () => clearTimeout(timer)
}

function afterLong(ms: number, work: () => void): () => void {
  let cancel = afterAlone(LONGEST_TIMER_MILLISECONDS, () => {
    cancel = afterAlone(ms - LONGEST_TIMER_MILLISECONDS, work)
  })
  return () => cancel()
}

/** The time by the steady clock, at a distance from it that its owner corrects: it jumps by nothing else. */
export const shiftedNow = (clock: Clock, shift: { readonly offset: number }) => (): number =>
  Math.round(clock.steady() + shift.offset)

export const unixSeconds = (clock: Clock): number => Math.floor(clock.now() / 1000)

/** Resolves after `ms`; rejects with the signal's reason when it is aborted first. */
export function pause(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const leave = () => {
      cancel()
      reject(signal?.reason)
    }
    const cancel = clock.after(ms, () => {
      signal?.removeEventListener('abort', leave)
      resolve()
    })
    signal?.addEventListener('abort', leave, { once: true })
  })
}

/** False: the work takes longer, and goes on. Rejects as it does. */
export function endsWithin(clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () => resolve(false))
    work.then(
      () => {
        cancel()
        resolve(true)
      },
      (cause) => {
        cancel()
        reject(cause)
      },
    )
  })
}

/** Milliseconds as they are shown: the steady clock has more digits than anybody reads. */
export const tenth = (ms: number): number => Math.round(ms * 10) / 10

export abstract class TimeLimited extends LinkedItem<Waiting> implements Waiting {
  due = 0
  #cancel: (() => void) | undefined

  /** Called once, when the time is up. */
  protected abstract timeIsUp(): void

  /** One at a time. */
  protected startTimer(clock: Clock, ms: number): void {
    if (!clock.wait?.(ms, this)) this.#cancel = this.#timerOf(clock, ms)
  }

  #timerOf(clock: Clock, ms: number): () => void {
    return clock.after(ms, () => this.work())
  }

  protected stopTimer(): void {
    this.set?.delete(this)
    this.#cancel?.()
    this.#cancel = undefined
  }

  protected get isTimed(): boolean {
    return this.set !== undefined || this.#cancel !== undefined
  }

  work(): void {
    this.#cancel = undefined
    this.timeIsUp()
  }
}
