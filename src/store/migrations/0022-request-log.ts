/** The request log: rows, their tags, and feedback on them. */
import { type Kysely, SqliteAdapter, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Columns of equality, each in the order of time. Those that are often null take no place in the index then. */
const SEARCHED = {
  token: 'token_id',
  model: 'model',
  target: 'target',
  provider: 'provider',
  project: 'project_id',
  user: 'end_user',
  session: 'session',
  trace: 'trace_id',
  error: 'error',
}
const OFTEN_NULL = new Set(['project_id', 'end_user', 'session', 'trace_id', 'error'])

export const requestLog: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    const isSqlite = db.getExecutor().adapter instanceof SqliteAdapter
    /** In SQLite it is the row's own number, which every index holds without naming it. */
    const id = isSqlite ? 'integer' : 'bigint'
    const inOrder = isSqlite ? 'at_ms' : 'at_ms, row_id'
    await db.schema
      .createTable('request_log')
      .addColumn('row_id', id, (column) => column.primaryKey().notNull())
      .addColumn('at_ms', 'bigint', (column) => column.notNull())
      .addColumn('request_id', 'text', (column) => column.notNull())
      .addColumn('token_id', 'text', (column) => column.notNull())
      .addColumn('project_id', 'text')
      .addColumn('end_user', 'text')
      .addColumn('session', 'text')
      .addColumn('trace_id', 'text')
      .addColumn('family', 'text', (column) => column.notNull())
      .addColumn('model', 'text', (column) => column.notNull())
      .addColumn('provider', 'text', (column) => column.notNull())
      .addColumn('target', 'text', (column) => column.notNull())
      .addColumn('status', 'integer', (column) => column.notNull())
      .addColumn('error', 'text')
      .addColumn('total_ms', 'double precision', (column) => column.notNull())
      .addColumn('cost', 'bigint')
      .addColumn('tags', 'text')
      .addColumn('detail', 'text', (column) => column.notNull())
      .execute()
    const index = (name: string, columns: string, where = '') =>
      sql.raw(`create index request_log_${name} on request_log (${columns})${where && ` where ${where}`}`).execute(db)
    await index('by_time', inOrder)
    await index('by_request', 'request_id')
    for (const [name, column] of Object.entries(SEARCHED)) {
      await index(`by_${name}`, `${column}, ${inOrder}`, OFTEN_NULL.has(column) ? `${column} is not null` : '')
    }
    await index('errors', inOrder, 'error is not null')
    await index('by_status', `status, ${inOrder}`, 'status >= 300')
    // Of the expensive and slow ones only: rows in no order of time are the dear ones to add.
    await index('by_cost', 'cost', 'cost >= 10000000')
    await index('by_duration', 'total_ms', 'total_ms >= 10000')
    await db.schema
      .createTable('request_tags')
      .addColumn('tag', 'text', (column) => column.notNull())
      .addColumn('at_ms', 'bigint', (column) => column.notNull())
      .addColumn('row_id', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('request_tags_pk', ['tag', 'at_ms', 'row_id'])
      .execute()
    await db.schema
      .createTable('request_feedback')
      .addColumn('row_id', id, (column) => column.primaryKey().notNull())
      .addColumn('score', 'double precision')
      .addColumn('text', 'text')
      .addColumn('created_ms', 'bigint', (column) => column.notNull())
      .execute()
    await db
      .insertInto('revisions' as never)
      .values({ noun: 'request_log', revision: 0 } as never)
      .execute()
  },
}
