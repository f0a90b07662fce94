/** Attempts of webhooks, and what lists of webhooks are ordered and filtered by. */
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const webhookAttempts: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('callbacks').addColumn('project_id', 'text').execute()
    await db.schema.alterTable('callbacks').addColumn('ended_ms', 'bigint').execute()
    await sql`update callbacks set
      project_id = (select project_id from tasks where tasks.task_id = callbacks.task_id),
      ended_ms = (select finish_time * 1000 from tasks
        where tasks.task_id = callbacks.task_id and status in ('SUCCESS', 'FAILURE'))`.execute(db)
    const listed = ['ended_ms', 'callback_id']
    await db.schema.createIndex('callbacks_by_end').on('callbacks').columns(listed).execute()
    await db.schema
      .createIndex('callbacks_by_project')
      .on('callbacks')
      .columns(['project_id', ...listed])
      .execute()
    await db.schema
      .createIndex('callbacks_given_up')
      .on('callbacks')
      .columns(listed)
      .where(sql<boolean>`due_ms is null and delivered_at is null`)
      .execute()
    await db.schema
      .createIndex('callbacks_pending')
      .on('callbacks')
      .columns(listed)
      .where(sql<boolean>`due_ms is not null`)
      .execute()
    await db.schema
      .createTable('webhook_attempts')
      .addColumn('callback_id', 'text', (column) => column.notNull())
      .addColumn('at_ms', 'bigint', (column) => column.notNull())
      .addColumn('status', 'integer', (column) => column.notNull())
      .addColumn('error', 'text')
      .addColumn('took_ms', 'integer', (column) => column.notNull())
      .addPrimaryKeyConstraint('webhook_attempts_key', ['callback_id', 'at_ms'])
      .execute()
    await db.schema.createIndex('webhook_attempts_by_time').on('webhook_attempts').columns(['at_ms']).execute()
  },
}
