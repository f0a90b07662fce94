/** Encodes a body with files as a form (RFC 7578). */
import { formName } from '../../kit/form-name.ts'
import type { JsonRecord } from '../../kit/json.ts'
import type { Bytes } from '../orders/order-client.ts'

type FormFile = { name: string; filename: string; bytes: Uint8Array; content_type: string }

/** Texts as they are, all other values as JSON. */
export function formOf(body: JsonRecord, files: FormFile[], boundary: string): Bytes {
  const head = (name: string, more = '') =>
    `--${boundary}\r\ncontent-disposition: form-data; name="${formName(name)}"${more}\r\n`
  const fields = Object.entries(body).map(
    ([name, value]) => `${head(name)}\r\n${typeof value === 'string' ? value : JSON.stringify(value)}\r\n`,
  )
  const parts = files.flatMap(({ name, filename, bytes, content_type }) => [
    Buffer.from(`${head(name, `; filename="${filename}"`)}content-type: ${content_type}\r\n\r\n`),
    bytes,
    Buffer.from('\r\n'),
  ])
  const whole = Buffer.concat([Buffer.from(fields.join('')), ...parts, Buffer.from(`--${boundary}--\r\n`)])
  return { bytes: new Uint8Array(whole), content_type: `multipart/form-data; boundary=${boundary}` }
}
