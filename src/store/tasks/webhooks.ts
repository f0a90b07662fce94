/** Webhooks in the database: waiting for the end of their task, due, or with their outcome. */
import { appendAudit } from '../admin/audit-append.ts'
import { createEarliestDue } from '../earliest-due.ts'
import type { Engine } from '../engine.ts'
import type { WebhookStore } from '../store.ts'
import type { Write } from '../tables.ts'
import { ENDED, skipLocked } from './task-sql.ts'
import { addAttempt, webhookLists } from './webhook-list.ts'

const earliestDue = createEarliestDue('callbacks')

export function webhookStore(engine: Engine): WebhookStore {
  const { db } = engine
  const earliest = () => earliestDue(db)
  return {
    ...webhookLists(engine),
    earliest,

    async claim({ now_ms, until_ms, limit }) {
      const first = await earliest() // most polls find nothing and should not wait for the write lock
      if (first === null || first > now_ms || limit < 1) return []
      return engine.write(async (write) => {
        const due = await skipLocked(
          engine,
          write
            .selectFrom('callbacks')
            .select(['callback_id', 'task_id', 'token_id', 'url', 'attempts'])
            .where('due_ms', '<=', now_ms)
            .orderBy('due_ms')
            .orderBy('callback_id')
            .limit(limit),
        ).execute()
        const ids = due.map(({ callback_id }) => callback_id)
        if (ids.length > 0)
          await write.updateTable('callbacks').set({ due_ms: until_ms }).where('callback_id', 'in', ids).execute()
        return due
      })
    },

    async save(callback_id, { due_ms, delivered_at, ...attempt }) {
      await engine.write(async (write) => {
        await write
          .updateTable('callbacks')
          .set((row) => ({ attempts: row('attempts', '+', 1), due_ms, delivered_at, last_status: attempt.status }))
          .where('callback_id', '=', callback_id)
          .execute()
        await addAttempt(write, callback_id, attempt)
      })
    },

    async postpone(webhooks) {
      if (webhooks.length === 0) return
      await engine.write(async (write) => {
        for (const { callback_id, due_ms } of webhooks) {
          await write.updateTable('callbacks').set({ due_ms }).where('callback_id', '=', callback_id).execute()
        }
      })
    },

    retry: (task_id, now_ms, audit) =>
      engine.write(async (write) => {
        const row = await write
          .updateTable('callbacks')
          .set({ attempts: 0, due_ms: now_ms, delivered_at: null, last_status: null })
          .where('task_id', '=', task_id)
          .where('task_id', 'in', (tasks) =>
            tasks.selectFrom('tasks').select('task_id').where('task_id', '=', task_id).where(ENDED),
          )
          .returning('callback_id')
          .executeTakeFirst()
        if (row) await appendAudit(write, audit)
        return row !== undefined
      }),

    ofTask: (task_id) =>
      db
        .selectFrom('callbacks')
        .select(['callback_id', 'task_id', 'token_id', 'url', 'attempts', 'delivered_at', 'last_status'])
        .where('task_id', '=', task_id)
        .executeTakeFirst(),
  }
}

/**
 * For the transaction that resumes an ended task: the webhook waits for the next end, which is a new event. Receivers
 * ignore a second event with an id that they know.
 */
export async function renewWebhook(write: Write, task_id: string, callback_id: string): Promise<void> {
  await write
    .updateTable('callbacks')
    .set({ callback_id, attempts: 0, due_ms: null, delivered_at: null, last_status: null, ended_ms: null })
    .where('task_id', '=', task_id)
    .execute()
}

/** For the transaction that ends the task. */
export async function makeWebhookDue(write: Write, task_id: string, due_ms: number): Promise<void> {
  await write.updateTable('callbacks').set({ due_ms, ended_ms: due_ms }).where('task_id', '=', task_id).execute()
}
