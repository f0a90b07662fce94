/** Answers of the response cache. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const cachedAnswers: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('cached_answers')
      .addColumn('cache_key', 'text', (column) => column.primaryKey().notNull())
      .addColumn('created_ms', 'bigint', (column) => column.notNull())
      .addColumn('expires_ms', 'bigint', (column) => column.notNull())
      .addColumn('bytes', 'bigint', (column) => column.notNull())
      .addColumn('answer', 'text', (column) => column.notNull())
      .execute()
    await db.schema.createIndex('cached_answers_by_end').on('cached_answers').columns(['expires_ms']).execute()
    // Holds all that the bounds are checked with, so that the answers are not read for it.
    await db.schema
      .createIndex('cached_answers_by_age')
      .on('cached_answers')
      .columns(['created_ms', 'cache_key', 'bytes'])
      .execute()
  },
}
