/** Writes the entries of all calls that end in one turn of the event loop into the journal together. */
import type { LedgerEntry } from '../../store/ledger/ledger-entry.ts'
import type { Journal } from './journal.ts'

/** `journaled`: how many of the entries are in the journal. */
export type Journaled = { readonly entries: readonly LedgerEntry[]; journaled: number }

type JournalTurns = {
  /** Resolves once they were written, at the end of this turn; the same promise for all of a turn. */
  add(call: Journaled): Promise<void>
  /** Writes what was added, now. */
  write(): void
}

export function createJournalTurns(journal: Journal): JournalTurns {
  let unwritten: Journaled[] = []
  let turn: Promise<void> | undefined
  let endTurn = () => {}

  /** Made once: a call that ends alone in its turn makes a promise, and no function. */
  const begin = (resolve: () => void) => {
    endTurn = resolve
    setImmediate(end)
  }

  function end(): void {
    const resolve = endTurn
    turn = undefined
    write()
    resolve()
  }

  function write(): void {
    if (unwritten.length === 0) return
    const calls = unwritten
    unwritten = []
    const [first] = calls
    const entries = first && calls.length === 1 ? first.entries : calls.flatMap((call) => call.entries)
    if (journal.write(entries) > 0) for (const call of calls) call.journaled = call.entries.length
  }

  return {
    add(call) {
      unwritten.push(call)
      turn ??= new Promise(begin)
      return turn
    },
    write,
  }
}
