/** Creates the outputs: where files are stored, how they are copied there, and the links to them. */
import type { OutputSettings } from '../config/config.ts'
import type { Clock } from '../kit/clock.ts'
import { codeOf, type GuardedFetch } from '../kit/guarded-fetch.ts'
import type { Log } from '../kit/log.ts'
import { GatewayError } from '../spec/error.ts'
import type { TaskOutput } from '../spec/task.ts'
import { checkFile, isInvalidFile } from './check-file.ts'
import { download, reset, tooLarge } from './download.ts'
import { createLinks } from './links.ts'
import type { FileStore, Outputs } from './outputs.ts'
import { createPartialFiles, type PartialFile } from './partial-files.ts'

type OutputsParts = {
  files: FileStore
  guardedFetch: GuardedFetch
  /** Signs links; the same for all processes of one store. */
  secret: string
  /** Read at each use: the configuration may change. */
  settings: () => Pick<OutputSettings, 'link_hours' | 'max_bytes'>
  /** The origin that serves files, if it is not the gateway's; also read at each use. */
  files_base_url?: () => string | undefined
  /** The directory of files that are being copied: `<data>/outputs/.partial`. Gateways on one machine may share it. */
  partial_directory: string
  /** Told of each file that was stored. */
  onStored?: ((content_type: string, bytes: number) => void) | undefined
  clock: Clock
  log: Log
  /** For tests: how many bytes are written between two syncs. */
  checkpoint_bytes?: number
}

type StoreOptions = { labels: (string | null | undefined)[]; signal: AbortSignal }

/** A copy that was not continued for this long is abandoned. */
const STALE_MILLISECONDS = 24 * 3600 * 1000

/** `removeLeftovers` removes files of copies that were interrupted at least a day ago; returns how many. */
export function createOutputs(parts: OutputsParts): Outputs & { removeLeftovers(): Promise<number> } {
  const { files, guardedFetch, secret, settings, clock, log } = parts
  const { partial_directory: directory, checkpoint_bytes } = parts
  const partials = createPartialFiles({
    directory,
    clock,
    ...(checkpoint_bytes === undefined ? {} : { checkpoint_bytes }),
  })

  /** Checks a complete file and moves it from this machine to the file store. If a second process does the same, the last one stays. */
  async function store(key: string, partial: PartialFile, { labels, signal }: StoreOptions): Promise<TaskOutput> {
    const content_type = await checkFile(partial, labels)
    const expected = partial.bytes
    const path = await partial.finish()
    const { bytes } = files.adopt
      ? await files.adopt(key, { content_type, path })
      : await files.write(key, { content_type, body: Bun.file(path).stream() }, signal)
    if (bytes !== expected) throw new Error(`Of ${expected} bytes, ${bytes} were stored.`)
    parts.onStored?.(content_type, bytes)
    return { key, content_type, bytes }
  }

  return {
    async copy(key, source, { until_ms, signal }) {
      const stored = await files.open(key)
      // Stored by a step whose outcome was lost: a file is visible only when it is complete.
      if (stored) return { done: true, output: { key, content_type: stored.content_type, bytes: stored.bytes } }
      const partial = await partials.take(key)
      const before = partial.bytes
      try {
        const { max_bytes } = settings()
        const isWhole = await download(partial, { source, max_bytes, until_ms, signal }, { guardedFetch, clock })
        if (!isWhole) {
          await partial.release()
          return { done: false, bytes: partial.bytes }
        }
        // For a 3D model the provider reports the format; file servers rarely know it, and call it text or an archive.
        const labels = [source.content_type, partial.source?.content_type, source.family_type]
        const output = await store(key, partial, { labels, signal })
        await partial.drop()
        return { done: true, output }
      } catch (thrown) {
        log.warn('output not copied', {
          key,
          received: partial.bytes - before,
          bytes: partial.bytes,
          error: codeOf(thrown),
        })
        // A broken file must come again from its start.
        await (isInvalidFile(thrown) ? partial.drop() : partial.release()).catch(() => {})
        throw thrown
      }
    },
    async keep(key, file, signal) {
      const partial = await partials.take(key)
      try {
        if (partial.bytes > 0) await reset(partial)
        await receiveAll(partial, file.body, { max_bytes: settings().max_bytes, signal })
        return await store(key, partial, { labels: [file.content_type], signal })
      } finally {
        await partial.drop()
      }
    },
    open: (key) => files.open(key),
    remove: (key) => files.remove(key),
    ...createLinks({ clock, secret, link_hours: () => settings().link_hours, files_base_url: parts.files_base_url }),
    async removeLeftovers() {
      const before_ms = clock.now() - STALE_MILLISECONDS
      return (await partials.removeLeftovers(before_ms)) + ((await files.removeLeftovers?.(before_ms)) ?? 0)
    },
  }
}

type Limits = { max_bytes: number; signal: AbortSignal }

/** Writes a stream to the partial file. Fails if the stream is larger than allowed, or empty. */
async function receiveAll(partial: PartialFile, body: ReadableStream<Uint8Array>, { max_bytes, signal }: Limits) {
  const reader = body.getReader()
  const leave = () => void reader.cancel(signal.reason).catch(() => {})
  signal.addEventListener('abort', leave, { once: true })
  try {
    for (;;) {
      signal.throwIfAborted()
      const { done, value } = await reader.read()
      signal.throwIfAborted()
      if (done) break
      if (partial.bytes + value.length > max_bytes) throw tooLarge(max_bytes)
      await partial.append(value)
    }
    if (partial.bytes === 0) throw new GatewayError('bad_upstream_response', "The provider's file is empty.")
  } catch (thrown) {
    await reader.cancel(thrown).catch(() => {})
    throw thrown
  } finally {
    signal.removeEventListener('abort', leave)
  }
}
