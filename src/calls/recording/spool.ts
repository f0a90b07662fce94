/**
 * Entries on the local disk while the store is away: append-only files, replayed by this process or any later one, as are
 * the journals of processes that were killed.
 */
import { type FileHandle, mkdir, open, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { isRecord } from '../../kit/json.ts'
import { randomAlphanumerics } from '../../kit/secret.ts'
import type { LedgerEntry } from '../../store/ledger/ledger-entry.ts'
import { ENDING, encodeEntries, newSpoolPath, syncDirectory } from './journal.ts'

export type Spool = {
  /** On the disk when it resolves. Rejects, and has stored nothing, where the disk or the limit does not allow it. */
  append(entries: readonly LedgerEntry[]): Promise<void>
  /** Passes what is stored to `write`, in order, and deletes it afterwards. Rejects as `write` does; the rest then remains. */
  replay(write: (entries: LedgerEntry[]) => Promise<void>): Promise<void>
  /** Of this process. */
  bytes(): number
  /** Leaves the files to the next start. */
  close(): Promise<void>
}

type SpoolParts = {
  directory: string
  max_bytes: number
  now(): number
  /** A file, or a part of it, cannot be read. It is kept, and does not keep others from being replayed. */
  onUnreadable?: (path: string, cause: unknown) => void
}

/** Of files with lines that are not entries: for the operator. */
const DAMAGED = '.damaged'
/** In one transaction, as the ledger writes them. */
const ENTRIES_PER_WRITE = 500
/** A file that another process has just written to is left to it. Replaying it would do no harm: not if the clock was set, either. */
const QUIET_MILLISECONDS = 10_000

type OpenFile = { handle: FileHandle; path: string; bytes: number }

export function createSpool({ directory, max_bytes, now, onUnreadable = () => {} }: SpoolParts): Spool {
  let current: OpenFile | undefined
  let bytes = 0
  /** The files that this process has claimed. */
  const own = new Set<string>()
  /** Reported, and left to the next start. */
  const unreadable = new Set<string>()

  /** Appending, claiming and closing wait for each other: each may open or close the file. */
  let last: Promise<unknown> = Promise.resolve()

  function inOrder<T>(work: () => Promise<T>): Promise<T> {
    const mine = last.then(work)
    last = mine.catch(() => {})
    return mine
  }

  async function create(): Promise<OpenFile> {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    const path = newSpoolPath(directory, now())
    const handle = await open(path, 'wx', 0o600)
    await syncDirectory(directory)
    return { handle, path, bytes: 0 }
  }

  async function append(entries: readonly LedgerEntry[]): Promise<void> {
    const text = encodeEntries(entries)
    const isFull = () => bytes + text.length > max_bytes
    if (isFull() && current) await closeTaken(current)
    if (isFull()) {
      throw new Error(`The spool in ${directory} is full: ledger.spool_megabytes is ${max_bytes / 1_000_000}.`)
    }
    current ??= await create()
    const file = current
    try {
      await writeAt(file, text)
      await file.handle.datasync()
    } catch (error) {
      // What was written of it must not run into the next entries.
      await file.handle.truncate(file.bytes).catch(() => close(file))
      throw error
    }
    file.bytes += text.length
    bytes += text.length
    // The process that took the file may have read it without these entries. Twice does no harm.
    if (await closeTaken(file)) await append(entries)
  }

  /** Whether another process has taken the file to replay it: then it is not of this process any more. */
  async function closeTaken(file: OpenFile): Promise<boolean> {
    if (await exists(file.path)) return false
    bytes -= file.bytes
    await close(file)
    return true
  }

  /** Without another append the process would not notice. A file that is not replayed yet still counts. */
  async function leaveTaken(): Promise<void> {
    if (!current || (await exists(current.path))) return
    const time = timeIn(basename(current.path))
    const isLeft = (name: string) => timeIn(name) === time && !unreadable.has(name)
    if (!(await names(directory)).some(isLeft)) await close(current)
  }

  async function close(file: OpenFile): Promise<void> {
    if (current === file) current = undefined
    await file.handle.close().catch(() => {})
  }

  /** The new path of a file that no other process will delete; undefined: another one was faster. */
  async function claim(name: string): Promise<string | undefined> {
    const path = join(directory, name)
    const claimed = join(directory, `${timeIn(name)}${randomAlphanumerics(12)}${ENDING}`)
    try {
      const isOpen = current?.path === path
      const isOwn = own.delete(name) || isOpen
      if (isOpen && current) await close(current)
      if (!isOwn && Math.abs(now() - (await stat(path)).mtimeMs) < QUIET_MILLISECONDS) return undefined
      await rename(path, claimed)
      own.add(basename(claimed))
      await utimes(claimed, new Date(), new Date())
      return claimed
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
  }

  /** Undefined: it is another process's, or cannot be read. */
  async function read(name: string): Promise<(Read & { path: string }) | undefined> {
    let path: string | undefined
    try {
      path = await inOrder(() => claim(name))
      if (path === undefined) return undefined
      const found = await readEntries(path)
      if (found.isDamaged) onUnreadable(`${path}${DAMAGED}`, new Error('Some of its lines are not entries.'))
      return { path, ...found }
    } catch (cause) {
      unreadable.add(basename(path ?? name))
      onUnreadable(path ?? join(directory, name), cause)
      return undefined
    }
  }

  return {
    append: (entries) => inOrder(() => append(entries)),
    bytes: () => bytes,
    close: () =>
      inOrder(async () => {
        if (current) await close(current)
      }),
    async replay(write) {
      for (const name of await names(directory)) {
        const found = unreadable.has(name) ? undefined : await read(name)
        if (found === undefined) continue
        const { path, entries, isDamaged } = found
        for (let at = 0; at < entries.length; at += ENTRIES_PER_WRITE)
          await write(entries.slice(at, at + ENTRIES_PER_WRITE))
        if (isDamaged) await rename(path, `${path}${DAMAGED}`)
        else await rm(path, { force: true })
        own.delete(basename(path))
      }
      await inOrder(leaveTaken)
      bytes = current?.bytes ?? 0
    },
  }
}

/** Stays the same where another process takes the file. */
const timeIn = (name: string): string => name.slice(0, 9)

async function writeAt({ handle, bytes }: OpenFile, text: Buffer): Promise<void> {
  for (let done = 0; done < text.length; ) {
    const { bytesWritten } = await handle.write(text, done, text.length - done, bytes + done)
    done += bytesWritten
  }
}

type Read = { entries: LedgerEntry[]; isDamaged: boolean }

/** A line that was cut by a crash was never confirmed: it is the last one, and is left out. */
async function readEntries(path: string): Promise<Read> {
  const lines = (await readFile(path, 'utf8')).split('\n').slice(0, -1)
  const entries = lines.flatMap(entryIn)
  return { entries, isDamaged: entries.length < lines.length }
}

function entryIn(line: string): LedgerEntry[] {
  try {
    const entry: unknown = JSON.parse(line)
    return isRecord(entry) && typeof entry.entry_id === 'string' ? [entry as LedgerEntry] : []
  } catch {
    return []
  }
}

async function names(directory: string): Promise<string[]> {
  try {
    return (await readdir(directory)).filter((name) => name.endsWith(ENDING)).sort()
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )

const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT'
