/**
 * Timers for time limits, almost all of which are cancelled long before: those of one duration wait in one list, in the
 * order of their time, with one timer of the runtime for the first of them.
 */

/** Of the runtime: `set` calls `work` once after `ms`, and does not keep the process alive. */
type Timers = { now(): number; set(ms: number, work: () => void): void }

type Waiting = { readonly due: number; readonly work: () => void }

/** Others are timers of their own: a list for each of many durations would be searched in vain. */
const STEP_MILLISECONDS = 1_000
const LONGEST_MILLISECONDS = 86_400_000
const MOST_LISTS = 64

/** Runs `work` once after `ms`; the result cancels it. Undefined for a duration that has no list. */
type After = (ms: number, work: () => void) => (() => void) | undefined

export function createTimerLists(timers: Timers): After {
  /** By their duration: the limits that the configuration sets are few. */
  const lists = new Map<number, TimerList>()
  return (ms, work) => {
    let list = lists.get(ms)
    if (!list) {
      if (ms < STEP_MILLISECONDS || ms > LONGEST_MILLISECONDS || ms % STEP_MILLISECONDS !== 0) return undefined
      if (lists.size >= MOST_LISTS) return undefined
      list = new TimerList(ms, timers)
      lists.set(ms, list)
    }
    return list.add(work)
  }
}

class TimerList {
  readonly #ms: number
  readonly #timers: Timers
  readonly #waiting = new Set<Waiting>()
  #isSet = false

  constructor(ms: number, timers: Timers) {
    this.#ms = ms
    this.#timers = timers
  }

  add(work: () => void): () => void {
    const waiting = this.#waiting
    const one = { due: this.#timers.now() + this.#ms, work }
    waiting.add(one)
    if (!this.#isSet) this.#set(this.#ms)
    return () => void waiting.delete(one)
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
      for (const one of this.#waiting) {
        if (one.due > this.#timers.now()) break
        this.#waiting.delete(one)
        one.work()
      }
    } finally {
      this.#isSet = false
      const [first] = this.#waiting
      if (first) this.#set(Math.max(1, Math.ceil(first.due - this.#timers.now())))
    }
  }
}
