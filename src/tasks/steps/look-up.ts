/** Looks up an order in doubt at its provider, where that can be asked: before it is sent again, and before it is given up. */
import type { OrderCall } from '../../providers/provider.ts'
import type { TaskVendor } from '../order-kinds.ts'
import { asGatewayError, type ClaimedTask, within } from './claimed-task.ts'
import { orderSeconds } from './order.ts'
import type { Taken } from './taken.ts'

/** An accepted order is in its provider's list by then: so long after it can have arrived last, it is looked up. */
const LISTED_SECONDS = 300

/** `open`: it is not listed yet, or nothing was learned; `gone`: it was not found, and is not expected any more. */
type Found = Taken | 'open' | 'gone'

export async function lookUp(claimed: ClaimedTask, vendor: TaskVendor, call: OrderCall<object>): Promise<Found> {
  const { task, clock, log, signal } = claimed
  if (!vendor.findOrder) return 'gone'
  try {
    const found = await within(signal, vendor.findOrder(call, signal))
    if (found) {
      log.info('order in doubt found', { task_id: task.task_id, provider: task.provider })
      return found
    }
  } catch (error) {
    if (claimed.stopping()) throw error
    const { code } = asGatewayError(error)
    log.warn('order in doubt could not be looked up', { task_id: task.task_id, provider: task.provider, code })
    return 'open'
  }
  const last = (task.sent_at ?? 0) + orderSeconds(claimed) + LISTED_SECONDS
  return clock.now() / 1000 < last ? 'open' : 'gone'
}
