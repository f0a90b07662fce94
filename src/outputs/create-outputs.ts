/** Creates the outputs: where files are stored, how they are copied there, and the links to them. */
import type { OutputSettings } from '../config/config.ts'
import type { Clock } from '../kit/clock.ts'
import { typeOfFile } from '../kit/file-type.ts'
import type { GuardedFetch } from '../kit/guarded-fetch.ts'
import type { Log } from '../kit/log.ts'
import { SNIFF_BYTES } from '../kit/sniff.ts'
import { GatewayError } from '../spec/error.ts'
import type { TaskOutput } from '../spec/task.ts'
import { contentTypeOf, download } from './download.ts'
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
  clock: Clock
  log: Log
  /** For tests: how many bytes are written between two syncs. */
  checkpoint_bytes?: number
}

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

  /** Moves a complete file from this machine to the file store. If a second process does the same, the last one stays. */
  async function store(key: string, partial: PartialFile, file: { content_type: string; signal: AbortSignal }) {
    const { content_type, signal } = file
    const path = await partial.finish()
    if (files.adopt) return files.adopt(key, { content_type, path })
    return files.write(key, { content_type, body: Bun.file(path).stream() }, signal)
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
        const content_type = await contentTypeOf(partial, source)
        const expected = partial.bytes
        const { bytes } = await store(key, partial, { content_type, signal })
        if (bytes !== expected) throw new Error(`Of ${expected} bytes, ${bytes} were stored.`)
        await partial.drop()
        return { done: true, output: { key, content_type, bytes } }
      } catch (thrown) {
        log.warn('output not copied', {
          key,
          received: partial.bytes - before,
          bytes: partial.bytes,
          error: codeOf(thrown),
        })
        await partial.release().catch(() => {})
        throw thrown
      }
    },
    async keep(key, file, signal) {
      const { max_bytes } = settings()
      const { first, body } = await readStart(file.body.pipeThrough(limitTo(max_bytes)))
      const content_type = typeOfFile(first, file.content_type)
      const { bytes } = await files.write(key, { content_type, body }, signal)
      return { key, content_type, bytes } satisfies TaskOutput
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

/** The first bytes of a stream, and a stream that still contains them. */
async function readStart(stream: ReadableStream<Uint8Array>) {
  const reader = stream.getReader()
  const pieces: Uint8Array[] = []
  let length = 0
  while (length < SNIFF_BYTES) {
    const { done, value } = await reader.read()
    if (done) break
    pieces.push(value)
    length += value.length
  }
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const piece = pieces.shift() ?? (await reader.read()).value
        if (piece) controller.enqueue(piece)
        else controller.close()
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
  return { first: new Uint8Array(Buffer.concat(pieces)), body }
}

/** Fails if the stream is larger than allowed, or empty. */
function limitTo(max_bytes: number): TransformStream<Uint8Array, Uint8Array> {
  let bytes = 0
  return new TransformStream({
    transform(chunk, controller) {
      bytes += chunk.length
      if (bytes > max_bytes) {
        throw new GatewayError('output_refused', `The provider's file is larger than the allowed ${max_bytes} bytes.`)
      }
      controller.enqueue(chunk)
    },
    flush() {
      if (bytes === 0) throw new GatewayError('bad_upstream_response', "The provider's file is empty.")
    },
  })
}

function codeOf(thrown: unknown): string {
  const code = typeof thrown === 'object' && thrown !== null && 'code' in thrown ? thrown.code : undefined
  return typeof code === 'string' ? code : thrown instanceof Error ? thrown.name : 'unknown'
}
