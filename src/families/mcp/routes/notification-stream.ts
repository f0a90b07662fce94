/** Reads the events of a response, and ends those of notifications, which would never end by themselves. */
import type { Clock } from '../../../kit/clock.ts'

type EventParts = {
  body: ReadableStream<Uint8Array>
  /** Called once, however they end. */
  ended(): void
  /** The gateway stops. Absent: they end by themselves. */
  stopping?: AbortSignal
  /** The access token of their client expires then, in unix seconds. */
  access_ends?: number | undefined
  clock: Clock
}

export async function* eventsUntil({ body, ended, stopping, access_ends, clock }: EventParts) {
  const reader = body.getReader()
  // Whoever waits for a part gets the end.
  const stop = () => void reader.cancel().catch(() => {})
  stopping?.addEventListener('abort', stop, { once: true })
  const cancel = access_ends === undefined ? undefined : clock.after(access_ends * 1000 - clock.now(), stop)
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    cancel?.()
    stopping?.removeEventListener('abort', stop)
    stop()
    ended()
  }
}
