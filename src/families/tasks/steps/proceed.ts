/** The second order of a two-part task: sent by the same rules as the first one, whose result is its input. */
import { canonicalJson } from '../../../kit/json.ts'
import { sha256 } from '../../../kit/secret.ts'
import type { GatewayError } from '../../../spec/error.ts'
import type { Json, Task } from '../../../spec/task.ts'
import type { TaskProvider } from '../order-kinds.ts'
import {
  asGatewayError,
  type ClaimedTask,
  fail,
  retryLater,
  saveChange,
  taskProvider,
  withSignal,
} from './claimed-task.ts'
import { classifyError, reasonFrom } from './fail-code.ts'
import { destinationOf, isRestored, mayRepeat, orderLeaseEnd, orderTimeoutSeconds } from './order.ts'
import { observed } from './order-target.ts'
import { RESTORED, storeOperation } from './send.ts'

/** While every response is a temporary refusal: 2 + 4 + 8 + 16 + 32 + 60 + 60 seconds. */
const MAX_ATTEMPTS = 8

/** Stored in place of the operation while the next order is sent: until the response, its outcome is in doubt. */
type Proceeding = { $proceeding: Json }

export const isProceeding = (operation: Json): operation is Proceeding =>
  typeof operation === 'object' && operation !== null && '$proceeding' in operation

/** The operation to poll or to cancel. While the second order is being sent, it is the first one. */
export const operationOf = ({ operation }: Pick<Task, 'operation'>): Json =>
  isProceeding(operation) ? operation.$proceeding : operation

/** The first part has finished. Marks that the second order is about to be sent, and sends it. */
export async function proceed(claimed: ClaimedTask, provider: TaskProvider): Promise<void> {
  const { task, store } = claimed
  const from = task.operation
  // Restored from a backup, after which it may have been sent.
  if (isRestored(task) && (provider.resubmit === 'unsafe' || provider.key_seconds !== undefined))
    return fail(claimed, 'submit_outcome_unknown', RESTORED)
  claimed.crashHook('proceed: before the mark')
  const due_ms = orderLeaseEnd(claimed)
  const sent_to = destinationOf(claimed)
  if (!(await store.tasks.save(task, { operation: { $proceeding: from }, sent_to, keep_lease: true, due_ms }))) return
  claimed.crashHook('proceed: after the mark')
  await sendNext({ ...claimed, task: { ...task, sent_to } }, provider, from)
}

/** Marked, and no response is known: as with a first order, it is not sent again where that could cost twice. */
export async function proceedInDoubt(claimed: ClaimedTask): Promise<void> {
  const provider = taskProvider(claimed)
  if (!provider) return retryLater(claimed, 'refused')
  if (!mayRepeat(claimed, provider)) return fail(claimed, 'submit_outcome_unknown', UNKNOWN_OUTCOME)
  if (!(await claimed.store.tasks.save(claimed.task, { keep_lease: true, due_ms: orderLeaseEnd(claimed) }))) return
  claimed.crashHook('doubt: before the order')
  await sendNext(claimed, provider, operationOf(claimed.task))
}

async function sendNext(claimed: ClaimedTask, provider: TaskProvider, from: Json): Promise<void> {
  const { task, signal } = claimed
  let operation: Json
  claimed.extend(orderTimeoutSeconds(claimed) * 1000)
  try {
    ;({ operation } = await observed(claimed, () => {
      if (!provider.proceed) throw new TypeError('A provider that returns PROCEED must implement proceed.')
      return withSignal(signal, provider.proceed(from, keyOf(task, from), signal))
    }))
  } catch (error) {
    return refused(claimed, { provider, from, error: asGatewayError(error) })
  }
  await storeOperation(claimed, { operation })
}

/** The same for every attempt at this order, and different from the key of the order before it. */
const keyOf = ({ task_id }: Task, from: Json) => ({
  task_id,
  idempotency_key: `${task_id}-${sha256(canonicalJson(from)).slice(0, 16)}`,
})

type Rejection = { provider: TaskProvider; from: Json; error: GatewayError }

/** The result of the first order is stored at this provider, so no other target can continue. */
async function refused(claimed: ClaimedTask, { provider, from, error }: Rejection): Promise<void> {
  const { task, log, clock } = claimed
  const { refusal, fail_code } = classifyError(error)
  const { retry_after, accepted } = error.detail
  if (accepted === 'no') {
    if (claimed.stopping()) return saveChange(claimed, 'refused', { operation: from, due_ms: clock.now() })
    log.warn('order refused', { task_id: task.task_id, provider: task.provider, code: error.code })
    const is_last = refusal !== 'passing' || task.failures + 1 >= MAX_ATTEMPTS
    return is_last
      ? fail(claimed, fail_code, reasonFrom(error.message))
      : retryLater(claimed, 'refused', { operation: from, retry_after })
  }
  if (claimed.stopping()) throw error // the row holds what is known: it was sent, and no response was stored
  log.error('order in doubt', { task_id: task.task_id, provider: task.provider, resubmit: provider.resubmit }, error)
  if (!mayRepeat(claimed, provider)) return fail(claimed, 'submit_outcome_unknown', UNKNOWN_OUTCOME)
  await retryLater(claimed, 'refused', { retry_after })
}

const UNKNOWN_OUTCOME =
  'The provider finished the first part. The order for the second part was sent, and the provider did not confirm whether it accepted it: it may have been charged. It is not sent again.'
