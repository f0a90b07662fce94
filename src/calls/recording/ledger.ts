/** Records what calls used and cost: collected in memory for a moment, and committed together; on the local disk while the store is away. */
import { type Clock, endsWithin } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { GatewayError } from '../../spec/error.ts'
import type { BudgetChange } from '../../store/ledger/budget-store.ts'
import type { LedgerEntry } from '../../store/ledger/ledger-entry.ts'
import type { LedgerStore } from '../../store/ledger/ledger-store.ts'
import { createJournalTurns, type Journal, type Journaled } from './journal.ts'
import type { Spool } from './spool.ts'

export type LedgerHealth = {
  /** Entries in memory. */
  queued: number
  /** Milliseconds that the oldest of them has waited. */
  lag_ms: number
  /** Of entries on the local disk. */
  spool_bytes: number
  /** Entries that were lost since the start. */
  lost: number
  /** Whether entries go to the local disk, since the store cannot be written. */
  is_store_away: boolean
}

type LedgerParts = {
  store: Pick<LedgerStore, 'append'>
  /** Absent: entries wait in memory while the store is away. */
  spool?: Spool
  /** Keeps entries that are not in the store yet, should this process be killed. Not used for those that a call waits for. */
  journal?: Journal
  /** Whether the end of a call waits for its entry: read each time. */
  settings?: { readonly durable: boolean }
  clock: Clock
  log: Log
  /** Called for every token that was used. */
  onUsed?: (token_id: string) => void
  /** Names this process where it has leased a part of a budget. */
  process_id?: string
  /** Called when entries were stored, with the budgets that changed; when they wait in the spool; when it is empty again. */
  budgets?: {
    appended(entries: readonly LedgerEntry[], changes: readonly BudgetChange[]): void
    spooled(entries: readonly LedgerEntry[]): void
    replayed(): void
  }
}

/** How long entries wait for others, and then for their commit before they are synced to the local disk: what a power cut can lose. */
const FLUSH_MILLISECONDS = 50
const SYNC_MILLISECONDS = 50
/** A store whose commit takes longer counts as away: entries do not wait for it in memory. */
const COMMIT_MILLISECONDS = 1_000
/** Entries in one transaction: on SQLite it blocks the event loop for some milliseconds. */
const ENTRIES_PER_COMMIT = 500
/** Some 10 MB. */
const MAX_QUEUED = 20_000
const RETRY_MILLISECONDS = 1_000
const MAX_RETRY_MILLISECONDS = 30_000
/** Between looks for what killed processes have left: it counts before others can lease what they had of a budget. */
const REPLAY_MILLISECONDS = 2_000
/** Attempts at shutdown, without a spool. */
const SHUTDOWN_ATTEMPTS = 3

type Queued = Journaled & { since: number; done: (() => void) | undefined }

