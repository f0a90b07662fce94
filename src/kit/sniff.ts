/** Detects the type of a file by its first bytes, because names and headers may be wrong or absent. */

/** The number of bytes that detection needs. */
export const SNIFF_BYTES = 64

/** The brand of an ISO base media file (ISO 14496-12) identifies its type. */
const BRANDS: [brand: RegExp, contentType: string][] = [
  [/^qt {2}/, 'video/quicktime'],
  [/^avi[fs]/, 'image/avif'],
  [/^(hei[cxms]|hev[cxms]|mif1|msf1)/, 'image/heic'],
  [/^M4A/, 'audio/mp4'],
  [/^/, 'video/mp4'],
]

/** The content type, or undefined for an unsupported type. */
export function sniff(bytes: Uint8Array): string | undefined {
  const text = (at: number, length: number) => String.fromCharCode(...bytes.subarray(at, at + length))
  if (text(0, 8) === '\x89PNG\r\n\x1a\n') return 'image/png'
  if (text(0, 3) === '\xff\xd8\xff') return 'image/jpeg'
  if (/^GIF8[79]a$/.test(text(0, 6))) return 'image/gif'
  if (text(0, 4) === 'RIFF' && text(8, 4) === 'WEBP') return 'image/webp'
  if (text(0, 4) === 'RIFF' && text(8, 4) === 'WAVE') return 'audio/wav'
  if (text(0, 4) === 'OggS') return 'audio/ogg'
  if (text(0, 4) === 'fLaC') return 'audio/flac'
  // An ID3 tag, or the first frame of layer III.
  if (text(0, 3) === 'ID3' || /^\xff[\xfa\xfb\xf2\xf3]/.test(text(0, 2))) return 'audio/mpeg'
  if (text(0, 4) === 'glTF') return 'model/gltf-binary'
  if (text(0, 4) === '\x1aE\xdf\xa3') return readMatroska(text(4, SNIFF_BYTES - 4))
  if (text(4, 4) === 'ftyp' && bytes.length >= 12) return readBrands(bytes, text)
  // An old QuickTime file has no brand: it begins with one of its boxes.
  if (/^(moov|mdat|wide|free|skip)$/.test(text(4, 4)) && bytes.length >= 8) return 'video/quicktime'
  return undefined
}

/** Images may have a generic major brand (`mif1`) and AVIF among the compatible brands. */
function readBrands(bytes: Uint8Array, text: (at: number, length: number) => string): string | undefined {
  const boxEnd = Math.min(bytes.length, new DataView(bytes.buffer, bytes.byteOffset).getUint32(0))
  const major = text(8, 4)
  if (/^(mif1|msf1)/.test(major)) {
    for (let at = 16; at + 4 <= boxEnd; at += 4) if (/^avi[fs]/.test(text(at, 4))) return 'image/avif'
  }
  return BRANDS.find(([brand]) => brand.test(major))?.[1]
}

/** The document type is within the first bytes: 0x42 0x82, its length, its name. */
function readMatroska(head: string): string | undefined {
  const at = head.indexOf('\x42\x82')
  if (at === -1) return undefined
  const name = head.slice(at + 3, at + 11)
  if (name.startsWith('webm')) return 'video/webm'
  return name.startsWith('matroska') ? 'video/x-matroska' : undefined
}
