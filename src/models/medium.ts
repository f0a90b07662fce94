/** Checks the form of a media input: a URL, a data URI or base64. */
import { invalidValue } from '../spec/error.ts'

/** A data URI up to its bytes: a type, perhaps with parameters, in base64. */
const DATA_URI = /^data:([\w.+-]+\/[\w.+-]+)?(;[\w.+-]+=[^;,]*)*;base64,/i
/** Four characters encode three bytes; the last four may be padded. */
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/
/** Real heads are shorter. On millions of parameters the pattern would take seconds. */
const LONGEST_HEAD = 1_000
/** Longer than any server accepts; where a URL leads is checked when it is fetched. */
const LONGEST_URL = 8_192

/** Checks the form only: the medium is fetched and inspected when the task is prepared. */
export function checkMedium(param: string, value: string): void {
  const isUrl = /^https?:\/\//i.test(value)
  if (isUrl && value.length <= LONGEST_URL && URL.canParse(value)) return
  if (!isUrl) {
    const head = DATA_URI.exec(value.slice(0, LONGEST_HEAD))?.[0] ?? ''
    const bytes = head === '' ? value : value.slice(head.length)
    if (bytes.length % 4 === 0 && BASE64.test(bytes)) return
  }
  throw invalidValue(
    param,
    `"${param}" must be an http(s) URL, a data URI such as "data:image/png;base64,...", or base64 without line breaks.`,
  )
}
