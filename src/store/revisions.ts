/** Reads a row of `revisions`: the counters by which processes notice the changes of others. */
import { createStatement } from './fixed-statements.ts'
import type { Database } from './tables.ts'

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
