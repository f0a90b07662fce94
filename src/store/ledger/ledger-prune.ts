/** Deletes what the ledger no longer keeps, in small batches. The sums by day are kept for ever. */
import { sql } from 'kysely'
import type { Engine } from '../engine.ts'
import type { Write } from '../tables.ts'
import type { LedgerKeeping } from './ledger-store.ts'

const ROWS_PER_BATCH = 500
const DAY_SECONDS = 86_400
const SUM_KEY = sql`period, start, token_id, project_id, family, model, provider, upstream_model`
const END_USER_KEY = sql`start, token_id, end_user, project_id, family, model, provider, upstream_model`

/** One batch of each; false: nothing is left to delete. The start that a reader may rely on moves before the rows go. */
export function pruneLedger({ write }: Pick<Engine, 'write'>, keep: LedgerKeeping, now: number): Promise<boolean> {
  const startOf = (days: number) => (Math.floor(now / DAY_SECONDS) - days) * DAY_SECONDS
  const [minutes, hours, entries] = [startOf(keep.minutes_days), startOf(keep.hours_days), startOf(keep.entries_days)]
  return write(async (rows) => {
    await moveStarts(rows, { '60': minutes, '3600': hours, entries })
    const deleted = [
      await deleteSums(rows, 60, minutes),
      await deleteSums(rows, 3_600, hours),
      await countOf(
        sql`delete from ledger_entries where entry_id in
          (select entry_id from ledger_entries where at_ms < ${entries * 1000} order by at_ms limit ${ROWS_PER_BATCH})
          returning 1 as one`,
        rows,
      ),
      await countOf(
        sql`delete from ledger_end_users where (${END_USER_KEY}) in
          (select ${END_USER_KEY} from ledger_end_users where start < ${entries} order by start limit ${ROWS_PER_BATCH})
          returning 1 as one`,
        rows,
      ),
    ]
    await rows.deleteFrom('ledger_end_user_counts').where('start', '<', entries).execute()
    return deleted.some((count) => count === ROWS_PER_BATCH)
  })
}

/** They only increase: what was deleted does not come back when the operator keeps more. */
async function moveStarts(write: Write, starts: Record<string, number>): Promise<void> {
  for (const [noun, start] of Object.entries(starts))
    await write
      .insertInto('ledger_starts')
      .values({ noun, start })
      .onConflict((conflict) => conflict.column('noun').doUpdateSet({ start }).where('ledger_starts.start', '<', start))
      .execute()
}

const deleteSums = (write: Write, period: number, before: number): Promise<number> =>
  countOf(
    sql`delete from ledger_sums where (${SUM_KEY}) in
      (select ${SUM_KEY} from ledger_sums where period = ${period} and start < ${before} order by start limit ${ROWS_PER_BATCH})
      returning 1 as one`,
    write,
  )

const countOf = async (statement: ReturnType<typeof sql>, write: Write): Promise<number> =>
  (await statement.execute(write)).rows.length
