/** Resumes a task for the operator, by the command line or by the admin API. */
import type { AuditDraft } from '../../spec/audit.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Task } from '../../spec/task.ts'
import type { TaskStore } from '../../store/store.ts'
import { resumptionOf } from './resumption.ts'

/** A resumed task may take so long, unless another deadline is given. */
export const MAX_DEADLINE_SECONDS = 86_400

type ResumeOrder = {
  /** Unix seconds; undefined: none is given. */
  requested: number | undefined
  now: number
  now_ms: number
  /** How the caller names the deadline, as in `--deadline 2h`, for messages. */
  deadline_name: string
  /** Appended in the transaction of the change. Absent: the caller records it. */
  audit?: ((after: Record<string, unknown>) => AuditDraft) | undefined
}

/** `copied`: its files are copied again. `watched`: its result stays, and its provider is polled. `due`: its next step is due now. */
type Resumed = { outcome: 'copied' | 'watched' | 'due'; deadline_at: number }

/** Throws invalid_value, which says why there is nothing to resume or what is wrong with the deadline. */
export async function resumeTask(
  tasks: Pick<TaskStore, 'resume' | 'reopen'>,
  task: Task,
  { requested, now, now_ms, deadline_name, audit }: ResumeOrder,
): Promise<Resumed> {
  const { task_id } = task
  const resumption = resumptionOf(task, now)
  if (resumption.action === 'none') throw refused(`${endOf(task)}${resumption.reason}`)
  if (resumption.action === 'reopen') {
    const deadline_at = requested ?? now + MAX_DEADLINE_SECONDS
    const change = { ...resumption.reopening, due_ms: now_ms, deadline_at }
    if (!(await tasks.reopen(task, change, audit?.({ status: 'IN_PROGRESS', deadline_at })))) {
      throw refused(`Task ${task_id} has just changed. Look at it, and try again.`)
    }
    return { outcome: 'copied', deadline_at }
  }
  if (resumption.action === 'watch' && requested !== undefined) {
    throw refused(`${endOf(task)}: it takes no deadline. Omit ${deadline_name.split(' ', 1)[0]}.`)
  }
  const deadline_at = resumption.action === 'watch' ? now : nextDeadline(task, { requested, now, deadline_name })
  const after = audit?.({ status: task.status, deadline_at })
  if (!(await tasks.resume(task_id, { due_ms: now_ms, deadline_at }, after))) {
    throw refused(`Task ${task_id} has just changed. Look at it, and try again.`)
  }
  return { outcome: resumption.action === 'watch' ? 'watched' : 'due', deadline_at }
}

function nextDeadline(
  { task_id, deadline_at }: Task,
  { requested, now, deadline_name }: Pick<ResumeOrder, 'requested' | 'now' | 'deadline_name'>,
): number {
  if (requested === undefined && deadline_at <= now) {
    throw refused(`The deadline of task ${task_id} has passed. Set a new one, as in ${deadline_name}.`)
  }
  if (requested !== undefined && requested < deadline_at) {
    throw refused(`The deadline of task ${task_id} is already later: ${wait(deadline_at - now)} from now.`)
  }
  return requested ?? deadline_at
}

export const endOf = ({ task_id, status, fail_code }: Task): string =>
  `Task ${task_id} has ended with ${fail_code ? `${status} (${fail_code})` : status}`

const refused = (message: string) => new GatewayError('invalid_value', message)

const wait = (seconds: number): string => (seconds >= 120 ? `${Math.floor(seconds / 60)} min` : `${seconds} s`)
