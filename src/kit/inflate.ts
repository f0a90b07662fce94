/** Decompresses a body chunk by chunk, and fails when it grows beyond a ratio. */
import { createBrotliDecompress, createUnzip, createZstdDecompress } from 'node:zlib'
import { createZstdFrames } from './zstd-frames.ts'

/** `node:zlib` stops while nobody reads, so at most a few chunks are in memory. */
const options = { chunkSize: 64 * 1024 }
const INFLATERS = {
  gzip: () => createUnzip(options),
  'x-gzip': () => createUnzip(options),
  deflate: () => createUnzip(options),
  br: () => createBrotliDecompress(options),
  zstd: () => createZstdDecompress(options),
}
export type Coding = keyof typeof INFLATERS

export const isCoding = (name: string): name is Coding => Object.hasOwn(INFLATERS, name)

/** JSON of models compresses to a twentieth; a ratio above a hundred is an attack on memory. */
export const MAX_RATIO = 100
/** Output that is allowed at any ratio: short repetitive texts, such as lists of zeros. */
export const FREE_BYTES = 1024 * 1024

/** A body that is invalid or too large. The message completes a sentence: `sent a body that ...`. */
export class InflateError extends Error {}

export type ByteReader = {
  read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>
  cancel(): Promise<void>
}

/** Errors of `source` are rethrown unchanged. */
export function inflate(source: ByteReader, coding: Coding): ByteReader {
  const inflater = INFLATERS[coding]()
  const pieces: AsyncIterator<Uint8Array> = inflater[Symbol.asyncIterator]()
  let received = 0
  let inflated = 0
  let failure: { thrown: unknown } | undefined
  let isFed = false
  const frames = coding === 'zstd' ? createZstdFrames() : undefined

  async function feed(): Promise<void> {
    try {
      for (;;) {
        const { done, value } = await source.read()
        if (inflater.destroyed) return
        if (done) break
        if (!value) continue
        received += value.length
        frames?.push(value)
        if (!inflater.write(value)) await drained()
      }
      if (frames?.isWhole() === false) throw new InflateError('ends early (content-encoding zstd)')
      inflater.end()
    } catch (thrown) {
      failure = { thrown }
      inflater.destroy()
    }
  }

  const drained = () =>
    new Promise<void>((resolve) => {
      inflater.once('drain', resolve)
      inflater.once('close', resolve)
    })

  async function cancel(): Promise<void> {
    inflater.destroy()
    await source.cancel()
  }

  return {
    cancel,
    async read() {
      if (!isFed) void feed()
      isFed = true
      try {
        const { done, value } = await pieces.next()
        if (failure) throw failure.thrown
        if (done) return { done: true }
        inflated += value.length
        if (inflated > FREE_BYTES && inflated > MAX_RATIO * received) {
          throw new InflateError(`grows to more than ${MAX_RATIO} times its size (content-encoding ${coding})`)
        }
        return { done: false, value }
      } catch (thrown) {
        inflater.destroy()
        if (failure) throw failure.thrown
        if (thrown instanceof InflateError) throw thrown
        throw new InflateError(`is not valid ${coding}, its content-encoding, or ends early`)
      }
    },
  }
}

export const NO_BODY: ByteReader = {
  read: () => Promise.resolve({ done: true, value: undefined }),
  cancel: () => Promise.resolve(),
}

/** The body after decompression. Throws InflateError for an unknown coding. */
export function decodedReader(body: { getReader(): ByteReader } | null, coding: string): ByteReader {
  if (!body) return NO_BODY
  if (isCoding(coding)) return inflate(body.getReader(), coding)
  throw new InflateError(`has the content-encoding "${coding.slice(0, 40)}", which was not requested`)
}
