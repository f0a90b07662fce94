/** Sends an answer with the delays and the faults that its directives request. */
import { type Clock, pause } from '../../../src/kit/clock.ts'
import { GatewayError } from '../../../src/spec/error.ts'
import type { Directives } from './directives.ts'

type ThrottleParts = { directives: Directives; clock: Clock; signal: AbortSignal }

/** Chunks that are sent at once when there is no pause between them: one read from a fast provider holds many. */
const BATCH = 32

/**
 * The items in batches; one at a time when there is a pause between them. A fault occurs after its number of items; of
 * several faults, the first one does. Rejects with the signal's reason once it is aborted.
 */
export async function* throttle<T>(
  items: Iterable<T>,
  { directives, clock, signal }: ThrottleParts,
): AsyncGenerator<T[]> {
  const interval = directives.interval_ms ?? 0
  const fault = nearestFault(directives)
  let sent = 0
  let batch: T[] = []
  for (const item of items) {
    if (sent === fault?.after) {
      if (batch.length > 0) yield batch
      await fault.raise(signal)
    }
    if (interval > 0 && sent > 0) await pause(clock, interval, signal)
    batch.push(item)
    sent++
    if (interval > 0 || batch.length === BATCH) {
      signal.throwIfAborted()
      yield batch
      batch = []
    }
  }
  signal.throwIfAborted()
  if (batch.length > 0) yield batch
}

type Fault = { after: number; raise: (signal: AbortSignal) => Promise<void> }

function nearestFault({ cut_after, error_after, hang_after }: Directives): Fault | undefined {
  const faults: { after: number | undefined; raise: Fault['raise'] }[] = [
    { after: cut_after, raise: cut },
    { after: error_after, raise: fail },
    { after: hang_after, raise: hang },
  ]
  return faults
    .flatMap(({ after, raise }) => (after === undefined ? [] : [{ after, raise }]))
    .sort((one, other) => one.after - other.after)[0]
}

async function cut(): Promise<void> {
  throw new GatewayError(
    'upstream_cut',
    'The simulated provider broke off its answer, as "@sandbox cut_after" requested.',
  )
}

async function fail(): Promise<void> {
  throw new GatewayError(
    'bad_upstream_response',
    'The simulated provider sent an error within its answer, as "@sandbox error_after" requested.',
  )
}

/** Sends nothing more until the caller aborts. */
function hang(signal: AbortSignal): Promise<void> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
