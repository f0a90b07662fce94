/** Audio that a client has uploaded: its place in the memory of the request, how long it lasts, and the form that a provider gets. */
import { formName } from '../../kit/form-name.ts'
import { randomAlphanumerics } from '../../kit/secret.ts'
import { SNIFF_BYTES, sniff } from '../../kit/sniff.ts'
import type { Recording } from '../../providers/audio.ts'
import { GatewayError } from '../../spec/error.ts'

/** Around the body of a request: the fields of most requests fit into it, so that the audio is in memory once. */
export const FORM_MARGIN = 32 * 1024

type UploadedFile = Pick<Recording, 'bytes' | 'content_type' | 'filename'>

/** Throws `invalid_value` for a file that is empty or certainly no audio. */
export function recordingOf({ bytes, content_type, filename }: UploadedFile): Recording {
  if (bytes.length === 0) throw refused('is empty')
  const sniffed = sniff(bytes.subarray(0, SNIFF_BYTES))
  if (sniffed !== undefined && !/^(audio|video)\//.test(sniffed)) throw refused(`is ${sniffed}, not audio`)
  const type =
    sniffed ?? (/^(audio|video)\/[\w.+-]{1,60}$/i.test(content_type) ? content_type : 'application/octet-stream')
  const name = filename === '' ? `audio.${ENDINGS[type] ?? 'bin'}` : filename
  return {
    filename: name,
    content_type: type,
    bytes,
    form(fields) {
      // Random, so that no field can contain it.
      const boundary = `gatehouse-${randomAlphanumerics(32)}`
      // The file is first: what follows and what precedes it is written into the margins around its bytes.
      const before = Buffer.from(
        `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${formName(name)}"\r\ncontent-type: ${type}\r\n\r\n`,
      )
      const texts = fields.map(
        ([field, value]) =>
          `\r\n--${boundary}\r\ncontent-disposition: form-data; name="${formName(field)}"\r\n\r\n${value}`,
      )
      const after = Buffer.from(`${texts.join('')}\r\n--${boundary}--\r\n`)
      return { bytes: framed(bytes, before, after), content_type: `multipart/form-data; boundary=${boundary}` }
    },
  }
}

/** Providers decide by the ending of the name; the types are those that are sniffed. */
const ENDINGS: Record<string, string> = {
  'audio/flac': 'flac',
  'audio/mp4': 'm4a',
  'audio/mpeg': 'mp3',
  'audio/ogg': 'ogg',
  'audio/wav': 'wav',
  'video/mp4': 'mp4',
  'video/webm': 'webm',
}

/** In the memory around the bytes, or where that is too small in new memory. */
function framed(bytes: Uint8Array<ArrayBuffer>, before: Buffer, after: Buffer): Uint8Array<ArrayBuffer> {
  const { buffer, byteOffset, length } = bytes
  const [start, end] = [byteOffset - before.length, byteOffset + length + after.length]
  if (start < 0 || end > buffer.byteLength) return new Uint8Array(Buffer.concat([before, bytes, after]))
  const whole = new Uint8Array(buffer, start, end - start)
  whole.set(before, 0)
  whole.set(after, before.length + length)
  return whole
}

const refused = (what: string) => new GatewayError('invalid_value', `"file" ${what}.`, { param: 'file' })

/** Speech in an MP3 of usual quality, and in the densest file that a recorder makes. */
const USUAL_BYTES_A_SECOND = 8_000
const LEAST_BYTES_A_SECOND = 1_000

/** How long it lasts: by its header where it is a WAV file, else by its size. */
export function secondsOf({ bytes, content_type }: Pick<Recording, 'bytes' | 'content_type'>): {
  expected: number
  most: number
  is_exact: boolean
} {
  const rate = content_type === 'audio/wav' ? wavRate(bytes) : undefined
  if (rate !== undefined) return { expected: bytes.length / rate, most: bytes.length / rate, is_exact: true }
  return {
    expected: bytes.length / USUAL_BYTES_A_SECOND,
    most: bytes.length / LEAST_BYTES_A_SECOND,
    is_exact: false,
  }
}

/** Microsoft, "Multimedia Programming Interface and Data Specifications 1.0": PCM, float, A-law, mu-law. */
const UNCOMPRESSED: ReadonlySet<number> = new Set([1, 3, 6, 7])
/** The laws have 8 bits a sample, whatever the header names. */
const LAWS: ReadonlySet<number> = new Set([6, 7])
/** `WAVEFORMATEXTENSIBLE` names the format by a GUID, which begins with one of those and ends with these bytes. */
const EXTENSIBLE = 0xfffe
const GUID_END = '000000001000800000aa00389b71'
/** The most that any recorder makes: 8 channels of 32 bits, 384,000 times a second. */
const MOST_BYTES_A_SECOND = 384_000 * 8 * 4
/** Before the format there may be some padding and descriptions. */
const MOST_CHUNKS = 16

/**
 * Bytes a second. By the fields that a decoder needs: the header names a rate too, which none reads, so that any number could
 * stand there.
 */
function wavRate(bytes: Uint8Array): number | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  for (let at = 12, chunks = 0; at + 24 <= bytes.length && chunks < MOST_CHUNKS; chunks++) {
    const size = view.getUint32(at + 4, true)
    if (view.getUint32(at) === FMT) {
      const format = wavFormat(view, at + 8, size)
      if (format === undefined || !UNCOMPRESSED.has(format)) return undefined
      const channels = view.getUint16(at + 10, true)
      const bits = LAWS.has(format) ? 8 : view.getUint16(at + 22, true)
      const rate = (view.getUint32(at + 12, true) * channels * bits) / 8
      return rate > 0 && rate <= MOST_BYTES_A_SECOND ? rate : undefined
    }
    // Chunks begin at even places.
    at += 8 + size + (size % 2)
  }
  return undefined
}

/** Of the data of a `fmt ` chunk; undefined: none that is known. */
function wavFormat(view: DataView, at: number, size: number): number | undefined {
  const format = view.getUint16(at, true)
  if (format !== EXTENSIBLE) return format
  if (size < 40 || at + 40 > view.byteLength) return undefined
  const end = Buffer.from(view.buffer, view.byteOffset + at + 26, 14).toString('hex')
  return end === GUID_END ? view.getUint16(at + 24, true) : undefined
}

/** `fmt ` */
const FMT = 0x66_6d_74_20