export function createLedger(parts: LedgerParts) {
  const { store, spool, journal, settings, budgets, clock, log, process_id = '', onUsed = () => {} } = parts
  const turns = journal && createJournalTurns(journal)
  let queue: Queued[] = []
  let queued = 0
  /** Ids of open calls that end without an entry; each is kept until it is closed in the store. */
  const closes = new Set<string>()
  let lost = 0
  let failures = 0
  let isAway = false
  let closed = false
  let cancel: (() => void) | undefined
  let cancelReplay: (() => void) | undefined
  let writing: Promise<void> | undefined
  let committing: Promise<number> | undefined
  let replaying: Promise<void> | undefined

  function schedule(ms: number): void {
    if (cancel || writing || closed) return
    cancel = clock.after(ms, () => {
      cancel = undefined
      writing = flush().then((next) => {
        writing = undefined
        if (queue.length > 0 || closes.size > 0) schedule(next)
      })
    })
  }

  const recordDurably = (entries: readonly LedgerEntry[]): Promise<void> =>
    new Promise((done) => {
      queue.push({ entries, since: clock.steady(), done, journaled: 0 })
      schedule(0)
    })

  function take(): Queued[] {
    let count = 0
    const end = queue.findIndex(({ entries }) => {
      count += entries.length
      return count > ENTRIES_PER_COMMIT
    })
    return queue.slice(0, end === -1 ? queue.length : Math.max(1, end))
  }

  /** Commits what is queued, one batch at a time; returns the milliseconds until the next time. */
  function flush(): Promise<number> {
    committing ??= commit().finally(() => {
      committing = undefined
    })
    return committing
  }

  async function commit(): Promise<number> {
    turns?.write()
    const batch = take()
    const entries = batch.flatMap((one) => one.entries)
    const place = await put(entries)
    if (place === undefined) return RETRY_MILLISECONDS
    queue = queue.slice(batch.length)
    queued -= entries.length
    budgets?.[place](entries, [])
    for (const { done } of batch) done?.()
    journal?.release(journaledOf(batch))
    if (isAway && queue.length === 0) return RETRY_MILLISECONDS // what is left to close waits for the store
    return queue.length >= ENTRIES_PER_COMMIT ? 0 : FLUSH_MILLISECONDS
  }

  /** In the store, or in the spool; undefined: in neither. Never rejects. */
  async function put(entries: readonly LedgerEntry[]): Promise<'appended' | 'spooled' | undefined> {
    if (!isAway && (await isCommitted(entries))) return 'appended'
    if (!spool) return undefined
    if (!isAway) replayLater(RETRY_MILLISECONDS)
    isAway = true
    try {
      if (entries.length > 0) await spool.append(entries)
      return 'spooled'
    } catch (cause) {
      if (failures++ < 2) log.error('ledger entries wait in memory: they could not be spooled', { queued }, cause)
      return undefined
    }
  }

  async function isCommitted(entries: readonly LedgerEntry[]): Promise<boolean> {
    let stop = () => {}
    const syncLater = () => {
      stop = clock.after(SYNC_MILLISECONDS, () => {
        void journal?.sync()
        syncLater()
      })
    }
    try {
      if (journal) syncLater()
      // A commit that takes too long may still succeed: an entry that is written again changes nothing.
      const work = append(entries)
      const committed = spool ? await endsWithin(clock, COMMIT_MILLISECONDS, work) : await work.then(() => true)
      if (!committed) return false
      if (failures > 0) log.info('the ledger was written after failures', { failures })
      failures = 0
      return true
    } catch (error) {
      const cause = (isUnavailable(error) && (error as GatewayError).cause) || error
      if (failures++ === 0) log.error('the ledger could not be written; will retry', { entries: entries.length }, cause)
      return false
    } finally {
      stop()
    }
  }

  /** The open calls that these entries end. */
  const callsOf = (entries: readonly LedgerEntry[], isReplay: boolean): string[] =>
    isReplay || settings?.durable ? entries.flatMap((one) => (one.kind === 'call' ? one.entry_id : [])) : []

  /**
   * Entries of a spool reduce no lease: they may be of another process, and what this one has leased is too much then
   * until it is returned, never too little.
   */
  async function write(entries: readonly LedgerEntry[], isReplay: boolean, closing: string[] = []): Promise<void> {
    let changes: BudgetChange[] = []
    const onBudgets = (all: BudgetChange[]) => {
      changes = all
    }
    const ended = [...callsOf(entries, isReplay), ...closing]
    await store.append(entries, { process_id: isReplay ? '' : process_id, onBudgets, closes: ended })
    for (const entry_id of closing) closes.delete(entry_id)
    if (changes.length > 0) budgets?.appended([], changes)
  }

  /** A fault of one entry must not stop the others. */
  async function append(entries: readonly LedgerEntry[], isReplay = false): Promise<void> {
    const closing = [...closes]
    try {
      await write(entries, isReplay, closing)
    } catch (cause) {
      if (isUnavailable(cause) || entries.length === 0) throw cause
      for (const entry of entries) {
        try {
          await write([entry], isReplay)
        } catch (cause) {
          if (isUnavailable(cause)) throw cause
          lost++
          log.error('a ledger entry was rejected by the store, and is lost', { entry: JSON.stringify(entry) }, cause)
        }
      }
      if (closing.length > 0) await write([], isReplay, closing)
    }
  }

  function replayLater(ms: number): void {
    if (closed || !spool) return
    cancelReplay?.()
    cancelReplay = clock.after(ms, () => {
      cancelReplay = undefined
      replaying = replay(ms).finally(() => {
        replaying = undefined
      })
    })
  }

  /** What is spooled while this runs is found by the second pass, after which new entries go to the store again. */
  async function replay(waited_ms: number): Promise<void> {
    const replayed = (entries: LedgerEntry[]) => append(entries, true)
    const wasAway = isAway
    try {
      if (wasAway) await store.append([])
      await spool?.replay(replayed)
      if (wasAway) {
        isAway = false
        await spool?.replay(replayed)
        log.info('the ledger is complete again: what was spooled is in the store')
        failures = 0
      }
      if (spool?.bytes() === 0) budgets?.replayed()
      replayLater(REPLAY_MILLISECONDS)
    } catch (cause) {
      if (!isAway && !isUnavailable(cause)) log.error('spooled ledger entries could not be read', {}, cause)
      replayLater(Math.min(waited_ms * 2, MAX_RETRY_MILLISECONDS))
    }
  }

  return {
    /**
     * Never throws. The result resolves once the end of this process cannot lose the entries; in durable mode, once that of
     * the machine cannot. Undefined: nothing is to be waited for.
     */
    record(entries: readonly LedgerEntry[]): Promise<void> | undefined {
      if (closed) {
        lost += entries.length
        return void log.warn('ledger entries lost: recorded after shutdown', { entries: entries.length })
      }
      for (const { requests, token_id } of entries) if (requests > 0) onUsed(token_id)
      if (queued + entries.length > MAX_QUEUED) {
        if (lost === 0) log.error('ledger entries lost: too many wait for the store', { max_queued: MAX_QUEUED })
        lost += entries.length
        return void budgets?.spooled(entries) // held as long as the store is away, and no longer
      }
      queued += entries.length
      if (settings?.durable) return recordDurably(entries)
      const recorded = { entries, since: clock.steady(), done: undefined, journaled: 0 }
      queue.push(recorded)
      schedule(FLUSH_MILLISECONDS)
      return turns?.add(recorded)
    },
    /** Of a call that is settled without an entry. */
    closeCall(entry_id: string): void {
      if (closes.size >= MAX_QUEUED) return // of calls that were refused while the store is away, which it does not have
      closes.add(entry_id)
      schedule(FLUSH_MILLISECONDS)
    },
    /** Writes what is queued now; resolves also where that fails, and is retried later. */
    async flush(): Promise<void> {
      cancel?.()
      cancel = undefined
      await writing
      while (queue.length > 0 && failures === 0) await flush()
      if (queue.length > 0) schedule(RETRY_MILLISECONDS)
    },
    /** Replays what earlier processes could not write. */
    start: () => replayLater(RETRY_MILLISECONDS),
    health: (): LedgerHealth => ({
      queued,
      lag_ms: queue[0] ? clock.steady() - queue[0].since : 0,
      spool_bytes: spool?.bytes() ?? 0,
      lost,
      is_store_away: isAway,
    }),
    /** Writes what is still in memory, and accepts no more. */
    async close(): Promise<void> {
      closed = true
      cancel?.()
      cancelReplay?.()
      await writing
      await replaying
      for (let attempt = 0; (queue.length > 0 || closes.size > 0) && attempt < SHUTDOWN_ATTEMPTS; ) {
        if ((await flush()) === RETRY_MILLISECONDS) attempt++
      }
      const left = queued - journaledOf(queue)
      lost += left
      if (left > 0) log.error('ledger entries lost: the store failed at shutdown', { entries: left })
      queue = []
      queued = 0
      journal?.close()
      await spool?.close()
    },
  }
}

const journaledOf = (queue: readonly Queued[]): number => queue.reduce((sum, { journaled }) => sum + journaled, 0)

const isUnavailable = (cause: unknown): boolean => cause instanceof GatewayError && cause.code === 'storage_unavailable'
