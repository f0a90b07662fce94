/**
 * `npm run bench:sinks`: the latency of calls at a fixed rate while each thing that observes them is slow, dead or full, in turns
 * with a gateway whose sinks work. Ends with status 1 where the p99 of one is more than 5 % above.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { everythingOn, TOKEN } from './everything-on.ts'
import { median } from './figures.ts'
import type { RateOrder, RateResult } from './load.ts'
import { endEverything, endGroup, LOAD_CORE, runOnLoadCore, whyNot } from './processes.ts'
import { bodyFor, logTail, startVendor } from './subjects.ts'

const HELP = `usage: npm run bench:sinks -- [--rounds N] [--seconds N] [--rate N]

  --rounds N   (default: 5)
  --seconds N  of one round of one gateway (default: 5)
  --rate N     calls a second (default: 500)
`
const { values: options } = parseArgs({
  args: process.argv.slice(2),
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '5' },
    rate: { type: 'string', default: '500' },
    help: { type: 'boolean', default: false },
  },
})
const obstacle = whyNot()
if (options.help || obstacle !== undefined) {
  process.stderr.write(options.help ? HELP : `It cannot run here: ${obstacle}.\n`)
  process.exit(options.help ? 0 : 1)
}
Bun.spawnSync(['taskset', '-a', '-c', '-p', String(LOAD_CORE), String(process.pid)])

const MOST = 1.05
const SLOW_SCRAPERS = 20
const SCRAPE_MILLISECONDS = 1_000
const dir = mkdtempSync(join(tmpdir(), 'gatehouse-sinks-'))
process.on('exit', () => {
  endEverything()
  rmSync(dir, { recursive: true, force: true })
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(130))

const receiver = (fetch: () => Response | Promise<Response>) => {
  const { port } = Bun.serve({ hostname: '127.0.0.1', port: 0, idleTimeout: 0, fetch })
  return `http://127.0.0.1:${port}`
}
const working = receiver(() => new Response())
const silent = receiver(() => new Promise(() => {}))
const AWAY = 'http://127.0.0.1:9'

const http = (url: string) => ({
  request_log: `{ keep_days: 1, sinks: [{ http: { url: "${url}/" }, max_queued: 1000 }] }`,
})
const otlp = (url: string) => ({ more: `telemetry: { otlp: { endpoint: "${url}" } }` })

type Subject = { name: string; request_log?: string; more?: string; isScraped?: true }
/** Each is compared with the one of its kind that works. */
const KINDS: [Subject, ...Subject[]][] = [
  [
    { name: 'HTTP sink, works', ...http(working) },
    { name: 'HTTP sink, never answers', ...http(silent) },
    { name: 'HTTP sink, away', ...http(AWAY) },
  ],
  [
    { name: 'file sink, works', request_log: '{ keep_days: 1, sinks: [{ file: { path: requests.ndjson } }] }' },
    { name: 'file sink, disk full', request_log: '{ keep_days: 1, sinks: [{ file: { path: /dev/full } }] }' },
  ],
  [
    { name: 'traces, collector works', ...otlp(working) },
    { name: 'traces, collector never answers', ...otlp(silent) },
    { name: 'traces, collector away', ...otlp(AWAY) },
  ],
  [{ name: 'no scrape' }, { name: `a scrape a second, ${SLOW_SCRAPERS} never read`, isScraped: true }],
]

const { port: vendorPort } = await startVendor(dir)
const binary = join(import.meta.dir, '../bin/gatehouse')

const url = (port: number) => `http://127.0.0.1:${port}/v1/chat/completions`
const headers = { 'content-type': 'application/json', authorization: `Bearer ${TOKEN}` }
const body = bodyFor('bench/whole', false)

/** Ends the scrapes. */
function scrape(port: number): () => void {
  const sockets = Array.from({ length: SLOW_SCRAPERS }, () => {
    const socket = connect(port, '127.0.0.1')
    socket.pause()
    socket.on('error', () => {})
    socket.write('GET /metrics HTTP/1.1\r\nhost: gatehouse\r\n\r\n')
    return socket
  })
  const timer = setInterval(async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text(), SCRAPE_MILLISECONDS)
  return () => {
    clearInterval(timer)
    for (const socket of sockets) socket.destroy()
  }
}

async function p99Of(port: number, isScraped: boolean): Promise<number> {
  const stop = isScraped ? scrape(port) : undefined
  const seconds = Number(options.seconds)
  const order: RateOrder = {
    load: 'rate',
    url: url(port),
    headers,
    body,
    perSecond: Number(options.rate),
    seconds,
    warmSeconds: 1,
  }
  const text = await runOnLoadCore([process.execPath, join(import.meta.dir, 'load.ts')], {
    BENCH_ORDER: JSON.stringify(order),
  })
  stop?.()
  const { p99, failed, answered } = JSON.parse(text) as RateResult
  if (failed > 0 || answered < order.perSecond * seconds)
    throw new Error(`${failed} calls failed, ${answered} were answered`)
  return p99
}

let isWorse = false
for (const [index, kind] of KINDS.entries()) {
  const subjects = await Promise.all(
    kind.map(async ({ name, isScraped = false, ...settings }, at) => {
      const gateway = everythingOn({ home: join(dir, `${index}-${at}`), vendorPort, binary, server: '{}', ...settings })
      const group = gateway.start()
      for (let tries = 0; ; tries++) {
        const response = await fetch(url(gateway.port), { method: 'POST', headers, body }).catch(() => undefined)
        if (response?.ok) break
        if (tries === 300) throw new Error(`${name} accepted no call. ${logTail(group)}`)
        await Bun.sleep(100)
      }
      return { name, isScraped, group, port: gateway.port, p99: [] as number[] }
    }),
  )
  for (let round = 0; round <= Number(options.rounds); round++) {
    for (const { port, isScraped, p99 } of subjects) {
      const figure = await p99Of(port, isScraped)
      if (round > 0) p99.push(figure)
    }
  }
  for (const { group } of subjects) await endGroup(group)
  const right = median(subjects[0]?.p99 ?? [])
  for (const { name, p99 } of subjects) {
    const ratio = median(p99) / right
    if (ratio > MOST) isWorse = true
    process.stdout.write(`${name.padEnd(36)} p99 ${median(p99).toFixed(3)} ms  ${ratio.toFixed(3)} x\n`)
  }
}
process.exit(isWorse ? 1 : 0)
