/**
 * Reads whole responses that have begun to their end although their client has left, so that the usage that the provider
 * reports is known: for some seconds, and a bounded number at a time.
 */
import type { Clock } from '../../kit/clock.ts'
import type { GatewayError } from '../../spec/error.ts'

type Ending = { end(reason: GatewayError): void }

export type LateReads = {
  /** Whether the response may still be read. Then it is ended with the reason when its time is over. */
  admits(response: Ending, reason: GatewayError): boolean
  ended(response: Ending): void
  open(): number
  /** Ends all of them, and admits no more. */
  close(): void
}

/** Each holds a connection, and up to a whole response in memory. A client must not be able to pile them up. */
export const MOST_LATE_READS = 64

export function createLateReads({ seconds, clock }: { seconds(): number; clock: Clock }): LateReads {
  const open = new Map<Ending, { cancel(): void; reason: GatewayError }>()
  let isClosed = false
  return {
    admits(response, reason) {
      const limit = seconds()
      if (isClosed || limit <= 0 || open.size >= MOST_LATE_READS) return false
      open.set(response, { reason, cancel: clock.after(limit * 1000, () => response.end(reason)) })
      return true
    },
    ended(response) {
      if (open.size === 0) return
      open.get(response)?.cancel()
      open.delete(response)
    },
    open: () => open.size,
    close() {
      isClosed = true
      for (const [response, { reason }] of [...open]) response.end(reason)
    },
  }
}
