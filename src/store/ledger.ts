/** The ledger in the database. */
import type { Engine } from './engine.ts'
import { appendEntries, entryOfRow } from './ledger-append.ts'
import { differencesOf, vendorDays } from './ledger-reconcile.ts'
import type { LedgerStore } from './ledger-store.ts'
import { usageSums } from './ledger-usage.ts'

export function ledgerStore({ db, write }: Engine): LedgerStore {
  return {
    async append(entries, options = {}) {
      if (entries.length === 0) return 0
      const fresh = await write((rows) => appendEntries(rows, entries, options))
      return fresh.length
    },

    async ofCall(call_id) {
      const rows = await db
        .selectFrom('ledger_entries')
        .selectAll()
        .where('call_id', '=', call_id)
        .orderBy('at_ms')
        .orderBy('entry_id')
        .execute()
      return rows.map(entryOfRow)
    },

    usage: (query) => usageSums(db, query),
    differences: (range) => differencesOf(db, range),
    vendorDays: (filter) => vendorDays(db, filter),
  }
}
