/** Live events of all processes in the database. */
import type { Engine } from '../engine.ts'
import type { Write } from '../tables.ts'
import { bumpRevision } from '../tokens/account-columns.ts'
import type { LiveRow, LiveStore } from './live-store.ts'

/** For those who follow again after a lost connection. */
const KEPT_ROWS = 5_000
const GAP = 'gap'

export function liveStore({ db, write }: Engine): LiveStore {
  const revisionOf = async (noun: string) =>
    (await db.selectFrom('revisions').select('revision').where('noun', '=', noun).executeTakeFirstOrThrow()).revision

  return {
    ask: (until_ms, now_ms) =>
      write(
        async (rows) => {
          // The row is written first, so that of two who ask at once the second one sees the first.
          const before = await add(rows, 'live_followed', 0)
          await rows
            .updateTable('revisions')
            .set({ revision: Math.max(before, until_ms) })
            .where('noun', '=', 'live_followed')
            .execute()
          if (before > now_ms) return
          await appendRows(rows, [{ at_ms: now_ms, type: GAP, project_id: null, text: '{}' }])
          await bumpRevision(rows)
        },
        { is_synced: false },
      ),

    askedUntil: () => revisionOf('live_followed'),
    append: (events) => write((rows) => appendRows(rows, events), { is_synced: false }),

    after: (sequence, limit) =>
      db
        .selectFrom('live_events')
        .selectAll()
        .where('sequence', '>', sequence)
        .orderBy('sequence')
        .limit(limit)
        .execute(),

    last: () => revisionOf('live_events'),
  }
}

/** The row of revisions is locked until the commit: a reader never sees a later row before an earlier one. */
async function appendRows(rows: Write, events: readonly Omit<LiveRow, 'sequence'>[]): Promise<void> {
  if (events.length === 0) return
  const last = await add(rows, 'live_events', events.length)
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

async function add(rows: Write, noun: string, by: number): Promise<number> {
  const row = await rows
    .updateTable('revisions')
    .set((revisions) => ({ revision: revisions('revision', '+', by) }))
    .where('noun', '=', noun)
    .returning('revision')
    .executeTakeFirstOrThrow()
  return row.revision
}
