/** The step that may cost money: the order is sent, at most once to anybody who may have taken it. */
import { pause, unixSeconds } from '../../kit/clock.ts'
import type { GatewayError } from '../../spec/error.ts'
import type { TaskChange } from '../../store/store.ts'
import { nextAttempt, nextPoll } from '../cadence.ts'
import { advance } from '../lifecycle.ts'
import type { TaskVendor } from '../order-kinds.ts'
import { reasonFrom, verdictOf } from './fail-code.ts'
import { fail, type Held, vendorOf, write } from './held.ts'
import { lookUp } from './look-up.ts'
import { callOf, leaseOfOrder, mayRepeat, order } from './order.ts'
import { keepAll, planOf, type Taken } from './taken.ts'
import { nextTarget, targetName, targetsOf } from './targets.ts'

/** Rounds through all targets while each refuses for the time being: 2 + 4 + 8 + 16 + 32 + 60 + 60 seconds. */
const ROUNDS = 8
/** The vendor has the order by now: what it answered is written down however long the store takes (in the lease). */
const OPERATION_TRIES = 7
const OPERATION_PAUSE_MILLISECONDS = 100

/** Marks that the order is about to be sent, and sends it. */
export async function send(held: Held): Promise<void> {
  const { task, store, clock, at } = held
  const vendor = vendorOf(held)
  if (!vendor) return refused(held, { refusal: 'passing', fail_code: 'model_unavailable', reason: GONE })
  const call = await callOf(held)
  at('send: before sent_at')
  const sent_at = Math.max(unixSeconds(clock), task.submit_time)
  if (!(await store.tasks.save(task, { sent_at, keep_lease: true, due_ms: leaseOfOrder(held) }))) return
  held.written.is_sent = true
  at('send: after sent_at')
  const sent: Held = { ...held, task: { ...task, sent_at } }
  const answer = await order(sent, vendor, call)
  if ('operation' in answer) return keepOperation(sent, answer)
  if (answer.error.detail.taken === 'no') return notTaken(sent, answer.error)
  await inDoubt(sent, vendor, answer.error)
}

/**
 * Sent, and whether it was accepted is not known: by a crash, or because the provider did not say. It is looked up where
 * that is possible. Where the same order twice is certainly one order it is repeated, with the same key, at the same
 * target; otherwise nobody may send it again.
 */
export async function doubt(held: Held): Promise<void> {
  const { task, store } = held
  const vendor = vendorOf(held)
  if (!vendor) return retryDoubt(held)
  const call = await callOf(held)
  // Where files are missing the order is known to be accepted: it is asked for what it has made.
  const found = task.operation === null ? await lookUp(held, vendor, call) : 'gone'
  if (typeof found === 'object') return keepOperation(held, found)
  if (!mayRepeat(held, vendor)) {
    return found === 'open' ? retryDoubt(held) : fail(held, 'submit_outcome_unknown', UNKNOWN_OUTCOME)
  }
  if (!(await store.tasks.save(task, { keep_lease: true, due_ms: leaseOfOrder(held) }))) return
  held.at('doubt: before the order')
  const answer = await order(held, vendor, call)
  if ('operation' in answer) return keepOperation(held, answer)
  const { refusal, fail_code } = verdictOf(answer.error)
  const { detail, message } = answer.error
  if (detail.taken === 'no' && refusal === 'every') return fail(held, fail_code, reasonFrom(message))
  await inDoubt(held, vendor, answer.error)
}

