/** Reads the type and the size of an image from its first bytes; decodes nothing and fetches nothing. */

/** Enough for the header of every type, with a photograph's embedded preview before it. */
const HEADER_BYTES = 256 * 1024
/** data:image/png;base64,AAAA: type, then parameters, then `;base64`. */
const DATA_URI = /^data:([\w.+-]+\/[\w.+-]+)?(?:;[\w-]+=[^;,]*)*(;base64)?,/i

/** A noun phrase for the image of a URL: "a PNG image of 640 x 480 pixels". */
export function describeImage(url: string): string {
  const found = DATA_URI.exec(url.slice(0, 1000))
  if (!found) return 'an image at an address, which the sandbox does not fetch'
  if (!found[2]) return `an image of type ${found[1] ?? 'unknown'} that is not in base64`
  const start = found[0].length
  const bytes = Buffer.from(url.slice(start, start + Math.ceil(HEADER_BYTES / 3) * 4), 'base64')
  const image = headerOf(bytes)
  if (!image) return `an image of type ${found[1] ?? 'unknown'} whose size the sandbox cannot read`
  return `a ${image.type} image of ${image.width} x ${image.height} pixels`
}

type ImageHeader = { type: string; width: number; height: number }

/** Undefined where the header does not hold the size in the way in which decoders read it. */
export const headerOf = (bytes: Uint8Array): ImageHeader | undefined =>
  readHeader(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength))

function readHeader(view: DataView): ImageHeader | undefined {
  const text = (at: number, length: number) =>
    at + length > view.byteLength
      ? ''
      : String.fromCharCode(...Array.from({ length }, (_, index) => view.getUint8(at + index)))
  if (text(1, 3) === 'PNG' && text(12, 4) === 'IHDR' && view.byteLength >= 24) {
    return { type: 'PNG', width: view.getUint32(16), height: view.getUint32(20) }
  }
  if (/^GIF8[79]a$/.test(text(0, 6)) && view.byteLength >= 13) return readGif(view)
  if (text(0, 4) === 'RIFF' && text(8, 4) === 'WEBP' && view.byteLength >= 30) return readWebp(view, text)
  return view.byteLength >= 4 && view.getUint16(0) === 0xffd8 ? readJpeg(view) : undefined
}

type TextAt = (at: number, length: number) => string

/** The size of the canvas, or of a frame where that is larger: a decoder may allocate both. */
function readWebp(view: DataView, text: TextAt): ImageHeader | undefined {
  let found: ImageHeader | undefined
  for (let at = 12; at + 18 <= view.byteLength; ) {
    const size = webpSize(view, at, text(at, 4))
    const [width, height] = size ?? [0, 0]
    if (size) {
      found = { type: 'WebP', width: Math.max(width, found?.width ?? 0), height: Math.max(height, found?.height ?? 0) }
    }
    const length = view.getUint32(at + 4, true)
    at += 8 + length + (length & 1)
  }
  return found
}

/** Each kind of chunk encodes the size differently (RFC 9649, sections 2.5 to 2.7). */
function webpSize(view: DataView, at: number, kind: string): [number, number] | undefined {
  if (kind === 'VP8 ') return [view.getUint16(at + 14, true) & 0x3fff, view.getUint16(at + 16, true) & 0x3fff]
  if (kind === 'VP8L') {
    const bits = view.getUint32(at + 9, true)
    return [(bits & 0x3fff) + 1, ((bits >>> 14) & 0x3fff) + 1]
  }
  const size24 = (place: number) => (view.getUint16(place, true) | (view.getUint8(place + 2) << 16)) + 1
  return kind === 'VP8X' ? [size24(at + 12), size24(at + 15)] : undefined
}

/** The size of the screen, or of the first frame where that is larger: decoders allocate both (GIF89a, sections 18 to 20). */
function readGif(view: DataView): ImageHeader | undefined {
  const short = (at: number) => view.getUint16(at, true)
  const colours = view.getUint8(10)
  let at = 13 + ((colours & 0x80) === 0 ? 0 : 3 * 2 ** ((colours & 7) + 1))
  // An extension: 0x21, its kind, then blocks that begin with their length; an empty block is the last one.
  while (at + 3 <= view.byteLength && view.getUint8(at) === 0x21) {
    at += 2
    while (at < view.byteLength && view.getUint8(at) !== 0) at += 1 + view.getUint8(at)
    at += 1
  }
  if (at + 10 > view.byteLength || view.getUint8(at) !== 0x2c) return undefined
  const width = Math.max(short(6), short(at + 1) + short(at + 5))
  return { type: 'GIF', width, height: Math.max(short(8), short(at + 3) + short(at + 7)) }
}

/** Walks the segments up to the frame header, which holds the size. */
function readJpeg(view: DataView): ImageHeader | undefined {
  for (let at = 2; at + 9 <= view.byteLength && view.getUint8(at) === 0xff; ) {
    const marker = view.getUint8(at + 1)
    if (marker === 0xff) {
      // Any number of fill bytes may precede a marker.
      at += 1
      continue
    }
    // Markers without a length, and the start of the scan: no frame header follows them.
    if (marker <= 0x01 || (marker >= 0xd0 && marker <= 0xda)) return undefined
    // 0xC0 to 0xCF are frame headers, except for C4, C8 and CC, which hold tables.
    if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)) {
      return { type: 'JPEG', width: view.getUint16(at + 7), height: view.getUint16(at + 5) }
    }
    at += 2 + view.getUint16(at + 2)
  }
  return undefined
}
