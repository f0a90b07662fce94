/** Checks that a file is complete, by the sizes and the end marks of its own format: it reads few bytes and decodes nothing. */
import { SNIFF_BYTES, sniff } from './sniff.ts'

/** A file as it is read at any place. `read` returns fewer bytes at the end of the file. */
type ReadableFile = { size: number; read(at: number, length: number): Promise<Uint8Array> }

/**
 * The parts (boxes, chunks, segments) that one check visits: a PNG of 64 MiB in chunks of 8 KiB has 8,192. A file with
 * more parts counts as complete, so that a strange but valid file is not lost.
 */
const MAX_PARTS = 20_000
/** An end mark is searched in this many bytes, since some encoders append data to the file. */
const TAIL_BYTES = 64 * 1024

export const readableBytes = (bytes: Uint8Array): ReadableFile => ({
  size: bytes.length,
  read: async (at, length) => bytes.subarray(at, at + length),
})

/** What is wrong with the file, as the end of a sentence; undefined: nothing that its structure shows. */
export async function structureFault(file: ReadableFile): Promise<string | undefined> {
  const first = await file.read(0, SNIFF_BYTES)
  if (textOf(first, 0, 4) === 'PK\x03\x04') return zipFault(file)
  const type = sniff(first)
  return type === undefined ? undefined : CHECKS[type]?.(file)
}

type Check = (file: ReadableFile) => Promise<string | undefined>

const CHECKS: { [type: string]: Check } = {
  'video/mp4': movieFault,
  'video/quicktime': movieFault,
  'audio/mp4': movieFault,
  'image/avif': async (file) => (await readBoxes(file)).fault,
  'image/heic': async (file) => (await readBoxes(file)).fault,
  'video/webm': matroskaFault,
  'video/x-matroska': matroskaFault,
  'model/gltf-binary': gltfFault,
  'image/png': pngFault,
  'image/jpeg': jpegFault,
  'image/gif': gifFault,
  'image/webp': riffFault,
  'audio/wav': riffFault,
}

const textOf = (bytes: Uint8Array, at: number, length: number) =>
  String.fromCharCode(...bytes.subarray(at, at + length))
const viewOf = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
const cutIn = (part: string) => `it ends in the middle of ${part}`

/** Movies need their index (`moov`) and their media: `mdat`, or fragments (`moof`), which have an `mdat` each. */
async function movieFault(file: ReadableFile): Promise<string | undefined> {
  const { fault, types } = await readBoxes(file)
  if (fault !== undefined) return fault
  return ['moov', 'mdat'].filter((type) => !types.has(type)).map((type) => `it has no "${type}" box`)[0]
}

/** The boxes of an ISO base media file (ISO 14496-12, section 4.2) follow each other up to the end of the file. */
async function readBoxes({ size, read }: ReadableFile): Promise<{ fault?: string; types: Set<string> }> {
  const types = new Set<string>()
  let at = 0
  for (let parts = 0; at < size && parts < MAX_PARTS; parts++) {
    const head = await read(at, 16)
    const type = textOf(head, 4, 4)
    // After the media some programs append bytes that are no box.
    if (types.has('mdat') && types.has('moov') && !/^[\w\xa9 -]{4}$/.test(type)) break
    if (head.length < 8) return { fault: cutIn('the head of a box'), types }
    const short = viewOf(head).getUint32(0)
    // 0: the box extends to the end of the file; 1: the size follows in 64 bits.
    if (short === 1 && head.length < 16) return { fault: cutIn('the head of a box'), types }
    const length = short === 0 ? size - at : short === 1 ? Number(viewOf(head).getBigUint64(8)) : short
    if (length < 8) return { fault: 'it has a box of an impossible size', types }
    if (at + length > size) return { fault: cutIn(`its "${printable(type)}" box`), types }
    types.add(type)
    at += length
  }
  return { types }
}

const printable = (text: string) => text.replace(/[^\x20-\x7e]/g, '?')

/** A segment of known length fits into the file (RFC 8794, section 4). Live recordings have one of unknown length. */
async function matroskaFault({ size, read }: ReadableFile): Promise<string | undefined> {
  const header = await readElementSize({ size, read }, 4)
  if (header === undefined || header.length === undefined) return cutIn('its header')
  const at = header.end + header.length
  const id = textOf(await read(at, 4), 0, 4)
  if (id !== '\x18S\x80g') return 'it has no segment'
  const segment = await readElementSize({ size, read }, at + 4)
  if (segment === undefined) return cutIn('the head of its segment')
  if (segment.length === undefined) return size > segment.end ? undefined : 'its segment is empty'
  return segment.end + segment.length > size ? cutIn('its segment') : undefined
}

