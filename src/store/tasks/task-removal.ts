/** Removal of expired outputs and idempotency keys, in small batches. */
import { sql } from 'kysely'
import type { TaskOutput } from '../../spec/task.ts'
import type { Engine } from '../engine.ts'
import type { Database } from '../tables.ts'
import { chunks } from './task-sql.ts'

export async function outputsToRemove(
  db: Database,
  now: number,
  limit: number,
): Promise<{ task_id: string; outputs: TaskOutput[] }[]> {
  const rows = await db
    .selectFrom('tasks')
    .select(['task_id', 'outputs'])
    .where('outputs_expire_at', '<=', now)
    .orderBy('outputs_expire_at')
    .orderBy('task_id')
    .limit(limit)
    .execute()
  return rows.map(({ task_id, outputs }) => ({ task_id, outputs: JSON.parse(outputs) as TaskOutput[] }))
}

export async function removeOutputs(engine: Engine, task_ids: string[]): Promise<void> {
  // Sorted, so that no two processes deadlock on each other's rows.
  for (const some of chunks(task_ids.toSorted())) {
    await engine.write((write) =>
      write
        .updateTable('tasks')
        .set({ outputs: '[]', outputs_expire_at: null, made: null })
        .where('task_id', 'in', some)
        .where('outputs_expire_at', 'is not', null) // a task that was resumed in between keeps its outputs
        .execute(),
    )
  }
}

export function deleteExpiredTaskKeys(engine: Engine, now: number, limit: number): Promise<number> {
  return engine.write(async (write) => {
    const expired = write
      .selectFrom('task_keys')
      .select(['token_id', 'key'])
      .where('expires_at', '<=', now)
      .orderBy('expires_at')
      .limit(limit)
    const rows = await write
      .deleteFrom('task_keys')
      .where(sql<boolean>`(token_id, key) in ${expired}`)
      .where('expires_at', '<=', now) // a client may have reused it in between
      .returning('task_id')
      .execute()
    return rows.length
  })
}
