/** Contents of requests, encrypted: apart from the rows of the request log, since they are large and few. */
import { type Kysely, SqliteAdapter, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const requestContents: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    const isSqlite = db.getExecutor().adapter instanceof SqliteAdapter
    await db.schema
      .createTable('request_contents')
      .addColumn('row_id', isSqlite ? 'integer' : 'bigint', (column) => column.primaryKey().notNull())
      .addColumn('at_ms', 'bigint', (column) => column.notNull())
      .addColumn('project_id', 'text')
      .addColumn('end_user', 'text')
      .addColumn('key_id', 'text', (column) => column.notNull())
      .addColumn('sealed', 'text', (column) => column.notNull())
      .execute()
    await db.schema.createIndex('request_contents_by_time').on('request_contents').columns(['at_ms']).execute()
    await sql`create index request_contents_by_user on request_contents (end_user, row_id)
      where end_user is not null`.execute(db)
  },
}
