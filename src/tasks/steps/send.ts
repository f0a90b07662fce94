/** The step that may cost money: the order is sent, at most once to anybody who may have taken it. */
import { pause, unixSeconds } from '../../kit/clock.ts'
import type { GatewayError } from '../../spec/error.ts'
import type { TaskChange } from '../../store/store.ts'
import { advance } from '../lifecycle.ts'
import type { TaskVendor } from '../order-kinds.ts'
import { nextAttempt, nextPoll } from '../poll-schedule.ts'
import { type ClaimedTask, fail, nextTarget, targetName, targetsOf, vendorOf, write } from './claimed-task.ts'
import { reasonFrom, verdictOf } from './fail-code.ts'
import { keepAll, planOf, type Taken } from './immediate-outputs.ts'
import { callOf, destinationOf, leaseOfOrder, lookUp, mayRepeat, order } from './order.ts'

/** Rounds through all targets while each refuses for the time being: 2 + 4 + 8 + 16 + 32 + 60 + 60 seconds. */
const ROUNDS = 8
/** The vendor has the order by now: what it answered is written down however long the store takes (in the lease). */
const OPERATION_TRIES = 7
const OPERATION_PAUSE_MILLISECONDS = 100

/** Marks that the order is about to be sent, and sends it. */
export async function send(claimed: ClaimedTask): Promise<void> {
  const { task, store, clock, at } = claimed
  const vendor = vendorOf(claimed)
  if (!vendor) return refused(claimed, { refusal: 'passing', fail_code: 'model_unavailable', reason: GONE })
  const sent_to = destinationOf(claimed) // at once: by the time of the write another configuration may be in force
  const call = await callOf(claimed)
  at('send: before sent_at')
  const sent_at = Math.max(unixSeconds(clock), task.submit_time)
  if (!(await store.tasks.save(task, { sent_at, sent_to, keep_lease: true, due_ms: leaseOfOrder(claimed) }))) return
  claimed.written.is_sent = true
  at('send: after sent_at')
  const sent: ClaimedTask = { ...claimed, task: { ...task, sent_at, sent_to } }
  const answer = await order(sent, vendor, call)
  if ('operation' in answer) return keepOperation(sent, answer)
  if (answer.error.detail.accepted === 'no') return notTaken(sent, answer.error)
  await inDoubt(sent, vendor, answer.error)
}

/**
 * Sent, and whether it was accepted is not known: by a crash, or because the provider did not say. It is looked up where
 * that is possible. Where the same order twice is certainly one order it is repeated, with the same key, at the same
 * target; otherwise nobody may send it again.
 */
export async function doubt(claimed: ClaimedTask): Promise<void> {
  const { task, store } = claimed
  const vendor = vendorOf(claimed)
  if (!vendor) return retryDoubt(claimed)
  const is_same = task.sent_to === destinationOf(claimed)
  const call = await callOf(claimed)
  // Where files are missing the order is known to be accepted: it is asked for what it has made.
  const found = task.operation === null ? await lookUp(claimed, vendor, call) : 'gone'
  if (typeof found === 'object') return keepOperation(claimed, found)
  if (!is_same || !mayRepeat(claimed, vendor)) {
    return found === 'open' ? retryDoubt(claimed) : fail(claimed, 'submit_outcome_unknown', UNKNOWN_OUTCOME)
  }
  if (!(await store.tasks.save(task, { keep_lease: true, due_ms: leaseOfOrder(claimed) }))) return
  claimed.at('doubt: before the order')
  const answer = await order(claimed, vendor, call)
  if ('operation' in answer) return keepOperation(claimed, answer)
  const { refusal, fail_code } = verdictOf(answer.error)
  const { detail, message } = answer.error
  if (detail.accepted === 'no' && refusal === 'every') {
    return fail(claimed, fail_code, `${reasonFrom(message)} ${EARLIER_ATTEMPT}`)
  }
  await inDoubt(claimed, vendor, answer.error)
}

