/**
 * `npm run bench:cost`: processor time of a whole answer, of the gateway with everything on beside a bare Bun proxy, in turns
 * within one run; and what a call makes and executes. Processor time says more than requests a second where other work shares
 * the cores. Ends with 1 where a figure is more than a tenth above what it must be.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { callShape } from './call-shape.ts'
import { everythingOn, TOKEN } from './everything-on.ts'
import { median } from './figures.ts'
import type { Target } from './http-client.ts'
import { fixedRate } from './measure-load.ts'
import { cpuSeconds, endEverything, endGroup, GATEWAY_CORE, type Group, LOAD_CORE, whyNot } from './processes.ts'
import { bareProxy, bodyFor, freePort, logTail, startVendor, VENDOR_KEY } from './subjects.ts'
import { runWrk } from './wrk.ts'

const HELP = `usage: npm run bench:cost -- [--rounds N] [--seconds N] [--gatehouse NAME=FILE ...] [--only PATTERN] [--answer whole|stream] [--workers N] [--rate N] [--profile]

  --gatehouse NAME=FILE  also another executable, for example of another version; may be repeated
  --only PATTERN         only subjects whose name matches
  --workers N            also one process and N workers, both on both cores
  --rate N               N requests a second of each, on a fixed schedule; default: as many as each can answer
  --profile              start the gateways with a CPU profile; the directory is printed and kept
`

/** The compilers of the runtime settle after some 40,000 calls: the first rounds would measure them too. */
const WARM_REQUESTS = 50_000
/** The most that a whole answer may take: times the bare proxy, objects, kilobytes of garbage, promises, files. */
const MUST = { ratio: 2.8, objects: 200, garbage: 25, promises: 12, files: 60, stream_files: 70 }
const TOLERANCE = 1.1

type Measured = { name: string; target: Target; start(): Group; costs: number[]; rates: number[] }

function gateway(name: string, { dir, vendorPort, binary, profile, workers, core }: GatewayOrder): Measured {
  const home = join(dir, name.replaceAll(/\W+/g, '-'))
  const env = profile ? { BUN_OPTIONS: `--cpu-prof --cpu-prof-md --cpu-prof-dir=${home}` } : {}
  const server = `{ workers: ${workers ?? 1}, drain_seconds: 0 }`
  const { port, start } = everythingOn({ home, vendorPort, binary, server, env, ...(core !== undefined && { core }) })
  return { name, target: targetAt(port, 'bench/', TOKEN), start, costs: [], rates: [] }
}

type GatewayOrder = { dir: string; vendorPort: number; binary: string; profile: boolean } & {
  workers?: number
  core?: string
}

const answer = (): 'whole' | 'stream' => (options.answer === 'stream' ? 'stream' : 'whole')

function targetAt(port: number, prefix: string, token: string): Target {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
  const body = bodyFor(prefix + answer(), answer() === 'stream')
  return { url: `http://127.0.0.1:${port}/v1/chat/completions`, headers, body }
}

/** Until it answers with 200. */
async function ready({ name, target }: Measured, group: Group): Promise<void> {
  let last = ''
  for (let tries = 0; tries < 300; tries++) {
    try {
      const { url, headers, body } = target
      const response = await fetch(url, { method: 'POST', headers, body })
      last = `${response.status}: ${(await response.text()).slice(0, 300)}`
      if (response.status === 200) return
    } catch {}
    await Bun.sleep(50)
  }
  throw new Error(`${name} did not answer with 200 (${last}). ${logTail(group)}`)
}

/** At the same rate, what wakes the other processes and joins what is ready costs each subject the same. */
async function load(target: Target, seconds: number) {
  const perSecond = Number(options.rate)
  if (perSecond === 0) return runWrk('wrk', target, seconds)
  const { sent, failed } = await fixedRate({ ...target, load: 'rate', perSecond, seconds, warmSeconds: 0 })
  return { requests: sent, perSecond: sent / seconds, failed }
}

async function measure(subjects: Measured[], rounds: number, seconds: number): Promise<void> {
  const running = subjects.map((subject) => ({ subject, group: subject.start() }))
  for (const { subject, group } of running) {
    await ready(subject, group)
    for (let sent = 0; sent < WARM_REQUESTS; ) sent += (await runWrk('wrk', subject.target, 2)).requests
  }
  for (let round = 1; round <= rounds; round++) {
    process.stderr.write(`round ${round} of ${rounds}\n`)
    for (const { subject, group } of running) {
      const before = cpuSeconds(group)
      const { requests, perSecond, failed } = await load(subject.target, seconds)
      if (failed > 0) throw new Error(`${subject.name}: ${failed} requests failed. ${logTail(group)}`)
      subject.costs.push(((cpuSeconds(group) - before) * 1e6) / requests)
      subject.rates.push(perSecond)
    }
  }
  for (const { group } of running) await endGroup(group)
}

