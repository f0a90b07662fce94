/** Calls that have begun and are not recorded yet, in durable mode: if their process ends, they become entries. */
import type { Engine } from '../engine.ts'
import type { Write } from '../tables.ts'
import { chunks } from '../tasks/task-sql.ts'
import { appendEntries, entryOfRow } from './ledger-append.ts'
import { type LedgerEntry, type OpenCall, reversalOf } from './ledger-entry.ts'

const LAPSED_PER_STATEMENT = 500

/** The id of the entry that an open call becomes: another one than its own, so that both can be recorded. */
const interruptedId = (entry_id: string): string => `${entry_id}:interrupted`

export async function openCalls(
  { write }: Pick<Engine, 'write'>,
  calls: readonly OpenCall[],
  lease: { process: string; until_ms: number },
): Promise<void> {
  await write(async (rows) => {
    await renewLease(rows, lease)
    const { process } = lease
    const opened = calls.map((call) => ({ entry_id: call.entry_id, entry: interruptedEntry(call), process }))
    for (const some of chunks(opened))
      await rows
        .insertInto('open_calls')
        .values(some)
        .onConflict((conflict) => conflict.column('entry_id').doNothing())
        .execute()
  })
}

/** The row may be gone: another process has recorded the call, since this one was halted for longer than its lease. */
export async function raiseCall(write: Write, call: OpenCall): Promise<void> {
  const entry = interruptedEntry(call)
  await write.updateTable('open_calls').set({ entry }).where('entry_id', '=', call.entry_id).execute()
}

const interruptedEntry = ({ entry_id, entry }: OpenCall): string =>
  JSON.stringify({ ...entry, entry_id: interruptedId(entry_id), kind: 'interrupted' })

export async function renewLease(write: Write, lease: { process: string; until_ms: number }): Promise<void> {
  await write
    .insertInto('ledger_processes')
    .values(lease)
    .onConflict((conflict) => conflict.column('process').doUpdateSet({ until_ms: lease.until_ms }))
    .execute()
}

/**
 * Removes calls that are settled. One that counts as interrupted already, because its process was halted for longer than
 * its lease, is taken back.
 */
export async function closeCalls(write: Write, entry_ids: readonly string[]): Promise<void> {
  for (const some of chunks(entry_ids)) {
    some.sort()
    const closed = await write.deleteFrom('open_calls').where('entry_id', 'in', some).returning('entry_id').execute()
    if (closed.length === some.length) continue
    const known = new Set(closed.map(({ entry_id }) => entry_id))
    const others = some.filter((entry_id) => !known.has(entry_id)).map(interruptedId)
    const rows = await write.selectFrom('ledger_entries').selectAll().where('entry_id', 'in', others).execute()
    await appendEntries(
      write,
      rows.map((row) => reversalOf(entryOfRow(row), row.at_ms)),
    )
  }
}

/** Records the open calls of processes whose lease has lapsed; returns how many. */
export function interruptLapsed({ write }: Pick<Engine, 'write'>, now_ms: number): Promise<number> {
  return write(async (rows) => {
    const lapsed = await rows
      .selectFrom('ledger_processes')
      .select('process')
      .where('until_ms', '<', now_ms)
      .orderBy('process')
      .limit(10)
      .execute()
    let count = 0
    for (const { process } of lapsed) {
      // Deleted first: a call that ends at the same time waits here, or this waits for it and does not find it any more.
      const some = rows
        .selectFrom('open_calls')
        .select('entry_id')
        .where('process', '=', process)
        .orderBy('entry_id')
        .limit(LAPSED_PER_STATEMENT)
      const open = await rows.deleteFrom('open_calls').where('entry_id', 'in', some).returningAll().execute()
      // With the time of their arrival: they count towards the budgets that have admitted them.
      const entries = open.map(({ entry }) => JSON.parse(entry) as LedgerEntry)
      count += (await appendEntries(rows, entries)).length
      if (open.length < LAPSED_PER_STATEMENT)
        await rows
          .deleteFrom('ledger_processes')
          .where('process', '=', process)
          .where('until_ms', '<', now_ms)
          .execute()
    }
    return count
  })
}
