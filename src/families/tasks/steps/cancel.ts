/** The step that ends a task whose client has requested cancellation, where the provider can cancel it. */
import type { GatewayError } from '../../../spec/error.ts'
import type { TaskProvider } from '../order-kinds.ts'
import { nextSlowPollAt } from '../poll-schedule.ts'
import { asGatewayError, type ClaimedTask, fail, taskProvider, withSignal } from './claimed-task.ts'
import { pollProvider } from './poll.ts'
import { operationOf } from './proceed.ts'

/** How often this process asks a provider that refuses to cancel. After that the task is polled until it ends. */
const MAX_ATTEMPTS = 3

/** True: the task has ended. False: it is too late, or the provider refused to cancel, so the task continues. */
export async function cancel(claimed: ClaimedTask): Promise<boolean> {
  const { task, clock } = claimed
  if (task.sent_at === null) {
    await fail(claimed, 'canceled', 'Canceled before it was sent to a provider.')
    return true
  }
  if (task.made) return false // it is generated and paid for, and its files arrive soon
  const provider = taskProvider(claimed)
  if (task.operation !== null && provider?.cancel) return cancelUpstream(claimed, provider)
  const watch_ms = task.operation === null ? null : nextSlowPollAt(task, clock.now())
  await fail(claimed, 'canceled', CANNOT_CANCEL, watch_ms)
  return true
}

async function cancelUpstream(claimed: ClaimedTask, provider: TaskProvider): Promise<boolean> {
  const { task, signal, cancelRefusals, log } = claimed
  const before = cancelRefusals.get(task.task_id) ?? 0
  if (before >= MAX_ATTEMPTS) return false
  claimed.crashHook('cancel: before the provider')
  try {
    await withSignal(signal, provider.cancel?.(operationOf(task), signal) ?? Promise.resolve())
  } catch (error) {
    if (claimed.stopping()) throw error
    cancelRefusals.set(task.task_id, before + 1)
    const refusal = asGatewayError(error)
    log.warn('provider refused to cancel', { task_id: task.task_id, provider: task.provider, code: refusal.code })
    if (!(await isForgotten(claimed, provider, refusal))) return false
    await fail(claimed, 'canceled', 'Canceled. The provider no longer has it.')
    return true
  }
  claimed.crashHook('cancel: after the provider')
  await fail(claimed, 'canceled', 'Canceled. The provider has stopped it.')
  return true
}

/**
 * Some providers cancel a task by deleting it. If a process dies after that, the next one finds neither the task to cancel
 * nor the task to poll; either response alone proves nothing.
 */
async function isForgotten(claimed: ClaimedTask, provider: TaskProvider, refusal: GatewayError): Promise<boolean> {
  if (!isUnknownTask(refusal)) return false
  const seen = await pollProvider(claimed, provider)
  return 'error' in seen && isUnknownTask(seen.error)
}

const isUnknownTask = ({ detail }: GatewayError): boolean =>
  detail.upstream_status === 404 || detail.upstream_status === 410

const CANNOT_CANCEL =
  'Canceled. The provider has no way to cancel it, so it may still finish and be charged for. The gateway no longer follows it.'
