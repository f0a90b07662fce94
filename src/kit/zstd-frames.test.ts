import { expect, test } from 'bun:test'
import { constants, zstdCompressSync } from 'node:zlib'
import { createZstdFrames } from './zstd-frames.ts'

const noise = (length: number) => Uint8Array.from({ length }, (_, at) => ((at * 7919) % 251) ^ (at >> 3))
const text = Buffer.from('zeros '.repeat(50_000))
const SKIPPABLE = Buffer.from([0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3])
const checked = { params: { [constants.ZSTD_c_checksumFlag]: 1 } }

function isWhole(bytes: Uint8Array, size = bytes.length): boolean {
  const frames = createZstdFrames()
  for (let at = 0; at < bytes.length; at += size) frames.push(bytes.subarray(at, at + size))
  return frames.isWhole()
}

test.each([
  ['nothing', Buffer.alloc(0)],
  ['an empty body', zstdCompressSync(Buffer.alloc(0))],
  ['a short text', zstdCompressSync(Buffer.from('short'))],
  ['a repetitive text', zstdCompressSync(text)],
  ['several blocks', zstdCompressSync(noise(600_000))],
  ['a checksum', zstdCompressSync(noise(5_000), checked)],
  ['two frames', Buffer.concat([zstdCompressSync(text), zstdCompressSync(Buffer.from('more'))])],
  ['a frame to skip', Buffer.concat([SKIPPABLE, zstdCompressSync(text)])],
])('%s is whole, however it is split, and not without its last byte', (_, bytes) => {
  for (const size of [bytes.length || 1, 1, 3, 1_000]) expect(isWhole(bytes, size)).toBe(true)
  if (bytes.length > 0) expect(isWhole(bytes.subarray(0, -1))).toBe(false)
})

test('a frame is whole at no place before its end', () => {
  const bytes = zstdCompressSync(noise(3_000), checked)
  for (let end = 1; end < bytes.length; end++) expect(isWhole(bytes.subarray(0, end))).toBe(false)
})
