/** Makes what was written to a file durable, beside the event loop: an `fsync` takes milliseconds. */
import { close, closeSync, fdatasync, open, openSync, readSync, writeSync } from 'node:fs'
import { promisify } from 'node:util'

type DiskSync = {
  /** Resolves once all that was written to the file before the call is on the disk. Rejects where the disk refuses it. */
  sync(): Promise<void>
  /** Whether something that was written before may be missing on the disk, although a later sync succeeds. */
  mayHaveGap(): boolean
  close(): Promise<void>
}

export type SyncFile = {
  open(path: string): Promise<number>
  sync(file: number): Promise<void>
  /** Writes what the file contains once more, so that the next sync has all of it to write. */
  rewrite(path: string): void
  close(file: number): Promise<void>
}

const system: SyncFile = {
  open: (path) => promisify(open)(path, 'r'),
  sync: promisify(fdatasync),
  rewrite: rewriteFile,
  close: promisify(close),
}

type Parts = {
  /** Runs the work while no process writes to the file; rejects where that cannot be now. */
  holdWriteLock(work: () => void): Promise<void>
  files?: SyncFile | undefined
}

/** The file is opened by the first call: it must not be replaced afterwards. One call at a time. */
export function createDiskSync(path: string, { holdWriteLock, files = system }: Parts): DiskSync {
  let file: Promise<number> | undefined
  /**
   * A sync has failed. Linux marks what it could not write as written: without a rewrite, the next sync succeeds without it.
   * At first, an earlier process may have left such a gap: Linux reports an error only to those that had the file open.
   */
  let may_have_gap = true

  /** Once, but again after a failure: for a moment, the process may have too many files open. */
  function opened(): Promise<number> {
    file ??= files.open(path).catch((cause) => {
      file = undefined
      throw cause
    })
    return file
  }

  async function syncAll(): Promise<void> {
    const descriptor = await opened()
    if (may_have_gap) await holdWriteLock(() => files.rewrite(path))
    await files.sync(descriptor).catch((cause) => {
      may_have_gap = true
      throw cause
    })
    may_have_gap = false
  }

  return {
    async sync() {
      try {
        await syncAll()
      } catch (cause) {
        // At once, since other processes may write behind the gap, too. If it fails, the next call tries it again.
        if (may_have_gap) await syncAll().catch(() => {})
        // As SQLite names it.
        throw Object.assign(new Error('The disk did not take a commit.', { cause }), { code: 'SQLITE_IOERR_FSYNC' })
      }
    },
    mayHaveGap: () => may_have_gap,
    async close() {
      if (file) await files.close(await file)
    },
  }
}

const REWRITE_BYTES = 1024 * 1024

export function rewriteFile(path: string): void {
  const file = openSync(path, 'r+')
  try {
    const part = Buffer.allocUnsafe(REWRITE_BYTES)
    for (let at = 0; ; ) {
      const length = readSync(file, part, 0, part.length, at)
      if (length === 0) return
      for (let done = 0; done < length; ) done += writeSync(file, part, done, length - done, at + done)
      at += length
    }
  } finally {
    closeSync(file)
  }
}
