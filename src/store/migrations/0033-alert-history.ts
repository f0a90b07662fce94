/** The history of alerts: what the operator was to know of, and until when it is open. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const alertHistory: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('alert_history')
      .addColumn('alert_id', 'text', (column) => column.primaryKey().notNull())
      // Of the alert that a further event of the same key continues; null: a new one begins.
      .addColumn('open_key', 'text', (column) => column.unique())
      .addColumn('type', 'text', (column) => column.notNull())
      .addColumn('message', 'text', (column) => column.notNull())
      .addColumn('data', 'text', (column) => column.notNull())
      .addColumn('times', 'integer', (column) => column.notNull())
      .addColumn('first_ms', 'bigint', (column) => column.notNull())
      .addColumn('last_ms', 'bigint', (column) => column.notNull())
      .addColumn('open_until_ms', 'bigint', (column) => column.notNull())
      .addColumn('closed_ms', 'bigint')
      .addColumn('closed_by', 'text')
      .execute()
    await db.schema.createIndex('alert_history_by_time').on('alert_history').columns(['first_ms', 'alert_id']).execute()
    await db.schema
      .createIndex('alert_history_by_end')
      .on('alert_history')
      .columns(['open_until_ms', 'first_ms'])
      .execute()
  },
}
