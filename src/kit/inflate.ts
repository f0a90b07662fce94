/** Inflates a body that its sender compressed, piece by piece, and gives up on one that grows out of all proportion. */
import { createBrotliDecompress, createUnzip, createZstdDecompress } from 'node:zlib'

/** `node:zlib` stops inflating while nobody reads, so a few pieces at most are in memory. */
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

/** JSON of models compresses to a twentieth; what is above a hundredth was made to fill memory. */
export const MOST_RATIO = 100
/** So much may come of any number of bytes: short texts that repeat themselves, such as lists of zeros. */
export const FREE_BYTES = 1024 * 1024

/** What cannot be inflated, or is not worth it. The message completes a sentence: `sent a body that ...`. */
export class InflateError extends Error {}

export type ByteReader = {
  read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>
  cancel(): Promise<void>
}

/** A failure of `source` is thrown as it is. */
export function inflate(source: ByteReader, coding: Coding): ByteReader {
  const inflater = INFLATERS[coding]()
  const pieces: AsyncIterator<Uint8Array> = inflater[Symbol.asyncIterator]()
  let received = 0
  let inflated = 0
  let failure: { thrown: unknown } | undefined
  let isFed = false

  async function feed(): Promise<void> {
    try {
      for (;;) {
        const { done, value } = await source.read()
        if (inflater.destroyed) return
        if (done) break
        if (!value) continue
        received += value.length
        if (!inflater.write(value)) await drained()
      }
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
        if (inflated > FREE_BYTES && inflated > MOST_RATIO * received) {
          throw new InflateError(`grows to more than ${MOST_RATIO} times its size (content-encoding ${coding})`)
        }
        return { done: false, value }
      } catch (thrown) {
        inflater.destroy()
        if (failure) throw failure.thrown
        if (thrown instanceof InflateError) throw thrown
        throw new InflateError(`is no ${coding}, as its content-encoding says, or breaks off`)
      }
    },
  }
}
