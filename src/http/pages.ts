/** What the gateway says of itself: home page, documentation, OpenAPI document, health. */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Context, Route } from './context.ts'
import { homePage, referencePage } from './page-text.ts'

type PageParts = {
  version: string
  /** Resolves when requests can be served; rejects otherwise. */
  ready(): Promise<void>
  openApi(): object
}

/** Beside the package's entry, which is what its name resolves to. */
const scalarFile = () => fileURLToPath(new URL('browser/standalone.js', import.meta.resolve('@scalar/api-reference')))

/** Only our own script and styles; the reference needs to style itself and to run templates it compiles. */
const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy':
    "default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; " +
    "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; " +
    "frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}

export function pageRoutes({ version, ready, openApi }: PageParts): Route[] {
  let document: string | undefined
  let script: Promise<Uint8Array<ArrayBuffer>> | undefined

  const page = (path: string, summary: string, handle: (context: Context) => Response | Promise<Response>): Route => ({
    method: 'GET',
    path,
    public: true,
    operation: { summary, tag: 'Gateway' },
    handle,
  })

  return [
    page('/', 'What this is: a page for browsers, JSON for the rest', ({ request }) =>
      request.headers.get('accept')?.includes('text/html')
        ? new Response(homePage(version), { headers: PAGE_HEADERS })
        : Response.json({
            name: 'Gatehouse',
            version,
            docs: '/docs',
            openapi: '/openapi.json',
            endpoints: ['/v1/models', '/v1/models/{model}', '/v1/chat/completions'],
          }),
    ),
    page('/docs', 'The API reference as a page', () => new Response(referencePage(version), { headers: PAGE_HEADERS })),
    {
      ...page('/docs/scalar.js', 'The script of the reference page', async ({ request }) => {
        const etag = `"scalar-${version}"`
        const headers = {
          'content-type': 'text/javascript; charset=utf-8',
          'cache-control': 'public, max-age=3600',
          etag,
        }
        if (request.headers.get('if-none-match') === etag) return new Response(null, { status: 304, headers })
        script ??= readFile(scalarFile())
        return new Response(await script, { headers })
      }),
      hidden: true,
    },
    page('/openapi.json', 'This API as an OpenAPI 3.1 document', () => {
      document ??= JSON.stringify(openApi())
      return new Response(document, { headers: { 'content-type': 'application/json' } })
    }),
    page('/healthz', 'Whether the process answers', () => Response.json({ status: 'ok', version })),
    {
      ...page('/readyz', 'Whether requests can be served: 200, or 503 with the reason', async () => {
        try {
          await ready()
          return Response.json({ status: 'ready' })
        } catch {
          return Response.json({ status: 'not ready', reason: 'the store does not answer' }, { status: 503 })
        }
      }),
    },
  ]
}
