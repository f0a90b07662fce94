/** The call that may cost money: how long it may take, what the provider responds, and how to find its order again. */
import { DEFAULT_TIMEOUTS } from '../../../config/config.ts'
import { canonicalJson } from '../../../kit/json.ts'
import { sha256 } from '../../../kit/secret.ts'
import type { OrderCall } from '../../../providers/provider.ts'
import type { GatewayError } from '../../../spec/error.ts'
import type { Task } from '../../../spec/task.ts'
import { RESTORED_TO } from '../../../store/tasks/task-sent.ts'
import { kindOf, type TaskProvider } from '../order-kinds.ts'
import { asGatewayError, type ClaimedTask, withSignal } from './claimed-task.ts'
import type { AcceptedOrder } from './immediate-outputs.ts'
import { observed, targetIdOf, targetsOf } from './order-target.ts'

/** Beyond the wait for the first byte: for connecting, and for reading what follows it. */
const REST_SECONDS = 30
/** How much longer than the call the lease lasts: for the writes after it. */
const LEASE_LEFT_SECONDS = 30

/** Waits as long as the provider's configuration allows: giving up on a response leaves an order in doubt. */
export function orderTimeoutSeconds({ task, providerSettings }: ClaimedTask): number {
  const { first_byte_seconds = DEFAULT_TIMEOUTS.first_byte_seconds } = providerSettings(task.provider) ?? {}
  return Math.max(first_byte_seconds, kindOf(task.family).order_seconds ?? 0) + REST_SECONDS
}

/** The end of the lease while the order is being sent. Unix milliseconds. */
export const orderLeaseEnd = (claimed: ClaimedTask): number =>
  claimed.clock.now() + (orderTimeoutSeconds(claimed) + LEASE_LEFT_SECONDS) * 1000

/** Identifies where an order was sent. Another account or upstream does not know its key, and another body is another order. */
export function destinationOf({ task, providerSettings }: Pick<ClaimedTask, 'task' | 'providerSettings'>): string {
  const { kind, preset, base_url, key, headers, fields, options } =
    providerSettings(task.provider, task.provider_key) ?? {}
  return sha256(canonicalJson({ kind, preset, base_url, key, headers, fields, options })).slice(0, 16)
}

/** Whether it was sent there, as far as is known: after a restore it may have been sent to another target since. */
export function wasSentThere(claimed: Pick<ClaimedTask, 'task' | 'providerSettings'>): boolean {
  const { sent_to } = claimed.task
  const destination = destinationOf(claimed)
  return sent_to === destination || sent_to === RESTORED_TO + destination
}

/** Whether a backup was restored that may lack what has become of its order since. */
export const isRestored = ({ sent_to }: Pick<Task, 'sent_to'>): boolean =>
  sent_to === null || sent_to.startsWith(RESTORED_TO)

/** Whether it may have been refused since a backup, and accepted by another target. */
export const mayBeElsewhere = async (claimed: ClaimedTask): Promise<boolean> =>
  isRestored(claimed.task) && !claimed.task.call_options?.no_fallback && (await targetsOf(claimed)).length > 1

/** Whether an order in doubt may be sent again: the same provider honours its key, and still will when it arrives. */
export function mayRepeat(
  claimed: ClaimedTask,
  { resubmit, key_seconds = Number.POSITIVE_INFINITY }: TaskProvider,
): boolean {
  if (resubmit === 'unsafe' || !wasSentThere(claimed)) return false
  const sent_ms = (claimed.task.sent_at ?? 0) * 1000
  return claimed.clock.now() + orderTimeoutSeconds(claimed) * 1000 < sent_ms + key_seconds * 1000
}

type OrderResult = AcceptedOrder | { error: GatewayError }

export async function order(
  claimed: ClaimedTask,
  provider: TaskProvider,
  call: OrderCall<object>,
): Promise<OrderResult> {
  claimed.extend(orderTimeoutSeconds(claimed) * 1000)
  try {
    return await observed(claimed, () => withSignal(claimed.signal, provider.start(call, claimed.signal)))
  } catch (error) {
    return { error: asGatewayError(error) }
  }
}

export async function orderCallFor({ task, store }: ClaimedTask): Promise<OrderCall<object>> {
  const inputs = await store.tasks.inputs(task.task_id)
  return {
    model: task.upstream_model,
    request: { ...task.request, ...inputs },
    task_id: task.task_id,
    owner: task.token_id,
    idempotency_key: `${task.task_id}-${sha256(targetIdOf(task)).slice(0, 16)}`,
  }
}
