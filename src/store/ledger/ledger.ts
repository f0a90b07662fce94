/** The ledger in the database. */
import { appendAudit } from '../admin/audit-append.ts'
import type { Engine } from '../engine.ts'
import { appendEntries, entryOfRow } from './ledger-append.ts'
import { pruneLedger } from './ledger-prune.ts'
import { differencesOf, interruptedEntries, vendorDays } from './ledger-reconcile.ts'
import type { LedgerStore } from './ledger-store.ts'
import { usageSums } from './ledger-usage.ts'
import { closeCalls, interruptLapsed, openCalls, raiseCall, renewLease } from './open-calls.ts'

export function ledgerStore(engine: Engine): LedgerStore {
  const { db, write } = engine
  return {
    append(entries, options = {}) {
      return write(async (rows) => {
        // First: where the call was recorded as interrupted meanwhile, its entry then takes that back.
        if (options.closes) await closeCalls(rows, options.closes)
        const fresh = await appendEntries(rows, entries, options)
        if (options.audit && fresh.length > 0) await appendAudit(rows, options.audit)
        return fresh.length
      })
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
    interrupted: (filter) => interruptedEntries(db, filter),
    vendorDays: (filter) => vendorDays(db, filter),
    open: (calls, lease) => openCalls(engine, calls, lease),
    raise: (call) => write((rows) => raiseCall(rows, call)),
    renew: (lease) => write((rows) => renewLease(rows, lease)),
    prune: (keep, now) => pruneLedger(engine, keep, now),
    interruptLapsed: (now_ms) => interruptLapsed(engine, now_ms),
  }
}
