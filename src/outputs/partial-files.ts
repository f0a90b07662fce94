/** Partial files: the received bytes of files that are being copied, stored locally so that a copy can resume. */
import { createHash, randomBytes } from 'node:crypto'
import {
  constants,
  copyFile,
  type FileHandle,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  truncate,
  utimes,
} from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '../kit/clock.ts'

/** Identifies the file, to tell whether it is still the same when it is requested again. */
export type PartialSource = {
  /** SHA-256 of the URL without its query, which may be signed anew each time. */
  address: string
  etag: string | null
  last_modified: string | null
  total: number | null
  content_type: string | null
}

export type PartialFile = {
  /** Undefined: nothing was received. */
  source: PartialSource | undefined
  bytes: number
  /** Discards the received bytes and starts with another source. */
  begin(source: PartialSource): Promise<void>
  append(bytes: Uint8Array): Promise<void>
  /** The file is complete: syncs it to the disk and returns its path. */
  finish(): Promise<string>
  /** Fewer bytes at the end of the file. */
  read(at: number, length: number): Promise<Uint8Array>
  /** Leaves it for the next process that takes it. */
  release(): Promise<void>
  drop(): Promise<void>
}

type PartialFiles = {
  /** Takes the partial file of this key, or creates one. Two processes never write into the same file. */
  take(key: string): Promise<PartialFile>
  /** Removes partial files that were not modified since that time; returns how many. */
  removeLeftovers(before_ms: number): Promise<number>
}

type PartialsParts = {
  directory: string
  clock: Clock
  /** The file is synced after this many bytes: at most so much is lost when the machine crashes. */
  checkpoint_bytes?: number
}

const CHECKPOINT_BYTES = 8 * 1024 * 1024
/** A copying process writes, or gives up after a minute without data. After twice that time it has stopped copying. */
const ABANDONED_MILLISECONDS = 120_000

export function createPartialFiles({
  directory,
  clock,
  checkpoint_bytes = CHECKPOINT_BYTES,
}: PartialsParts): PartialFiles {
  const nameOf = (key: string) => createHash('sha256').update(key).digest('hex').slice(0, 40)
  const at = (name: string, file = '') => join(directory, name, file)

  /** Whether the process that holds a partial file has certainly stopped writing to it. */
  async function isAbandoned(name: string): Promise<boolean> {
    const [, host, pid, started] = /@([^~]*)~(\d+)~(\d+)~/.exec(name) ?? []
    if (host === hostName()) {
      if (Number(pid) === process.pid) return started !== processStart()
      if (!isRunning(Number(pid))) return true
    }
    const touched = await stat(at(name, 'data')).catch(() => undefined)
    return (touched?.mtimeMs ?? 0) < clock.now() - ABANDONED_MILLISECONDS
  }

  /**
   * After a crash: the last bytes may never have reached the disk, so only synced bytes count. They are copied to a new
   * file, so that a process that was only slow keeps writing to a file that no one reads.
   */
  async function takeAbandoned(key: string, mine: string): Promise<boolean> {
    const names = await readdir(directory).catch(() => [])
    for (const name of names.filter((entry) => entry.startsWith(`${nameOf(key)}@`))) {
      if (!(await isAbandoned(name)) || !(await moved(at(name), at(mine)))) continue
      const size = await stat(at(mine, 'data')).then(
        ({ size }) => size,
        () => 0,
      )
      const safe = Math.floor(Math.max(0, size - 1) / checkpoint_bytes) * checkpoint_bytes
      if (safe === 0) {
        await rm(at(mine), { recursive: true, force: true })
        return false
      }
      await copyFile(at(mine, 'data'), at(mine, 'copy'))
      await truncate(at(mine, 'copy'), safe)
      await rename(at(mine, 'copy'), at(mine, 'data'))
      return true
    }
    return false
  }

  return {
    async take(key) {
      await mkdir(directory, { recursive: true, mode: 0o700 })
      const mine = `${nameOf(key)}@${hostName()}~${process.pid}~${processStart()}~${randomBytes(8).toString('hex')}`
      const found = (await moved(at(`${nameOf(key)}.ready`), at(mine))) || (await takeAbandoned(key, mine))
      if (!found) await mkdir(at(mine), { mode: 0o700 })
      return openPartial({ path: at(mine), ready: at(`${nameOf(key)}.ready`), checkpoint_bytes })
    },
    async removeLeftovers(before_ms) {
      let removed = 0
      for (const name of await readdir(directory).catch(() => [])) {
        const touched =
          (await stat(at(name, 'data')).catch(() => undefined)) ?? (await stat(at(name)).catch(() => undefined))
        if (touched === undefined || touched.mtimeMs >= before_ms) continue
        await rm(at(name), { recursive: true, force: true })
        removed++
      }
      return removed
    },
  }
}

