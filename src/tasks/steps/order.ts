/** One call that may cost money: how long it may take, and what the provider answers to it. */
import { DEFAULT_TIMEOUTS } from '../../config/config.ts'
import { canonicalJson } from '../../kit/json.ts'
import { sha256 } from '../../kit/secret.ts'
import type { OrderCall } from '../../providers/provider.ts'
import type { GatewayError } from '../../spec/error.ts'
import { kindOf, type TaskVendor } from '../order-kinds.ts'
import { asGatewayError, type ClaimedTask, targetName, within } from './claimed-task.ts'
import type { Taken } from './immediate-outputs.ts'

/** Beyond the wait for the first byte: for connecting, and for reading what follows it. */
const REST_SECONDS = 30
/** What a lease has beyond the call: for the writes after it. */
const LEASE_LEFT_SECONDS = 30

/** The provider is waited for as long as its configuration says: an answer that is given up is an order in doubt. */
export function orderSeconds({ task, providerSettings }: ClaimedTask): number {
  const { first_byte_seconds = DEFAULT_TIMEOUTS.first_byte_seconds } = providerSettings(task.provider) ?? {}
  return Math.max(first_byte_seconds, kindOf(task.family).order_seconds ?? 0) + REST_SECONDS
}

/** Until when nobody else takes the task, since its order is being sent. Unix milliseconds. */
export const leaseOfOrder = (claimed: ClaimedTask): number =>
  claimed.clock.now() + (orderSeconds(claimed) + LEASE_LEFT_SECONDS) * 1000

/** Another account or upstream does not know the key of an order, and another body is another order. */
export function destinationOf({ task, providerSettings }: Pick<ClaimedTask, 'task' | 'providerSettings'>): string {
  const { kind, preset, base_url, key, headers, fields, options } = providerSettings(task.provider) ?? {}
  return sha256(canonicalJson({ kind, preset, base_url, key, headers, fields, options })).slice(0, 16)
}

/** What is in doubt may be sent again: the same provider knows it by its key, and still will when it arrives. */
export function mayRepeat(
  claimed: ClaimedTask,
  { resubmit, key_seconds = Number.POSITIVE_INFINITY }: TaskVendor,
): boolean {
  if (resubmit === 'unsafe' || claimed.task.sent_to !== destinationOf(claimed)) return false
  const sent_ms = (claimed.task.sent_at ?? 0) * 1000
  return claimed.clock.now() + orderSeconds(claimed) * 1000 < sent_ms + key_seconds * 1000
}

type Answer = Taken | { error: GatewayError }

export async function order(claimed: ClaimedTask, vendor: TaskVendor, call: OrderCall<object>): Promise<Answer> {
  claimed.extend(orderSeconds(claimed) * 1000)
  try {
    return await within(claimed.signal, vendor.start(call, claimed.signal))
  } catch (error) {
    return { error: asGatewayError(error) }
  }
}

export async function callOf({ task, store }: ClaimedTask): Promise<OrderCall<object>> {
  const inputs = await store.tasks.inputs(task.task_id)
  const target = targetName(task.provider, task.upstream_model)
  return {
    model: task.upstream_model,
    request: { ...task.request, ...inputs },
    task_id: task.task_id,
    idempotency_key: `${task.task_id}-${sha256(target).slice(0, 16)}`,
  }
}

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
