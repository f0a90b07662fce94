/** Makes what was written to a file durable, beside the event loop: an `fsync` takes milliseconds. */
import { close, fdatasync, open } from 'node:fs'
import { promisify } from 'node:util'

export type DiskSync = {
  /** Resolves once all that was written to the file before the call is on the disk. Rejects where the disk refuses it. */
  sync(): Promise<void>
  close(): Promise<void>
}

type SyncFile = {
  open(path: string): Promise<number>
  sync(file: number): Promise<void>
  close(file: number): Promise<void>
}

const system: SyncFile = {
  open: (path) => promisify(open)(path, 'r'),
  sync: promisify(fdatasync),
  close: promisify(close),
}

/** The file is opened by the first call: it must not be replaced afterwards. */
export function createDiskSync(path: string, files: SyncFile = system): DiskSync {
  let file: Promise<number> | undefined

  /** Once, but again after a failure: for a moment, the process may have too many files open. */
  function opened(): Promise<number> {
    file ??= files.open(path).catch((cause) => {
      file = undefined
      throw cause
    })
    return file
  }

  return {
    async sync() {
      try {
        await files.sync(await opened())
      } catch (cause) {
        // As SQLite names it.
        throw Object.assign(new Error('The disk did not take a commit.', { cause }), { code: 'SQLITE_IOERR_FSYNC' })
      }
    },
    async close() {
      if (file) await files.close(await file)
    },
  }
}
