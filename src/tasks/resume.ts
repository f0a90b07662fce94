/** What resuming a task means: go on at once, go back to copying, ask what became of it, or nothing at all. */
import { randomAlphanumerics } from '../kit/secret.ts'
import type { Json, Task } from '../spec/task.ts'
import type { Reopening } from '../store/store.ts'
import { isEnded, usageReversal } from './lifecycle.ts'
import { isProceeding } from './steps/proceed.ts'

type Resumption =
  /** It has not ended: its next step is due now. */
  | { action: 'hasten' }
  /** It failed although the upstream has made it, or may have: it goes back to work. */
  | { action: 'reopen'; reopening: Omit<Reopening, 'due_ms' | 'deadline_at'> }
  /** It was given up, and the upstream may still finish: what became of it is asked. The client's answer stays. */
  | { action: 'watch' }
  /** Why not: follows on "Task ... has ended with ...". */
  | { action: 'none'; reason: string }

const none = (why: string): Resumption => ({ action: 'none', reason: why })

/** No order is ever sent again: whatever is resumed has one that the upstream has taken. `now`: unix seconds. */
export function resumptionOf(task: Task, now: number): Resumption {
  const { status, fail_code, operation, provider, sent_at, late_outcome, made } = task
  if (!isEnded(task)) return { action: 'hasten' }
  if (status === 'SUCCESS') return none(': there is nothing to resume.')
  if (fail_code === 'submit_outcome_unknown') {
    const when = new Date((sent_at ?? 0) * 1000).toISOString()
    return none(
      `: there is no order to ask for. Look at ${provider} whether it took one at ${when}. The order is not sent again by a resume; when ${provider} has none, submit a new task.`,
    )
  }
  if (operation === null) {
    return none(', and no upstream had taken its order: there is nothing to follow or to copy. Submit a new task.')
  }
  const was_made = made !== null || fail_code === 'output_expired'
  if (was_made) return copyingOf(task, now)
  if (fail_code !== 'timeout' && fail_code !== 'canceled') return none(': there is nothing to resume.')
  if (!late_outcome) return { action: 'watch' }
  const { status: late } = late_outcome
  if (fail_code === 'timeout' && late === 'SUCCESS' && !isProceeding(operation)) return reopen(task, null)
  return none(`, and its upstream then said ${late}: nothing more will come.`)
}

function copyingOf(task: Task, now: number): Resumption {
  const { made, outputs, outputs_expire_at, operation } = task
  if (isProceeding(operation)) return none(': there is nothing to resume.')
  if (outputs.length > 0 && outputs_expire_at !== null && outputs_expire_at <= now) {
    return none(', and its files are being removed, since their time was over. Try again in half an hour.')
  }
  if (made === null && isEmpty(operation)) {
    return none(
      ': its upstream had answered at once, so there is nothing to ask it for, and no link is known any more.',
    )
  }
  const [first] = made ?? []
  if (first && 'key' in first && !first.polled) {
    return none(': its files came with the answer of the upstream and were lost; the upstream has no copy.')
  }
  return reopen(task, made === null || made.length === 0 ? null : { made, outputs })
}

/** What is stored for an order whose upstream made it before it answered. */
const isEmpty = (operation: Json): boolean =>
  typeof operation === 'object' && operation !== null && Object.keys(operation).length === 0

const reopen = (task: Task, copying: Reopening['copying']): Resumption => ({
  action: 'reopen',
  reopening: {
    copying,
    callback_id: `callback_${randomAlphanumerics(24)}`,
    usage: usageReversal(task),
  },
})
