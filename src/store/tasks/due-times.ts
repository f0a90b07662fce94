/** Moves the stored due times when the clock is set: they were computed from the time that no longer counts. */
import { sql } from 'kysely'
import type { Engine } from '../engine.ts'
import { createStatement } from '../fixed-statements.ts'
import { readRevision } from '../revisions.ts'
import type { Write } from '../tables.ts'
import { UNFINISHED } from './task-sql.ts'

/** The row of `revisions` that counts the moves, so that of several processes only one moves. Added by the first clock. */
const NOUN = 'clock'

export type DueTimes = {
  /** The database's own clock, in unix milliseconds; absent where it has that of the machine. */
  now?(): Promise<number>
  moves(): Promise<number>
  /** Moves all due times and leases; false, and nothing is moved, if another process has moved them since `moves`. */
  move(by_ms: number, moves: number): Promise<boolean>
}

export function dueTimes(engine: Engine): DueTimes {
  const { db, writeAlone, now } = engine
  return {
    ...(now && { now }),
    async moves() {
      const moves = await readRevision(db, NOUN)
      if (moves === undefined) await engine.write(addRow)
      return moves ?? 0
    },
    move: (by_ms, moves) =>
      // A time that was read before this call is moved, and one that is read after it is not moved again.
      writeAlone(async (rows) => {
        await addRow(rows)
        const counted = await rows
          .updateTable('revisions')
          .set({ revision: moves + 1 })
          .where((row) => row.and({ noun: NOUN, revision: moves }))
          .returning('revision')
          .executeTakeFirst()
        if (!counted) return false
        await moveAll(rows, by_ms)
        return true
      }),
  }
}

async function addRow(rows: Write): Promise<void> {
  await rows
    .insertInto('revisions')
    .values({ noun: NOUN, revision: 0 })
    .onConflict((conflict) => conflict.column('noun').doNothing())
    .execute()
}

const lockedRevision = createStatement(
  (_, isLocking) => `select revision from revisions where noun = ? ${isLocking ? 'for share' : ''}`,
)

/** The due times were moved by another process: a time that was computed before counts no longer. */
export class DueTimesMoved extends Error {}

/**
 * Throws `DueTimesMoved` unless they were moved so often; no move is committed before this transaction. To be called first in
 * it, so that no two transactions wait for each other.
 */
export async function assertMoves(rows: Write, moves: number | undefined): Promise<void> {
  if (moves === undefined) return
  const { rows: found } = await lockedRevision<{ revision: number }>(rows, [NOUN])
  if ((found[0]?.revision ?? 0) !== moves) throw new DueTimesMoved('The due times were moved meanwhile.')
}

/** Also leases, which end at a due time, and what the deadline and the look-up of an unfinished task are counted from. */
async function moveAll(rows: Write, by_ms: number): Promise<void> {
  for (const [table, columns, condition] of MOVED)
    await sql`update ${sql.table(table)} set ${later(columns, by_ms)} where ${condition}`.execute(rows)
  const by_seconds = Math.round(by_ms / 1000)
  await sql`update tasks set ${later(['deadline_at', 'sent_at'], by_seconds)} where ${UNFINISHED}`.execute(rows)
}

const later = (columns: readonly string[], by: number) =>
  sql.join(columns.map((column) => sql`${sql.ref(column)} = ${sql.ref(column)} + ${by}`))

const IS_DUE = sql`due_ms is not null`
const ALL = sql`1 = 1`
const MOVED = [
  ['tasks', ['due_ms'], IS_DUE],
  ['callbacks', ['due_ms'], IS_DUE],
  ['response_runs', ['due_ms'], ALL],
  ['alerts', ['due_ms'], ALL],
  ['budget_leases', ['expires_ms'], ALL],
  ['ledger_processes', ['until_ms'], ALL],
  ['conversations', ['locked_until_ms'], sql`locked_by is not null`],
  ['rate_limit_leases', ['renewed_ms', 'ends_ms'], ALL],
] as const
