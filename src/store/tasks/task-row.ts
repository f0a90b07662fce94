/** Converts a task to a row of its table, and back. */
import type { Selectable } from 'kysely'
import type { Task } from '../../spec/task.ts'
import { TASK_JSON, type Tables } from '../tables.ts'

type TaskRow = Selectable<Tables['tasks']>

export const rowOfTask = (task: Task): TaskRow => ({ ...(columnsOf(task) as TaskRow), deleted_at: null })

export function taskOfRow({ deleted_at: _, ...row }: TaskRow): Task {
  const task: Record<string, unknown> = { ...row }
  for (const name of TASK_JSON) task[name] = row[name] === null ? null : JSON.parse(row[name])
  return task as Task
}

/** Only the given fields: an absent field must not become null. */
export function columnsOf(fields: Partial<Task>): Partial<TaskRow> {
  const columns: Record<string, unknown> = { ...fields }
  for (const name of TASK_JSON)
    if (fields[name] !== undefined) columns[name] = fields[name] === null ? null : JSON.stringify(fields[name])
  // PostgreSQL's text type cannot hold NUL, which a provider's message may contain. (JSON escapes it.)
  if (fields.fail_reason !== undefined) columns.fail_reason = fields.fail_reason.replaceAll('\0', '')
  return columns
}
