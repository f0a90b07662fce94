/** The step at the deadline, and the later polls that record what became of a task that was given up. */
import { unixSeconds } from '../../../kit/clock.ts'
import type { Task } from '../../../spec/task.ts'
import { nextSlowPollAt } from '../poll-schedule.ts'
import { type ClaimedTask, fail, saveChange, taskProvider } from './claimed-task.ts'
import { copy } from './copy.ts'
import { reasonFrom } from './fail-code.ts'
import { lookUpOrder } from './look-up.ts'
import { orderCallFor } from './order.ts'
import { applyProgress, isEnd, type ProgressEnd, pollProvider } from './poll.ts'
import { isProceeding } from './proceed.ts'
import { storeOperation } from './send.ts'

/** How long polls after the deadline continue when a finished file could not be stored at once. */
const LAST_POLLS_SECONDS = 600

/** Polls a last time: a result that exists by now is delivered, however late the gateway polls. */
export async function giveUp(claimed: ClaimedTask): Promise<void> {
  const { task } = claimed
  if (task.sent_at === null) return fail(claimed, 'timeout', wasRejected(task) ? NOT_ACCEPTED : NOT_SENT)
  if (task.operation === null) return giveUpDoubt(claimed)
  if (isProceeding(task.operation)) return fail(claimed, 'submit_outcome_unknown', OUTCOME_UNKNOWN)
  if (task.made) return copy(claimed, task.made) // a last attempt: if it fails, the task fails
  const provider = isWorthPolling(task, claimed.now()) ? taskProvider(claimed) : undefined
  const result = provider && (await pollProvider(claimed, provider))
  if (result && 'progress' in result && isEnd(result.progress)) return applyProgress(claimed, result.progress)
  await fail(claimed, 'timeout', NOT_DONE, nextSlowPollAt(task, claimed.clock.now()))
}

/** Certain, since an order whose outcome is unknown keeps its `sent_at`. */
const wasRejected = ({ tried, failures }: Task): boolean => tried.length > 0 || failures > 0

/** A last lookup: an order that is found is polled once more, and then ends like any other task at its deadline. */
async function giveUpDoubt(claimed: ClaimedTask): Promise<void> {
  const provider = taskProvider(claimed)
  const found = provider && (await lookUpOrder(claimed, provider, await orderCallFor(claimed)))
  if (typeof found === 'object') return storeOperation(claimed, found)
  if (found === 'not accepted') return fail(claimed, 'timeout', NOT_ACCEPTED)
  await fail(claimed, 'submit_outcome_unknown', OUTCOME_UNKNOWN)
}

/** A finished file that repeatedly cannot be stored is not retried forever. */
const isWorthPolling = ({ failures, deadline_at }: Task, now_ms: number): boolean =>
  failures === 0 || now_ms / 1000 < deadline_at + LAST_POLLS_SECONDS

/** The client's result does not change; the operator learns whether the provider finished and may charge. */
export async function watchLate(claimed: ClaimedTask): Promise<void> {
  const { task, clock } = claimed
  if (task.operation === null || task.late_outcome) return saveChange(claimed, 'late', { due_ms: null })
  const provider = taskProvider(claimed)
  const result = provider && (await pollProvider(claimed, provider))
  if (!result || 'error' in result || !isEnd(result.progress)) {
    return saveChange(claimed, 'late', { due_ms: nextSlowPollAt(task, clock.now()) })
  }
  const { status } = result.progress
  claimed.log.warn('task ended late at the provider', { task_id: task.task_id, provider: task.provider, status })
  await saveChange(claimed, 'late', {
    late_outcome: { status, at: unixSeconds(clock), detail: detailOf(result.progress) },
    due_ms: null,
  })
}

const detailOf = (end: ProgressEnd): string =>
  end.status === 'SUCCESS'
    ? `The provider finished with ${end.outputs.length} file(s).`
    : reasonFrom(`${end.fail_code}: ${end.fail_reason}`)

const NOT_SENT = 'The order could not be sent before the deadline.'
const NOT_ACCEPTED = 'No provider accepted the order before the deadline.'
const OUTCOME_UNKNOWN =
  'The order was sent, and the gateway could not learn before the deadline whether the provider accepted it: it may have been charged.'
const NOT_DONE = 'It was not finished by its deadline. The provider may still finish it and charge for it.'
