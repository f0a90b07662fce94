/**
 * `npm run bench:soak`: the gateway with everything on under mixed calls for an hour; what memory it holds each minute. Ends
 * with status 1 where the last minute holds a tenth more than the minute after the warm-up, or where a call fails.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { everythingOn, TOKEN } from './everything-on.ts'
import { median } from './figures.ts'
import { cpuSeconds, endEverything, endGroup, type Group, LOAD_CORE, residentBytes, whyNot } from './processes.ts'
import { bodyFor, logTail, startVendor } from './subjects.ts'

const HELP = `usage: npm run bench:soak -- [--minutes N] [--clients N]

  --minutes N   how long (default: 60)
  --clients N   calls at once (default: 16)
`
const { values: options } = parseArgs({
  args: process.argv.slice(2),
  options: {
    minutes: { type: 'string', default: '60' },
    clients: { type: 'string', default: '16' },
    help: { type: 'boolean', default: false },
  },
})
const obstacle = whyNot()
if (options.help || obstacle !== undefined) {
  process.stderr.write(options.help ? HELP : `It cannot run here: ${obstacle}.\n`)
  process.exit(options.help ? 0 : 1)
}
Bun.spawnSync(['taskset', '-a', '-c', '-p', String(LOAD_CORE), String(process.pid)])

/** After this many minutes memory should grow no more. */
const WARM_MINUTES = 10
const MOST_GROWTH = 1.1
/** Data of an image in a large body. */
const IMAGE_BYTES = 600_000
const SAMPLES_A_MINUTE = 12
const MEGABYTE = 1024 * 1024

const dir = mkdtempSync(join(tmpdir(), 'gatehouse-soak-'))
process.on('exit', () => {
  endEverything()
  rmSync(dir, { recursive: true, force: true })
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(130))

const { port: vendorPort } = await startVendor(dir)
const binary = join(import.meta.dir, '../bin/gatehouse')
const { port, start } = everythingOn({ home: join(dir, 'gateway'), vendorPort, binary, server: '{}', sandbox: true })
const base = `http://127.0.0.1:${port}/v1`
const headers = { 'content-type': 'application/json', authorization: `Bearer ${TOKEN}` }

const post = (path: string, body: string, signal?: AbortSignal) =>
  fetch(base + path, { method: 'POST', headers, body, ...(signal && { signal }) })

async function whole(body: string): Promise<void> {
  const response = await post('/chat/completions', body)
  if (!(await response.text()).includes('"total_tokens"') || !response.ok) throw new Error(`HTTP ${response.status}`)
}

async function streamed(): Promise<void> {
  const response = await post('/chat/completions', bodyFor('bench/stream', true))
  if (!(await response.text()).includes('[DONE]')) throw new Error(`a stream without its end, HTTP ${response.status}`)
}

/** The client leaves after the first part. */
async function aborted(): Promise<void> {
  const control = new AbortController()
  const response = await post('/chat/completions', bodyFor('bench/stream', true), control.signal)
  await response.body?.getReader().read()
  control.abort()
}

const image = `data:image/png;base64,${Buffer.alloc(IMAGE_BYTES, 7).toString('base64')}`
const largeBody = JSON.stringify({
  ...JSON.parse(bodyFor('bench/whole', false)),
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is this?' },
        { type: 'image_url', image_url: { url: image } },
      ],
    },
  ],
})

async function task(): Promise<void> {
  const prompt = 'A river.\n@sandbox queue_ms=0 render_ms=200'
  const response = await post('/video/generations', JSON.stringify({ model: 'sandbox/text-to-video', prompt }))
  if (!response.ok) throw new Error(`a task: HTTP ${response.status} ${await response.text()}`)
  await response.text()
}

/** Of a thousand calls. */
const MIX: [number, () => Promise<void>][] = [
  [1, task],
  [19, () => whole(largeBody)],
  [80, aborted],
  [200, streamed],
  [700, () => whole(bodyFor('bench/whole', false))],
]

function drawn(): () => Promise<void> {
  let share = Math.random() * 1000
  for (const [part, call] of MIX) {
    share -= part
    if (share < 0) return call
  }
  return streamed
}

let isOver = false
let calls = 0
const failures = new Map<string, number>()

async function client(): Promise<void> {
  while (!isOver) {
    const call = drawn()
    try {
      await call()
    } catch (thrown) {
      const { message } = thrown as Error
      failures.set(message, (failures.get(message) ?? 0) + 1)
    }
    calls++
  }
}

async function untilReady(group: Group): Promise<void> {
  for (let tries = 0; tries < 300; tries++) {
    try {
      return await whole(bodyFor('bench/whole', false))
    } catch {
      await Bun.sleep(100)
    }
  }
  throw new Error(`the gateway accepted no call. ${logTail(group)}`)
}

/** Of the gateway's own process, without those that render the sandbox's pictures. */
const ownBytes = ({ pid }: Group) =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0) * 1024

async function minute(group: Group): Promise<{ own: number; all: number }> {
  const own: number[] = []
  const all: number[] = []
  for (let sample = 0; sample < SAMPLES_A_MINUTE; sample++) {
    await Bun.sleep(60_000 / SAMPLES_A_MINUTE)
    own.push(ownBytes(group) / MEGABYTE)
    all.push(residentBytes(group) / MEGABYTE)
  }
  return { own: median(own), all: median(all) }
}

const group = start()
await untilReady(group)
const atRest = ownBytes(group) / MEGABYTE
const running = Array.from({ length: Number(options.clients) }, client)
process.stdout.write(`at rest ${atRest.toFixed(0)} MB\nminute  own MB  with renderers  calls  CPU us a call\n`)
const minutes: number[] = []
for (let index = 1; index <= Number(options.minutes); index++) {
  const [before, cpu] = [calls, cpuSeconds(group)]
  const { own, all } = await minute(group)
  minutes.push(own)
  const cost = ((cpuSeconds(group) - cpu) * 1e6) / (calls - before)
  process.stdout.write(
    `${String(index).padStart(6)}  ${own.toFixed(0).padStart(6)}  ${all.toFixed(0).padStart(14)}  ${calls - before}  ${cost.toFixed(0)}\n`,
  )
}
isOver = true
await Promise.all(running)
await Bun.sleep(60_000)
process.stdout.write(`a minute after the last call: ${(ownBytes(group) / MEGABYTE).toFixed(0)} MB\n`)
await endGroup(group)
const warm = minutes[Math.min(WARM_MINUTES, minutes.length) - 1] ?? 0
const last = minutes.at(-1) ?? 0
process.stdout.write(`growth after the warm-up: ${((last / warm - 1) * 100).toFixed(1)} %\n`)
for (const [message, count] of failures) process.stdout.write(`failed ${count} times: ${message}\n`)
process.exit(failures.size > 0 || last > warm * MOST_GROWTH ? 1 : 0)
