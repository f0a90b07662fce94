/** Records the states of a task, its targets and its failed steps, each once, with the time at which it was first reached. */
import type { Database, Write } from '../tables.ts'
import type { TaskStep } from './task-step.ts'

/** A provider that fails for days would add one with each attempt. */
const MAX_FAILURES = 50
export const STEP_COLUMNS = ['status', 'provider', 'upstream_model', 'provider_key', 'failures', 'fail_code'] as const

/** For the transaction that changes the task. */
export async function addStep(write: Write, task_id: string, step: TaskStep): Promise<void> {
  if (step.failures > MAX_FAILURES) return
  const { status, provider, upstream_model, provider_key, failures, fail_code, at_ms } = step
  await write
    .insertInto('task_steps')
    .values({ task_id, status, provider, upstream_model, provider_key: provider_key ?? '', failures, fail_code, at_ms })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

export async function stepsOf(db: Database, task_id: string): Promise<TaskStep[]> {
  const rows = await db
    .selectFrom('task_steps')
    .select([...STEP_COLUMNS, 'at_ms'])
    .where('task_id', '=', task_id)
    .orderBy('at_ms')
    .execute()
  return rows.map(({ provider_key, ...row }) => ({ ...row, provider_key: provider_key === '' ? null : provider_key }))
}
