/** The audit log, and the sessions and login links of administrators. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const audit: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('audit')
      .addColumn('sequence', 'bigint', (column) => column.primaryKey())
      .addColumn('at_ms', 'bigint', (column) => column.notNull())
      .addColumn('actor', 'text', (column) => column.notNull())
      .addColumn('action', 'text', (column) => column.notNull())
      .addColumn('object_type', 'text', (column) => column.notNull())
      .addColumn('object_id', 'text', (column) => column.notNull())
      .addColumn('project_id', 'text')
      .addColumn('address', 'text')
      .addColumn('request_id', 'text')
      .addColumn('before', 'text')
      .addColumn('after', 'text')
      .addColumn('previous_hash', 'text', (column) => column.notNull())
      .addColumn('hash', 'text', (column) => column.notNull())
      .execute()
    for (const column of ['object_id', 'project_id', 'actor', 'action'])
      await db.schema.createIndex(`audit_by_${column}`).on('audit').columns([column, 'sequence']).execute()
    await (db as Kysely<{ revisions: { noun: string; revision: number } }>)
      .insertInto('revisions')
      .values({ noun: 'audit', revision: 0 })
      .execute()
    await db.schema
      .createTable('admin_sessions')
      .addColumn('session_id', 'text', (column) => column.primaryKey())
      .addColumn('hash', 'text', (column) => column.notNull().unique())
      .addColumn('actor', 'text', (column) => column.notNull())
      .addColumn('role', 'text', (column) => column.notNull())
      .addColumn('project_id', 'text')
      .addColumn('address', 'text', (column) => column.notNull())
      .addColumn('user_agent', 'text', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('last_used_at', 'bigint', (column) => column.notNull())
      .addColumn('expires_at', 'bigint', (column) => column.notNull())
      .execute()
    await db.schema
      .createIndex('admin_sessions_by_creation')
      .on('admin_sessions')
      .columns(['created_at', 'session_id'])
      .execute()
    await db.schema.createIndex('admin_sessions_by_end').on('admin_sessions').columns(['expires_at']).execute()
    await db.schema
      .createTable('admin_links')
      .addColumn('hash', 'text', (column) => column.primaryKey())
      .addColumn('actor', 'text', (column) => column.notNull())
      .addColumn('expires_at', 'bigint', (column) => column.notNull())
      .execute()
  },
}
