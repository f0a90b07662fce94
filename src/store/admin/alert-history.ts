/** The history of alerts in the database. */
import type { Engine } from '../engine.ts'
import { readPage } from '../page.ts'
import type { AlertHistoryTable, Write } from '../tables.ts'
import type { AlertHistoryRow, AlertHistoryStore } from './alert-store.ts'
import { appendAudit } from './audit-append.ts'

/** Older rows are deleted when another one begins, and so are all but the newest. */
const KEPT_MILLISECONDS = 90 * 86_400_000
const MAX_ROWS = 10_000
const NOT_CLOSED = { closed_ms: null, closed_by: null }

export function alertHistoryStore({ db, write }: Engine): AlertHistoryStore {
  return {
    record: ({ alert_id, key, type, message, data, now_ms, open_until_ms }) =>
      write(
        async (rows) => {
          await rows
            .updateTable('alert_history')
            .set({ open_key: null })
            .where('open_key', '=', key)
            .where('open_until_ms', '<=', now_ms)
            .execute()
          const event = { message, data: JSON.stringify(data), last_ms: now_ms }
          const row = await rows
            .insertInto('alert_history')
            .values({
              alert_id,
              open_key: key,
              type,
              times: 1,
              first_ms: now_ms,
              open_until_ms,
              ...NOT_CLOSED,
              ...event,
            })
            .onConflict((conflict) =>
              conflict.column('open_key').doUpdateSet((present) => ({
                ...event,
                times: present('alert_history.times', '+', 1),
                open_until_ms,
              })),
            )
            .returning('times')
            .executeTakeFirstOrThrow()
          if (row.times === 1) await prune(rows, now_ms)
        },
        { is_synced: false },
      ),

    page({ is_open, now_ms, type, ...page }) {
      const rows = db
        .selectFrom('alert_history')
        .selectAll()
        .$if(is_open === true, (query) => query.where('open_until_ms', '>', now_ms).where('closed_ms', 'is', null))
        .$if(is_open === false, (query) =>
          query.where((row) => row.or([row('open_until_ms', '<=', now_ms), row('closed_ms', 'is not', null)])),
        )
        .$if(type !== undefined, (query) => query.where('type', '=', type ?? ''))
      return readPage(rows, { ...page, by: ['first_ms', 'alert_id'], fromRow })
    },

    async find(alert_id) {
      const row = await db.selectFrom('alert_history').selectAll().where('alert_id', '=', alert_id).executeTakeFirst()
      return row && fromRow(row)
    },

    close: (alert_id, { now_ms, by }, audit) =>
      write(async (rows) => {
        const row = await rows
          .updateTable('alert_history')
          .set({ closed_ms: now_ms, closed_by: by })
          .where('alert_id', '=', alert_id)
          .where('closed_ms', 'is', null)
          .where('open_until_ms', '>', now_ms)
          .returningAll()
          .executeTakeFirst()
        if (row) await appendAudit(rows, audit)
        return row && fromRow(row)
      }),
  }
}

async function prune(rows: Write, now_ms: number): Promise<void> {
  const oldest = await rows
    .selectFrom('alert_history')
    .select('first_ms')
    .orderBy('first_ms', 'desc')
    .orderBy('alert_id', 'desc')
    .offset(MAX_ROWS)
    .limit(1)
    .executeTakeFirst()
  const before = Math.max(now_ms - KEPT_MILLISECONDS, oldest ? oldest.first_ms + 1 : 0)
  await rows.deleteFrom('alert_history').where('first_ms', '<', before).execute()
}

const fromRow = ({ open_key: _, data, ...row }: AlertHistoryTable): AlertHistoryRow => ({
  ...row,
  data: JSON.parse(data) as object,
})
