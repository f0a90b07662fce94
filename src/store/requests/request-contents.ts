/** Contents of requests in the database. */
import { sql } from 'kysely'
import type { Engine } from '../engine.ts'
import { chunks } from '../tasks/task-sql.ts'
import type { RequestContentsStore } from './contents-row.ts'

const ROWS_PER_BATCH = 200
const ROWS_PER_STATEMENT = 20
/** As rows of the request log. */
const UNSYNCED = { is_synced: false } as const

export function requestContentsStore({ db, write }: Engine): RequestContentsStore {
  return {
    append: (added) =>
      write(async (rows) => {
        for (const some of chunks(added, ROWS_PER_STATEMENT)) {
          await rows
            .insertInto('request_contents')
            .values(some)
            .onConflict((conflict) => conflict.column('row_id').doNothing())
            .execute()
        }
      }, UNSYNCED),

    find: (row_id) => db.selectFrom('request_contents').selectAll().where('row_id', '=', row_id).executeTakeFirst(),

    prune: (before_ms) =>
      write(async (rows) => {
        const deleted = await sql`
          delete from request_contents where row_id in
            (select row_id from request_contents where at_ms < ${before_ms} order by at_ms limit ${ROWS_PER_BATCH})
          returning row_id`.execute(rows)
        return deleted.rows.length === ROWS_PER_BATCH
      }),
  }
}
