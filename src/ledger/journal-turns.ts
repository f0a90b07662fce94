/** Writes the entries of all calls that end in one turn of the event loop into the journal together. */
import type { LedgerEntry } from '../store/ledger-entry.ts'
import type { Journal } from './journal.ts'

/** `journaled`: how many of the entries are in the journal. */
export type Journaled = { readonly entries: readonly LedgerEntry[]; journaled: number }

type JournalTurns = {
  /** Resolves once they were written, at the end of this turn; the same promise for all of a turn. */
  add(one: Journaled): Promise<void>
  /** Writes what was added, now. */
  write(): void
}

export function createJournalTurns(journal: Journal): JournalTurns {
  let unwritten: Journaled[] = []
  let turn: Promise<void> | undefined

  function write(): void {
    turn = undefined
    if (unwritten.length === 0) return
    const batch = unwritten
    unwritten = []
    const isWritten = journal.write(batch.flatMap(({ entries }) => entries)) > 0
    if (isWritten) for (const one of batch) one.journaled = one.entries.length
  }

  return {
    add(one) {
      unwritten.push(one)
      turn ??= new Promise((resolve) => {
        setImmediate(() => {
          write()
          resolve()
        })
      })
      return turn
    },
    write,
  }
}
