/** Publishes the events of a call to subscribers (access log, metrics, traces, audit), which never delay it. */
import type { Log } from '../kit/log.ts'
import type { CallRecord } from './call.ts'
import type { Attempt } from './routing/attempt.ts'

/** Every method is optional: a subscriber implements what it needs. */
export type CallSubscriber = Partial<CallEvents>

export type CallEvents = {
  started(record: CallRecord): void
  attemptStarted(record: CallRecord, attempt: Attempt): void
  attemptFailed(record: CallRecord, attempt: Attempt, error: unknown): void
  /** The first part of a streamed response is sent to the client. */
  firstByte(record: CallRecord): void
  /** Exactly once for each call that was refused or sent, after its usage was given to the ledger. */
  finished(record: CallRecord): void
}

const EVENTS = ['started', 'attemptStarted', 'attemptFailed', 'firstByte', 'finished'] as const

/** One object that calls every subscriber in order. An exception in a subscriber is logged; the others are still called. */
export function publishTo(subscribers: readonly CallSubscriber[], log: Log): CallEvents {
  const events: Partial<Record<keyof CallEvents, (record: never, attempt: never, error: never) => void>> = {}
  for (const name of EVENTS) {
    const listeners = subscribers.flatMap((subscriber) => {
      const listener = subscriber[name]?.bind(subscriber) as ((...values: unknown[]) => void) | undefined
      return listener ? [listener] : []
    })
    // Parameters and not a list of them: this is called several times a call.
    events[name] = (record: unknown, attempt: unknown, error: unknown) => {
      for (const listener of listeners) {
        try {
          listener(record, attempt, error)
        } catch (thrown) {
          log.error('a subscriber of call events failed', { call_event: name }, thrown)
        }
      }
    }
  }
  const all = events as CallEvents
  return {
    ...all,
    finished(record) {
      all.finished(record)
      if (record.call.atEnd) callAtEnd(record, log)
    },
  }
}

/** Calls what was added by `whenEnded`. */
function callAtEnd(record: CallRecord, log: Log): void {
  for (const work of record.call.atEnd ?? []) {
    try {
      work(record)
    } catch (thrown) {
      log.error('what was to be done at the end of a call failed', { request_id: record.call.request_id }, thrown)
    }
  }
}
