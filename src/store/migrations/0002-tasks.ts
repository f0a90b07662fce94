/** Tasks with their inputs, idempotency keys and callbacks; and the secrets that all processes share. */
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const tasks: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await taskTable(db)
    await taskIndexes(db)
    // Separate from the row that every poll reads: media are megabytes.
    await db.schema
      .createTable('task_inputs')
      .addColumn('task_id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('inputs', 'text', (column) => column.notNull())
      .execute()
    await db.schema
      .createTable('task_keys')
      .addColumn('token_id', 'text', (column) => column.notNull())
      .addColumn('key', 'text', (column) => column.notNull())
      .addColumn('body_hash', 'text', (column) => column.notNull())
      .addColumn('task_id', 'text', (column) => column.notNull())
      .addColumn('expires_at', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('task_keys_key', ['token_id', 'key'])
      .execute()
    await db.schema.createIndex('task_keys_by_end').on('task_keys').column('expires_at').execute()
    await callbackTable(db)
    await db.schema
      .createTable('secrets')
      .addColumn('name', 'text', (column) => column.primaryKey().notNull())
      .addColumn('value', 'text', (column) => column.notNull())
      .execute()
  },
}

async function taskTable(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('tasks')
    .addColumn('task_id', 'text', (column) => column.primaryKey().notNull())
    .addColumn('token_id', 'text', (column) => column.notNull())
    .addColumn('family', 'text', (column) => column.notNull())
    .addColumn('model', 'text', (column) => column.notNull())
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('progress', 'integer', (column) => column.notNull())
    .addColumn('submit_time', 'bigint', (column) => column.notNull())
    .addColumn('start_time', 'bigint', (column) => column.notNull())
    .addColumn('finish_time', 'bigint', (column) => column.notNull())
    .addColumn('fail_code', 'text', (column) => column.notNull())
    .addColumn('fail_reason', 'text', (column) => column.notNull())
    .addColumn('request', 'text', (column) => column.notNull())
    .addColumn('base_url', 'text', (column) => column.notNull())
    .addColumn('provider', 'text', (column) => column.notNull())
    .addColumn('upstream_model', 'text', (column) => column.notNull())
    .addColumn('tried', 'text', (column) => column.notNull())
    .addColumn('sent_at', 'bigint')
    .addColumn('operation', 'text')
    .addColumn('made', 'text')
    .addColumn('outputs', 'text', (column) => column.notNull())
    .addColumn('outputs_expire_at', 'bigint')
    .addColumn('deadline_at', 'bigint', (column) => column.notNull())
    .addColumn('cancel_asked_at', 'bigint')
    .addColumn('late_outcome', 'text')
    .addColumn('failures', 'integer', (column) => column.notNull())
    .addColumn('due_ms', 'bigint')
    .addColumn('leased_by', 'text', (column) => column.notNull())
    .addColumn('fence', 'bigint', (column) => column.notNull())
    .addColumn('deleted_at', 'bigint')
    .execute()
}

/** Partial where only some states of a task matter: a million ended tasks cost the worker nothing. */
async function taskIndexes(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createIndex('tasks_due')
    .on('tasks')
    .columns(['provider', 'due_ms'])
    .where(sql<boolean>`due_ms is not null`)
    .execute()
  await db.schema
    .createIndex('tasks_due_of_token')
    .on('tasks')
    .columns(['provider', 'token_id', 'due_ms', 'task_id'])
    .where(sql<boolean>`due_ms is not null`)
    .execute()
  await db.schema.createIndex('tasks_of_token').on('tasks').columns(['token_id', 'submit_time', 'task_id']).execute()
  await db.schema.createIndex('tasks_by_time').on('tasks').columns(['submit_time', 'task_id']).execute()
  await db.schema
    .createIndex('tasks_unfinished')
    .on('tasks')
    .columns(['submit_time', 'task_id', 'status']) // with the status, so that they are counted without reading their rows
    .where(sql<boolean>`status not in ('SUCCESS', 'FAILURE')`)
    .execute()
  await db.schema
    .createIndex('tasks_outputs_to_remove')
    .on('tasks')
    .columns(['outputs_expire_at', 'task_id'])
    .where(sql<boolean>`outputs_expire_at is not null`)
    .execute()
}

async function callbackTable(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('callbacks')
    .addColumn('callback_id', 'text', (column) => column.primaryKey().notNull())
    .addColumn('task_id', 'text', (column) => column.notNull().unique())
    .addColumn('token_id', 'text', (column) => column.notNull())
    .addColumn('url', 'text', (column) => column.notNull())
    .addColumn('attempts', 'integer', (column) => column.notNull())
    .addColumn('due_ms', 'bigint')
    .addColumn('delivered_at', 'bigint')
    .addColumn('last_status', 'integer')
    .execute()
  await db.schema
    .createIndex('callbacks_due')
    .on('callbacks')
    .columns(['due_ms', 'callback_id'])
    .where(sql<boolean>`due_ms is not null`)
    .execute()
}
