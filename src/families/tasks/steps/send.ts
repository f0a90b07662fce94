/** The step that may cost money: sends the order, at most once to any target that may have accepted it. */
import { pause, unixSeconds } from '../../../kit/clock.ts'
import type { Target } from '../../../providers/provider.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { TaskChange } from '../../../store/store.ts'
import { advance } from '../lifecycle.ts'
import type { TaskProvider } from '../order-kinds.ts'
import { nextAttemptAt, nextPollAt } from '../poll-schedule.ts'
import { type ClaimedTask, fail, retryLater, saveChange, taskProvider } from './claimed-task.ts'
import { classifyError, reasonFrom } from './fail-code.ts'
import { type AcceptedOrder, acceptedChange, storeImmediateOutputs } from './immediate-outputs.ts'
import { lookUpOrder } from './look-up.ts'
import {
  destinationOf,
  isRestored,
  mayBeElsewhere,
  mayRepeat,
  order,
  orderCallFor,
  orderLeaseEnd,
  wasSentThere,
} from './order.ts'
import { admitOrder, countRepeated, type OrderHold } from './order-limits.ts'
import { chooseBelowLimits, chooseTarget, storedTarget, targetIdOf, targetsOf, withCurrentKey } from './order-target.ts'

/** Rounds through all targets while each refuses temporarily: 2 + 4 + 8 + 16 + 32 + 60 + 60 seconds. */
const MAX_ROUNDS = 8
/** The provider has the order by now: its response is stored however long the database is away, also after the lease. */
const OPERATION_TRIES = 1_000
/** The same when the gateway stops. */
const LAST_OPERATION_TRIES = 7
const OPERATION_PAUSE_MILLISECONDS = 100
/** Short, so that it is stored before the lease, which may have expired, is noticed. */
const MAX_OPERATION_PAUSE_MILLISECONDS = 800

/** After it, another target that is below its limits, or a raised limit, is noticed. */
const MAX_LIMIT_WAIT_SECONDS = 60

/** Sends the order, and records it right before the provider may get it. */
export async function send(given: ClaimedTask): Promise<void> {
  const claimed = withCurrentKey(given)
  const { task } = claimed
  const provider = taskProvider(claimed)
  if (!provider)
    return tryNextTarget(claimed, { refusal: 'passing', fail_code: 'model_unavailable', reason: PROVIDER_REMOVED })
  const hold = await admitOrder(claimed)
  if (hold instanceof GatewayError) return waitForLimit(claimed, hold)
  const sending = recordSending(claimed)
  const result = await counted(hold, async () => {
    const call = await orderCallFor(claimed)
    if (!provider.awaits_before_send) await sending.record()
    const result = await order(claimed, provider, { ...call, beforeSend: sending.record })
    if (sending.failure) throw sending.failure
    return { isSent: 'operation' in result || sending.recorded !== undefined, ...result }
  })
  if ('operation' in result && !sending.recorded) await sending.record() // it forgot, and the order is paid for
  const sent: ClaimedTask = { ...claimed, task: { ...task, ...sending.recorded } }
  if ('operation' in result) return storeOperation(sent, result)
  if (!sending.recorded || result.error.detail.accepted === 'no') return notAccepted(sent, result.error)
  await inDoubt(sent, provider, result.error)
}

type OrderResult = Awaited<ReturnType<typeof order>>

/** Counts what an order uses at its provider: nothing where it was not sent, a request where it was refused. */
async function counted<R extends OrderResult & { isSent: boolean }>(
  hold: OrderHold,
  send: () => Promise<R>,
): Promise<R> {
  try {
    const result = await send()
    if (result.isSent) hold.sent('operation' in result || result.error.detail.accepted !== 'no')
    else hold.notSent()
    return result
  } catch (thrown) {
    hold.notSent()
    throw thrown
  }
}

/** Nothing was sent: the order goes to another target whose provider is below its limits, or waits, at most until its deadline. */
async function waitForLimit(claimed: ClaimedTask, { message, detail }: GatewayError): Promise<void> {
  const { task, clock } = claimed
  const tried = [...task.tried, targetIdOf(task)]
  const mayMove = !task.call_options?.no_fallback
  const next = mayMove ? await chooseBelowLimits(claimed, await targetsOf(claimed), tried) : undefined
  const { failures } = task
  if (next) return assignTarget(claimed, { target: next, tried: task.tried, failures, due_ms: clock.now() })
  const refused = { refusal: 'target', fail_code: 'upstream_rate_limited', reason: reasonFrom(message) } as const
  if (detail.retry === false)
    return mayMove ? tryNextTarget(claimed, refused) : fail(claimed, refused.fail_code, refused.reason)
  const retry_after = Math.min(detail.retry_after ?? 0, MAX_LIMIT_WAIT_SECONDS)
  const due_ms = nextAttemptAt(task, 1, { now_ms: clock.now(), retry_after })
  await saveChange(claimed, 'refused', { due_ms })
}

