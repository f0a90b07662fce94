/** The orders that were sent to a provider lately, to recognise one of them in its list, and those that a backup may lack. */
import { sql } from 'kysely'
import type { JsonObject, Task } from '../../spec/task.ts'
import type { SentTask } from '../store.ts'
import type { Database, Write } from '../tables.ts'
import { ENDED } from './task-sql.ts'

export async function sentTasks(
  db: Database,
  { provider, since }: { provider: string; since: number },
): Promise<SentTask[]> {
  const rows = await db
    .selectFrom('tasks')
    .select(['task_id', 'status', 'fail_code', 'request', 'sent_at', 'operation', 'provider_key'])
    .where('provider', '=', provider)
    .where('sent_at', '>=', since)
    .execute()
  return rows.map((row) => ({
    ...row,
    request: JSON.parse(row.request) as JsonObject,
    operation: row.operation === null ? null : (JSON.parse(row.operation) as Task['operation']),
  }))
}

/** Before the destination of an order that was in doubt when it was backed up. */
export const RESTORED_TO = 'restored:'

/**
 * Orders that may have been sent after the backup that was restored, `sent_at`: they are in doubt, and not sent again.
 * `due_ms`: when a list of a provider shows them for certain.
 */
export async function markRestoredTasks(
  write: Write,
  { sent_at, due_ms }: { sent_at: number; due_ms: number },
): Promise<void> {
  const open = write.updateTable('tasks').where((is) => is.not(ENDED))
  const doubted = open.set({ sent_at, sent_to: null, due_ms })
  await doubted.where('operation', 'is', null).where('sent_at', 'is', null).execute()
  // Refused there since, another target may have accepted it.
  await open
    .set({ sent_to: sql`${RESTORED_TO} || sent_to` })
    .where('operation', 'is', null)
    .where('sent_to', 'is not', null)
    .where('sent_to', 'not like', `${RESTORED_TO}%`)
    .execute()
  // Of an order of two parts the second one.
  await open.set({ sent_to: null }).where('operation', 'is not', null).where('made', 'is', null).execute()
}
