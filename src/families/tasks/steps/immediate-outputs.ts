/** Outputs that a provider returns with its response to the order: stored with the operation, then their bytes. */
import { pause, unixSeconds } from '../../../kit/clock.ts'
import type { RemoteOutput } from '../../../providers/provider.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { ComingOutput } from '../../../spec/task.ts'
import type { TaskChange } from '../../../store/store.ts'
import { advanceToGenerated } from '../lifecycle.ts'
import type { TaskProvider } from '../order-kinds.ts'
import { nextAttemptAt } from '../poll-schedule.ts'
import { asGatewayError, type ClaimedTask, fail, saveChange, taskProvider } from './claimed-task.ts'
import { reasonFrom } from './fail-code.ts'
import { copyDeadline, copyFailCode, keyOf, type OutputBytes, storeOutput } from './finish.ts'

/** A provider's response to an order that it has accepted. */
export type AcceptedOrder = Awaited<ReturnType<TaskProvider['start']>>

/** The bytes exist in this process only. No other process claims the task for this long, and longer if it renews the lease. */
const STORE_MILLISECONDS = 60_000
const LEASE_MILLISECONDS = STORE_MILLISECONDS + 15_000
/** 1 + 2 + 4 seconds: a bucket that is unavailable for longer rarely returns within the step. */
const STORE_TRIES = 4
const STORE_PAUSE_MILLISECONDS = 500
/** One attempt and the pause after it are well below the lease. */
const ATTEMPT_MILLISECONDS = 30_000
const MAX_PAUSE_MILLISECONDS = 16_000

/**
 * The change that is stored with the operation. Each file of bytes gets its storage key, so that after a crash the next
 * worker can tell which were stored. If some were not, and the provider returns the same for the same order, the order
 * is repeated: that needs the inputs.
 */
export function acceptedChange(claimed: ClaimedTask, outputs: RemoteOutput[]): TaskChange {
  const { task, clock } = claimed
  const has_bytes = outputs.some((one) => !('url' in one))
  const mayRepeatOrder = has_bytes && isRepeatable(claimed)
  return {
    ...advanceToGenerated(task, unixSeconds(clock)),
    made: outputs.map((one, index) => pendingOutput(claimed, one, index)),
    outputs: [], // an earlier attempt stored the same files under the same keys
    // A repeated order must not extend the deadline again.
    ...(!mayRepeatOrder && { deadline_at: copyDeadline(claimed) }),
    due_ms: clock.now() + (has_bytes ? LEASE_MILLISECONDS : 0),
    ...(has_bytes && ({ keep_lease: true, failures: task.failures } as const)),
    ...(!mayRepeatOrder && ({ drop_inputs: true } as const)),
  }
}

function pendingOutput({ task }: ClaimedTask, one: RemoteOutput, index: number): ComingOutput {
  if ('url' in one) return one
  return { key: keyOf(task, index, one), content_type: one.content_type }
}

/** Stores all bytes, and makes the step due that checks whether they are stored. */
export async function storeImmediateOutputs(claimed: ClaimedTask, outputs: RemoteOutput[]): Promise<void> {
  const { clock, task, log } = claimed
  // These bytes exist nowhere else, unless the provider returns them again for the same order.
  const until_ms = isRepeatable(claimed) ? 0 : copyDeadline(claimed) * 1000
  let failures = task.failures
  for (const [index, one] of outputs.entries()) {
    if ('url' in one) continue
    const error = await storeWithRetries(claimed, { one, key: keyOf(task, index, one), until_ms })
    if (error === 'lease lost') return
    if (error && isFinal(error)) {
      return fail(claimed, copyFailCode(error), reasonFrom(error.message))
    }
    if (!error) continue
    log.error('a paid file could not be stored', { task_id: task.task_id, provider: task.provider })
    if (until_ms > 0) return fail(claimed, 'internal_error', NOT_STORED)
    failures = task.failures + 1
  }
  const now_ms = clock.now()
  const due_ms = failures === task.failures ? now_ms : nextAttemptAt(task, failures, { now_ms })
  await saveChange(claimed, 'made', { failures, due_ms })
}

/** The same bytes are as large and as broken at the next attempt. */
const isFinal = ({ code, detail }: GatewayError) => code === 'output_refused' || detail.fail_code === 'output_invalid'

const isRepeatable = (claimed: ClaimedTask): boolean => taskProvider(claimed)?.resubmit === 'safe'

type StoreAttempt = { one: OutputBytes; key: string; until_ms: number }

/** A few quick attempts, then slow ones until `until_ms`; the lease keeps other processes away from the task. */
async function storeWithRetries(
  claimed: ClaimedTask,
  { one, key, until_ms }: StoreAttempt,
): Promise<GatewayError | 'lease lost' | undefined> {
  const { clock, store, task } = claimed
  for (let attempt = 1; ; attempt++) {
    claimed.extend(STORE_MILLISECONDS)
    const error = await storeOnce(claimed, one, key)
    if (!error || isFinal(error)) return error
    if (attempt >= STORE_TRIES) {
      if (clock.now() >= until_ms) return error
      // The database may be unavailable too: then no other process can claim the task either.
      const renewed = store.tasks.save(task, { keep_lease: true, due_ms: clock.now() + LEASE_MILLISECONDS })
      if (!(await renewed.catch(() => true))) return 'lease lost'
    }
    await pause(clock, Math.min(MAX_PAUSE_MILLISECONDS, STORE_PAUSE_MILLISECONDS * 2 ** attempt))
    if (claimed.stopping()) throw error
  }
}

async function storeOnce(claimed: ClaimedTask, one: OutputBytes, key: string): Promise<GatewayError | undefined> {
  const attempt = new AbortController()
  const timeout = () => attempt.abort(new GatewayError('internal_error', "The gateway's own storage did not respond."))
  const cancel = claimed.clock.after(ATTEMPT_MILLISECONDS, timeout)
  try {
    await storeOutput({ ...claimed, signal: AbortSignal.any([claimed.signal, attempt.signal]) }, one, key)
    return undefined
  } catch (thrown) {
    if (claimed.stopping()) throw thrown
    return asGatewayError(thrown)
  } finally {
    cancel()
  }
}

const NOT_STORED =
  "The provider generated it, but the gateway's own storage did not accept it before the copying deadline."
