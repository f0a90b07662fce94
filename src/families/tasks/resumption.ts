/** Decides what resuming a task does: run the next step now, copy again, poll for a late outcome, or nothing. */
import { randomAlphanumerics } from '../../kit/secret.ts'
import type { Json, Task } from '../../spec/task.ts'
import type { Reopening } from '../../store/store.ts'
import { isEnded } from './lifecycle.ts'
import { isProceeding } from './steps/proceed.ts'
import { taskReversal } from './task-entry.ts'

type Resumption =
  /** It has not ended: its next step becomes due now. */
  | { action: 'run_now' }
  /** It failed although the provider has finished it, or may have: it continues. */
  | { action: 'reopen'; reopening: Omit<Reopening, 'due_ms' | 'deadline_at'> }
  /** It was given up, and the provider may still finish it: it is polled for a late outcome. Its result stays. */
  | { action: 'watch' }
  /** The reason why not; completes "Task ... has ended with ...". */
  | { action: 'none'; reason: string }

const none = (reason: string): Resumption => ({ action: 'none', reason })

/** A resume never sends an order again: it needs one that the provider has accepted. `now`: unix seconds. */
export function resumptionOf(task: Task, now: number): Resumption {
  const { status, fail_code, operation, provider, sent_at, late_outcome, made } = task
  if (!isEnded(task)) return { action: 'run_now' }
  if (status === 'SUCCESS') return none(': there is nothing to resume.')
  if (fail_code === 'submit_outcome_unknown') {
    const when = new Date((sent_at ?? 0) * 1000).toISOString()
    return none(
      `: no order is known. Check at ${provider} whether it accepted one at ${when}. A resume does not send the order again; if ${provider} has none, submit a new task.`,
    )
  }
  if (operation === null) {
    return none(', and no provider had accepted its order: there is nothing to poll or to copy. Submit a new task.')
  }
  const was_generated = made !== null || fail_code === 'output_expired' || fail_code === 'output_invalid'
  if (was_generated) return copyingOf(task, now)
  if (fail_code !== 'timeout' && fail_code !== 'canceled') return none(': there is nothing to resume.')
  if (!late_outcome) return { action: 'watch' }
  const { status: late } = late_outcome
  if (fail_code === 'timeout' && late === 'SUCCESS' && !isProceeding(operation)) return reopen(task, null)
  return none(`, and the provider then reported ${late}: there is nothing to resume.`)
}

function copyingOf(task: Task, now: number): Resumption {
  const { made, outputs, outputs_expire_at, operation } = task
  if (isProceeding(operation)) return none(': there is nothing to resume.')
  if (outputs.length > 0 && outputs_expire_at !== null && outputs_expire_at <= now) {
    return none(', and its files have expired and are being removed. Try again in half an hour.')
  }
  if (made === null && isEmpty(operation)) {
    return none(
      ': its provider had returned the result at once, so there is nothing to poll, and no link is known any more.',
    )
  }
  const [first] = made ?? []
  if (first && 'key' in first && !first.polled) {
    return none(': its files came with the response of the provider and were lost; the provider has no copy.')
  }
  return reopen(task, made === null || made.length === 0 ? null : { made, outputs })
}

/** `{}` is stored for an order whose provider returned the result with its response. */
const isEmpty = (operation: Json): boolean =>
  typeof operation === 'object' && operation !== null && Object.keys(operation).length === 0

const reopen = (task: Task, copying: Reopening['copying']): Resumption => ({
  action: 'reopen',
  reopening: {
    copying,
    callback_id: `callback_${randomAlphanumerics(24)}`,
    reversal: taskReversal(task),
  },
})
