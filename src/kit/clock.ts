/** The clock, passed in wherever time matters, so that tests control it. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { createTimerLists, type Waiting } from './timer-lists.ts'

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
  /** The same for an object in a list, without a closure: see `TimeLimited`. Absent or undefined: there is no such list. */
  wait?(ms: number, waiting: Waiting): Set<Waiting> | undefined
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

function afterAlone(ms: number, work: () => void): () => void {
  // A time that is past is due now: the runtime would print a warning.
  const timer = setTimeout(work, Math.max(0, ms))
  timer.unref()
  return () => clearTimeout(timer)
}

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
