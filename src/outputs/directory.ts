/** Stores files in a directory: written to a temporary file, synced to the disk, and only then renamed. */
import { randomBytes } from 'node:crypto'
import { chmod, mkdir, open, readdir, readFile, rename, rm, rmdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type ByteRange, checkKey, type FileStore } from './outputs.ts'

/** Keys never begin with a dot, so no request can reach these files. */
const WRITING = '.writing'
/** Keys contain no `~`, so the type of a file never collides with another file. */
const TYPE = '~type'
/** A block of the disk: less may fit where a file does not. */
const PING = new Uint8Array(4_096)

export function createDirectory({ directory }: { directory: string }): FileStore {
  const pathOf = (key: string) => join(directory, checkKey(key))

  async function temporary(): Promise<string> {
    await mkdir(join(directory, WRITING), { recursive: true, mode: 0o700 })
    return join(directory, WRITING, randomBytes(12).toString('hex'))
  }

  async function writeText(path: string, text: string): Promise<void> {
    const temporary_path = await temporary()
    await writeStream(temporary_path, new Blob([text]).stream(), undefined)
    await rename(temporary_path, path)
  }

  /** Writes the type first, so that a visible file always has one. */
  async function place(key: string, from: string, content_type: string): Promise<{ bytes: number }> {
    const path = pathOf(key)
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await writeText(`${path}${TYPE}`, content_type)
    await rename(from, path)
    await syncDirectory(dirname(path))
    return { bytes: (await stat(path)).size }
  }

  return {
    async open(key) {
      const path = pathOf(key)
      const found = await unlessAbsent(stat(path))
      if (!found?.isFile()) return undefined
      const content_type = (await unlessAbsent(readFile(`${path}${TYPE}`, 'utf8'))) ?? 'application/octet-stream'
      return {
        content_type,
        bytes: found.size,
        version: `${found.size.toString(16)}-${Math.round(found.mtimeMs).toString(16)}`,
        body: (range) => readStream(path, range),
      }
    },
    async write(key, file, signal) {
      checkKey(key)
      const temporary_path = await temporary()
      try {
        await writeStream(temporary_path, file.body, signal)
        return await place(key, temporary_path, file.content_type)
      } catch (thrown) {
        await rm(temporary_path, { force: true })
        throw thrown
      }
    },
    async adopt(key, file) {
      checkKey(key)
      const temporary_path = await temporary()
      try {
        await rename(file.path, temporary_path)
      } catch (thrown) {
        if (!hasCode(thrown, 'EXDEV')) throw thrown
        // On another disk: it must be copied.
        await writeStream(temporary_path, readStream(file.path), undefined)
        await rm(file.path, { force: true })
      }
      await chmod(temporary_path, 0o600)
      return place(key, temporary_path, file.content_type)
    },
    async ping() {
      const path = await temporary()
      try {
        await writeStream(path, new Blob([PING]).stream(), undefined)
      } finally {
        await rm(path, { force: true })
      }
    },
    async remove(key) {
      const path = pathOf(key)
      await rm(path, { force: true })
      await rm(`${path}${TYPE}`, { force: true })
      // The directory of the key is removed with its last file.
      if (dirname(path) !== directory) await rmdir(dirname(path)).catch(() => {})
    },
    async removeLeftovers(before_ms) {
      let removed = 0
      for (const name of (await unlessAbsent(readdir(join(directory, WRITING)))) ?? []) {
        const path = join(directory, WRITING, name)
        const found = await unlessAbsent(stat(path))
        if (!found || found.mtimeMs >= before_ms) continue
        await rm(path, { force: true })
        removed++
      }
      return removed
    },
  }
}

/** Chunk by chunk, each written before the next is read; synced to the disk when it resolves. */
async function writeStream(
  path: string,
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const handle = await open(path, 'wx', 0o600)
  const reader = body.getReader()
  const leave = () => void reader.cancel(signal?.reason).catch(() => {})
  signal?.addEventListener('abort', leave, { once: true })
  try {
    for (;;) {
      signal?.throwIfAborted()
      const { done, value } = await reader.read()
      signal?.throwIfAborted()
      if (done) break
      for (let rest = value; rest.length > 0; ) rest = rest.subarray((await handle.write(rest)).bytesWritten)
    }
    await handle.sync()
  } catch (thrown) {
    await reader.cancel(thrown).catch(() => {})
    throw thrown
  } finally {
    signal?.removeEventListener('abort', leave)
    await handle.close()
  }
}

/** Read on demand, and to its end even if the file is replaced meanwhile. */
function readStream(path: string, range?: ByteRange): ReadableStream<Uint8Array> {
  const file = Bun.file(path)
  return (range ? file.slice(range.first, range.last + 1) : file).stream()
}

/** Makes the new name survive a crash of the machine. */
async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

const hasCode = (thrown: unknown, code: string) => thrown instanceof Error && 'code' in thrown && thrown.code === code

async function unlessAbsent<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (thrown) {
    if (hasCode(thrown, 'ENOENT') || hasCode(thrown, 'ENOTDIR')) return undefined
    throw thrown
  }
}