/** A size of 1 to 8 bytes: the first set bit says how many; all other bits set means unknown (RFC 8794, section 6). */
async function readElementSize({ read }: ReadableFile, at: number) {
  const bytes = await read(at, 8)
  const count = Math.clz32(bytes[0] ?? 0) - 23
  if (count > 8 || bytes.length < count) return undefined
  const value = bytes.subarray(1, count).reduce((sum, byte) => sum * 256 + byte, (bytes[0] ?? 0) & (0xff >> count))
  const end = at + count
  return value === 2 ** (7 * count) - 1 ? { end, length: undefined } : { end, length: value }
}

/** The header has the length of the whole file, and its first chunk is the scene in JSON (glTF 2.0, section 4.4). */
async function gltfFault({ size, read }: ReadableFile): Promise<string | undefined> {
  const head = await read(0, 20)
  if (head.length < 20) return cutIn('its header')
  const view = viewOf(head)
  if (view.getUint32(8, true) > size) return `it has ${size} of ${view.getUint32(8, true)} bytes`
  if (view.getUint32(4, true) < 2) return undefined // version 1 has another header
  if (textOf(head, 16, 4) !== 'JSON') return 'it has no scene'
  return 20 + view.getUint32(12, true) > size ? cutIn('its scene') : undefined
}

/** Each chunk has its length, its type and a checksum; the last one is IEND (PNG specification, section 5). */
async function pngFault({ size, read }: ReadableFile): Promise<string | undefined> {
  let at = 8
  for (let parts = 0; parts < MAX_PARTS; parts++) {
    const head = await read(at, 8)
    if (head.length < 8) return 'it has no end mark'
    const type = textOf(head, 4, 4)
    at += 12 + viewOf(head).getUint32(0)
    if (at > size) return cutIn(`its "${printable(type)}" chunk`)
    if (type === 'IEND') return undefined
  }
  return undefined
}

/**
 * Segments lead to the image data (SOS), after which the end mark follows: in the data a 0xFF byte has a 0x00 after it
 * (ITU-T T.81, annex B). A preview image is inside a segment, so its end mark does not count.
 */
async function jpegFault({ size, read }: ReadableFile): Promise<string | undefined> {
  let at = 2
  for (let parts = 0; parts < MAX_PARTS; parts++) {
    const head = await read(at, 4)
    if (head.length < 4) return 'it has no image data'
    if (head[0] !== 0xff) return 'it has bytes that belong to no segment'
    if (head[1] === 0xff) at += 1
    else if (head[1] === 0xda) break
    else at += 2 + viewOf(head).getUint16(2)
  }
  return (await includesNearEnd({ size, read }, { mark: '\xff\xd9', from: at })) ? undefined : 'it has no end mark'
}

async function includesNearEnd({ size, read }: ReadableFile, { mark, from }: { mark: string; from: number }) {
  const start = Math.max(from, size - TAIL_BYTES)
  return Buffer.from(await read(start, TAIL_BYTES)).includes(Buffer.from(mark, 'latin1'))
}

/** The last byte is 0x3B (GIF89a, section 27); some programs append zeros. */
async function gifFault({ size, read }: ReadableFile): Promise<string | undefined> {
  const tail = await read(Math.max(0, size - TAIL_BYTES), TAIL_BYTES)
  return tail.findLast((byte) => byte !== 0) === 0x3b ? undefined : 'it has no end mark'
}

/** The length after `RIFF` does not count the first 8 bytes. Sound that was streamed has 0 or the largest number. */
async function riffFault({ size, read }: ReadableFile): Promise<string | undefined> {
  const head = await read(0, 12)
  const length = viewOf(head).getUint32(4, true)
  if (textOf(head, 8, 4) === 'WAVE' && (length === 0 || length === 0xffffffff)) return undefined
  return length + 8 > size ? `it has ${size} of ${length + 8} bytes` : undefined
}

/** The directory of an archive is at its end (APPNOTE 4.3.16), with a comment of at most 64 KiB after it. */
const zipFault = async (file: ReadableFile): Promise<string | undefined> =>
  (await includesNearEnd(file, { mark: 'PK\x05\x06', from: 0 })) ? undefined : 'the directory of the archive is missing'