type Sending = {
  /** Stores that the order leaves now; rejects if it must not. Does nothing when called again. */
  record(): Promise<void>
  recorded?: { sent_at: number; sent_to: string }
  /** Why nothing could be stored: the step failed, and nothing was sent. */
  failure?: unknown
}

function recordSending(claimed: ClaimedTask): Sending {
  const { task, store, clock, crashHook, signal } = claimed
  const sent_to = destinationOf(claimed) // read now: until the write the configuration may change
  const sending: Sending = {
    async record() {
      if (sending.recorded) return
      signal.throwIfAborted()
      crashHook('send: before sent_at')
      const sent_at = unixSeconds(clock)
      const { provider_key } = task
      const change = { sent_at, sent_to, provider_key, keep_lease: true, due_ms: orderLeaseEnd(claimed) } as const
      try {
        if (!(await store.tasks.save(task, change))) throw new Error('Not sent: another process has the task.')
      } catch (error) {
        sending.failure = error
        throw error
      }
      claimed.saved.is_sent = true
      sending.recorded = { sent_at, sent_to }
      crashHook('send: after sent_at')
      signal.throwIfAborted()
    },
  }
  return sending
}

/**
 * The order was sent, and its acceptance is unknown: after a crash, or because the provider did not confirm it. It is
 * looked up where that is possible; if it is certainly not there, it is sent like any other. Where repeating it certainly
 * counts once, it is repeated with the same key at the same target; otherwise it is never sent again.
 */
export async function resolveDoubt(claimed: ClaimedTask): Promise<void> {
  const { task, store, clock } = claimed
  const provider = taskProvider(claimed)
  if (!provider) return retryLater(claimed, 'refused')
  const isHere = wasSentThere(claimed) && !(await mayBeElsewhere(claimed))
  const call = await orderCallFor(claimed)
  // Where only files are missing, the order is known to be accepted: repeating it returns its result.
  const found = task.operation === null ? await lookUpOrder(claimed, provider, call) : 'gone'
  if (typeof found === 'object') return storeOperation(claimed, found)
  // As if it had not been sent yet: the next step sends it.
  if (found === 'not accepted')
    return saveChange(claimed, 'refused', { sent_at: null, failures: 0, due_ms: clock.now() })
  if (!isHere || !mayRepeat(claimed, provider)) {
    return found === 'open'
      ? retryLater(claimed, 'refused')
      : fail(claimed, 'submit_outcome_unknown', isRestored(task) ? RESTORED : UNKNOWN_OUTCOME)
  }
  if (!(await store.tasks.save(task, { keep_lease: true, due_ms: orderLeaseEnd(claimed) }))) return
  claimed.crashHook('doubt: before the order')
  const hold = await countRepeated(claimed)
  const result = await counted(hold, async () => ({ isSent: true, ...(await order(claimed, provider, call)) }))
  if ('operation' in result) return storeOperation(claimed, result)
  const { refusal, fail_code } = classifyError(result.error)
  const { detail, message } = result.error
  if (detail.accepted === 'no' && refusal === 'every') {
    return fail(claimed, fail_code, `${reasonFrom(message)} ${EARLIER_ATTEMPT}`)
  }
  await inDoubt(claimed, provider, result.error)
}