/** Paid for: a store that is away for some seconds must not lose it. */
export async function keepOperation(claimed: ClaimedTask, { operation, made }: Taken): Promise<void> {
  const { task, store, clock, log } = claimed
  claimed.at('send: before the operation')
  const due_ms = nextPoll(task, claimed.settings(), { now_ms: clock.now() })
  const change: TaskChange = {
    ...advance(task, { status: 'QUEUED', now: unixSeconds(clock) }),
    operation: operation ?? {}, // null is "not known", and this is known
    failures: 0,
    ...(made ? planOf(claimed, made) : ({ due_ms, drop_inputs: true } as const)),
  }
  for (let attempt = 1; ; attempt++) {
    try {
      const is_written = await store.tasks.save(task, change)
      claimed.at('send: after the operation')
      if (!is_written)
        return log.error('a paid order came too late', { task_id: task.task_id, provider: task.provider })
      claimed.written.due_ms = change.due_ms ?? null
      break
    } catch (error) {
      if (attempt === OPERATION_TRIES) throw error
      log.error('a paid order could not be stored yet', { task_id: task.task_id, attempt }, error)
      await pause(clock, OPERATION_PAUSE_MILLISECONDS * 2 ** attempt)
    }
  }
  if (change.keep_lease && made) await keepAll(claimed, made)
}

type Refusal = ReturnType<typeof verdictOf> & { reason: string; retry_after?: number | undefined }

function notTaken(claimed: ClaimedTask, error: GatewayError): Promise<void> {
  if (claimed.stopping())
    return write(claimed, 'refused', { sent_at: null, due_ms: claimed.clock.now() }).then(() => {})
  const { task, log } = claimed
  log.warn('order refused', { task_id: task.task_id, provider: task.provider, code: error.code })
  const reason = reasonFrom(error.message)
  return refused(claimed, { ...verdictOf(error), reason, retry_after: error.detail.retry_after })
}

/**
 * Certainly not taken: the next target may have it. When all have refused, and one of them for the time being only
 * (`failures` counts those), they are asked once more after a while; nothing can be paid twice.
 */
async function refused(claimed: ClaimedTask, { refusal, fail_code, reason, retry_after }: Refusal): Promise<void> {
  const { task, clock } = claimed
  if (refusal === 'every') return fail(claimed, fail_code, reason)
  const targets = targetsOf(claimed)
  const tried = [...task.tried, targetName(task.provider, task.upstream_model)]
  const failures = task.failures + (refusal === 'passing' ? 1 : 0)
  const next = nextTarget(targets, tried)
  const now_ms = clock.now()
  if (next) return pass(claimed, { target: next, tried, failures, due_ms: now_ms })
  const rounds = Math.ceil(failures / Math.max(1, targets.length))
  const first = targets[0]
  if (failures === 0 || rounds >= ROUNDS) return fail(claimed, fail_code, reason)
  const due_ms = nextAttempt(task, rounds, { now_ms, retry_after })
  // With no target left in the configuration the one it has is asked again: it may come back.
  if (!first) await write(claimed, 'refused', { sent_at: null, failures, due_ms })
  else await pass(claimed, { target: first, tried: [], failures, due_ms })
}

type Passed = {
  target: { provider: { id: string }; model: string }
  tried: string[]
  failures: number
  due_ms: number
}

async function pass(claimed: ClaimedTask, { target, ...rest }: Passed): Promise<void> {
  await write(claimed, 'refused', {
    provider: target.provider.id,
    upstream_model: target.model,
    sent_at: null,
    ...rest,
  })
}

/** Nobody knows whether it was accepted. */
async function inDoubt(claimed: ClaimedTask, vendor: TaskVendor, error: GatewayError): Promise<void> {
  const { task, log } = claimed
  if (claimed.stopping()) throw error // the row says all: it was sent, and no answer is known
  log.error('order in doubt', { task_id: task.task_id, provider: task.provider, resubmit: vendor.resubmit }, error)
  if (vendor.findOrder || mayRepeat(claimed, vendor)) return retryDoubt(claimed, error.detail.retry_after)
  await fail(claimed, 'submit_outcome_unknown', reasonFrom(`${UNKNOWN_OUTCOME} Its answer: ${error.message}`))
}

async function retryDoubt(claimed: ClaimedTask, retry_after?: number): Promise<void> {
  const failures = claimed.task.failures + 1
  const due_ms = nextAttempt(claimed.task, failures, { now_ms: claimed.clock.now(), retry_after })
  await write(claimed, 'refused', { failures, due_ms })
}

const GONE = 'The provider that was to make it is no longer configured.'
const EARLIER_ATTEMPT = 'This answered a repetition; the first attempt at the order may have been charged.'
const UNKNOWN_OUTCOME =
  'The order was sent, and the upstream did not say whether it accepted it: it may have been charged. It is not sent again.'
