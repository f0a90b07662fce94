/** The step by which a task that its client no longer wants ends, where the vendor lets go of it. */

import type { TaskVendor } from '../order-kinds.ts'
import { nextSlowPollAt } from '../poll-schedule.ts'
import { asGatewayError, type ClaimedTask, fail, vendorOf, within } from './claimed-task.ts'
import { operationOf } from './proceed.ts'

/** A vendor that refuses to stop is asked this often (by this process); then its task is followed to its end. */
const TRIES = 3

/** True: the task has ended by it. False: it is too late, or the vendor would not stop; so the task goes on. */
export async function cancel(claimed: ClaimedTask): Promise<boolean> {
  const { task, clock } = claimed
  if (task.sent_at === null) {
    await fail(claimed, 'canceled', 'Canceled before it was sent to an upstream.')
    return true
  }
  if (task.made) return false // it is made and paid for, and here in a moment
  const vendor = vendorOf(claimed)
  if (task.operation !== null && vendor?.cancel) return tell(claimed, vendor)
  const watch_ms = task.operation === null ? null : nextSlowPollAt(task, clock.now())
  await fail(claimed, 'canceled', NOT_TOLD, watch_ms)
  return true
}

async function tell(claimed: ClaimedTask, vendor: TaskVendor): Promise<boolean> {
  const { task, signal, refusals, log } = claimed
  const before = refusals.get(task.task_id) ?? 0
  if (before >= TRIES) return false
  claimed.at('cancel: before the vendor')
  try {
    await within(signal, vendor.cancel?.(operationOf(task), signal) ?? Promise.resolve())
  } catch (error) {
    if (claimed.stopping()) throw error
    refusals.set(task.task_id, before + 1)
    const { code } = asGatewayError(error)
    log.warn('cancel refused', { task_id: task.task_id, provider: task.provider, code })
    return false
  }
  claimed.at('cancel: after the vendor')
  await fail(claimed, 'canceled', 'Canceled; the upstream has agreed to stop.')
  return true
}

const NOT_TOLD =
  'Canceled: the gateway follows it no longer. The upstream cannot be told to stop; it may still finish, and charge for it.'
