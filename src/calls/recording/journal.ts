/**
 * Entries that are not in the store yet, in files of the local disk without `fsync`: they survive the end of the process,
 * however it ends, but not that of the machine. A spool replays what a process has left behind. The entries of all calls
 * that end in one turn of the event loop are written together.
 */
import { closeSync, existsSync, fdatasync, ftruncateSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Log } from '../../kit/log.ts'
import { randomAlphanumerics } from '../../kit/secret.ts'
import type { LedgerEntry } from '../../store/ledger/ledger-entry.ts'

export type Journal = {
  /** They survive a SIGKILL when it returns. How many were written: all, or none where the disk does not allow it. */
  write(entries: readonly LedgerEntry[]): number
  /** What was written survives a power cut when it resolves. Never rejects. */
  sync(): Promise<void>
  /** So many of the oldest entries are in the store or in the spool. */
  release(count: number): void
  /** Leaves what was not released to the next start. */
  close(): void
}

const syncData = promisify(fdatasync)

/** A file that is never released as a whole, since calls end all the time, is followed by another one. */
const SEGMENT_BYTES = 256_000

type Segment = { file: number; path: string; bytes: number; left: number; isSynced: boolean }

type JournalParts = { directory: string; now(): number; log: Log }

export function createJournal({ directory, now, log }: JournalParts): Journal {
  /** The oldest first; entries are added to the last one. */
  const segments: Segment[] = []
  let hasFailed = false

  function create(): Segment {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    const path = newSpoolPath(directory, now())
    const file = openSync(path, 'ax', 0o600)
    const segment = { file, path, bytes: 0, left: 0, isSynced: true }
    segments.push(segment)
    return segment
  }

  function put(segment: Segment, text: Buffer): void {
    let written = 0
    try {
      written = writeSync(segment.file, text)
      if (written < text.length) throw new Error(`${segment.path} could not be written: the disk is full.`)
      segment.bytes += written
    } catch (error) {
      // What was written of it must not run into the next entries.
      if (written > 0) ftruncateSync(segment.file, segment.bytes)
      throw error
    }
  }

  function add(entries: readonly LedgerEntry[]): void {
    const text = encodeEntries(entries)
    const last = segments.at(-1)
    let segment = last && last.bytes < SEGMENT_BYTES ? last : create()
    put(segment, text)
    if (!existsSync(segment.path)) {
      // Another process has taken the file to replay it, perhaps without these entries. Twice does no harm. Each time, since
      // clocks that differ, or are set, make a file look old that was just written to.
      segment = create()
      put(segment, text)
    }
    segment.left += entries.length
    segment.isSynced = false
  }

  /** Entries that are replayed although they are in the store change nothing: a failure here does no harm. */
  function remove(segment: Segment): void {
    segments.splice(segments.indexOf(segment), 1)
    try {
      closeSync(segment.file)
      rmSync(segment.path, { force: true })
    } catch {
      // The disk may have become read-only.
    }
  }

  function empty(segment: Segment): void {
    try {
      ftruncateSync(segment.file, 0)
      segment.bytes = 0
    } catch {
      remove(segment)
    }
  }

  /** Its entries may be released, and the file closed, meanwhile. */
  async function syncUnlessRemoved(segment: Segment): Promise<void> {
    if (!segments.includes(segment)) return
    await syncData(segment.file).catch((cause) => {
      if (segments.includes(segment)) throw cause
    })
  }

  return {
    write(entries) {
      if (entries.length === 0) return 0
      try {
        add(entries)
        hasFailed = false
        return entries.length
      } catch (cause) {
        if (!hasFailed) log.error('ledger entries wait in memory only: their journal could not be written', {}, cause)
        hasFailed = true
        return 0
      }
    },
    async sync() {
      const changed = segments.filter(({ isSynced, left }) => !isSynced && left > 0)
      if (changed.length === 0) return
      for (const segment of changed) segment.isSynced = true
      try {
        for (const segment of changed) await syncUnlessRemoved(segment)
        await syncDirectory(directory)
      } catch (cause) {
        for (const segment of changed) segment.isSynced = false
        log.error('the journal of the ledger could not be synced to the disk; will retry', {}, cause)
      }
    },
    release(count) {
      for (let rest = count; ; ) {
        const [oldest] = segments
        if (!oldest) return
        const released = Math.min(rest, oldest.left)
        oldest.left -= released
        rest -= released
        if (oldest.left > 0) return
        if (segments.length === 1) return oldest.bytes > 0 ? empty(oldest) : undefined
        remove(oldest)
      }
    },
    close() {
      for (const segment of [...segments]) {
        if (segment.left === 0) remove(segment)
        else closeSync(segment.file)
      }
      segments.length = 0
    },
  }
}

/** `journaled`: how many of the entries are in the journal. */
export type Journaled = { readonly entries: readonly LedgerEntry[]; journaled: number }

export function createJournalTurns(journal: Journal) {
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

  /** Writes what was added, now. */
  function write(): void {
    if (unwritten.length === 0) return
    const calls = unwritten
    unwritten = []
    const [first] = calls
    const entries = first && calls.length === 1 ? first.entries : calls.flatMap((call) => call.entries)
    if (journal.write(entries) > 0) for (const call of calls) call.journaled = call.entries.length
  }

  return {
    /** Resolves once they were written, at the end of this turn; the same promise for all of a turn. */
    add(call: Journaled): Promise<void> {
      unwritten.push(call)
      turn ??= new Promise(begin)
      return turn
    },
    write,
  }
}

/** Of the files of a spool, which a journal leaves to it. */
export const ENDING = '.entries'

/** In the order of time. */
export const newSpoolPath = (directory: string, now_ms: number): string =>
  join(directory, `${now_ms.toString(36).padStart(9, '0')}${randomAlphanumerics(12)}${ENDING}`)

export function encodeEntries(entries: readonly LedgerEntry[]): Buffer {
  let text = ''
  for (const entry of entries) text += `${JSON.stringify(entry)}\n`
  return Buffer.from(text)
}

/** So that a power cut does not lose the name of the new file. */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
