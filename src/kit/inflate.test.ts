import { describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { type ByteReader, type Coding, FREE_BYTES, InflateError, inflate, isCoding, MAX_RATIO } from './inflate.ts'

const COMPRESS: Record<Coding, (bytes: Uint8Array) => Uint8Array> = {
  gzip: gzipSync,
  'x-gzip': gzipSync,
  deflate: deflateSync,
  br: (bytes) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
  zstd: zstdCompressSync,
}
const CODINGS = Object.entries(COMPRESS) as [Coding, (bytes: Uint8Array) => Uint8Array][]

/** A source that hands out pieces, and says how many were asked for. */
function sourceOf(pieces: Uint8Array[]): ByteReader & { taken(): number; isCanceled(): boolean } {
  let at = 0
  let canceled = false
  return {
    taken: () => at,
    isCanceled: () => canceled,
    read: async () => (at < pieces.length ? { done: false, value: pieces[at++] } : { done: true }),
    cancel: async () => {
      canceled = true
    },
  }
}

const cut = (bytes: Uint8Array, size: number) =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size))

async function readAll(reader: ByteReader): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  for (let read = await reader.read(); !read.done; read = await reader.read()) if (read.value) pieces.push(read.value)
  return Buffer.concat(pieces)
}

/** Bytes that do not compress: the same in every run. */
function noise(bytes: number): Buffer {
  const pieces = Array.from({ length: Math.ceil(bytes / 32) }, (_, at) => createHash('sha256').update(`${at}`).digest())
  return Buffer.concat(pieces).subarray(0, bytes)
}

for (const [coding, compress] of CODINGS) {
  describe(`inflate of ${coding}`, () => {
    test('returns the original data when the input is cut at any byte', async () => {
      const text = Buffer.from('{"a":"Grüße 😀"}'.repeat(20))
      const compressed = compress(text)
      for (const size of [1, 7, compressed.length]) {
        expect(await readAll(inflate(sourceOf(cut(compressed, size)), coding))).toEqual(text)
      }
    })

    test('returns nothing for an empty body', async () => {
      expect(await readAll(inflate(sourceOf([compress(new Uint8Array())]), coding))).toHaveLength(0)
    })

    test(`allows ${FREE_BYTES} bytes at any ratio, and a ratio of 100 beyond`, async () => {
      expect(await readAll(inflate(sourceOf([compress(Buffer.alloc(FREE_BYTES))]), coding))).toHaveLength(FREE_BYTES)
      const within = Buffer.concat([noise(64 * 1024), Buffer.alloc(64 * 1024 * MAX_RATIO * 0.9)])
      expect((await readAll(inflate(sourceOf([compress(within)]), coding))).length).toBe(within.length)
      const over = Buffer.concat([noise(64 * 1024), Buffer.alloc(64 * 1024 * MAX_RATIO * 1.3)])
      await expect(readAll(inflate(sourceOf([compress(over)]), coding))).rejects.toThrow(InflateError)
    })

    test('decompresses only as far as it is read', async () => {
      const bomb = compress(Buffer.alloc(64 * 1024 * 1024))
      const reader = inflate(sourceOf([bomb]), coding)
      let size = 0
      const failing = (async () => {
        for (let read = await reader.read(); !read.done; read = await reader.read()) size += read.value?.length ?? 0
      })()
      await expect(failing).rejects.toThrow('grows to more than 100 times its size')
      expect(size).toBeLessThanOrEqual(Math.max(FREE_BYTES, MAX_RATIO * bomb.length))
    })

    test('rejects an invalid and a truncated body', async () => {
      await expect(readAll(inflate(sourceOf([Buffer.from('{"a":1}')]), coding))).rejects.toThrow(InflateError)
      const half = compress(noise(5_000)).subarray(0, 2_500)
      await expect(readAll(inflate(sourceOf([half]), coding))).rejects.toThrow(InflateError)
    })

    test('rethrows an error of its source', async () => {
      const failure = new Error('The connection is lost.')
      const [first] = cut(compress(noise(5_000)), 2_500)
      let reads = 0
      const source: ByteReader = {
        read: async () => {
          if (reads++ > 0) throw failure
          return { done: false, value: first }
        },
        cancel: async () => {},
      }
      await expect(readAll(inflate(source, coding))).rejects.toBe(failure)
    })
  })
}

test('cancels its source when it is canceled', async () => {
  const source = sourceOf(cut(gzipSync(noise(100_000)), 100))
  const reader = inflate(source, 'gzip')
  await reader.read()
  await reader.cancel()
  expect(source.isCanceled()).toBe(true)
  expect(source.taken()).toBeLessThan(1_000)
})

test('accepts only the codings of HTTP, no members of Object.prototype', () => {
  expect(['gzip', 'x-gzip', 'deflate', 'br', 'zstd'].every(isCoding)).toBe(true)
  expect(['identity', 'compress', '', 'toString', '__proto__', 'gzip, br'].some(isCoding)).toBe(false)
})