/** Paid for: a store that is away for some seconds must not lose it. */
export async function keepOperation(held: Held, { operation, made }: Taken): Promise<void> {
  const { task, store, clock, log } = held
  held.at('send: before the operation')
  const due_ms = nextPoll(task, held.settings(), { now_ms: clock.now() })
  const change: TaskChange = {
    ...advance(task, { status: 'QUEUED', now: unixSeconds(clock) }),
    operation: operation ?? {}, // null is "not known", and this is known
    failures: 0,
    ...(made ? planOf(held, made) : ({ due_ms, drop_inputs: true } as const)),
  }
  for (let attempt = 1; ; attempt++) {
    try {
      const is_written = await store.tasks.save(task, change)
      held.at('send: after the operation')
      if (!is_written)
        return log.error('a paid order came too late', { task_id: task.task_id, provider: task.provider })
      held.written.due_ms = change.due_ms ?? null
      break
    } catch (error) {
      if (attempt === OPERATION_TRIES) throw error
      log.error('a paid order could not be stored yet', { task_id: task.task_id, attempt }, error)
      await pause(clock, OPERATION_PAUSE_MILLISECONDS * 2 ** attempt)
    }
  }
  if (change.keep_lease && made) await keepAll(held, made)
}

type Refusal = ReturnType<typeof verdictOf> & { reason: string; retry_after?: number | undefined }

function notTaken(held: Held, error: GatewayError): Promise<void> {
  if (held.stopping()) return write(held, 'refused', { sent_at: null, due_ms: held.clock.now() }).then(() => {})
  const { task, log } = held
  log.warn('order refused', { task_id: task.task_id, provider: task.provider, code: error.code })
  const reason = reasonFrom(error.message)
  return refused(held, { ...verdictOf(error), reason, retry_after: error.detail.retry_after })
}

/**
 * Certainly not taken: the next target may have it. When all have refused, and one of them for the time being only
 * (`failures` counts those), they are asked once more after a while; nothing can be paid twice.
 */
async function refused(held: Held, { refusal, fail_code, reason, retry_after }: Refusal): Promise<void> {
  const { task, clock } = held
  if (refusal === 'every') return fail(held, fail_code, reason)
  const targets = targetsOf(held)
  const tried = [...task.tried, targetName(task.provider, task.upstream_model)]
  const failures = task.failures + (refusal === 'passing' ? 1 : 0)
  const next = nextTarget(targets, tried)
  const now_ms = clock.now()
  if (next) return pass(held, { target: next, tried, failures, due_ms: now_ms })
  const rounds = Math.ceil(failures / Math.max(1, targets.length))
  const first = targets[0]
  if (failures === 0 || rounds >= ROUNDS) return fail(held, fail_code, reason)
  const due_ms = nextAttempt(task, rounds, { now_ms, retry_after })
  // With no target left in the configuration the one it has is asked again: it may come back.
  if (!first) await write(held, 'refused', { sent_at: null, failures, due_ms })
  else await pass(held, { target: first, tried: [], failures, due_ms })
}

type Passed = {
  target: { provider: { id: string }; model: string }
  tried: string[]
  failures: number
  due_ms: number
}

async function pass(held: Held, { target, ...rest }: Passed): Promise<void> {
  await write(held, 'refused', {
    provider: target.provider.id,
    upstream_model: target.model,
    sent_at: null,
    ...rest,
  })
}

/** Nobody knows whether it was accepted. */
async function inDoubt(held: Held, vendor: TaskVendor, error: GatewayError): Promise<void> {
  const { task, log } = held
  if (held.stopping()) throw error // the row says all: it was sent, and no answer is known
  log.error('order in doubt', { task_id: task.task_id, provider: task.provider, resubmit: vendor.resubmit }, error)
  if (vendor.findOrder || mayRepeat(held, vendor)) return retryDoubt(held, error.detail.retry_after)
  await fail(held, 'submit_outcome_unknown', reasonFrom(`${UNKNOWN_OUTCOME} Its answer: ${error.message}`))
}

async function retryDoubt(held: Held, retry_after?: number): Promise<void> {
  const failures = held.task.failures + 1
  const due_ms = nextAttempt(held.task, failures, { now_ms: held.clock.now(), retry_after })
  await write(held, 'refused', { failures, due_ms })
}

const GONE = 'The provider that was to make it is no longer configured.'
const UNKNOWN_OUTCOME =
  'The order was sent, and the upstream did not say whether it accepted it: it may have been charged. It is not sent again.'
