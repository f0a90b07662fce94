/** Reopens a failed task for the operator: the only transition out of a final state. */
import type { Task } from '../../spec/task.ts'
import { appendEntries, reverseTask } from '../ledger/ledger-append.ts'
import type { Reopening } from '../store.ts'
import type { Write } from '../tables.ts'
import { columnsOf } from './task-row.ts'
import { renewWebhook } from './webhooks.ts'

/** 100 % is reserved for ended tasks. */
const PROGRESS = 99

export async function reopenTask(
  write: Write,
  { task_id, fence }: Pick<Task, 'task_id' | 'fence'>,
  { due_ms, deadline_at, copying, callback_id, reversal }: Reopening,
): Promise<{ status: Task['status'] } | undefined> {
  const row = await write
    .updateTable('tasks')
    .set({
      ...columnsOf({ fail_reason: '', late_outcome: null, ...(copying ?? { made: null, outputs: [] }) }),
      status: 'IN_PROGRESS',
      progress: PROGRESS,
      fail_code: '',
      finish_time: 0,
      outputs_expire_at: null,
      cancel_asked_at: null,
      failures: 0,
      deadline_at,
      due_ms,
      leased_by: '',
      fence: fence + 1, // a worker that has claimed it, to look up a late outcome, loses its lease
    })
    .where((row) => row.and({ task_id, fence, status: 'FAILURE' }))
    .where('deleted_at', 'is', null)
    .returning('status')
    .executeTakeFirst()
  if (!row) return undefined
  await renewWebhook(write, task_id, callback_id)
  if (!(await reverseTask(write, task_id))) await appendEntries(write, [reversal])
  return row
}
