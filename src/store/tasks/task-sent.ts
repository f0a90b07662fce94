/** The orders that were sent to a provider lately, to recognise one of them in the provider's list. */
import type { JsonObject, Task } from '../../spec/task.ts'
import type { SentTask } from '../store.ts'
import type { Database } from '../tables.ts'

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
