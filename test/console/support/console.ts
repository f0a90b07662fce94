/** A gateway on a port with its console in real Chromium. */
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { buildConsole, isConsoleStale } from '../../../scripts/build-console.ts'
import { DEFAULT_ADMIN } from '../../../src/config/config.ts'
import { OWNER } from '../../kit/admin.ts'
import { openPort, type Port } from '../../kit/served.ts'
import { launchChromium, WAIT_MILLISECONDS } from './chromium.ts'
import { expectSoon } from './soon.ts'
import { type ConsolePage, closePages, watched } from './watched.ts'

type Role = 'owner' | 'operator' | 'viewer' | 'project_admin' | 'project_member'
type Scheme = 'light' | 'dark'

export type OpenOptions = {
  /** Who is logged in; `nobody`: there is no session. Default: an owner. */
  role?: Role | 'nobody'
  /** The project of a project_admin. */
  project_id?: string
  scheme?: Scheme
  width?: number
  height?: number
  /** Faults that the test expects, such as `/404/`: a console error, or `GET /path 404` of a response. */
  allowed?: RegExp
}

export type TestConsole = {
  port: Port
  /** `http://127.0.0.1:<port>` */
  origin: string
  /** The JSON of the admin API as its owner; `path` is what follows `/admin/v1`. Throws for an error. */
  admin<T = Record<string, unknown>>(path: string, options?: { method?: string; json?: unknown }): Promise<T>
  /** Makes a chat call; default: with the first API token. */
  chat(body?: object, secret?: string): Promise<Response>
  /** Waits until so many calls are in the sums of the request log. */
  recorded(calls: number): Promise<void>
  /** Opens a page of the console, such as `/models?q=a`, and waits for its heading and its data. The end of the test closes it. */
  open(path: string, options?: OpenOptions): Promise<ConsolePage>
  close(): Promise<void>
}

/** Tests are faster than a person, and must not depend on how fast. */
const ADMIN = { ...DEFAULT_ADMIN, requests_per_minute: 1_000_000 }
/** How many times slower the pages run than they could, to find what depends on the speed of the machine. */
const CPU_THROTTLE = Number(process.env.GATEHOUSE_CPU_THROTTLE ?? 1)

/** Built once for a run of tests, where a source is newer. */
async function ensureBuilt(): Promise<void> {
  if (isConsoleStale()) await buildConsole()
}

export async function openConsole(
  settings: Parameters<typeof openPort>[0] = {},
  parts: Parameters<typeof openPort>[1] = {},
): Promise<TestConsole> {
  await ensureBuilt()
  const port = await openPort({ admin_token: OWNER, admin: ADMIN, ...settings }, parts)
  const origin = port.url.replace(/\/v1$/, '')
  const browser = await launchChromium()
  const sessions = createSessions(origin)

  return {
    port,
    origin,
    admin: (path, options) => callAdmin(origin, path, options),
    chat: (body = {}, secret = port.token) =>
      port.gateway.chat(
        { model: 'sandbox/general', messages: [{ role: 'user', content: 'Hello' }], ...body },
        { headers: { authorization: `Bearer ${secret}` } },
      ),
    async recorded(calls) {
      await expectSoon(async () => {
        port.gateway.instance.flushRequests()
        const { total } = await callAdmin<{ total: { calls: number } }>(origin, '/summary?step=hour')
        return total.calls >= calls
      }, true)
    },
    async open(path, options = {}) {
      const context = await contextOf(browser, options)
      const { role = 'owner', project_id } = options
      if (role !== 'nobody') await context.addCookies([await sessions.cookieOf(role, project_id)])
      const page = watched(await context.newPage(), options.allowed)
      if (CPU_THROTTLE > 1) await throttle(page)
      await page.goto(`${origin}/console${path}`)
      await settled(page)
      return page
    },
    async close() {
      try {
        await closePages()
      } finally {
        await browser.close()
        await port.close()
      }
    },
  }
}

async function throttle(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page)
  await session.send('Emulation.setCPUThrottlingRate', { rate: CPU_THROTTLE })
}

/** Waits for the heading of a page, and until nothing of it is loading. */
export async function settled(page: Page): Promise<void> {
  await page.waitForSelector('h1')
  await page.waitForFunction(() => document.querySelector('.skeletons, .progress') === null)
}

async function contextOf(browser: Browser, options: OpenOptions): Promise<BrowserContext> {
  const { scheme = 'light', width = 1280, height = 900 } = options
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: scheme,
    reducedMotion: 'reduce',
    locale: 'en-US',
    timezoneId: 'Europe/Berlin',
  })
  context.setDefaultTimeout(WAIT_MILLISECONDS)
  return context
}

async function callAdmin<T>(
  origin: string,
  path: string,
  options: { method?: string; json?: unknown } = {},
): Promise<T> {
  const { json, method = json === undefined ? 'GET' : 'POST' } = options
  const response = await fetch(`${origin}/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${OWNER}`, 'content-type': 'application/json' },
    ...(json !== undefined && { body: JSON.stringify(json) }),
  })
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
  return (await response.json()) as T
}

/** One session for each role, begun by an admin token. */
function createSessions(origin: string) {
  const known = new Map<string, Promise<string>>()
  async function login(role: Role, project_id: string | undefined): Promise<string> {
    const name = `${role} ${project_id ?? ''}`.trim()
    const token = role === 'owner' ? OWNER : await tokenFor(origin, { name, role, project_id })
    const response = await fetch(`${origin}/admin/v1/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-gatehouse-csrf': '1' },
      body: JSON.stringify({ token }),
    })
    if (!response.ok) throw new Error(`login as ${role}: ${response.status} ${await response.text()}`)
    return /gatehouse_session=([^;]+)/.exec(response.headers.get('set-cookie') ?? '')?.[1] ?? ''
  }
  return {
    async cookieOf(role: Role, project_id?: string) {
      const key = `${role} ${project_id}`
      const session = known.get(key) ?? login(role, project_id)
      known.set(key, session)
      return {
        name: 'gatehouse_session',
        value: await session,
        domain: '127.0.0.1',
        path: '/admin',
        httpOnly: true,
        sameSite: 'Strict' as const,
      }
    },
  }
}

async function tokenFor(origin: string, json: object): Promise<string> {
  const { secret } = await callAdmin<{ secret: string }>(origin, '/admin-tokens', { json })
  return secret
}

const AXE = await Bun.file(createRequire(import.meta.url).resolve('axe-core/axe.min.js')).text()

/** What axe finds serious or critical in the page as it is now: rule, help and place of each. */
export async function axeFaults(page: Page): Promise<string[]> {
  await page.evaluate(AXE)
  return page.evaluate(async () => {
    type Result = { id: string; impact: string; help: string; nodes: { target: unknown[]; failureSummary: string }[] }
    const { axe } = window as unknown as { axe: { run(): Promise<{ violations: Result[] }> } }
    const { violations } = await axe.run()
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .flatMap(({ id, help, nodes }) =>
        nodes.map(({ target, failureSummary }) => `${id}: ${help} (${target}) ${failureSummary}`),
      )
  })
}

/** Pictures of the page at three widths, where GATEHOUSE_SCREENSHOTS names a directory for them. */
export async function screenshots(page: Page, name: string, widths = [390, 1280, 2560]): Promise<void> {
  const directory = process.env.GATEHOUSE_SCREENSHOTS
  if (!directory) return
  for (const width of widths) {
    await page.setViewportSize({ width, height: width === 390 ? 844 : 900 })
    await page.waitForTimeout(150) // charts follow the width of their place
    await page.screenshot({ path: join(directory, `${name}-${width}.png`) })
  }
}
