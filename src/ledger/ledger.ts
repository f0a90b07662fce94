/** Records what calls used and cost: collected in memory for a moment, and committed together. */
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { BudgetChange } from '../store/budget-store.ts'
import type { LedgerEntry } from '../store/ledger-entry.ts'
import type { LedgerStore } from '../store/ledger-store.ts'

type Ledger = {
  /** Never throws. The result, where there is one, resolves once the entries cannot be lost. */
  record(entries: readonly LedgerEntry[]): Promise<void> | undefined
  /** Writes what is queued now; resolves also where that fails, and is retried later. */
  flush(): Promise<void>
  /** Writes what is still in memory, and accepts no more. */
  close(): Promise<void>
}

type LedgerParts = {
  store: Pick<LedgerStore, 'append'>
  clock: Clock
  log: Log
  /** Called for every token that was used. */
  onUsed?: (token_id: string) => void
  /** Names this process where it has leased a part of a budget. */
  process_id?: string
  /** These entries are in the ledger, and these budgets have changed. */
  onAppended?: (entries: readonly LedgerEntry[], changes: readonly BudgetChange[]) => void
}

/** How long entries wait for others. */
const FLUSH_MILLISECONDS = 50
/** Entries in one transaction: on SQLite it blocks the event loop for some milliseconds. */
const ENTRIES_PER_COMMIT = 500
/** Some 10 MB. */
const MAX_QUEUED = 20_000
const RETRY_MILLISECONDS = 1_000
/** Attempts at shutdown. */
const SHUTDOWN_ATTEMPTS = 3

export function createLedger(parts: LedgerParts): Ledger {
  const { store, clock, log, process_id = '', onUsed = () => {}, onAppended = () => {} } = parts
  let queue: LedgerEntry[] = []
  let dropped = 0
  let failures = 0
  let closed = false
  let cancel: (() => void) | undefined
  let writing: Promise<void> | undefined

  function schedule(ms: number): void {
    if (cancel || writing || closed) return
    cancel = clock.after(ms, () => {
      cancel = undefined
      writing = flush().then((next) => {
        writing = undefined
        if (queue.length > 0) schedule(next)
      })
    })
  }

  /** Commits what is queued; returns the milliseconds until the next time. */
  async function flush(): Promise<number> {
    const batch = queue.slice(0, ENTRIES_PER_COMMIT)
    let changes: BudgetChange[] = []
    const onBudgets = (all: BudgetChange[]) => {
      changes = all
    }
    try {
      await store.append(batch, { process_id, onBudgets })
      onAppended(batch, changes)
    } catch (cause) {
      if (failures++ === 0) log.error('the ledger could not be written; will retry', { entries: batch.length }, cause)
      return RETRY_MILLISECONDS
    }
    queue = queue.slice(batch.length)
    if (dropped > 0) log.error('ledger entries lost: too many while the store was away', { dropped })
    if (failures > 0) log.info('the ledger was written after failures', { failures })
    dropped = 0
    failures = 0
    return queue.length >= ENTRIES_PER_COMMIT ? 0 : FLUSH_MILLISECONDS
  }

  return {
    record(entries) {
      if (closed) return void log.warn('ledger entries lost: recorded after shutdown', { entries: entries.length })
      for (const entry of entries) {
        if (entry.requests > 0) onUsed(entry.token_id)
        if (queue.length < MAX_QUEUED) queue.push(entry)
        else dropped++
      }
      schedule(FLUSH_MILLISECONDS)
      return undefined
    },
    async flush() {
      cancel?.()
      cancel = undefined
      await writing
      while (queue.length > 0 && failures === 0) await flush()
      if (queue.length > 0) schedule(RETRY_MILLISECONDS)
    },
    async close() {
      closed = true
      cancel?.()
      await writing
      failures = 0
      while (queue.length > 0 && failures < SHUTDOWN_ATTEMPTS) await flush()
      if (queue.length > 0) log.error('ledger entries lost: the store failed at shutdown', { entries: queue.length })
      queue = []
    },
  }
}
