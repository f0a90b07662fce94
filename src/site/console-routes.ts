/** Serves the web console from the files that the build made. Nothing is read before a browser opens it. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliDecompress, gzip } from 'node:zlib'
import { acceptsCoding } from '../http/compressed-page.ts'
import type { Context, Route } from '../http/context.ts'
import { resourceDirectory } from '../kit/resources.ts'
import { sha256 } from '../kit/secret.ts'
import { GatewayError } from '../spec/error.ts'

/** Styles come from the sheet alone; a picture may be one that a model made, and a preview of one that was chosen. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "media-src 'self' data: blob:",
  "font-src 'self'",
  "connect-src 'self' data: blob:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')
const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
}
const ASSET_TYPES: Record<string, string> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
  wasm: 'application/wasm',
  woff2: 'font/woff2',
}
/** The names that the build gives: they change with the contents. */
const ASSET_NAME = /^[\w-]+(?:\.[\w-]+)*-[a-z0-9]{8,}\.([a-z0-9]+)$/
type ConsoleParts = { directory?: string | undefined }

export function consoleRoutes({ directory = resourceDirectory('console') }: ConsoleParts = {}): Route[] {
  const route = (path: string, handle: Route['handle']): Route => ({
    method: 'GET',
    path,
    public: true,
    operation: {
      summary: 'The web console',
      description: 'The page in which administrators log in; its data comes from the admin API.',
      tag: 'Gateway',
      media: ['text/html'],
    },
    handle,
  })

  async function page(context: Context): Promise<Response> {
    const file = await load(join(directory, 'index.html'), context)
    if (!file) return new Response(NOT_BUILT, { status: 503, headers: PAGE_HEADERS })
    const etag = `"${sha256(file.bytes.toString('latin1')).slice(0, 20)}"`
    const headers = { ...PAGE_HEADERS, 'cache-control': 'no-cache', vary: 'accept-encoding', etag, ...file.headers }
    if (context.header('if-none-match') === etag) return new Response(null, { status: 304, headers })
    return new Response(file.bytes, { headers })
  }

  async function asset(context: Context): Promise<Response> {
    const { name = '' } = context.params
    const type = ASSET_TYPES[ASSET_NAME.exec(name)?.[1] ?? '']
    const etag = `"${name}"`
    const headers = {
      'cache-control': 'public, max-age=31536000, immutable',
      'x-content-type-options': 'nosniff',
      vary: 'accept-encoding',
      etag,
    }
    const file = type && (await load(join(directory, 'assets', name), context))
    if (!type || !file)
      throw new GatewayError('unknown_url', 'The console has no such file; reload the page where it was just updated.')
    if (context.header('if-none-match') === etag) return new Response(null, { status: 304, headers })
    return new Response(file.bytes, { headers: { ...headers, 'content-type': type, ...file.headers } })
  }

  return [
    route('/console', page),
    { ...route('/console/assets/:name', asset), hidden: true },
    { ...route('/console/:path{.+}', page), hidden: true },
  ]
}

/** A file in the best coding that the client accepts; undefined: there is no such file. */
async function load(path: string, context: Context) {
  const packed = await readIfThere(`${path}.br`)
  const accepts = (coding: 'br' | 'gzip') => acceptsCoding(context.header('accept-encoding'), coding)
  if (packed && accepts('br')) return { bytes: packed, headers: { 'content-encoding': 'br' } }
  const bytes = packed ? await promisify(brotliDecompress)(packed) : await readIfThere(path)
  // Browsers accept no Brotli over plain HTTP.
  if (packed && bytes && accepts('gzip'))
    return { bytes: await promisify(gzip)(bytes), headers: { 'content-encoding': 'gzip' } }
  return bytes && { bytes, headers: {} }
}

async function readIfThere(path: string): Promise<Buffer<ArrayBuffer> | undefined> {
  try {
    return await readFile(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

const NOT_BUILT = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Gatehouse console</title>
<main>
<h1>The console is not built</h1>
<p>Run <code>npm run build</code> in the directory of Gatehouse, then reload this page. The gateway keeps running meanwhile.</p>
</main>
</html>
`
