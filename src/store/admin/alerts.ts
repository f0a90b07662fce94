/** Alerts to the operator in the database. */
import { createEarliestDue } from '../earliest-due.ts'
import type { Engine } from '../engine.ts'
import type { Write } from '../tables.ts'
import { skipLocked } from '../tasks/task-sql.ts'
import type { Alert, AlertStore } from './alert-store.ts'
import { appendAudit } from './audit-append.ts'

const earliestDue = createEarliestDue('alerts')

export function alertStore(engine: Engine): AlertStore {
  const { db, write } = engine
  const earliest = () => earliestDue(db)
  return {
    add: (alerts) => write((rows) => addAlerts(rows, alerts)),

    addOnce: ({ mark_key, until_ms, now_ms }, alerts, audit) =>
      write(async (rows) => {
        await rows.deleteFrom('alert_marks').where('until_ms', '<=', now_ms).execute()
        const marked = await rows
          .insertInto('alert_marks')
          .values({ mark_key, until_ms })
          .onConflict((conflict) => conflict.column('mark_key').doNothing())
          .returning('mark_key')
          .executeTakeFirst()
        if (!marked) return false
        await addAlerts(rows, alerts)
        if (audit) await appendAudit(rows, audit)
        return true
      }),

    earliest,

    async claim({ now_ms, until_ms, limit }) {
      const first = await earliest() // most polls find nothing and should not wait for the write lock
      if (first === null || first > now_ms || limit < 1) return []
      return write(async (rows) => {
        const due = rows.selectFrom('alerts').selectAll().where('due_ms', '<=', now_ms).orderBy('due_ms').limit(limit)
        const claimed = await skipLocked(engine, due).execute()
        const ids = claimed.map(({ alert_id }) => alert_id)
        if (ids.length > 0) {
          await rows.updateTable('alerts').set({ due_ms: until_ms }).where('alert_id', 'in', ids).execute()
        }
        return claimed
      })
    },

    async postpone(alert_id, due_ms) {
      await write((rows) =>
        rows
          .updateTable('alerts')
          .set((row) => ({ attempts: row('attempts', '+', 1), due_ms }))
          .where('alert_id', '=', alert_id)
          .execute(),
      )
    },

    async remove(alert_id) {
      await write((rows) => rows.deleteFrom('alerts').where('alert_id', '=', alert_id).execute())
    },
  }
}

/** For a transaction that decides that the operator is alerted. */
export async function addAlerts(write: Write, alerts: readonly Alert[]): Promise<void> {
  if (alerts.length === 0) return
  const rows = alerts.map((alert) => ({ ...alert, attempts: 0 }))
  await write.insertInto('alerts').values(rows).execute()
}
