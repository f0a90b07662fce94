/** What a vendor that answers at once has made: written down with the order itself, then its bytes are kept. */
import { pause, unixSeconds } from '../../kit/clock.ts'
import type { RemoteOutput } from '../../providers/provider.ts'
import { GatewayError } from '../../spec/error.ts'
import type { ComingOutput, Json } from '../../spec/task.ts'
import type { TaskChange } from '../../store/store.ts'
import { advance } from '../lifecycle.ts'
import { nextAttempt } from '../poll-schedule.ts'
import { asGatewayError, type ClaimedTask, fail, vendorOf, write } from './claimed-task.ts'
import { reasonFrom } from './fail-code.ts'
import { copyDeadline, keepOne, keyOf, type MadeBytes } from './finish.ts'

/** A vendor's answer to an order that it has taken. */
export type Taken = { operation: Json; made?: RemoteOutput[] }

/** The bytes are in this process only: so long nobody else takes the task, unless the lease is renewed. */
const KEEP_MILLISECONDS = 60_000
const LEASE_MILLISECONDS = KEEP_MILLISECONDS + 15_000
/** 1 + 2 + 4 seconds: a bucket that is away for longer is rarely back within the step. */
const KEEP_TRIES = 4
const KEEP_PAUSE_MILLISECONDS = 500
/** One attempt and the pause after it end well before the lease does. */
const ATTEMPT_MILLISECONDS = 30_000
const LONGEST_PAUSE_MILLISECONDS = 16_000

/**
 * What is written with the operation. Bytes have the key under which they will be found, so that whoever comes after a
 * crash knows which were stored. Where they were not, and the vendor gives the same for the same order, it is asked
 * again: that needs the inputs.
 */
export function planOf(claimed: ClaimedTask, made: RemoteOutput[]): TaskChange {
  const { task, clock } = claimed
  const now = unixSeconds(clock)
  const has_bytes = made.some((one) => !('url' in one))
  const mayAskAgain = has_bytes && isRepeatable(claimed)
  return {
    ...advance(task, { status: 'IN_PROGRESS', percent: 100, now }),
    ...(task.start_time === 0 && { start_time: Math.max(task.sent_at ?? now, task.submit_time) }),
    made: made.map((one, index) => comingOf(claimed, one, index)),
    outputs: [], // of an earlier attempt: the same files, under the same keys
    // Bytes that are asked for again must not put the deadline off again.
    ...(!mayAskAgain && { deadline_at: copyDeadline(claimed) }),
    due_ms: clock.now() + (has_bytes ? LEASE_MILLISECONDS : 0),
    ...(has_bytes && ({ keep_lease: true, failures: task.failures } as const)),
    ...(!mayAskAgain && ({ drop_inputs: true } as const)),
  }
}

function comingOf({ task }: ClaimedTask, one: RemoteOutput, index: number): ComingOutput {
  if ('url' in one) return one
  return { key: keyOf(task, index, one), content_type: one.content_type }
}

/** Stores all bytes, and hands the task on to the step that looks whether they are there. */
export async function keepAll(claimed: ClaimedTask, made: RemoteOutput[]): Promise<void> {
  const { clock, task, log } = claimed
  // These bytes exist nowhere else, unless the vendor gives them again for the same order.
  const until_ms = isRepeatable(claimed) ? 0 : copyDeadline(claimed) * 1000
  let failures = task.failures
  for (const [index, one] of made.entries()) {
    if ('url' in one) continue
    const error = await tryToKeep(claimed, { one, key: keyOf(task, index, one), until_ms })
    if (error === 'lease lost') return
    if (error?.code === 'output_refused') return fail(claimed, 'output_expired', reasonFrom(error.message))
    if (!error) continue
    log.error('a paid file could not be kept', { task_id: task.task_id, provider: task.provider })
    if (until_ms > 0) return fail(claimed, 'internal_error', NOT_KEPT)
    failures = task.failures + 1
  }
  const now_ms = clock.now()
  const due_ms = failures === task.failures ? now_ms : nextAttempt(task, failures, { now_ms })
  await write(claimed, 'made', { failures, due_ms })
}

const isRepeatable = (claimed: ClaimedTask): boolean => vendorOf(claimed)?.resubmit === 'safe'

type Kept = { one: MadeBytes; key: string; until_ms: number }

/** A few quick attempts; then slow ones until `until_ms`, while nobody else may take the task. */
async function tryToKeep(
  claimed: ClaimedTask,
  { one, key, until_ms }: Kept,
): Promise<GatewayError | 'lease lost' | undefined> {
  const { clock, store, task } = claimed
  for (let attempt = 1; ; attempt++) {
    claimed.extend(KEEP_MILLISECONDS)
    const error = await keepOnce(claimed, one, key)
    if (!error || error.code === 'output_refused') return error
    if (attempt >= KEEP_TRIES) {
      if (clock.now() >= until_ms) return error
      // The store may be away as well: the lease then runs on as long as it does.
      const renewed = store.tasks.save(task, { keep_lease: true, due_ms: clock.now() + LEASE_MILLISECONDS })
      if (!(await renewed.catch(() => true))) return 'lease lost'
    }
    await pause(clock, Math.min(LONGEST_PAUSE_MILLISECONDS, KEEP_PAUSE_MILLISECONDS * 2 ** attempt))
    if (claimed.stopping()) throw error
  }
}

async function keepOnce(claimed: ClaimedTask, one: MadeBytes, key: string): Promise<GatewayError | undefined> {
  const over = new AbortController()
  const silent = () => over.abort(new GatewayError('internal_error', "The gateway's own storage kept silent."))
  const cancel = claimed.clock.after(ATTEMPT_MILLISECONDS, silent)
  try {
    await keepOne({ ...claimed, signal: AbortSignal.any([claimed.signal, over.signal]) }, one, key)
    return undefined
  } catch (thrown) {
    if (claimed.stopping()) throw thrown
    return asGatewayError(thrown)
  } finally {
    cancel()
  }
}

const NOT_KEPT = "The upstream made it, but the gateway's own storage could not take it before the copying deadline."
