/** The events of a background response: stored as they arrive, and streamed to clients from the store. */
import { type Clock, pause } from '../../kit/clock.ts'
import { errorEvent } from '../../protocols/responses/client/error.ts'
import { GatewayError } from '../../spec/error.ts'
import type { ResponseRunStore, StoredEvents } from '../../store/responses/response-store.ts'

/** The numbers of the events in a text. A data line is one line, so the output of a model cannot look like one. */
const NUMBER = /^data: \{"type":"[\w.]+","sequence_number":(\d+)/gm

/** All events of this interval are stored in one durable write. */
const BATCH_MILLISECONDS = 200
/** How often a stream polls for events that another process has stored. */
const POLL_MILLISECONDS = 1_000

/** The events of a text and the number of the last one; undefined if there is none. */
export function storedEventsOf(events: string): StoredEvents | undefined {
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

type EventLogParts = { clock: Clock; write(batch: StoredEvents): Promise<void>; fault(error: unknown): void }

/** Collects events and passes them to `write` in batches. */
export function createEventLog({ clock, write, fault }: EventLogParts) {
  let pending = ''
  let cancel: (() => void) | undefined
  let writing: Promise<void> = Promise.resolve()

  function flush(): void {
    cancel = undefined
    // One write at a time, in order: events that arrive meanwhile are in the next one.
    writing = writing
      .then(async () => {
        const batch = take()
        if (batch) await write(batch)
      })
      .catch(fault)
  }
  function take(): StoredEvents | undefined {
    const batch = storedEventsOf(pending)
    pending = ''
    return batch
  }

  return {
    add(events: string): void {
      if (events === '') return
      pending += events
      cancel ??= clock.after(BATCH_MILLISECONDS, flush)
    },
    /** The events that are not stored yet, once all earlier ones are. */
    async rest(): Promise<StoredEvents | undefined> {
      cancel?.()
      await writing
      return take()
    },
  }
}

export type Notifications = {
  /** Notifies those who wait that events of this response were stored. */
  notify(response_id: string): void
  /** Resolves at the next notification, after a polling interval without one, or when `signal` is aborted. */
  next(response_id: string, signal: AbortSignal): Promise<void>
}

export function createNotifications({ clock }: { clock: Clock }): Notifications {
  const waiting = new Map<string, Set<() => void>>()
  return {
    notify(response_id) {
      for (const notified of waiting.get(response_id) ?? []) notified()
    },
    async next(response_id, signal) {
      const control = new AbortController()
      const notified = () => control.abort()
      const all = waiting.getOrInsertComputed(response_id, () => new Set()).add(notified)
      signal.addEventListener('abort', notified, { once: true })
      if (signal.aborted) notified()
      await pause(clock, POLL_MILLISECONDS, control.signal).catch(() => {}) // an abort is a notification here, not an error
      signal.removeEventListener('abort', notified)
      all.delete(notified)
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
  // A reader that has left reads nothing more; any other learns why its stream ends before the response does.
  const { reason } = signal
  if (reason instanceof GatewayError && reason.code !== 'client_closed_request') yield errorEvent(reason, seen + 1)
}