/** The order is paid for: a store that is unavailable for some minutes must not lose it. */
export async function storeOperation(claimed: ClaimedTask, { operation, outputs }: AcceptedOrder): Promise<void> {
  const { task, store, clock, log } = claimed
  claimed.crashHook('send: before the operation')
  const due_ms = nextPollAt(task, claimed.settings(), { now_ms: clock.now() })
  const change: TaskChange = {
    ...advance(task, { status: 'QUEUED', now: unixSeconds(clock) }),
    operation: operation ?? {}, // null would mean "unknown"
    failures: 0,
    ...(outputs ? acceptedChange(claimed, outputs) : ({ due_ms, drop_inputs: true } as const)),
  }
  for (let attempt = 1; ; attempt++) {
    try {
      const is_saved = await store.tasks.save(task, change)
      claimed.crashHook('send: after the operation')
      if (!is_saved)
        return log.error('a paid order was lost: the lease had expired', {
          task_id: task.task_id,
          provider: task.provider,
        })
      claimed.saved.change = change
      claimed.saved.due_ms = change.due_ms ?? null
      break
    } catch (error) {
      if (attempt >= (claimed.stopping() ? LAST_OPERATION_TRIES : OPERATION_TRIES)) throw error
      log.error('a paid order could not be stored yet', { task_id: task.task_id, attempt }, error)
      await pause(clock, Math.min(OPERATION_PAUSE_MILLISECONDS * 2 ** attempt, MAX_OPERATION_PAUSE_MILLISECONDS))
    }
  }
  if (change.keep_lease && outputs) await storeImmediateOutputs(claimed, outputs)
}

type RefusedOrder = ReturnType<typeof classifyError> & { reason: string; retry_after?: number | undefined }

function notAccepted(claimed: ClaimedTask, error: GatewayError): Promise<void> {
  if (claimed.stopping()) return saveChange(claimed, 'refused', { sent_at: null, due_ms: claimed.clock.now() })
  const { task, log } = claimed
  log.warn('order refused', { task_id: task.task_id, provider: task.provider, code: error.code })
  const reason = reasonFrom(error.message)
  if (task.call_options?.no_fallback) return fail(claimed, classifyError(error).fail_code, reason)
  return tryNextTarget(claimed, { ...classifyError(error), reason, retry_after: error.detail.retry_after })
}

/**
 * Certainly not accepted, so the next target may get it. When all have refused, and at least one only temporarily
 * (`failures` counts those), they are tried again after a pause; nothing can be paid twice.
 */
async function tryNextTarget(
  claimed: ClaimedTask,
  { refusal, fail_code, reason, retry_after }: RefusedOrder,
): Promise<void> {
  const { task, clock } = claimed
  if (refusal === 'every') return fail(claimed, fail_code, reason)
  const targets = await targetsOf(claimed)
  const tried = [...task.tried, targetIdOf(task)]
  const failures = task.failures + (refusal === 'passing' ? 1 : 0)
  const next = await chooseTarget(claimed, targets, tried)
  const now_ms = clock.now()
  if (next) return assignTarget(claimed, { target: next, tried, failures, due_ms: now_ms })
  const rounds = Math.ceil(failures / Math.max(1, targets.length))
  const first = await chooseTarget(claimed, targets, [])
  if (failures === 0 || rounds >= MAX_ROUNDS) return fail(claimed, fail_code, reason)
  const due_ms = nextAttemptAt(task, rounds, { now_ms, retry_after })
  // With no target left in the configuration, the current one is tried again: it may return.
  if (!first) await saveChange(claimed, 'refused', { sent_at: null, failures, due_ms })
  else await assignTarget(claimed, { target: first, tried: [], failures, due_ms })
}

type Assignment = { target: Target; tried: string[]; failures: number; due_ms: number }

const assignTarget = (claimed: ClaimedTask, { target, ...rest }: Assignment): Promise<void> =>
  saveChange(claimed, 'refused', { ...storedTarget(target), sent_at: null, ...rest })

/** Whether it was accepted is unknown. */
async function inDoubt(claimed: ClaimedTask, provider: TaskProvider, error: GatewayError): Promise<void> {
  const { task, log } = claimed
  if (claimed.stopping()) throw error // the row holds what is known: it was sent, and no response was stored
  log.error('order in doubt', { task_id: task.task_id, provider: task.provider, resubmit: provider.resubmit }, error)
  const { retry_after } = error.detail
  if (provider.orderList || mayRepeat(claimed, provider)) return retryLater(claimed, 'refused', { retry_after })
  await fail(claimed, 'submit_outcome_unknown', reasonFrom(`${UNKNOWN_OUTCOME} Its response: ${error.message}`))
}

const PROVIDER_REMOVED = 'The provider that should generate it is no longer configured.'
/** Nothing is stored of where it was sent. */
export const RESTORED =
  'A backup was restored: whether this order was sent after it was taken, and charged, is not known. It is not sent again.'
const EARLIER_ATTEMPT = 'This was the response to a repeated order; the first attempt may have been charged.'
const UNKNOWN_OUTCOME =
  'The order was sent, and the provider did not confirm whether it accepted it: it may have been charged. It is not sent again.'
