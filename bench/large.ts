/**
 * `npm run bench:large`: what a large request costs beside sending it directly: a conversation of 200,000 tokens, and a body of
 * 10 MB with images. Latency and processor time of one call after the other, and the memory that calls at once take.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { everythingOn, TOKEN } from './everything-on.ts'
import { median } from './figures.ts'
import { cpuSeconds, endEverything, endGroup, type Group, LOAD_CORE, residentBytes, whyNot } from './processes.ts'
import { logTail } from './subjects.ts'

const HELP = `usage: npm run bench:large -- [--rounds N]

  --rounds N  calls of each kind (default: 30)
`
const { values: options } = parseArgs({
  args: process.argv.slice(2),
  options: {
    rounds: { type: 'string', default: '30' },
    help: { type: 'boolean', default: false },
  },
})
const obstacle = whyNot()
if (options.help || obstacle !== undefined) {
  process.stderr.write(options.help ? HELP : `It cannot run here: ${obstacle}.\n`)
  process.exit(options.help ? 0 : 1)
}
Bun.spawnSync(['taskset', '-a', '-c', '-p', String(LOAD_CORE), String(process.pid)])

const MEGABYTE = 1024 * 1024
/** Calls at once, for the memory that each takes. */
const AT_ONCE = 8
/** About four characters a token in English. */
const WORDS = 'The gateway forwards what the model said and counts what passed, one word after another. '
const PAGES = 100
const PAGE = WORDS.repeat(Math.ceil(8_000 / WORDS.length))
const IMAGES = 10
const IMAGE = `data:image/png;base64,${Buffer.alloc(786_000, 7).toString('base64')}`

const conversation = Array.from({ length: PAGES }, (_, index) => ({
  role: index % 2 === 0 ? 'user' : 'assistant',
  content: PAGE,
}))
const images = [
  {
    role: 'user',
    content: [
      { type: 'text', text: 'What do these show?' },
      ...Array.from({ length: IMAGES }, () => ({ type: 'image_url', image_url: { url: IMAGE } })),
    ],
  },
]
const bodyOf = (messages: unknown) => JSON.stringify({ model: 'bench/whole', max_tokens: 512, messages })
const BODIES = { 'conversation of 200,000 tokens': bodyOf(conversation), '10 MB with images': bodyOf(images) }

const dir = mkdtempSync(join(tmpdir(), 'gatehouse-large-'))
process.on('exit', () => {
  endEverything()
  rmSync(dir, { recursive: true, force: true })
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(130))

const answer = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1_763_683_200,
  model: 'whole',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 200_000, completion_tokens: 2, total_tokens: 200_002 },
})
const vendor = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  maxRequestBodySize: 64 * MEGABYTE,
  async fetch(request) {
    await request.bytes()
    // All of the calls at once are held, so that none makes place for the next.
    if (isHeld) await Bun.sleep(1_000)
    return new Response(answer, { headers: { 'content-type': 'application/json' } })
  },
})
let isHeld = false
const vendorPort = vendor.port ?? 0

const { port, start } = everythingOn({
  home: join(dir, 'gateway'),
  vendorPort,
  binary: join(import.meta.dir, '../bin/gatehouse'),
  server: '{}',
})
const urls = {
  direct: `http://127.0.0.1:${vendorPort}/v1/chat/completions`,
  gateway: `http://127.0.0.1:${port}/v1/chat/completions`,
}
const headers = { 'content-type': 'application/json', authorization: `Bearer ${TOKEN}` }

async function send(url: string, body: string): Promise<number> {
  const from = performance.now()
  const response = await fetch(url, { method: 'POST', headers, body })
  const text = await response.text()
  if (!response.ok) throw new Error(`HTTP ${response.status}: ${text.slice(0, 300)}`)
  return performance.now() - from
}

/** Before what is measured: what the runtime takes for its first load is not part of a body. */
const SMALL_CALLS = 300
const SMALL = bodyOf([{ role: 'user', content: 'Hello' }])

/** A fresh process: after many large bodies its memory would already hold what further ones take. */
async function startFresh(): Promise<Group> {
  const group = start()
  for (let tries = 0; ; tries++) {
    if (await send(urls.gateway, SMALL).catch(() => undefined)) break
    if (tries === 300) throw new Error(`the gateway accepted no call. ${logTail(group)}`)
    await Bun.sleep(100)
  }
  for (let sent = 0; sent < SMALL_CALLS; sent++) await send(urls.gateway, SMALL)
  return group
}

/** Megabytes of each of some calls at once, whose answers all wait for a second. */
async function memoryOfEach(group: Group, body: string): Promise<number> {
  const before = residentBytes(group)
  let highest = before
  isHeld = true
  const watching = setInterval(() => {
    highest = Math.max(highest, residentBytes(group))
  }, 5)
  await Promise.all(Array.from({ length: AT_ONCE }, () => send(urls.gateway, body)))
  clearInterval(watching)
  isHeld = false
  return (highest - before) / AT_ONCE / MEGABYTE
}

async function timesOf(group: Group, body: string) {
  const times: Record<keyof typeof urls, number[]> = { direct: [], gateway: [] }
  let cpu = 0
  for (let round = -3; round < Number(options.rounds); round++) {
    for (const way of ['direct', 'gateway'] as const) {
      const before = cpuSeconds(group)
      const ms = await send(urls[way], body)
      if (round < 0) continue
      times[way].push(ms)
      if (way === 'gateway') cpu += cpuSeconds(group) - before
    }
  }
  return { direct: median(times.direct), through: median(times.gateway), cpu_ms: (cpu * 1000) / times.gateway.length }
}

for (const [name, body] of Object.entries(BODIES)) {
  const megabytes = Buffer.byteLength(body) / MEGABYTE
  const group = await startFresh()
  const each = await memoryOfEach(group, body)
  const { direct, through, cpu_ms } = await timesOf(group, body)
  await endGroup(group)
  process.stdout.write(
    `${name}: ${megabytes.toFixed(1)} MB; directly ${direct.toFixed(1)} ms, added ${(through - direct).toFixed(1)} ms, ` +
      `processor ${cpu_ms.toFixed(1)} ms; ${AT_ONCE} at once take ${each.toFixed(1)} MB each, ` +
      `${(each / megabytes).toFixed(2)} times the body\n`,
  )
}
process.exit(0)
