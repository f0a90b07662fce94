/** A large constant document that is sent compressed to the clients that accept it. */
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

type Page = (acceptEncoding: string | null) => Promise<Response>

/** `write` is called once, with the first request; the compressed form is made, off the event loop, with the first client that accepts it. */
export function compressedPage(write: () => string, content_type: string): Page {
  let text: string | undefined
  let compressed: Promise<Uint8Array<ArrayBuffer>> | undefined
  const headers = { 'content-type': content_type, vary: 'accept-encoding' }
  return async (acceptEncoding) => {
    text ??= write()
    if (!acceptsCoding(acceptEncoding, 'gzip')) return new Response(text, { headers })
    compressed ??= promisify(gzip)(text)
    return new Response(await compressed, { headers: { ...headers, 'content-encoding': 'gzip' } })
  }
}

/** RFC 9110, section 12.5.3: the weight of the coding itself, otherwise that of `*`; a weight of 0 excludes it. */
export function acceptsCoding(acceptEncoding: string | null, name: 'gzip' | 'br'): boolean {
  const weights = new Map<string, number>()
  for (const item of (acceptEncoding ?? '').toLowerCase().split(',')) {
    const [coding = '', ...parameters] = item.split(';').map((part) => part.trim())
    const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice('q='.length)
    weights.set(coding, weight === undefined ? 1 : Number(weight))
  }
  return (weights.get(name) ?? weights.get(`x-${name}`) ?? weights.get('*') ?? 0) > 0
}
