/** Writes and reads tar archives (POSIX ustar) as streams, so that memory does not grow with what they contain. */
import type { FileHandle } from 'node:fs/promises'

const BLOCK = 512
const CHUNK_BYTES = 1024 * 1024
/** What eleven octal digits can say; a larger size is written in binary, as GNU tar does. */
const MAX_OCTAL = 8 ** 11 - 1

/** The head of an entry; its content follows, then `padding` bytes. Throws where the name is too long. */
export function tarHead(name: string, size: number): Buffer {
  const head = Buffer.alloc(BLOCK)
  const [prefix, base] = splitName(name)
  head.write(base, 0, 100)
  head.write('0000600\0', 100)
  head.write('0000000\0', 108)
  head.write('0000000\0', 116)
  if (size <= MAX_OCTAL) head.write(`${size.toString(8).padStart(11, '0')}\0`, 124)
  else {
    head.writeUInt8(0x80, 124)
    head.writeBigUInt64BE(BigInt(size), 128)
  }
  head.write('00000000000\0', 136)
  head.write('        ', 148)
  head.write('0', 156)
  head.write('ustar\x0000', 257, 'latin1')
  head.write(prefix, 345, 155)
  head.write(`${sumOf(head).toString(8).padStart(6, '0')}\0 `, 148)
  return head
}

function splitName(name: string): [prefix: string, base: string] {
  if (Buffer.byteLength(name) <= 100) return ['', name]
  for (let at = name.indexOf('/'); at > 0; at = name.indexOf('/', at + 1)) {
    const [prefix, base] = [name.slice(0, at), name.slice(at + 1)]
    if (Buffer.byteLength(base) <= 100 && Buffer.byteLength(prefix) <= 155) return [prefix, base]
  }
  throw new Error(`The name ${JSON.stringify(name.slice(0, 80))}... is too long for an archive.`)
}

const sumOf = (head: Buffer): number => head.reduce((sum, byte) => sum + byte, 0)

/** Zeros up to the next block. */
export const tarPadding = (size: number): Buffer => Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK)

/** The last two blocks. */
export const TAR_END = Buffer.alloc(2 * BLOCK)

/** `at`: where its head begins. */
export type TarEntry = { name: string; size: number; at: number; content(): AsyncGenerator<Buffer> }

/** The entries in order; throws where the archive is cut short or is none. */
export async function* readTar(file: FileHandle): AsyncGenerator<TarEntry> {
  const { size: total } = await file.stat()
  for (let at = 0; ; ) {
    const head = await readExactly(file, at, BLOCK)
    if (head.every((byte) => byte === 0)) return
    const { name, size } = parseHead(head)
    const start = at + BLOCK
    const next = start + size + tarPadding(size).length
    if (next > total) throw new Error(CUT)
    yield { name, size, at, content: () => readRange(file, start, size) }
    at = next
  }
}

const CUT = 'it is cut short'

function parseHead(head: Buffer): { name: string; size: number } {
  const stored = Number.parseInt(head.toString('latin1', 148, 154), 8)
  const blank = Buffer.from(head).fill(' ', 148, 156)
  if (head.toString('latin1', 257, 262) !== 'ustar' || stored !== sumOf(blank))
    throw new Error('it is no archive, or damaged')
  const text = (from: number, length: number) => head.toString('utf8', from, from + length).replace(/\0.*$/s, '')
  const prefix = text(345, 155)
  const size =
    head[124] === 0x80 ? Number(head.readBigUInt64BE(128)) : Number.parseInt(head.toString('latin1', 124, 135), 8)
  return { name: prefix === '' ? text(0, 100) : `${prefix}/${text(0, 100)}`, size }
}

/** A part of a file, chunk by chunk. */
export async function* readRange(file: FileHandle, start: number, length: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < length; at += CHUNK_BYTES)
    yield await readExactly(file, start + at, Math.min(CHUNK_BYTES, length - at))
}

async function readExactly(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(length)
  for (let done = 0; done < length; ) {
    const { bytesRead } = await file.read(bytes, done, length - done, position + done)
    if (bytesRead === 0) throw new Error(CUT)
    done += bytesRead
  }
  return bytes
}
