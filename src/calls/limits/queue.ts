/** Calls that wait for a limit instead of being refused: first in, first out within a token, and tokens take turns. */
import type { Clock } from '../../kit/clock.ts'

/** Undefined: admitted. Else after how many milliseconds it is worth trying again. */
type Attempt<Hold> = { hold: Hold } | { wait_ms: number }

type Waiting<Hold> = {
  token_id: string
  signal: AbortSignal
  /** By the steady clock. */
  until: number
  /** Tries to admit the call. Calls that were tried earlier in the round are before it. */
  attempt(now: number, round: number): Attempt<Hold>
  left(): void
  /** The error of a call that has waited in vain. */
  refusal(): unknown
}

type Entry<Hold> = Waiting<Hold> & { end(settled: { hold: Hold } | { reason: unknown }): void }

type LimitQueue<Hold> = {
  readonly size: number
  /** Undefined: too many wait already. Rejects with the refusal, or with the signal's reason. */
  enter(waiting: Waiting<Hold>): Promise<Hold> | undefined
  /** Something may fit now. */
  retry(): void
}

const MOST_WAITING = 1_000
const MOST_OF_TOKEN = 100
/** Even where it is not known when something fits. */
const LONGEST_PAUSE_MS = 250

export function createLimitQueue<Hold>(clock: Clock): LimitQueue<Hold> {
  /** The calls of each token in order; the token whose turn it is first. */
  const queues = new Map<string, Entry<Hold>[]>()
  let cancelTimer: (() => void) | undefined
  let isTrying = false
  let round = 0

  function remove(entry: Entry<Hold>): void {
    const entries = queues.get(entry.token_id) ?? []
    const index = entries.indexOf(entry)
    if (index === -1) return
    entries.splice(index, 1)
    queue.size--
    if (entries.length === 0) queues.delete(entry.token_id)
  }

  /** The first call of each token in turn, until none of them fits. */
  function retry(): void {
    if (isTrying || queue.size === 0) return
    isTrying = true
    const now = clock.steady()
    round++
    let next: number
    let isAnyAdmitted: boolean
    do {
      next = LONGEST_PAUSE_MS
      isAnyAdmitted = false
      for (const token_id of [...queues.keys()]) {
        const wait_ms = tryFirst(token_id, now)
        if (wait_ms === undefined) isAnyAdmitted = true
        else next = Math.min(next, wait_ms)
      }
    } while (isAnyAdmitted && queue.size > 0)
    isTrying = false
    cancelTimer?.()
    cancelTimer = queue.size === 0 ? undefined : clock.after(Math.max(1, next), retry)
  }

  /** Undefined: its first call waits no longer. */
  function tryFirst(token_id: string, now: number): number | undefined {
    const entry = queues.get(token_id)?.[0]
    if (!entry) return LONGEST_PAUSE_MS
    const tried = attempt(entry, now)
    if ('wait_ms' in tried) return Math.min(tried.wait_ms, entry.until - now)
    remove(entry)
    entry.end(tried)
    const rest = queues.get(token_id)
    queues.delete(token_id) // its turn is over
    if (rest) queues.set(token_id, rest)
    return undefined
  }

  function attempt(entry: Entry<Hold>, now: number): Attempt<Hold> | { reason: unknown } {
    try {
      const tried = entry.attempt(now, round)
      return 'hold' in tried || now < entry.until ? tried : { reason: entry.refusal() }
    } catch (reason) {
      return { reason }
    }
  }

  const queue: LimitQueue<Hold> & { size: number } = {
    size: 0,
    enter(waiting) {
      const { token_id, signal } = waiting
      const entries = queues.get(token_id) ?? []
      if (queue.size >= MOST_WAITING || entries.length >= MOST_OF_TOKEN) return undefined
      if (signal.aborted) return Promise.reject(signal.reason)
      return new Promise((resolve, reject) => {
        const leave = () => {
          remove(entry)
          waiting.left()
          reject(signal.reason)
        }
        const entry: Entry<Hold> = {
          ...waiting,
          end(settled) {
            waiting.left()
            signal.removeEventListener('abort', leave)
            if ('hold' in settled) resolve(settled.hold)
            else reject(settled.reason)
          },
        }
        signal.addEventListener('abort', leave, { once: true })
        entries.push(entry)
        queues.set(token_id, entries)
        queue.size++
        retry()
      })
    },
    retry,
  }
  return queue
}