const { values: options } = parseArgs({
  args: process.argv.slice(2),
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
    gatehouse: { type: 'string', multiple: true, default: [] },
    only: { type: 'string', default: '' },
    answer: { type: 'string', default: 'whole' },
    workers: { type: 'string', default: '1' },
    rate: { type: 'string', default: '0' },
    profile: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
const obstacle = whyNot() ?? (Bun.which('wrk') ? undefined : 'it needs wrk (Debian: apt-get install wrk)')
if (options.help || obstacle !== undefined) {
  process.stderr.write(options.help ? HELP : `It cannot run here: ${obstacle}.\n`)
  process.exit(options.help ? 0 : 1)
}
Bun.spawnSync(['taskset', '-a', '-c', '-p', String(LOAD_CORE), String(process.pid)])
const dir = mkdtempSync(join(tmpdir(), 'gatehouse-cost-'))
process.on('exit', () => {
  endEverything()
  if (!options.profile) rmSync(dir, { recursive: true, force: true })
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(130))
const { port: vendorPort } = await startVendor(dir)
const binaries = [`Gatehouse=${join(import.meta.dir, '../bin/gatehouse')}`, ...options.gatehouse]
const barePort = freePort()
const bare: Measured = {
  name: 'bare Bun proxy',
  target: targetAt(barePort, '', VENDOR_KEY),
  start: () => bareProxy({ port: barePort, vendorPort, log: join(dir, 'bare.log') }),
  costs: [],
  rates: [],
}
const subjects = [
  bare,
  ...binaries.map((given) => {
    const [name = '', file = ''] = given.split('=')
    return gateway(name, { dir, vendorPort, binary: resolve(file), profile: options.profile })
  }),
  ...(options.workers === '1' ? [] : ['1', options.workers]).map((workers) => {
    const core = `${GATEWAY_CORE},${LOAD_CORE}`
    const order = { dir, vendorPort, binary: join(import.meta.dir, '../bin/gatehouse'), profile: options.profile }
    return gateway(`Gatehouse, both cores, ${workers}`, { ...order, workers: Number(workers), core })
  }),
].filter(({ name }) => new RegExp(options.only).test(name))
await measure(subjects, Number(options.rounds), Number(options.seconds))
const floor = median(subjects[0]?.costs ?? [])
for (const { name, costs, rates } of subjects) {
  const cost = median(costs)
  const shown = [median(costs), Math.min(...costs), Math.max(...costs)].map((one) => one.toFixed(1).padStart(6))
  process.stdout.write(
    `${name.padEnd(28)} us of CPU a request: median ${shown[0]}, least ${shown[1]}, most ${shown[2]}; ` +
      `${(cost / floor).toFixed(2)} x the first; ${Math.round(median(rates))} requests/s\n`,
  )
}
if (options.profile) process.stdout.write(`Profiles: ${dir}\n`)

const own = subjects.find(({ name }) => name === 'Gatehouse')
if (answer() === 'stream') process.exit((await isStreamWithinBounds()) ? 0 : 1)
if (own && subjects.includes(bare)) {
  const isWithin = [await isWithinBounds(own), await isStreamWithinBounds()]
  process.exit(isWithin.every(Boolean) ? 0 : 1)
}
process.exit(0)

async function isStreamWithinBounds(): Promise<boolean> {
  let isWithin = true
  for (const [kind, name] of [
    ['stream', 'passed through'],
    ['messages', 'translated to Messages'],
  ] as const) {
    const { objects, garbage, files, promises, lines } = await callShape(dir, kind)
    process.stdout.write(
      `stream ${name}: objects ${Math.round(objects)}, garbage ${Math.round(garbage / 1000)} KB, files ${files}, ` +
        `promises ${Math.round(promises)}, lines ${lines}\n`,
    )
    if (files > MUST.stream_files * TOLERANCE) isWithin = false
  }
  return isWithin
}

async function isWithinBounds({ costs }: Measured): Promise<boolean> {
  const ratio = median(costs) / median(bare.costs)
  const { objects, garbage, promises, files, lines } = await callShape(dir)
  process.stdout.write(`whole answer: ${ratio.toFixed(2)} x the bare Bun proxy\n`)
  process.stdout.write(
    `objects ${Math.round(objects)}, garbage ${Math.round(garbage / 1000)} KB, files ${files}, ` +
      `promises ${Math.round(promises)}, lines ${lines}\n`,
  )
  const figures = { ratio, objects, garbage: garbage / 1000, promises, files }
  const above = (Object.keys(figures) as (keyof typeof figures)[]).filter(
    (name) => figures[name] > MUST[name] * TOLERANCE,
  )
  for (const name of above) process.stdout.write(`Above what it must be, ${MUST[name]}: ${name}\n`)
  return above.length === 0
}
