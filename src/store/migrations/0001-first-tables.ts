/** Tokens, their usage, and when models were first seen. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

// `bigint` for times and counts: 64 bits on every engine (SQLite would not care, PostgreSQL's `integer` has 32).
export const firstTables: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('tokens')
      .addColumn('token_id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('prefix', 'text', (column) => column.notNull())
      .addColumn('hash', 'text', (column) => column.notNull().unique())
      .addColumn('models', 'text', (column) => column.notNull())
      .addColumn('families', 'text')
      .addColumn('expires_at', 'bigint')
      .addColumn('disabled', 'integer', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('last_used_at', 'bigint')
      .addColumn('added_revision', 'bigint', (column) => column.notNull())
      .execute()
    await db.schema
      .createTable('usage')
      .addColumn('token_id', 'text', (column) => column.notNull())
      .addColumn('model', 'text', (column) => column.notNull())
      .addColumn('hour', 'bigint', (column) => column.notNull())
      .addColumn('requests', 'bigint', (column) => column.notNull())
      .addColumn('errors', 'bigint', (column) => column.notNull())
      .addColumn('input_tokens', 'bigint', (column) => column.notNull())
      .addColumn('output_tokens', 'bigint', (column) => column.notNull())
      .addColumn('estimated', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('usage_key', ['token_id', 'model', 'hour'])
      .execute()
    await db.schema.createIndex('usage_by_hour').on('usage').column('hour').execute()
    await db.schema
      .createTable('models')
      .addColumn('id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('first_seen', 'bigint', (column) => column.notNull())
      .execute()
    await db.schema
      .createTable('revisions')
      .addColumn('noun', 'text', (column) => column.primaryKey().notNull())
      .addColumn('revision', 'bigint', (column) => column.notNull())
      .execute()
    await (db as Kysely<{ revisions: { noun: string; revision: number } }>)
      .insertInto('revisions')
      .values({ noun: 'tokens', revision: 0 })
      .execute()
  },
}
