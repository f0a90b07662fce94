/** The configurations that were in force, with masks for what may be a secret. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const configVersions: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('config_versions')
      .addColumn('version_id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('at_ms', 'bigint', (column) => column.notNull())
      .addColumn('actor', 'text', (column) => column.notNull())
      .addColumn('file', 'text', (column) => column.notNull())
      .addColumn('hash', 'text', (column) => column.notNull())
      .addColumn('text', 'text', (column) => column.notNull())
      .addColumn('changes', 'text', (column) => column.notNull())
      .execute()
    await db.schema
      .createIndex('config_versions_by_time')
      .on('config_versions')
      .columns(['at_ms', 'version_id'])
      .execute()
    await db.schema
      .createIndex('config_versions_by_file')
      .on('config_versions')
      .columns(['file', 'at_ms', 'version_id'])
      .execute()
  },
}
