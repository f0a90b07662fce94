/** Lets an answer out at the pace, and with the faults, that its directives ask for. */
import { type Clock, pause } from '../../../src/kit/clock.ts'
import { GatewayError } from '../../../src/spec/error.ts'
import type { Directives } from './directives.ts'

type PaceParts = { directives: Directives; clock: Clock; signal: AbortSignal }

/** Chunks that are let out at once when there is no pause between them, as one read from a fast vendor holds many. */
const BATCH = 32

/**
 * The items in batches; one at a time when there is a pause between them. A fault strikes once so many items are out;
 * of several the nearest does. Rejects with the signal's reason once it is aborted.
 */
export async function* paced<T>(items: Iterable<T>, { directives, clock, signal }: PaceParts): AsyncGenerator<T[]> {
  const interval = directives.interval_ms ?? 0
  const fault = nearestFault(directives)
  let out = 0
  let batch: T[] = []
  for (const item of items) {
    if (out === fault?.after) {
      if (batch.length > 0) yield batch
      await fault.strike(signal)
    }
    if (interval > 0 && out > 0) await pause(clock, interval, signal)
    batch.push(item)
    out++
    if (interval > 0 || batch.length === BATCH) {
      signal.throwIfAborted()
      yield batch
      batch = []
    }
  }
  signal.throwIfAborted()
  if (batch.length > 0) yield batch
}

type Fault = { after: number; strike: (signal: AbortSignal) => Promise<void> }

function nearestFault({ cut_after, error_after, hang_after }: Directives): Fault | undefined {
  const faults: { after: number | undefined; strike: Fault['strike'] }[] = [
    { after: cut_after, strike: cut },
    { after: error_after, strike: fail },
    { after: hang_after, strike: silence },
  ]
  return faults
    .flatMap(({ after, strike }) => (after === undefined ? [] : [{ after, strike }]))
    .sort((one, other) => one.after - other.after)[0]
}

async function cut(): Promise<void> {
  throw new GatewayError(
    'upstream_cut',
    'The simulated vendor broke off its answer, as "@sandbox cut_after" asked it to.',
  )
}

async function fail(): Promise<void> {
  throw new GatewayError(
    'bad_upstream_response',
    'The simulated vendor sent an error within its answer, as "@sandbox error_after" asked it to.',
  )
}

/** Nothing more, until the other side gives up. */
function silence(signal: AbortSignal): Promise<void> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
