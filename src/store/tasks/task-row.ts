/** Converts a task to a row of its table, and back. */
import type { Selectable } from 'kysely'
import type { ComingOutput, JsonObject, Task, TaskOutput } from '../../spec/task.ts'
import type { TaskChange } from '../store.ts'
import type { Tables } from '../tables.ts'

type TaskRow = Selectable<Tables['tasks']>

type Columns = Partial<TaskRow>
type Fields = Omit<TaskChange, 'drop_inputs' | 'keep_lease' | 'entry' | 'alerts' | 'at_ms'>

export function rowOfTask(task: Task): TaskRow {
  return {
    ...task,
    fail_reason: storable(task.fail_reason),
    request: JSON.stringify(task.request),
    tried: JSON.stringify(task.tried),
    call_options: jsonOrNull(task.call_options),
    operation: jsonOrNull(task.operation),
    made: jsonOrNull(task.made),
    outputs: JSON.stringify(task.outputs),
    late_outcome: jsonOrNull(task.late_outcome),
    deleted_at: null,
  }
}

export function taskOfRow({ deleted_at: _, ...row }: TaskRow): Task {
  return {
    ...row,
    request: JSON.parse(row.request) as JsonObject,
    tried: JSON.parse(row.tried) as string[],
    call_options: parsed<NonNullable<Task['call_options']>>(row.call_options),
    operation: parsed<Task['operation']>(row.operation),
    made: parsed<ComingOutput[]>(row.made),
    outputs: JSON.parse(row.outputs) as TaskOutput[],
    late_outcome: parsed<Task['late_outcome']>(row.late_outcome),
  }
}

/** Only the given fields: an absent field must not become null. */
export function columnsOfChange({
  tried,
  operation,
  made,
  outputs,
  late_outcome,
  fail_reason,
  ...same
}: Fields): Columns {
  const columns: Columns = { ...same }
  if (fail_reason !== undefined) columns.fail_reason = storable(fail_reason)
  if (tried !== undefined) columns.tried = JSON.stringify(tried)
  if (operation !== undefined) columns.operation = jsonOrNull(operation)
  if (made !== undefined) columns.made = jsonOrNull(made)
  if (outputs !== undefined) columns.outputs = JSON.stringify(outputs)
  if (late_outcome !== undefined) columns.late_outcome = jsonOrNull(late_outcome)
  return columns
}

const jsonOrNull = (value: unknown): string | null => (value === null ? null : JSON.stringify(value))
const parsed = <T>(text: string | null): T | null => (text === null ? null : (JSON.parse(text) as T))

/** PostgreSQL's text type cannot hold NUL, which a provider's message may contain. (JSON escapes it.) */
const storable = (text: string): string => text.replaceAll('\0', '')
