/** The step at the deadline, and those after it that look what became of a task that was given up. */
import { unixSeconds } from '../../kit/clock.ts'
import type { TaskProgress } from '../../providers/provider.ts'
import type { Task } from '../../spec/task.ts'
import type { TaskChange } from '../../store/store.ts'
import { nextSlowPollAt } from '../poll-schedule.ts'
import { type ClaimedTask, fail, vendorOf, write } from './claimed-task.ts'
import { copy } from './copy.ts'
import { reasonFrom } from './fail-code.ts'
import { callOf, lookUp } from './order.ts'
import { heard, look } from './poll.ts'
import { isProceeding } from './proceed.ts'
import { keepOperation } from './send.ts'

/** How long after the deadline last looks go on, when what was made could not be kept at once. */
const LAST_POLLS_SECONDS = 600

/** A last look first: what is done by now is delivered, however late the gateway comes to ask. */
export async function giveUp(claimed: ClaimedTask): Promise<void> {
  const { task } = claimed
  if (task.sent_at === null) return fail(claimed, 'timeout', wasRefused(task) ? NOT_ACCEPTED : NOT_SENT)
  if (task.operation === null) return giveUpDoubt(claimed)
  if (isProceeding(task.operation)) return fail(claimed, 'submit_outcome_unknown', NEVER_KNOWN)
  if (task.made) return copy(claimed, task.made) // a last attempt: when it fails, the task does
  const vendor = isWorthPolling(task, claimed.clock.now()) ? vendorOf(claimed) : undefined
  const seen = vendor && (await look(claimed, vendor))
  if (seen && 'progress' in seen && isEnd(seen.progress)) return heard(claimed, seen.progress)
  await fail(claimed, 'timeout', NOT_DONE, nextSlowPollAt(task, claimed.clock.now()))
}

/** Certainly: an order whose outcome is not known keeps its `sent_at`. */
const wasRefused = ({ tried, failures }: Task): boolean => tried.length > 0 || failures > 0

/** A last look-up: what is found is followed once more, and then ends as any other task that was not done in time. */
async function giveUpDoubt(claimed: ClaimedTask): Promise<void> {
  const vendor = vendorOf(claimed)
  const found = vendor && (await lookUp(claimed, vendor, await callOf(claimed)))
  if (typeof found === 'object') return keepOperation(claimed, found)
  await fail(claimed, 'submit_outcome_unknown', NEVER_KNOWN)
}

/** What is done and cannot be kept, time and again, is not waited for without end. */
const isWorthPolling = ({ failures, deadline_at }: Task, now_ms: number): boolean =>
  failures === 0 || now_ms / 1000 < deadline_at + LAST_POLLS_SECONDS

/** The client's answer stands; the operator learns whether there is something to be charged for. */
export async function watchLate(claimed: ClaimedTask): Promise<void> {
  const { task, clock } = claimed
  if (task.operation === null || task.late_outcome) return late(claimed, { due_ms: null })
  const vendor = vendorOf(claimed)
  const seen = vendor && (await look(claimed, vendor))
  if (!seen || 'error' in seen || !isEnd(seen.progress)) {
    return late(claimed, { due_ms: nextSlowPollAt(task, clock.now()) })
  }
  const { status } = seen.progress
  claimed.log.warn('task ended late at the upstream', { task_id: task.task_id, provider: task.provider, status })
  await late(claimed, {
    late_outcome: { status, at: unixSeconds(clock), detail: detailOf(seen.progress) },
    due_ms: null,
  })
}

async function late(claimed: ClaimedTask, change: TaskChange): Promise<void> {
  await write(claimed, 'late', change)
}

type End = Extract<TaskProgress, { status: 'SUCCESS' | 'FAILURE' }>

const isEnd = (progress: TaskProgress): progress is End =>
  progress.status === 'SUCCESS' || progress.status === 'FAILURE'

const detailOf = (end: End): string =>
  end.status === 'SUCCESS'
    ? `The upstream finished, and made ${end.outputs.length} file(s).`
    : reasonFrom(`${end.fail_code}: ${end.fail_reason}`)

const NOT_SENT = 'The order could not be sent before the deadline.'
const NOT_ACCEPTED = 'No upstream accepted the order before the deadline.'
const NEVER_KNOWN =
  'The order was sent, and whether the upstream accepted it could not be learned before the deadline: it may have been charged.'
const NOT_DONE = 'It was not done by its deadline. The upstream may still finish, and charge for it.'
