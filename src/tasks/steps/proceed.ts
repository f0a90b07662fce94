/** The order that follows on one that is done: sent by the same rules as the first, which is its input. */

import { canonicalJson } from '../../kit/json.ts'
import { sha256 } from '../../kit/secret.ts'
import type { GatewayError } from '../../spec/error.ts'
import type { Json, Task } from '../../spec/task.ts'
import type { TaskVendor } from '../order-kinds.ts'
import { nextAttempt } from '../poll-schedule.ts'
import { asGatewayError, type ClaimedTask, fail, vendorOf, within, write } from './claimed-task.ts'
import { reasonFrom, verdictOf } from './fail-code.ts'
import { destinationOf, leaseOfOrder, mayRepeat, orderSeconds } from './order.ts'
import { keepOperation } from './send.ts'

/** While every answer is a refusal for the time being: 2 + 4 + 8 + 16 + 32 + 60 + 60 seconds. */
const TRIES = 8

/** Stands in the place of the operation while the next order is sent: until then its outcome is in doubt. */
type Proceeding = { $proceeding: Json }

export const isProceeding = (operation: Json): operation is Proceeding =>
  typeof operation === 'object' && operation !== null && '$proceeding' in operation

/** What the vendor is asked about, and told to stop: of an order that is just being sent, the one before it. */
export const operationOf = ({ operation }: Pick<Task, 'operation'>): Json =>
  isProceeding(operation) ? operation.$proceeding : operation

/** The vendor has done its part. Marks that the next order is about to be sent, and sends it. */
export async function proceed(claimed: ClaimedTask, vendor: TaskVendor): Promise<void> {
  const { task, store } = claimed
  const from = task.operation
  claimed.at('proceed: before the mark')
  const due_ms = leaseOfOrder(claimed)
  const sent_to = destinationOf(claimed)
  if (!(await store.tasks.save(task, { operation: { $proceeding: from }, sent_to, keep_lease: true, due_ms }))) return
  claimed.at('proceed: after the mark')
  await sendNext({ ...claimed, task: { ...task, sent_to } }, vendor, from)
}

/** Marked, and no answer is known: as with a first order, nobody sends it again where that could cost twice. */
export async function proceedInDoubt(claimed: ClaimedTask): Promise<void> {
  const vendor = vendorOf(claimed)
  if (!vendor) return later(claimed, {})
  if (!mayRepeat(claimed, vendor)) return fail(claimed, 'submit_outcome_unknown', UNKNOWN_OUTCOME)
  if (!(await claimed.store.tasks.save(claimed.task, { keep_lease: true, due_ms: leaseOfOrder(claimed) }))) return
  claimed.at('doubt: before the order')
  await sendNext(claimed, vendor, operationOf(claimed.task))
}

async function sendNext(claimed: ClaimedTask, vendor: TaskVendor, from: Json): Promise<void> {
  const { task, signal } = claimed
  let operation: Json
  claimed.extend(orderSeconds(claimed) * 1000)
  try {
    if (!vendor.proceed) throw new TypeError('A vendor that says PROCEED cannot.')
    ;({ operation } = await within(signal, vendor.proceed(from, keyOf(task, from), signal)))
  } catch (error) {
    return refused(claimed, { vendor, from, error: asGatewayError(error) })
  }
  await keepOperation(claimed, { operation })
}

/** The same for every attempt at this order, and another one than that of the order before it. */
const keyOf = ({ task_id }: Task, from: Json) => ({
  task_id,
  idempotency_key: `${task_id}-${sha256(canonicalJson(from)).slice(0, 16)}`,
})

type Refused = { vendor: TaskVendor; from: Json; error: GatewayError }

/** What the first order has made lies at this vendor, so no other target can go on from there. */
async function refused(claimed: ClaimedTask, { vendor, from, error }: Refused): Promise<void> {
  const { task, log, clock } = claimed
  const { refusal, fail_code } = verdictOf(error)
  const { retry_after, accepted } = error.detail
  if (accepted === 'no') {
    if (claimed.stopping()) return write(claimed, 'refused', { operation: from, due_ms: clock.now() }).then(() => {})
    log.warn('order refused', { task_id: task.task_id, provider: task.provider, code: error.code })
    const is_last = refusal !== 'passing' || task.failures + 1 >= TRIES
    return is_last
      ? fail(claimed, fail_code, reasonFrom(error.message))
      : later(claimed, { operation: from, retry_after })
  }
  if (claimed.stopping()) throw error // the row says all: it was sent, and no answer is known
  log.error('order in doubt', { task_id: task.task_id, provider: task.provider, resubmit: vendor.resubmit }, error)
  if (!mayRepeat(claimed, vendor)) return fail(claimed, 'submit_outcome_unknown', UNKNOWN_OUTCOME)
  await later(claimed, { retry_after })
}

async function later(
  claimed: ClaimedTask,
  { operation, retry_after }: { operation?: Json; retry_after?: number | undefined },
) {
  const failures = claimed.task.failures + 1
  const due_ms = nextAttempt(claimed.task, failures, { now_ms: claimed.clock.now(), retry_after })
  await write(claimed, 'refused', { ...(operation !== undefined && { operation }), failures, due_ms })
}

const UNKNOWN_OUTCOME =
  'The upstream made the first part. The order for the second was sent, and the upstream did not say whether it accepted it: it may have been charged. It is not sent again.'
