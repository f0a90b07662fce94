/** Live events of all processes in the database. */
import type { Engine } from '../engine.ts'
import { addToRevision } from '../revisions.ts'
import type { Write } from '../tables.ts'
import { bumpRevision } from '../tokens/account-columns.ts'
import type { LiveRow, LiveStore } from './live-store.ts'

/** For those who follow again after a lost connection. */
const KEPT_ROWS = 5_000

export function liveStore({ db, write }: Engine): LiveStore {
  return {
    ask: (process_id, until_ms, now_ms) =>
      write(
        async (rows) => {
          const own = await rows
            .selectFrom('live_followers')
            .select('until_ms')
            .where('process_id', '=', process_id)
            .executeTakeFirst()
          await rows
            .insertInto('live_followers')
            .values({ process_id, until_ms })
            .onConflict((conflict) => conflict.column('process_id').doUpdateSet({ until_ms }))
            .execute()
          if (own && own.until_ms > now_ms) return true
          await rows.deleteFrom('live_followers').where('until_ms', '<', now_ms).execute()
          await bumpRevision(rows)
          return false
        },
        { is_synced: false },
      ),

    async askedUntil(process_id) {
      const row = await db
        .selectFrom('live_followers')
        .select(({ fn }) => fn.max('until_ms').as('until_ms'))
        .where('process_id', '!=', process_id)
        .executeTakeFirst()
      return Number(row?.until_ms ?? 0)
    },

    append: (events) => write((rows) => appendRows(rows, events), { is_synced: false }),

    after: (sequence, limit) =>
      db
        .selectFrom('live_events')
        .selectAll()
        .where('sequence', '>', sequence)
        .orderBy('sequence')
        .limit(limit)
        .execute(),

    async last() {
      const row = await db
        .selectFrom('revisions')
        .select('revision')
        .where('noun', '=', 'live_events')
        .executeTakeFirstOrThrow()
      return row.revision
    },
  }
}

async function appendRows(rows: Write, events: readonly Omit<LiveRow, 'sequence'>[]): Promise<void> {
  if (events.length === 0) return
  // The row is locked until the commit: a reader never sees a later row before an earlier one.
  const last = await addToRevision(rows, 'live_events', events.length)
  const first = last - events.length + 1
  await rows
    .insertInto('live_events')
    .values(events.map((event, index) => ({ ...event, sequence: first + index })))
    .execute()
  await rows
    .deleteFrom('live_events')
    .where('sequence', '<=', last - KEPT_ROWS)
    .execute()
}
