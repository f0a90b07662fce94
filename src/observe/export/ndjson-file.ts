/** Appends lines of JSON to a file, which is replaced by a new one when it is large, and every day where that is asked for. */
import { appendFile, mkdir, open, readdir, rename, rm, stat, truncate } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

type NdjsonFileSettings = {
  path: string
  max_bytes: number
  /** Complete files that are kept beside the one that is written. */
  max_files: number
  daily: boolean
}

type NdjsonFile = {
  /** Rejects where not all lines could be written: then none of them is in the file. */
  append(lines: readonly string[]): Promise<void>
}

const LINE_FEED = 10
const DAY_MILLISECONDS = 86_400_000

/** `now`: unix milliseconds; a day begins at midnight, UTC. */
export function createNdjsonFile(
  { path, max_bytes, max_files, daily }: NdjsonFileSettings,
  now: () => number,
): NdjsonFile {
  let bytes: number | undefined
  let day = 0

  /** Of a file that an earlier process has written, or of a new one. */
  async function begin(): Promise<number> {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    const found = await stat(path).catch(ifMissing)
    day = dayOf(found?.mtimeMs ?? now())
    if (!found?.size) return 0
    // A process that was killed may have left a part of a line, which must not be merged with the next one.
    if (await isAtLineStart(path, found.size)) return found.size
    await appendFile(path, '\n')
    return found.size + 1
  }

  const dayOf = (ms: number) => Math.floor(ms / DAY_MILLISECONDS)

  const completeName = (ms: number) => `${path}.${new Date(ms).toISOString().replaceAll(/[-:]/g, '')}`

  async function rotate(): Promise<void> {
    let at = now()
    // Two within a millisecond, or after the clock was set back: none is overwritten.
    while (await stat(completeName(at)).catch(ifMissing)) at++
    await rename(path, completeName(at)).catch(ifMissing)
    const prefix = `${basename(path)}.`
    const complete = (await readdir(dirname(path))).filter(
      (name) => name.startsWith(prefix) && /^\d{8}T\d{6}\.\d{3}Z$/.test(name.slice(prefix.length)),
    )
    const surplus = complete.sort().slice(0, Math.max(0, complete.length - max_files))
    for (const name of surplus) await rm(join(dirname(path), name), { force: true })
  }

  return {
    async append(lines) {
      const text = Buffer.from(lines.map((line) => `${line}\n`).join(''))
      bytes ??= await begin()
      if (bytes > 0 && (bytes + text.length > max_bytes || (daily && dayOf(now()) !== day))) {
        await rotate()
        bytes = 0
      }
      if (bytes === 0) day = dayOf(now())
      const before = bytes
      try {
        await appendFile(path, text, { mode: 0o600 })
        bytes = before + text.length
      } catch (cause) {
        // A part of a line would be merged with the next one.
        bytes = undefined
        await truncate(path, before).catch(() => undefined)
        throw cause
      }
    },
  }
}

async function isAtLineStart(path: string, size: number): Promise<boolean> {
  const file = await open(path, 'r')
  try {
    const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1)
    return buffer[0] === LINE_FEED
  } finally {
    await file.close()
  }
}

function ifMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
