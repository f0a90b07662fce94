/** The gateway's own pages: home page, API reference, OpenAPI document, health. */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import Type from 'typebox'
import { prefersType } from '../http/accept.ts'
import { compressedPage } from '../http/compressed-page.ts'
import type { Context, Route } from '../http/context.ts'
import type { Build } from '../kit/build-info.ts'
import { readPacked } from '../kit/resources.ts'
import { randomAlphanumerics, sha256 } from '../kit/secret.ts'
import { GatewayError } from '../spec/error.ts'
import { text, titled } from '../spec/fields.ts'
import type { Operation } from '../spec/operation.ts'
import { type Endpoint, homePage, referencePage } from './page-text.ts'

type PageParts = {
  version: string
  build?: Build | undefined
  /** Resolves when requests can be served; rejects otherwise, with a GatewayError where its message is the reason. */
  ready(): Promise<void>
  /** The state of the task queue; rejects when the store does not answer. */
  tasks?: (() => Promise<TaskHealth>) | undefined
  openApi(): object
  /** The endpoints that the home page lists. */
  endpoints(): Endpoint[]
  has_console: boolean
  /** Whether `sandbox/general` answers. */
  hasSandbox(): boolean
}

/** A page may run only its own scripts and connect only to this gateway; the reference sets its own styles. */
export function htmlPage(write: (parts: { version: string; nonce: string }) => string, version: string): Response {
  const nonce = randomAlphanumerics(20)
  const policy =
    `default-src 'none'; script-src 'self' 'nonce-${nonce}'; style-src 'self' 'unsafe-inline'; ` +
    "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; " +
    "frame-ancestors 'none'"
  return new Response(write({ version, nonce }), {
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policy,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      // The same path answers programs in JSON.
      vary: 'accept',
    },
  })
}

/** Made once: hashing some megabytes would hold up calls for milliseconds. */
let scriptTag: string | undefined

/** The script has some megabytes and is rarely requested: it is read for each request, not kept in memory. */
async function scalarScript({ request }: Context): Promise<Response> {
  const given = request.headers.get('if-none-match')
  const script = given !== null && given === scriptTag ? undefined : await readScript()
  scriptTag ??= `"${sha256(script?.toString('latin1') ?? '').slice(0, 20)}"`
  const headers = {
    'content-type': 'text/javascript; charset=utf-8',
    'cache-control': 'public, max-age=3600',
    'x-content-type-options': 'nosniff',
    etag: scriptTag,
  }
  if (given === scriptTag) return new Response(null, { status: 304, headers })
  return new Response(script, { headers })
}

const readScript = async (): Promise<Buffer<ArrayBuffer>> =>
  readPacked('standalone.js') ??
  (await readFile(fileURLToPath(new URL('browser/standalone.js', import.meta.resolve('@scalar/api-reference')))))

const About = titled('About', {
  name: Type.Literal('Gatehouse'),
  version: Type.String(),
  docs: Type.String({ description: 'Where the API reference is.' }),
  manual: Type.String({ description: 'Where the manual is.' }),
  openapi: Type.String({ description: 'Where this document is.' }),
  endpoints: Type.Array(Type.String()),
})
const Health = titled('Health', {
  status: Type.Literal('ok'),
  version: Type.String(),
  commit: text('The commit of this build, where it was built from a git repository.'),
  date: text('The day of that commit in UTC.'),
})
const TaskHealth = titled('TaskHealth', {
  unfinished: Type.Integer({ description: 'Tasks that have not ended.' }),
  oldest_seconds: Type.Number({ description: 'Since the oldest of them was accepted.' }),
  lag_seconds: Type.Number({ description: 'By which the most overdue step is late.' }),
})
type TaskHealth = Type.Static<typeof TaskHealth>
const Ready = titled('Ready', { status: Type.Literal('ready'), tasks: Type.Optional(TaskHealth) })
const NotReady = titled('NotReady', { status: Type.Literal('not ready'), reason: Type.String() })

const DOCUMENT = {
  summary: 'This document',
  description: 'The OpenAPI document of this version of the gateway.',
  response: Type.Object({}),
}
const HEALTH = {
  summary: 'Whether the process answers',
  description: 'For a liveness probe: it looks at nothing else.',
  response: Health,
}
const READINESS = {
  summary: 'Whether requests can be served',
  description:
    'For a readiness probe: it writes to the database and to the directory of outputs. It answers within 2 seconds.',
  response: Ready,
  refusal: {
    status: 503,
    when: 'Not ready: `reason` says what cannot be reached or written, or that the gateway is being stopped.',
    response: NotReady,
  },
}

export function pageRoutes({
  version,
  build,
  ready,
  tasks,
  openApi,
  endpoints,
  hasSandbox,
  has_console,
}: PageParts): Route[] {
  /** More than a megabyte. */
  const document = compressedPage(() => JSON.stringify(openApi()), 'application/json')

  const page = (path: string, operation: Omit<Operation, 'tag'>, handle: Route['handle']): Route => ({
    method: 'GET',
    path,
    public: true,
    operation: { tag: 'Gateway', ...operation },
    handle,
  })

  const home = page(
    '/',
    {
      summary: 'What this gateway is',
      description: 'A page for browsers, JSON for other clients.',
      response: About,
      media: ['text/html'],
    },
    ({ request }) =>
      prefersType(request.headers.get('accept'), 'text/html', 'application/json')
        ? htmlPage(
            (parts) => homePage({ ...parts, endpoints: endpoints(), has_sandbox: hasSandbox(), has_console }),
            version,
          )
        : Response.json(
            {
              name: 'Gatehouse',
              version,
              docs: '/docs',
              manual: '/manual',
              openapi: '/openapi.json',
              endpoints: [...new Set(endpoints().map(({ path }) => path))],
            } satisfies Type.Static<typeof About>,
            { headers: { vary: 'accept' } },
          ),
  )
  return [
    home,
    page('/docs', { summary: 'The API reference', description: 'This document as a page.', media: ['text/html'] }, () =>
      htmlPage(referencePage, version),
    ),
    { ...page('/docs/scalar.js', { summary: 'The script of the reference page' }, scalarScript), hidden: true },
    page('/openapi.json', DOCUMENT, (context) => document(context.header('accept-encoding'))),
    { ...page('/healthz', HEALTH, () => Response.json({ status: 'ok', version, ...build })), answers_under_load: true },
    {
      answers_under_load: true,
      ...page('/readyz', READINESS, async () => {
        try {
          await ready()
          const health = await tasks?.()
          return Response.json({ status: 'ready', ...(health && { tasks: health }) })
        } catch (thrown) {
          const reason = thrown instanceof GatewayError ? thrown.message : 'the store does not answer'
          return Response.json({ status: 'not ready', reason }, { status: 503, headers: { 'retry-after': '5' } })
        }
      }),
    },
  ]
}
