/** The admin API's diagnostics: the state of the gateway in one file, without secrets, to be sent to support. */
import { availableParallelism, totalmem } from 'node:os'
import Type from 'typebox'
import type { Context, Route } from '../../http/context.ts'
import type { Clock } from '../../kit/clock.ts'
import { isRecord } from '../../kit/json.ts'
import { GatewayError } from '../../spec/error.ts'
import { orNull, titled } from '../../spec/fields.ts'
import { adminRoute } from './route.ts'

export type DiagnosticsParts = {
  version: string
  /** The store's engine. */
  engine: string
  /** Of the process: only the names of its variables are read. */
  environment: Readonly<Record<string, string | undefined>>
  /** The metrics as Prometheus reads them; absent: nothing is counted. */
  scrape: (() => Promise<string>) | undefined
  clock: Clock
}

/** What may be shown of a failed request: nothing that names or is content of a person. */
const REQUEST_MEMBERS = ['at_ms', 'status', 'error', 'family', 'model', 'target', 'total_ms', 'attempts']

/** Sections, each of which is what a route of the admin API answers. */
const SECTIONS: Record<string, { path: string; query?: string; members?: string[]; max_rows?: number }> = {
  readiness: { path: '/admin/v1/readiness' },
  providers: { path: '/admin/v1/providers' },
  models: { path: '/admin/v1/models' },
  overrides: { path: '/admin/v1/overrides' },
  configuration: { path: '/admin/v1/config' },
  failed_requests: { path: '/admin/v1/requests', query: 'error=any', members: REQUEST_MEMBERS, max_rows: 100 },
}
/** Of a section. */
const MAX_ROWS = 5_000
const PAGE = 200

const VARIABLES = /^(GATEHOUSE_|OTEL_|BUN_|UV_|NODE_|(?:https?|all|no)_proxy$)/i

const open = { additionalProperties: true } as const
const rows = (description: string) =>
  Type.Union([Type.Array(Type.Object({}, open)), Type.Object({ unavailable: Type.String() })], { description })
const Diagnostics = titled('Diagnostics', {
  made_at: Type.Integer({ description: 'Unix seconds.' }),
  version: Type.String(),
  process: Type.Object({}, { ...open, description: 'Of the process that answers: runtime, memory, uptime.' }),
  store: Type.Object({ engine: Type.String() }),
  environment: Type.Array(Type.String(), { description: 'The names of variables that are set; never their values.' }),
  readiness: Type.Object({}, open),
  providers: rows('As `/admin/v1/providers` lists them; so are models and overrides.'),
  models: rows('With the health of their targets.'),
  overrides: rows('Set at run time.'),
  configuration: rows('Each setting and where it comes from; what may be a secret is `***`.'),
  failed_requests: rows('The newest, without who sent them and without contents.'),
  metrics: orNull(Type.String(), 'As Prometheus reads them; null: not counted.'),
})

/** What is known without a running gateway: the process that collects it, and its variables. */
export const surroundings = ({ version, environment }: Pick<DiagnosticsParts, 'version' | 'environment'>) => ({
  version,
  process: processNow(),
  environment: Object.keys(environment)
    .filter((name) => VARIABLES.test(name))
    .sort(),
})

/** `routes`: those of the admin API, which say what may be shown. */
export function diagnosticsRoute(routes: readonly Route[], parts: DiagnosticsParts): Route {
  const handlers = new Map(routes.map(({ method, path, handle }) => [`${method} ${path}`, handle]))

  async function answerOf(context: Context, path: string, query: URLSearchParams): Promise<Record<string, unknown>> {
    const handle = handlers.get(`GET ${path}`)
    if (!handle) throw new Error(`no route answers GET ${path}`)
    const response = await handle(Object.assign(Object.create(context), { header: () => null, query: () => query }))
    return (await response.json()) as Record<string, unknown>
  }

  /** Every page of a list; what a route answers that is none. */
  async function section(context: Context, name: string): Promise<unknown> {
    const { path, query, members, max_rows = MAX_ROWS } = SECTIONS[name] ?? { path: '' }
    const found: unknown[] = []
    for (let cursor: unknown; ; ) {
      const page = new URLSearchParams(query)
      page.set('limit', String(Math.min(PAGE, max_rows)))
      if (typeof cursor === 'string') page.set('cursor', cursor)
      const answer = await answerOf(context, path, page)
      if (!Array.isArray(answer.data)) return answer
      found.push(...answer.data.map((row) => (members ? only(row, members) : row)))
      cursor = answer.next_cursor
      if (typeof cursor !== 'string' || found.length >= max_rows) return found.slice(0, max_rows)
    }
  }

  /** What cannot be read now is no reason to show nothing of the rest. */
  const available = (work: Promise<unknown>) =>
    work.catch((error: unknown) => ({
      unavailable: error instanceof GatewayError ? error.message : 'it could not be read; the log says why',
    }))

  async function collect(context: Context): Promise<Record<string, unknown>> {
    const names = Object.keys(SECTIONS)
    const sections = await Promise.all(names.map((name) => available(section(context, name))))
    return {
      made_at: Math.floor(parts.clock.now() / 1000),
      ...surroundings(parts),
      store: { engine: parts.engine },
      ...Object.fromEntries(names.map((name, at) => [name, sections[at]])),
      metrics: parts.scrape ? await available(parts.scrape()) : null,
    }
  }

  return adminRoute(['GET', '/admin/v1/diagnostics', 'operate'], {
    summary: 'The state of the gateway, to be sent to support',
    description:
      'One JSON file: versions, the process, readiness, providers and models with their health, the configuration without secrets, the newest failed requests without contents, and the metrics. Read it before you send it: it names your models, providers and hosts.',
    response: Diagnostics,
    errors: ['storage_unavailable'],
    async handle(context) {
      const name = `gatehouse-diagnostics-${Math.floor(parts.clock.now() / 1000)}.json`
      const headers = { 'content-disposition': `attachment; filename="${name}"` }
      return Response.json(await collect(context), { headers })
    },
  })
}

const only = (row: unknown, members: string[]): unknown =>
  isRecord(row) ? Object.fromEntries(members.map((name) => [name, row[name] ?? null])) : row

function processNow() {
  const { rss, heapUsed, external } = process.memoryUsage()
  return {
    bun: process.versions.bun ?? null,
    platform: process.platform,
    architecture: process.arch,
    processors: availableParallelism(),
    memory_bytes: totalmem(),
    resident_bytes: rss,
    heap_bytes: heapUsed,
    external_bytes: external,
    uptime_seconds: Math.floor(process.uptime()),
  }
}
