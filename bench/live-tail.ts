/**
 * What an open live tail costs with 500 calls a second: processor time of the gateway for a call with the page open in
 * Chromium and without, in turns, and the browser's share of a core. Ends with status 1 above the bounds. `--rounds 8`,
 * `--seconds 5`: of each turn.
 */
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'
import { buildConsole, isConsoleStale } from '../scripts/build-console.ts'
import { OWNER } from '../test/kit/admin.ts'
import { openPort } from '../test/kit/served.ts'
import { cpuSeconds } from './processes.ts'

const CALLS_A_SECOND = 500
const TICK_MILLISECONDS = 10
const WARM_MILLISECONDS = 1_000
/** Of the processor time of a call without a tail. */
const MOST_SHARE = 0.02
const MOST_CORE = 0.3

const { values } = parseArgs({
  options: {
    serve: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '8' },
    seconds: { type: 'string', default: '5' },
  },
})
const print = (line: string) => void process.stdout.write(`${line}\n`)

/** The gateway, in a process of its own, until its input ends. */
async function serve(): Promise<void> {
  const port = await openPort({ admin_token: OWNER })
  print(JSON.stringify({ origin: port.url.replace(/\/v1$/, ''), token: port.token }))
  for await (const _ of Bun.stdin.stream());
  await port.close()
}

type Served = { origin: string; token: string }

/** Calls at an even pace for so long; returns how many were answered. */
async function callFor({ origin, token }: Served, milliseconds: number): Promise<number> {
  const body = JSON.stringify({
    model: 'sandbox/general',
    messages: [{ role: 'user', content: 'Hello' }],
    max_tokens: 5,
  })
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  let answered = 0
  const call = async () => {
    const response = await fetch(`${origin}/v1/chat/completions`, { method: 'POST', headers, body })
    await response.arrayBuffer()
    if (response.ok) answered++
  }
  const pending: Promise<void>[] = []
  const started = performance.now()
  for (let sent = 0; performance.now() - started < milliseconds; ) {
    const due = Math.floor(((performance.now() - started) / 1_000) * CALLS_A_SECOND)
    for (; sent < due; sent++) pending.push(call())
    await Bun.sleep(TICK_MILLISECONDS)
  }
  await Promise.all(pending)
  return answered
}

async function openBrowser({ origin }: Served) {
  const executablePath = process.env.GATEHOUSE_CHROMIUM ?? '/usr/bin/chromium'
  const server = await chromium.launchServer({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
  const browser = await chromium.connect(server.wsEndpoint())
  const page = await browser.newPage()
  const login = await page.request.post(`${origin}/admin/v1/login`, {
    headers: { 'x-gatehouse-csrf': '1' },
    data: { token: OWNER },
  })
  if (!login.ok()) throw new Error(`login: ${login.status()}`)
  return { page, group: { pid: server.process().pid ?? 0 }, close: () => server.close() }
}

const median = (numbers: number[]): number => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0

async function measure(): Promise<void> {
  if (isConsoleStale()) await buildConsole()
  const command = [process.execPath, import.meta.filename, '--serve']
  const child = Bun.spawn(command, { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit', detached: true })
  const { value } = await child.stdout.getReader().read()
  const served = JSON.parse(new TextDecoder().decode(value)) as Served
  const browser = await openBrowser(served)
  const cost = { without: [] as number[], with: [] as number[] }
  const cores: number[] = []
  const turn = async (kind: keyof typeof cost) => {
    await browser.page.goto(kind === 'with' ? `${served.origin}/console/requests?live=yes` : 'about:blank')
    await callFor(served, WARM_MILLISECONDS)
    const row = browser.page.locator('.live-table tbody tr').first()
    while (kind === 'with' && !(await row.isVisible())) await callFor(served, WARM_MILLISECONDS)
    const [gateway, chromium, started] = [cpuSeconds(child), cpuSeconds(browser.group), performance.now()]
    const calls = await callFor(served, Number(values.seconds) * 1_000)
    cost[kind].push(((cpuSeconds(child) - gateway) / calls) * 1e6)
    const seconds = (performance.now() - started) / 1_000
    if (kind === 'with') cores.push((cpuSeconds(browser.group) - chromium) / seconds)
  }
  // In both orders, so that what changes with time counts for both.
  for (let round = 0; round < Number(values.rounds); round++)
    for (const kind of round % 2 ? (['with', 'without'] as const) : (['without', 'with'] as const)) await turn(kind)
  await browser.close()
  child.stdin.end()
  await child.exited

  const [before, after, core] = [median(cost.without), median(cost.with), median(cores)]
  const more = after / before - 1
  print(
    `gateway: ${before.toFixed(0)} µs of processor time a call without a tail, ${after.toFixed(0)} µs with one: ${(more * 100).toFixed(1)} % more (bound ${MOST_SHARE * 100} %)`,
  )
  print(`browser: ${(core * 100).toFixed(0)} % of a core (bound ${MOST_CORE * 100} %)`)
  if (more > MOST_SHARE || core > MOST_CORE) process.exitCode = 1
}

if (values.serve) await serve()
else await measure()
