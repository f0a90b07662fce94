/** Records what calls used and cost: collected in memory for a moment, and committed together; on the local disk while the store is away. */
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { GatewayError } from '../spec/error.ts'
import type { BudgetChange } from '../store/budget-store.ts'
import type { LedgerEntry } from '../store/ledger-entry.ts'
import type { LedgerStore } from '../store/ledger-store.ts'
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

type Ledger = {
  /** Never throws. The result, in durable mode, resolves once the entries cannot be lost. */
  record(entries: readonly LedgerEntry[]): Promise<void> | undefined
  /** Of a call that is settled without an entry. */
  closeCall(entry_id: string): void
  /** Writes what is queued now; resolves also where that fails, and is retried later. */
  flush(): Promise<void>
  /** Replays what earlier processes could not write. */
  start(): void
  health(): LedgerHealth
  /** Writes what is still in memory, and accepts no more. */
  close(): Promise<void>
}

type LedgerParts = {
  store: Pick<LedgerStore, 'append'>
  /** Absent: entries wait in memory while the store is away. */
  spool?: Spool
  /** Whether the end of a call waits for its entry. */
  isDurable?: () => boolean
  clock: Clock
  log: Log
  /** Called for every token that was used. */
  onUsed?: (token_id: string) => void
  /** Names this process where it has leased a part of a budget. */
  process_id?: string
  /** These entries cannot be lost any more; and these budgets have changed in the store. */
  onAppended?: (entries: readonly LedgerEntry[], changes: readonly BudgetChange[]) => void
}

/** How long entries wait for others, and then how long for their commit: together what a crash can lose. */
const FLUSH_MILLISECONDS = 50
const COMMIT_MILLISECONDS = 50
/** Entries in one transaction: on SQLite it blocks the event loop for some milliseconds. */
const ENTRIES_PER_COMMIT = 500
/** Some 10 MB. */
const MAX_QUEUED = 20_000
const RETRY_MILLISECONDS = 1_000
const MAX_RETRY_MILLISECONDS = 30_000
/** Attempts at shutdown, without a spool. */
const SHUTDOWN_ATTEMPTS = 3

type Queued = { entries: readonly LedgerEntry[]; since: number; done: (() => void) | undefined }

