/** Batches, their lines, and the parts of their results. */
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const batches: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    const counts = ['total', 'succeeded', 'errored', 'canceled', 'expired']
    const tokens = ['input_tokens', 'cached_tokens', 'output_tokens', 'reasoning_tokens']
    let table = db.schema
      .createTable('batches')
      .addColumn('batch_id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('token_id', 'text', (column) => column.notNull())
      .addColumn('project_id', 'text')
      .addColumn('api', 'text', (column) => column.notNull())
      .addColumn('endpoint', 'text', (column) => column.notNull())
      .addColumn('status', 'text', (column) => column.notNull())
      .addColumn('request', 'text', (column) => column.notNull())
      .addColumn('progress', 'text', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('expires_at', 'bigint', (column) => column.notNull())
      .addColumn('cancelling_at', 'bigint')
      .addColumn('deleted_at', 'bigint')
    for (const name of [...counts, ...tokens]) table = table.addColumn(name, 'bigint', (column) => column.notNull())
    await table
      .addColumn('due_ms', 'bigint')
      .addColumn('leased_by', 'text', (column) => column.notNull())
      .addColumn('fence', 'bigint', (column) => column.notNull())
      .execute()
    await db.schema
      .createTable('batch_lines')
      .addColumn('batch_id', 'text', (column) => column.notNull())
      .addColumn('line', 'integer', (column) => column.notNull())
      .addColumn('offset_bytes', 'bigint', (column) => column.notNull())
      .addColumn('bytes', 'integer', (column) => column.notNull())
      .addColumn('custom_id', 'text', (column) => column.notNull())
      .addColumn('state', 'integer', (column) => column.notNull())
      .addColumn('attempts', 'integer', (column) => column.notNull())
      .addColumn('called_again', 'integer', (column) => column.notNull())
      .addColumn('kind', 'text')
      .addColumn('result', 'text')
      .addPrimaryKeyConstraint('batch_lines_key', ['batch_id', 'line'])
      .execute()
    await db.schema
      .createTable('batch_parts')
      .addColumn('batch_id', 'text', (column) => column.notNull())
      .addColumn('kind', 'text', (column) => column.notNull())
      .addColumn('part', 'integer', (column) => column.notNull())
      .addColumn('lines', 'integer', (column) => column.notNull())
      .addColumn('bytes', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('batch_parts_key', ['batch_id', 'kind', 'part'])
      .execute()
    for (const [index, columns] of INDEXES) await sql.raw(`create index ${index} on ${columns}`).execute(db)
  },
}

const INDEXES = [
  ['batches_of_token', 'batches (token_id, api, created_at, batch_id)'],
  ['batches_by_time', 'batches (created_at, batch_id)'],
  ['batches_of_project', 'batches (project_id, created_at, batch_id)'],
  ['batches_by_due', 'batches (due_ms) where due_ms is not null'],
  // Few lines are open or have a result that is not in a part yet, however many a batch has.
  ['batch_lines_open', 'batch_lines (batch_id, state, line) where state < 2'],
  ['batch_lines_results', 'batch_lines (batch_id, kind, line) where result is not null'],
] as const
