/** Background responses: the runs that have not ended, and the events that were streamed so far. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const responseRuns: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('response_runs')
      .addColumn('response_id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('token_id', 'text', (column) => column.notNull())
      .addColumn('request', 'text', (column) => column.notNull())
      .addColumn('attempts', 'integer', (column) => column.notNull())
      .addColumn('due_ms', 'bigint', (column) => column.notNull())
      .addColumn('fence', 'bigint', (column) => column.notNull())
      .execute()
    await db.schema.createIndex('response_runs_by_due').on('response_runs').columns(['due_ms']).execute()
    await db.schema
      .createTable('response_events')
      .addColumn('response_id', 'text', (column) => column.notNull())
      .addColumn('last_number', 'integer', (column) => column.notNull())
      .addColumn('events', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('response_events_key', ['response_id', 'last_number'])
      .execute()
  },
}
