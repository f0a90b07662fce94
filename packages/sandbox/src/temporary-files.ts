/** Keeps rendered files until they are downloaded, in a temporary directory of this process. */
import { randomUUID } from 'node:crypto'
import { access, type FileHandle, mkdir, mkdtemp, open, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { GatewayError } from '../../../src/spec/error.ts'

export type TemporaryFiles = ReturnType<typeof createTemporaryFiles>

const PREFIX = 'gatehouse-sandbox-'
/** A killed process leaves its directory behind; nothing in it is of use for longer than this. */
const STALE_MILLISECONDS = 24 * 3_600_000
const READ_BYTES = 64 * 1024

export function createTemporaryFiles({ parent = tmpdir() }: { parent?: string } = {}) {
  let directory: Promise<string> | undefined

  async function createDirectory(): Promise<string> {
    await removeStale(parent)
    return mkdtemp(join(parent, PREFIX))
  }

  return {
    /** A new path in a new directory; other files in this directory are removed with it. */
    async reserve(name: string): Promise<string> {
      directory ??= createDirectory()
      // A failure is not cached: the next order tries again.
      directory.catch(() => {
        directory = undefined
      })
      const own = join(await directory, randomUUID())
      await mkdir(own)
      return join(own, name)
    },
    /** Never rejects: what cannot be removed now is removed with the whole directory. */
    remove: (path: string) => rm(dirname(path), { recursive: true, force: true }).catch(() => {}),
    async close() {
      const current = directory
      directory = undefined
      if (current) await rm(await current, { recursive: true, force: true })
    },
  }
}

async function removeStale(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    if (!name.startsWith(PREFIX)) continue
    const path = join(parent, name)
    const found = await stat(path).catch(() => undefined) // another process may be cleaning as well
    if (found && Date.now() - found.mtimeMs > STALE_MILLISECONDS) await rm(path, { recursive: true, force: true })
  }
}

/** The file's bytes, read on demand: the file is open from the first read to the end, or until `signal` is aborted. Throws `output_gone`. */
export async function streamFile(path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
  signal.throwIfAborted()
  await access(path).catch((cause) => {
    throw new GatewayError('output_gone', 'The sandbox no longer has the file.', { cause })
  })
  let file: FileHandle | undefined
  const close = () => file?.close()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        signal.throwIfAborted()
        if (!file) {
          file = await open(path, 'r')
          signal.addEventListener('abort', close, { once: true })
        }
        const { bytesRead, buffer } = await file.read(new Uint8Array(READ_BYTES), 0, READ_BYTES)
        if (bytesRead > 0) return controller.enqueue(buffer.subarray(0, bytesRead))
        signal.removeEventListener('abort', close)
        await close()
        controller.close()
      },
      cancel: close,
    },
    { highWaterMark: 0 },
  )
}
