/** What a vendor that answers at once has made: written down with the order itself, then its bytes are kept. */
import { pause, unixSeconds } from '../../kit/clock.ts'
import type { RemoteOutput } from '../../providers/provider.ts'
import type { ComingOutput, Json } from '../../spec/task.ts'
import type { TaskChange } from '../../store/store.ts'
import { nextAttempt } from '../cadence.ts'
import { advance } from '../lifecycle.ts'
import { reasonFrom } from './fail-code.ts'
import { COPY_SECONDS, keepOne, keyOf, type MadeBytes } from './finish.ts'
import { asGatewayError, fail, type Held, vendorOf, write } from './held.ts'

/** A vendor's answer to an order that it has taken. */
export type Taken = { operation: Json; made?: RemoteOutput[] }

/** The bytes are in this process only: so long nobody else takes the task, and so long storing them is tried. */
const KEEP_MILLISECONDS = 60_000
const LEASE_MILLISECONDS = KEEP_MILLISECONDS + 15_000
/** 1 + 2 + 4 seconds: a bucket that is away for longer is rarely back within the step. */
const KEEP_TRIES = 4
const KEEP_PAUSE_MILLISECONDS = 500

/**
 * What is written with the operation. Bytes have the key under which they will be found, so that whoever comes after a
 * crash knows which were stored. Where they were not, and the vendor gives the same for the same order, it is asked
 * again: that needs the inputs.
 */
export function planOf(held: Held, made: RemoteOutput[]): TaskChange {
  const { task, clock } = held
  const now = unixSeconds(clock)
  const has_bytes = made.some((one) => !('url' in one))
  const has_links = made.some((one) => 'url' in one)
  const mayAskAgain = has_bytes && vendorOf(held)?.resubmit === 'safe'
  return {
    ...advance(task, { status: 'IN_PROGRESS', percent: 100, now }),
    ...(task.start_time === 0 && { start_time: Math.max(task.sent_at ?? now, task.submit_time) }),
    made: made.map((one, index) => comingOf(held, one, index)),
    outputs: [], // of an earlier attempt: the same files, under the same keys
    // Bytes are kept now or never; asked for again, they must not put the deadline off again.
    ...(has_links && { deadline_at: Math.max(task.deadline_at, now + COPY_SECONDS) }),
    due_ms: clock.now() + (has_bytes ? LEASE_MILLISECONDS : 0),
    ...(has_bytes && ({ keep_lease: true, failures: task.failures } as const)),
    ...(!mayAskAgain && ({ drop_inputs: true } as const)),
  }
}

function comingOf({ task }: Held, one: RemoteOutput, index: number): ComingOutput {
  if ('url' in one) return one
  return { key: keyOf(task, index, one), content_type: one.content_type }
}

/** Stores all bytes, and hands the task on to the step that looks whether they are there. */
export async function keepAll(held: Held, made: RemoteOutput[]): Promise<void> {
  const { clock, task, log } = held
  held.extend(KEEP_MILLISECONDS)
  let failures = task.failures
  for (const [index, one] of made.entries()) {
    if ('url' in one) continue
    const error = await tryToKeep(held, one, keyOf(task, index, one))
    if (error?.code === 'output_refused') return fail(held, 'output_expired', reasonFrom(error.message))
    if (!error) continue
    failures = task.failures + 1
    log.error('a paid file could not be kept', { task_id: task.task_id, provider: task.provider })
  }
  const now_ms = clock.now()
  const due_ms = failures === task.failures ? now_ms : nextAttempt(task, failures, { now_ms })
  await write(held, 'made', { failures, due_ms })
}

async function tryToKeep(held: Held, one: MadeBytes, key: string) {
  for (let attempt = 1; ; attempt++) {
    try {
      await keepOne(held, one, key)
      return undefined
    } catch (thrown) {
      if (held.stopping()) throw thrown
      const error = asGatewayError(thrown)
      if (attempt === KEEP_TRIES || error.code === 'output_refused') return error
      await pause(held.clock, KEEP_PAUSE_MILLISECONDS * 2 ** attempt)
    }
  }
}
