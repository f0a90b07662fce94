/** Searches the request log by a class of statuses in the order of time: the index of statuses is in that of each status. */
import { type Kysely, SqliteAdapter, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const requestClasses: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    const inOrder = db.getExecutor().adapter instanceof SqliteAdapter ? 'at_ms' : 'at_ms, row_id'
    const columns = sql.raw(`(status / 100), ${inOrder}`)
    await sql`create index request_log_by_class on request_log (${columns}) where status >= 300`.execute(db)
  },
}
