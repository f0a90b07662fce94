/** A stored file over HTTP: whole, a range of it (RFC 9110, section 14), or `304 Not Modified`. */
import { servedAs } from '../kit/file-type.ts'
import { GatewayError } from '../spec/error.ts'

/** A part of a file: `last` is inclusive. */
export type Part = { first: number; last: number }

export type ServedFile = {
  content_type: string
  /** Of the whole file. */
  bytes: number
  /** Changes when the file does. */
  version: string
  body(part?: Part): ReadableStream<Uint8Array>
}

type Options = { filename: string; cache_control: string }

/**
 * Nothing in a file runs on the gateway's origin: no type sniffing, no script, no request. A browser's own player
 * requests the file once more from its own origin, which stays allowed for video and audio.
 */
const confined = (content_type: string): Record<string, string> => ({
  'content-security-policy': /^(audio|video)\//.test(content_type)
    ? `sandbox allow-same-origin; ${NO_REQUESTS}`
    : `sandbox; ${NO_REQUESTS}`,
  'x-content-type-options': 'nosniff',
})
const NO_REQUESTS = "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'"
/** Generated names need no encoding: they have no quotes, line breaks or non-ASCII letters. */
const NOT_IN_NAMES = /[^\w.-]/g

/** The stream is passed on as it is: the runtime recognizes a file on disk, and sends it with its length. */
export function fileResponse(request: Request, file: ServedFile, { filename, cache_control }: Options): Response {
  const { content_type, bytes, version } = file
  const etag = `"${version}"`
  const served = servedAs(content_type)
  const validators = {
    etag,
    'cache-control': cache_control,
    'accept-ranges': 'bytes',
    ...confined(served.content_type),
  }
  if (isKnown(request.headers.get('if-none-match'), etag))
    return new Response(null, { status: 304, headers: validators })
  const headers: Record<string, string> = {
    ...validators,
    'content-type': served.content_type,
    'content-disposition': `${served.disposition}; filename="${filename.replace(NOT_IN_NAMES, '_')}"`,
    'content-length': String(bytes),
  }
  if (request.method === 'HEAD') return new Response(null, { headers })
  const part = partOf(request, { etag, bytes })
  if (!part) return new Response(file.body(), { headers })
  headers['content-range'] = `bytes ${part.first}-${part.last}/${bytes}`
  headers['content-length'] = String(part.last - part.first + 1)
  return new Response(file.body(part), { status: 206, headers })
}

/** Weakly compared: `W/"a"` and `"a"` are the same here. */
const isKnown = (header: string | null, etag: string): boolean => {
  const known = header === null ? [] : header.split(',').map((one) => one.trim().replace(/^W\//, ''))
  return known.includes('*') || known.includes(etag)
}

/**
 * The requested range, or undefined for the whole file: also for several ranges, for a header that is not understood,
 * and when `if-range` names another version. Throws range_not_satisfiable.
 */
function partOf({ headers }: Request, { etag, bytes }: { etag: string; bytes: number }): Part | undefined {
  const [, from, to] = /^bytes\s*=\s*(\d*)\s*-\s*(\d*)$/i.exec(headers.get('range')?.trim() ?? '') ?? []
  if (from === undefined || to === undefined || (from === '' && to === '')) return undefined
  const condition = headers.get('if-range')
  if (condition !== null && condition.trim() !== etag) return undefined
  // Without a start it is a number of bytes at the end.
  const first = from === '' ? Math.max(0, bytes - Number(to)) : Number(from)
  const last = from === '' || to === '' ? bytes - 1 : Math.min(Number(to), bytes - 1)
  if (from !== '' && to !== '' && Number(to) < Number(from)) return undefined
  if (first < bytes && first <= last) return { first, last }
  throw new GatewayError('range_not_satisfiable', `The file has ${bytes} bytes; the requested range is outside.`, {
    bytes,
  })
}