export function createLedger(parts: LedgerParts): Ledger {
  const { store, spool, isDurable, clock, log, process_id = '', onUsed = () => {}, onAppended = () => {} } = parts
  let queue: Queued[] = []
  let queued = 0
  const closes: string[] = []
  let lost = 0
  let failures = 0
  let isAway = false
  let closed = false
  let cancel: (() => void) | undefined
  let cancelReplay: (() => void) | undefined
  let writing: Promise<void> | undefined
  let replaying: Promise<void> | undefined

  function schedule(ms: number): void {
    if (cancel || writing || closed) return
    cancel = clock.after(ms, () => {
      cancel = undefined
      writing = flush().then((next) => {
        writing = undefined
        if (queue.length > 0 || closes.length > 0) schedule(next)
      })
    })
  }

  function take(): Queued[] {
    let count = 0
    const end = queue.findIndex(({ entries }) => {
      count += entries.length
      return count > ENTRIES_PER_COMMIT
    })
    return queue.slice(0, end === -1 ? queue.length : Math.max(1, end))
  }

  /** Commits what is queued; returns the milliseconds until the next time. */
  async function flush(): Promise<number> {
    const batch = take()
    const closing = closes.splice(0)
    const entries = batch.flatMap((one) => one.entries)
    if (!(await isStored(entries, closing))) {
      closes.push(...closing)
      return RETRY_MILLISECONDS
    }
    queue = queue.slice(batch.length)
    queued -= entries.length
    onAppended(entries, [])
    for (const { done } of batch) done?.()
    return queue.length >= ENTRIES_PER_COMMIT ? 0 : FLUSH_MILLISECONDS
  }

  /** In the store, or in the spool. Never rejects. */
  async function isStored(entries: readonly LedgerEntry[], closing: readonly string[]): Promise<boolean> {
    try {
      if (isAway) return await isSpooled(entries)
      const committed = await within(append(entries, closing), spool ? COMMIT_MILLISECONDS : undefined)
      if (committed) {
        if (failures > 0) log.info('the ledger was written after failures', { failures })
        failures = 0
        return true
      }
    } catch (cause) {
      if (failures++ === 0) log.error('the ledger could not be written; will retry', { entries: entries.length }, cause)
    }
    if (!spool) return false
    if (!isAway) replayLater(RETRY_MILLISECONDS)
    isAway = true
    return isSpooled(entries)
  }

  async function isSpooled(entries: readonly LedgerEntry[]): Promise<boolean> {
    if (!spool) return false
    try {
      if (entries.length > 0) await spool.append(entries)
      return true
    } catch (cause) {
      if (failures++ < 2) log.error('ledger entries wait in memory: they could not be spooled', { queued }, cause)
      return false
    }
  }

  /** The open calls that these entries end. */
  const callsOf = (entries: readonly LedgerEntry[], isReplay: boolean): string[] =>
    isReplay || isDurable?.() ? entries.filter(({ kind }) => kind === 'call').map(({ entry_id }) => entry_id) : []

  /**
   * Entries of a spool reduce no lease: they may be of another process, and what this one has leased is too much then
   * until it is returned, never too little.
   */
  async function write(entries: readonly LedgerEntry[], closes: readonly string[], isReplay: boolean): Promise<void> {
    let changes: BudgetChange[] = []
    const onBudgets = (all: BudgetChange[]) => {
      changes = all
    }
    await store.append(entries, { process_id: isReplay ? '' : process_id, onBudgets, closes })
    if (changes.length > 0) onAppended([], changes)
  }

  /** A fault of one entry must not stop the others. */
  async function append(entries: readonly LedgerEntry[], closing: readonly string[], isReplay = false): Promise<void> {
    try {
      await write(entries, [...callsOf(entries, isReplay), ...closing], isReplay)
    } catch (cause) {
      if (isUnavailable(cause) || entries.length === 0) throw cause
      for (const entry of entries) {
        try {
          await write([entry], callsOf([entry], isReplay), isReplay)
        } catch (cause) {
          if (isUnavailable(cause)) throw cause
          lost++
          log.error('a ledger entry was rejected by the store, and is lost', { entry: JSON.stringify(entry) }, cause)
        }
      }
    }
  }

  /** False: it takes too long. It may still succeed: an entry that is written again changes nothing. */
  function within(work: Promise<void>, ms: number | undefined): Promise<boolean> {
    if (ms === undefined) return work.then(() => true)
    return new Promise((resolve, reject) => {
      const cancel = clock.after(ms, () => resolve(false))
      work.then(
        () => {
          cancel()
          resolve(true)
        },
        (cause) => {
          cancel()
          reject(cause)
        },
      )
    })
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
    const replayed = (entries: LedgerEntry[]) => append(entries, [], true)
    try {
      if (isAway) await store.append([])
      await spool?.replay(replayed)
      if (!isAway) return
      isAway = false
      await spool?.replay(replayed)
      log.info('the ledger is complete again: what was spooled is in the store')
      failures = 0
    } catch (cause) {
      if (!isAway && !isUnavailable(cause)) log.error('spooled ledger entries could not be read', {}, cause)
      replayLater(Math.min(waited_ms * 2, MAX_RETRY_MILLISECONDS))
    }
  }

  return {
    record(entries) {
      if (closed) {
        lost += entries.length
        return void log.warn('ledger entries lost: recorded after shutdown', { entries: entries.length })
      }
      for (const { requests, token_id } of entries) if (requests > 0) onUsed(token_id)
      if (queued + entries.length > MAX_QUEUED) {
        if (lost === 0) log.error('ledger entries lost: too many wait for the store', { max_queued: MAX_QUEUED })
        lost += entries.length
        return undefined
      }
      queued += entries.length
      const since = clock.steady()
      if (!isDurable?.()) {
        queue.push({ entries, since, done: undefined })
        schedule(FLUSH_MILLISECONDS)
        return undefined
      }
      return new Promise((done) => {
        queue.push({ entries, since, done })
        schedule(0)
      })
    },
    closeCall(entry_id) {
      closes.push(entry_id)
      schedule(FLUSH_MILLISECONDS)
    },
    async flush() {
      cancel?.()
      cancel = undefined
      await writing
      while (queue.length > 0 && failures === 0) await flush()
      if (queue.length > 0) schedule(RETRY_MILLISECONDS)
    },
    start: () => replayLater(RETRY_MILLISECONDS),
    health: () => ({
      queued,
      lag_ms: queue[0] ? clock.steady() - queue[0].since : 0,
      spool_bytes: spool?.bytes() ?? 0,
      lost,
      is_store_away: isAway,
    }),
    async close() {
      closed = true
      cancel?.()
      cancelReplay?.()
      await writing
      await replaying
      for (let attempt = 0; (queue.length > 0 || closes.length > 0) && attempt < SHUTDOWN_ATTEMPTS; ) {
        if ((await flush()) === RETRY_MILLISECONDS) attempt++
      }
      lost += queued
      if (queued > 0) log.error('ledger entries lost: the store failed at shutdown', { entries: queued })
      queue = []
      queued = 0
      await spool?.close()
    },
  }
}

const isUnavailable = (cause: unknown): boolean => cause instanceof GatewayError && cause.code === 'storage_unavailable'
