/** Whether a medium of a request is given in a form that can be read: an address, a data URI or base64. */
import { GatewayError } from '../spec/error.ts'

/** A data URI up to its bytes: a type, perhaps with parameters, in base64. */
const DATA_URI = /^data:([\w.+-]+\/[\w.+-]+)?(;[\w.+-]+=[^;,]*)*;base64,/i
/** Four signs stand for three bytes; the last four may be filled up. */
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/
/** Longer than what any server takes; where an address leads is checked when it is fetched. */
const LONGEST_URL = 8_192

/** Its form only: whether it is there and what it shows is seen when the task is prepared. */
export function checkMedium(param: string, value: string): void {
  const isUrl = /^https?:\/\//i.test(value)
  if (isUrl && value.length <= LONGEST_URL && URL.canParse(value)) return
  if (!isUrl) {
    const head = DATA_URI.exec(value)?.[0] ?? ''
    const bytes = head === '' ? value : value.slice(head.length)
    if (bytes.length % 4 === 0 && BASE64.test(bytes)) return
  }
  throw new GatewayError(
    'invalid_value',
    `"${param}" must be an http(s) URL, a data URI such as "data:image/png;base64,...", or base64 without line breaks.`,
    { param },
  )
}
