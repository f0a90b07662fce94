/**
 * Timers for time limits, almost all of which are cancelled long before: those of one duration wait in one list, in the
 * order of their time, with one timer of the runtime for the first of them.
 */

/** Of the runtime: `set` calls `work` once after `ms`, and does not keep the process alive. */
type Timers = { now(): number; set(ms: number, work: () => void): void }

/** What waits for a time, in a list of others. */
export type Waiting = { due: number; work(): void }

/** Others are timers of their own: a list for each of many durations would be searched in vain. */
const STEP_MILLISECONDS = 1_000
const LONGEST_MILLISECONDS = 86_400_000
const MOST_LISTS = 64

type TimerLists = {
  /** Runs `work` once after `ms`; the result cancels it. Undefined for a duration that has no list. */
  after(ms: number, work: () => void): (() => void) | undefined
  /** The same for an object. To cancel it, delete it from the list that is returned. */
  wait(ms: number, waiting: Waiting): Set<Waiting> | undefined
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
      return list && cancelOf(list, { due: 0, work })
    },
    wait: (ms, waiting) => listFor(ms)?.add(waiting),
  }
}

function cancelOf(list: TimerList, waiting: Waiting): () => void {
  const all = list.add(waiting)
  return () => void all.delete(waiting)
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

  add(waiting: Waiting): Set<Waiting> {
    waiting.due = this.#timers.now() + this.#ms
    this.#waiting.add(waiting)
    if (!this.#isSet) this.#set(this.#ms)
    return this.#waiting
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
