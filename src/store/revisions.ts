/** Reads and advances a row of `revisions`: the counters by which processes notice the changes of others. */
import { createStatement } from './fixed-statements.ts'
import type { Database, Write } from './tables.ts'

const selectRevision = createStatement(() => 'select revision from revisions where noun = ?')

/** Undefined: there is no such row. */
export async function readRevision(db: Database, noun: string): Promise<number | undefined> {
  const { rows } = await selectRevision<{ revision: number }>(db, [noun])
  return rows[0]?.revision
}

/** Of a row that a migration has added. */
export async function requireRevision(db: Database, noun: string): Promise<number> {
  const revision = await readRevision(db, noun)
  if (revision === undefined) throw new Error(`The database has no revision of ${noun}.`)
  return revision
}

/** Returns the new number. Other transactions that add to it wait for the end of this one, also where `by` is 0. */
export async function addToRevision(rows: Write, noun: string, by: number): Promise<number> {
  const { revision } = await rows
    .updateTable('revisions')
    .set((row) => ({ revision: row('revision', '+', by) }))
    .where('noun', '=', noun)
    .returning('revision')
    .executeTakeFirstOrThrow()
  return revision
}
