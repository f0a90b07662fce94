/** The head of an HTTP/1.1 request as it is written. */
import { Http1Error } from './response-parser.ts'

type RequestHead = {
  url: URL
  method: string
  headers: Record<string, string>
  body: string | Uint8Array | undefined
  is_single?: boolean
}

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
/** Tabs and what latin1 can show. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
/** What the client writes itself. */
const OWN = new Set([
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'keep-alive',
  'upgrade',
  'te',
  'trailer',
])

/** Name -> the last value that was found to be right: most headers have the same one in each request. */
const checked = new Map<string, string>()
const MAX_CHECKED = 128

/**
 * With a body, it lacks `content-length` and the empty line at its end. Throws Http1Error for a name or value that no header
 * may have, and for headers that only the client writes.
 */
export function requestHead({ url, method, headers, body, is_single }: RequestHead): string {
  let head = `${method} ${url.pathname}${url.search} HTTP/1.1\r\nhost: ${url.host}\r\n`
  for (const name in headers) {
    const value = headers[name] ?? ''
    if (checked.get(name) === value) {
      head += `${name}: ${value}\r\n`
      continue
    }
    if (!NAME.test(name) || !VALUE.test(value))
      throw new Http1Error(
        'ERR_INVALID_CHAR',
        `The header "${name.slice(0, 60)}" has a character that no header may have.`,
      )
    if (OWN.has(name.toLowerCase()))
      throw new Http1Error('ERR_INVALID_ARG_VALUE', `The header "${name}" is written by the client itself.`)
    if (checked.size >= MAX_CHECKED) checked.clear()
    checked.set(name, value)
    head += `${name}: ${value}\r\n`
  }
  if (is_single) head += 'connection: close\r\n'
  if (body !== undefined) return head
  return method === 'GET' || method === 'HEAD' ? `${head}\r\n` : `${head}content-length: 0\r\n\r\n`
}
