/** Opens pages of the console over a filled store, and counts what each of them causes: calls, bytes, statements, rows. */
import { Database } from 'bun:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page, Request } from 'playwright-core'
import { filledSettings, filledStore, type Size } from '../../../scripts/fill-store.ts'
import { DEFAULT_REQUEST_LOG } from '../../../src/config/config.ts'
import { openConsole, settled, type TestConsole } from './console.ts'

/** Of one page, until it is settled. */
export type Measured = {
  path: string
  /** Calls of the admin API, as `GET /path?query`. */
  calls: string[]
  /** Of all answers, and the largest one. */
  bytes: number
  largest: { bytes: number; call: string }
  /** Rows of tables in the page. */
  shown: number
  /** Statements of the store, and the rows that they returned. */
  statements: number
  rows: number
  ms: number
}

/** Of one page. The largest is a chart of a week by hour, with the totals of 50 keys. */
const MOST = {
  calls: 12,
  answer_bytes: 400_000,
  bytes: 500_000,
  shown: 100,
  statements: 250,
  rows: 10_000,
}

/** What of a page is above its bound. */
export function boundsBroken({ calls, largest, bytes, shown, rows, statements }: Measured): string[] {
  const faults: string[] = []
  const check = (what: string, value: number, most: number) => {
    if (value > most) faults.push(`${value} ${what}, more than ${most}`)
  }
  check(`calls (${calls.join(', ')})`, calls.length, MOST.calls)
  check(`bytes in the answer of ${largest.call}`, largest.bytes, MOST.answer_bytes)
  check('bytes in all answers', bytes, MOST.bytes)
  check('rows in the page', shown, MOST.shown)
  check('statements', statements, MOST.statements)
  check('rows of the store', rows, MOST.rows)
  return faults
}

export type MeasuredConsole = TestConsole & {
  /** The addresses of all pages, with objects of the store where a page is of one object. */
  paths: readonly string[]
  measure(path: string): Promise<Measured>
  /** Each statement that ran so far, with its plan. */
  plans(): { statement: string; plan: string }[]
}

export async function openMeasured(size: Size, patterns: readonly string[]): Promise<MeasuredConsole> {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-measured-'))
  const file = join(directory, 'gatehouse.db')
  await filledStore(size, file)
  const { models, keep_days } = filledSettings(size)
  const store = watchStatements()
  const settings = { models, request_log: { ...DEFAULT_REQUEST_LOG, keep_days } }
  const opened = await openConsole(settings, { store_url: `sqlite:${file}` })
  const paths = await pathsOf(opened, patterns)
  const page = await opened.open('/requests/find')
  const seen = watchCalls(page)
  store.reset()
  return {
    ...opened,
    paths,
    async measure(path) {
      seen.reset()
      const before = store.counts()
      const started = performance.now()
      await page.goto(`${opened.origin}/console${path}`)
      await settled(page)
      await seen.idle()
      const ms = performance.now() - started
      const after = store.counts()
      const shown = await page.locator('tbody tr').count()
      const [statements, rows] = [after.statements - before.statements, after.rows - before.rows]
      return { path, ...seen.result(), shown, statements, rows, ms }
    },
    plans: () => plansOf(file, store.texts()),
    async close() {
      store.stop()
      await opened.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** The calls of the admin API by a page, without its streams of events. */
function watchCalls(page: Page) {
  let calls: string[] = []
  const open = new Set<Request>()
  let [bytes, largest] = [0, { bytes: 0, call: '' }]
  const nameOf = (request: Request) => `${request.method()} ${request.url().split('/admin/v1')[1]}`
  const isCounted = (request: Request) =>
    request.url().includes('/admin/v1/') && !request.headers().accept?.includes('text/event-stream')
  page.on('request', (request) => {
    if (!isCounted(request)) return
    calls.push(nameOf(request))
    open.add(request)
  })
  page.on('requestfailed', (request) => open.delete(request))
  page.on('requestfinished', async (request) => {
    if (!open.has(request)) return
    const body = await (await request.response())?.body().catch(() => undefined)
    const size = body?.length ?? 0
    bytes += size
    if (size > largest.bytes) largest = { bytes: size, call: nameOf(request) }
    open.delete(request)
  })
  return {
    reset() {
      calls = []
      open.clear()
      bytes = 0
      largest = { bytes: 0, call: '' }
    },
    result: () => ({ calls, bytes, largest }),
    /** Until no call is open, and none follows within some frames. */
    async idle() {
      for (let quiet = 0, known = -1; quiet < FRAMES; quiet++) {
        await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)))
        if (open.size > 0 || calls.length !== known) quiet = 0
        known = calls.length
      }
    },
  }
}

const FRAMES = 5

/** Counts the statements of the store and their rows, from now on. */
function watchStatements() {
  const { prepare } = Database.prototype
  const texts = new Set<string>()
  const counts = { statements: 0, rows: 0 }
  Database.prototype.prepare = function watched(this: Database, text: string, ...rest: unknown[]) {
    const statement = (prepare as (...all: unknown[]) => ReturnType<typeof prepare>).call(this, text, ...rest)
    const all = statement.all.bind(statement)
    statement.all = (...values) => {
      const rows = all(...values)
      counts.statements++
      counts.rows += rows.length
      texts.add(text)
      return rows
    }
    return statement
  } as typeof prepare
  return {
    counts: () => ({ ...counts }),
    texts: () => [...texts],
    reset: () => texts.clear(),
    stop() {
      Database.prototype.prepare = prepare
    },
  }
}

function plansOf(file: string, statements: readonly string[]): { statement: string; plan: string }[] {
  const database = new Database(file, { readonly: true })
  try {
    return statements
      .filter((statement) => /^\s*(select|with)\b/i.test(statement))
      .map((statement) => {
        const rows = database.query<{ detail: string }, []>(`explain query plan ${statement}`).all()
        return { statement, plan: rows.map(({ detail }) => detail).join('\n') }
      })
  } finally {
    database.close()
  }
}

/** An address for each page: `$` stands for an object of the store. */
async function pathsOf(opened: TestConsole, patterns: readonly string[]): Promise<string[]> {
  const first = async <Row>(list: string): Promise<Row> => (await opened.admin<{ data: Row[] }>(list)).data[0] as Row
  const request = await first<Record<string, string>>('/requests?limit=1&status=200')
  const objects: Record<string, unknown> = {
    id: request.id,
    token_id: request.token_id,
    project_id: request.project_id,
    provider: (await first<Record<string, string>>('/providers')).id,
    '': request.model,
  }
  const list = patterns.flatMap((pattern) => {
    const [, name] = /\$(\w*)/.exec(pattern) ?? []
    if (name === undefined) return [pattern]
    const value = objects[name]
    return value === undefined ? [] : [pattern.replace(/\$\w*/, String(value))]
  })
  const { model, project_id, token_id } = request
  return [
    ...list,
    '/?range=30d',
    '/models?view=table',
    '/models?q=coder',
    '/requests?range=30d&error=any',
    `/requests?range=30d&model=${model}&project=${project_id}`,
    `/requests?range=30d&token=${token_id}`,
    '/requests?range=30d&tag=env:production',
    ...['project', 'token', 'model', 'user', 'tag'].map((by) => `/usage?range=30d&by=${by}`),
    '/usage?range=7d&by=token',
    '/tokens?q=service-9',
    `/tokens?state=all&project=${project_id}`,
    '/projects?q=search',
  ]
}