type OpenParts = { path: string; ready: string; checkpoint_bytes: number }

async function openPartial({ path, ready, checkpoint_bytes }: OpenParts): Promise<PartialFile> {
  const data = join(path, 'data')
  const about = join(path, 'source.json')
  const source = await readSource(about)
  let handle: FileHandle | undefined = await open(data, constants.O_RDWR | constants.O_CREAT, 0o600)
  const isOpen = () => {
    if (!handle) throw new Error('The partial file was released.')
    return handle
  }
  const close = async () => {
    const closing = handle
    handle = undefined
    await closing?.close()
  }
  const partial: PartialFile = {
    source,
    bytes: (await handle.stat()).size,
    async begin(next) {
      await isOpen().truncate(0)
      await writeSafely(about, JSON.stringify(next))
      partial.source = next
      partial.bytes = 0
    },
    async append(bytes) {
      while (bytes.length > 0) {
        const until_checkpoint = checkpoint_bytes - (partial.bytes % checkpoint_bytes)
        const { bytesWritten } = await isOpen().write(bytes, 0, Math.min(until_checkpoint, bytes.length), partial.bytes)
        partial.bytes += bytesWritten
        bytes = bytes.subarray(bytesWritten)
        if (bytesWritten === until_checkpoint) await isOpen().datasync()
      }
    },
    async read(at, length) {
      const bytes = new Uint8Array(length)
      const { bytesRead } = await isOpen().read(bytes, 0, length, at)
      return bytes.subarray(0, bytesRead)
    },
    async finish() {
      await isOpen().sync()
      await close()
      return data
    },
    async release() {
      if (partial.bytes === 0 || !partial.source) return partial.drop()
      await handle?.sync()
      await close()
      // Counts as modified now, for `removeLeftovers`.
      const now = new Date()
      await utimes(data, now, now).catch(() => {})
      if (await moved(path, ready)) return
      // Another process left one in the meantime: one of them is enough.
      await rm(path, { recursive: true, force: true })
    },
    async drop() {
      await close()
      await rm(path, { recursive: true, force: true })
    },
  }
  return partial
}

/** An unreadable file counts as absent: the copy starts again. */
async function readSource(path: string): Promise<PartialSource | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as PartialSource
  } catch {
    return undefined
  }
}

async function writeSafely(path: string, text: string): Promise<void> {
  const handle = await open(`${path}.new`, 'w', 0o600)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await rename(`${path}.new`, path)
}

/** False if the source is missing or the target exists: another process was first. */
async function moved(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to)
    return true
  } catch (thrown) {
    const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined
    if (code === 'ENOENT' || code === 'ENOTEMPTY' || code === 'EEXIST') return false
    throw thrown
  }
}

const hostName = () => hostname().replace(/[^A-Za-z0-9.-]/g, '_')

/** Distinguishes a process from an earlier one with the same id, as in a restarted container. */
const processStart = () => String(Math.round(performance.timeOrigin))

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (thrown) {
    // The process exists but belongs to another user.
    return thrown instanceof Error && 'code' in thrown && thrown.code === 'EPERM'
  }
}
