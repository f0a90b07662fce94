/** Alerts by several channels, and what was alerted lately. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const alertChannels: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .alterTable('alerts')
      .addColumn('channel', 'text', (column) => column.notNull().defaultTo('webhook'))
      .execute()
    await db.schema
      .createTable('alert_marks')
      .addColumn('mark_key', 'text', (column) => column.primaryKey().notNull())
      .addColumn('until_ms', 'bigint', (column) => column.notNull())
      .execute()
  },
}
