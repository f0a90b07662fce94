/** Audio that a client has uploaded: its place in the memory of the request, and the form that a provider gets. */
import { formName } from '../../kit/form-name.ts'
import { randomAlphanumerics } from '../../kit/secret.ts'
import { SNIFF_BYTES, sniff } from '../../kit/sniff.ts'
import type { Recording } from '../../providers/audio.ts'
import { invalidValue } from '../../spec/error.ts'

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

const refused = (what: string) => invalidValue('file', `"file" ${what}.`)
