/** Lists of webhooks with their attempts, for operators. */
import { sql } from 'kysely'
import type { Engine } from '../engine.ts'
import { readPage } from '../page.ts'
import type { WebhookStore } from '../store.ts'
import type { Database, Write } from '../tables.ts'
import type { WebhookAttempt, WebhookDelivery } from './webhook-row.ts'

/** As long as the history of alerts. */
const KEPT_MILLISECONDS = 90 * 86_400_000
/** Deleted with each attempt, so that old ones never pile up. */
const MAX_DELETED = 20

/** Exactly the conditions of the partial indexes: SQLite uses them only then. */
const CONDITIONS = {
  pending: sql<boolean>`due_ms is not null`,
  delivered: sql<boolean>`delivered_at is not null`,
  given_up: sql<boolean>`due_ms is null and delivered_at is null`,
}

const COLUMNS = [
  'callback_id',
  'task_id',
  'token_id',
  'project_id',
  'url',
  'attempts',
  'due_ms',
  'delivered_at',
  'last_status',
  'ended_ms',
] as const

type Row = Omit<WebhookDelivery, 'ended_ms' | 'tries'> & { ended_ms: number | null }

export function webhookLists({ readInOrder, db }: Engine): Pick<WebhookStore, 'page' | 'delivery'> {
  return {
    page: ({ state, project_id, ...page }) =>
      readInOrder(async (reader) => {
        const found = reader
          .selectFrom('callbacks')
          .select(COLUMNS)
          .where('ended_ms', 'is not', null)
          .$if(state !== undefined, (query) => query.where(CONDITIONS[state ?? 'pending']))
          .$if(project_id !== undefined, (query) => query.where('project_id', '=', project_id ?? ''))
        const order = { by: ['ended_ms', 'callback_id'], fromRow: (row: Row) => row } as const
        const { rows, next } = await readPage(found, { ...page, ...order })
        return { rows: await withAttempts(reader, rows), next }
      }),

    async delivery(callback_id) {
      const row = await db
        .selectFrom('callbacks')
        .select(COLUMNS)
        .where('callback_id', '=', callback_id)
        .where('ended_ms', 'is not', null)
        .executeTakeFirst()
      return row && (await withAttempts(db, [row]))[0]
    },
  }
}

async function withAttempts(db: Database, rows: Row[]): Promise<WebhookDelivery[]> {
  if (rows.length === 0) return []
  const ids = rows.map(({ callback_id }) => callback_id)
  const attempts = await db
    .selectFrom('webhook_attempts')
    .selectAll()
    .where('callback_id', 'in', ids)
    .orderBy('at_ms')
    .execute()
  const byWebhook = Map.groupBy(attempts, ({ callback_id }) => callback_id)
  return rows.map((row) => ({
    ...row,
    ended_ms: row.ended_ms ?? 0,
    tries: (byWebhook.get(row.callback_id) ?? []).map(({ callback_id: _, ...attempt }) => attempt),
  }))
}

/** For the transaction that stores the outcome of an attempt. */
export async function addAttempt(write: Write, callback_id: string, attempt: WebhookAttempt): Promise<void> {
  await write
    .insertInto('webhook_attempts')
    .values({ callback_id, ...attempt })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const old = write
    .selectFrom('webhook_attempts')
    .select('at_ms')
    .where('at_ms', '<', attempt.at_ms - KEPT_MILLISECONDS)
    .orderBy('at_ms')
    .limit(MAX_DELETED)
  await write.deleteFrom('webhook_attempts').where('at_ms', 'in', old).execute()
}
