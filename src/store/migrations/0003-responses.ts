/** Stored responses, which clients may retrieve and continue. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const responses: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('responses')
      .addColumn('response_id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('token_id', 'text', (column) => column.notNull())
      .addColumn('previous_id', 'text')
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('expires_at', 'bigint', (column) => column.notNull())
      .addColumn('input', 'text', (column) => column.notNull())
      .addColumn('response', 'text', (column) => column.notNull())
      .execute()
    await db.schema.createIndex('responses_by_end').on('responses').columns(['expires_at', 'response_id']).execute()
  },
}
