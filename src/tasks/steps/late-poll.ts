/** One question to a vendor: how far is this task? */
import type { RemoteOutput, TaskProgress } from '../../providers/provider.ts'
import type { GatewayError } from '../../spec/error.ts'
import type { MadeOutput } from '../../spec/task.ts'
import type { TaskVendor } from '../order-kinds.ts'
import { asGatewayError, type ClaimedTask, within } from './claimed-task.ts'
import { operationOf } from './proceed.ts'

type Seen = { progress: TaskProgress } | { error: GatewayError }

/** An error, and what is no answer at all, says nothing of the task. */
export async function look(claimed: ClaimedTask, vendor: TaskVendor): Promise<Seen> {
  const { task, signal, log } = claimed
  try {
    return { progress: readable(await within(signal, vendor.status(operationOf(task), signal))) }
  } catch (error) {
    if (claimed.stopping()) throw error
    const known = asGatewayError(error)
    const { task_id, provider } = task
    log.warn('poll without an answer', { task_id, provider, code: known.code, failures: task.failures + 1 })
    return { error: known }
  }
}

/** An adapter's answer is typed, and yet comes from a vendor: a shape that nobody foresaw must not end a task. */
function readable(progress: TaskProgress): TaskProgress {
  if (typeof progress !== 'object' || progress === null) throw new TypeError('The status is no object.')
  if (progress.status === 'SUCCESS' && !Array.isArray(progress.outputs)) throw new TypeError('No list of outputs.')
  return progress
}

export const linksOf = (remote: RemoteOutput[]): MadeOutput[] => remote.filter((one) => 'url' in one)
