/** The events of a background response: stored as they come, and streamed to clients from the store. */
import { type Clock, pause } from '../kit/clock.ts'
import type { ResponseRunStore, StoredEvents } from '../store/store.ts'

/** The numbers of events in a text; a data line is one line, so what a model says cannot look like it. */
const NUMBER = /^data: \{"type":"[\w.]+","sequence_number":(\d+)/gm

/** One durable write for all events of this time. */
const GATHER_MILLISECONDS = 200
/** How often a stream polls for events that another process has stored. */
const LOOK_MILLISECONDS = 1_000

/** Some events, and the number of the last of them; undefined where there is none. */
export function toldEvents(events: string): StoredEvents | undefined {
  const last = [...events.matchAll(NUMBER)].at(-1)?.[1]
  return last === undefined ? undefined : { last_number: Number(last), events }
}

/** The events of a text that come after this number. */
export function eventsAfter({ events, last_number }: StoredEvents, after: number): string {
  const [first = last_number + 1] = [...events.matchAll(NUMBER)].map(([, number]) => Number(number))
  if (first > after) return events
  return events
    .split(/(?<=\n\n)/) // after the empty line that ends each
    .filter((event) => Number([...event.matchAll(NUMBER)][0]?.[1] ?? -1) > after)
    .join('')
}

type EventLog = {
  add(events: string): void
  /** The events that are not stored yet, once all before them are. */
  rest(): Promise<StoredEvents | undefined>
}

type EventLogParts = { clock: Clock; write(told: StoredEvents): Promise<void>; fault(error: unknown): void }

/** Gathers events and passes them to `write` in batches. */
export function createEventLog({ clock, write, fault }: EventLogParts): EventLog {
  let pending = ''
  let cancel: (() => void) | undefined
  let writing: Promise<void> = Promise.resolve()

  function flush(): void {
    cancel = undefined
    // One at a time, in order: what comes meanwhile goes with the next one.
    writing = writing
      .then(async () => {
        const told = take()
        if (told) await write(told)
      })
      .catch(fault)
  }
  function take(): StoredEvents | undefined {
    const told = toldEvents(pending)
    pending = ''
    return told
  }

  return {
    add(events) {
      if (events === '') return
      pending += events
      cancel ??= clock.after(GATHER_MILLISECONDS, flush)
    },
    async rest() {
      cancel?.()
      await writing
      return take()
    },
  }
}

export type Notifications = {
  /** Events of this response were stored. */
  tell(response_id: string): void
  /** Resolves with the next notification, after a while without any, or when `signal` is aborted. */
  next(response_id: string, signal: AbortSignal): Promise<void>
}

export function createNotifications({ clock }: { clock: Clock }): Notifications {
  const waiting = new Map<string, Set<() => void>>()
  return {
    tell(response_id) {
      for (const wake of waiting.get(response_id) ?? []) wake()
    },
    async next(response_id, signal) {
      const control = new AbortController()
      const wake = () => control.abort()
      const all = waiting.get(response_id) ?? new Set()
      waiting.set(response_id, all.add(wake))
      signal.addEventListener('abort', wake, { once: true })
      if (signal.aborted) wake()
      await pause(clock, LOOK_MILLISECONDS, control.signal).catch(() => {}) // an abort is a notification here, not an error
      signal.removeEventListener('abort', wake)
      all.delete(wake)
      if (all.size === 0) waiting.delete(response_id)
    },
  }
}

type FollowParts = { runs: ResponseRunStore; notifications: Notifications }

/** All events after this number, as they are stored, until the response has ended. */
export async function* followEvents(
  { runs, notifications }: FollowParts,
  { response_id, after }: { response_id: string; after: number },
  { signal }: { signal: AbortSignal },
): AsyncGenerator<string> {
  let seen = after
  // A comment: the client gets the first byte at once, even if the next event takes a while.
  yield ': following\n\n'
  while (!signal.aborted) {
    // Read first: the last events are stored by then.
    const hasEnded = !(await runs.isRunning(response_id))
    const notified = notifications.next(response_id, signal)
    for (const stored of await runs.events(response_id, seen)) {
      const events = eventsAfter(stored, seen)
      seen = stored.last_number
      if (events !== '') yield events
    }
    if (hasEnded) return
    await notified
  }
}
