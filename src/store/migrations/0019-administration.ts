/** Administrators: their tokens, their sessions, their idempotency keys, and the audit log. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const administration: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('admin_tokens')
      .addColumn('admin_token_id', 'text', (column) => column.primaryKey())
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('role', 'text', (column) => column.notNull())
      .addColumn('project_id', 'text')
      .addColumn('prefix', 'text', (column) => column.notNull())
      .addColumn('hash', 'text', (column) => column.notNull().unique())
      .addColumn('expires_at', 'bigint')
      .addColumn('disabled', 'integer', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('last_used_at', 'bigint')
      .execute()
    await db.schema
      .createIndex('admin_tokens_by_creation')
      .on('admin_tokens')
      .columns(['created_at', 'admin_token_id'])
      .execute()
    await db.schema
      .createTable('admin_keys')
      .addColumn('scope', 'text', (column) => column.notNull())
      .addColumn('key', 'text', (column) => column.notNull())
      .addColumn('body_hash', 'text', (column) => column.notNull())
      .addColumn('status', 'integer')
      .addColumn('answer', 'text')
      .addColumn('expires_at', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('admin_keys_key', ['scope', 'key'])
      .execute()
    await db.schema.createIndex('admin_keys_by_end').on('admin_keys').columns(['expires_at']).execute()
    await db.schema.createIndex('projects_by_revision').on('projects').columns(['added_revision']).execute()
    await db.schema.createIndex('tokens_by_revision').on('tokens').columns(['added_revision']).execute()
  },
}
