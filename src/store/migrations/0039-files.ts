/** Files that clients upload, and those that the gateway writes for them; their bytes are where finished files are. */
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const files: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('files')
      .addColumn('file_id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('token_id', 'text', (column) => column.notNull())
      .addColumn('project_id', 'text')
      .addColumn('purpose', 'text', (column) => column.notNull())
      .addColumn('filename', 'text', (column) => column.notNull())
      .addColumn('content_type', 'text', (column) => column.notNull())
      .addColumn('bytes', 'bigint', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('expires_at', 'bigint')
      .addColumn('output_key', 'text', (column) => column.notNull())
      .addColumn('is_ready', 'integer', (column) => column.notNull())
      .execute()
    for (const [index, columns] of INDEXES) await sql.raw(`create index ${index} on files ${columns}`).execute(db)
  },
}

/** The first two hold the sizes, so that quotas are summed without reading rows. */
const INDEXES = [
  ['files_of_token', '(token_id, is_ready, file_id, bytes)'],
  ['files_of_project', '(project_id, is_ready, file_id, bytes)'],
  ['files_of_purpose', '(token_id, purpose, is_ready, file_id)'],
  ['files_by_end', '(expires_at) where expires_at is not null'],
] as const
