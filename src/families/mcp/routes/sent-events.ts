/** Keeps the last events of a session, so that its client can resume a stream after its connection has broken. */
import type { EventStore, JSONRPCMessage } from '@modelcontextprotocol/server'

/** Of one session. */
const MAX_EVENTS = 256
const MAX_CHARACTERS = 1024 * 1024
/** Of all sessions. */
const MAX_TOTAL_CHARACTERS = 64 * 1024 * 1024

type SentEvent = { sequence: number; stream: string; text: string }

export type SentEvents = EventStore & {
  /** Whether all that followed this event is kept. */
  has(event_id: string): boolean
  forget(): void
}

/** The result makes those of a session. */
export function createEventStores({ most = MAX_TOTAL_CHARACTERS } = {}): () => SentEvents {
  let total = 0

  return () => {
    const events: SentEvent[] = []
    let last = 0
    let size = 0
    /** The last event that is not kept any more. */
    let lost = 0

    function forget(count = events.length): void {
      for (const { sequence, text } of events.splice(0, count)) {
        lost = sequence
        size -= text.length
        total -= text.length
      }
    }

    function placeOf(event_id: string): Pick<SentEvent, 'sequence' | 'stream'> | undefined {
      const [, digits, stream = ''] = /^(\d{1,15})_(.{1,100})$/.exec(event_id) ?? []
      const sequence = Number(digits)
      return sequence >= lost && sequence <= last ? { sequence, stream } : undefined
    }

    return {
      has: (event_id) => placeOf(event_id) !== undefined,
      forget: () => forget(),
      async storeEvent(stream, message) {
        const sequence = ++last
        // An event without a message only tells its id.
        const text = Object.keys(message).length === 0 ? '' : JSON.stringify(message)
        events.push({ sequence, stream, text })
        size += text.length
        total += text.length
        while (events.length > MAX_EVENTS || (size > MAX_CHARACTERS && events.length > 0)) forget(1)
        if (total > most) forget()
        return `${sequence}_${stream}`
      },
      async replayEventsAfter(event_id, { send }) {
        const from = placeOf(event_id)
        if (!from) throw new Error('The events after this one are not kept.')
        for (const { sequence, stream, text } of [...events]) {
          if (stream !== from.stream || sequence <= from.sequence || text === '') continue
          await send(`${sequence}_${stream}`, JSON.parse(text) as JSONRPCMessage)
        }
        return from.stream
      },
    }
  }
}
