/** `npm run bench:peers`: measures Gatehouse beside every peer that can be installed, and others by a file, in one run. */
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, release, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { CASES } from '../conformance/cases.ts'
import { startVendor as startCases } from '../conformance/vendor.ts'
import { show } from '../figures.ts'
import { findTools } from '../find-tools.ts'
import { endEverything, LOAD_CORE, whyNot } from '../processes.ts'
import { startVendor } from '../subjects.ts'
import { installLitellm, knownPeers } from './known.ts'
import { measurePeers, type Plan, type Result } from './measure.ts'
import { preparePeer, readPeerFile } from './peer.ts'

const HELP = `usage: npm run bench:peers -- [--quick] [--only NAME]... [--peer FILE]... [--no-litellm] [--keep]

  --quick        shorter and fewer runs; figures vary more
  --only NAME    only peers whose name has this in it; may be repeated
  --peer FILE    one more gateway, described by a JSON file (bench/README.md); may be repeated
  --no-litellm   without LiteLLM, whose installation takes minutes and 900 MB
  --keep         keep the logs and say where they are
`
const FULL: Plan = { rounds: 5, seconds: 5, warmSeconds: 4, idleSeconds: 15, heldStreams: 2000, starts: 5 }
const QUICK: Plan = { rounds: 2, seconds: 3, warmSeconds: 2, idleSeconds: 12, heldStreams: 500, starts: 1 }

const progress = (text: string) => void process.stderr.write(`${text}\n`)

function readOptions() {
  try {
    return parseArgs({
      options: {
        quick: { type: 'boolean', default: false },
        only: { type: 'string', multiple: true },
        peer: { type: 'string', multiple: true, default: [] },
        'no-litellm': { type: 'boolean', default: false },
        keep: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    }).values
  } catch (error) {
    progress(`${error instanceof Error ? error.message : error}\n\n${HELP}`)
    return undefined
  }
}

async function main(): Promise<number> {
  const options = readOptions()
  if (!options) return 2
  if (options.help) {
    progress(HELP)
    return 0
  }
  const obstacle = whyNot()
  if (obstacle) {
    progress(`The benchmark cannot run here: ${obstacle}.`)
    return 1
  }
  Bun.spawnSync(['taskset', '-a', '-c', '-p', String(LOAD_CORE), String(process.pid)])
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-peers-'))
  process.on('exit', () => {
    endEverything()
    if (options.keep) progress(`Logs: ${dir}`)
    else rmSync(dir, { recursive: true, force: true })
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(130))

  const given = options.peer.map(readPeerFile)
  const tools = await findTools(progress)
  if (!tools.wrk) {
    progress('wrk is not installed (Debian: apt-get install wrk), and all loads need it.')
    return 1
  }
  const isWanted = (name: string) =>
    options.only?.some((part) => name.toLowerCase().includes(part.toLowerCase())) ?? true
  const litellm = options['no-litellm'] || !isWanted('LiteLLM') ? undefined : await installLitellm(progress)
  const files = [...knownPeers(tools, litellm), ...given].filter(({ name }) => isWanted(name))
  const vendor = await startVendor(dir)
  const cases = await startCases()
  const peers = files.map((file) => preparePeer(file, { vendor: vendor.port, conformance: cases.port }, dir))
  const plan = options.quick ? QUICK : FULL
  const load = join(import.meta.dir, '../load.ts')
  const results = await measurePeers(peers, { wrk: tools.wrk, plan, vendor: cases, load, progress })
  await cases.close()
  process.stdout.write(`\n${table(results)}\n\n${describe(results)}\n`)
  return 0
}

const megabytes = (bytes: number) => show(bytes / 2 ** 20)
const orDash = (value: number) => (Number.isNaN(value) ? '-' : show(value))

function table(results: readonly Result[]): string {
  const head = [
    'gateway',
    'whole answers/s',
    'us of processor time',
    'p50 ms',
    'streamed events/s',
    'us an event',
    'a held stream, KB',
    'memory before, under, after load, MB',
    'start, ms',
    'client leaves',
    'provider breaks off',
    `cases of ${CASES.length}`,
  ]
  const lines = [head, head.map(() => '---'), ...results.filter(({ broken }) => broken === undefined).map(cells)]
  return lines.map((line) => `| ${line.join(' | ')} |`).join('\n')
}

function cells(result: Result): string[] {
  const { peer, whole, events, memory, heldBytes, failures, start_ms } = result
  const holds = (...names: string[]) => (names.some((name) => failures.has(name)) ? 'fails' : 'right')
  const failed = (count: number) => (count > 0 ? ` (${show(count)} failed)` : '')
  return [
    `${peer.name} ${peer.version}`,
    `${orDash(whole.perSecond)}${failed(whole.failed)}`,
    orDash(whole.microseconds),
    orDash(whole.p50),
    `${orDash(events.perSecond)}${failed(events.failed)}`,
    orDash(events.microseconds),
    heldBytes === undefined ? 'lost some' : show(heldBytes / 1024),
    [memory.before, memory.highest, memory.after].map(megabytes).join(', '),
    orDash(start_ms),
    holds('client leaves', 'client leaves early'),
    holds('broken connection', 'early end', 'error event'),
    String(CASES.length - failures.size),
  ]
}

function describe(results: readonly Result[]): string {
  const [cpu] = cpus()
  const broken = results.filter((one) => one.broken !== undefined)
  const failures = results.filter((one) => one.failures.size > 0)
  return [
    `${new Date().toISOString().slice(0, 10)}; ${cpus().length} cores (${cpu?.model ?? 'unknown'}), ${Math.round(totalmem() / 2 ** 30)} GB, Linux ${release()}. One core each for the gateway and for load and vendor; medians of runs in turns.`,
    ...results.map(({ peer }) => `- ${peer.name} ${peer.version}: ${peer.on}.`),
    ...failures.map(({ peer, failures: all }) => `- ${peer.name} fails: ${[...all.keys()].join(', ')}.`),
    ...broken.map(({ peer, broken: reason }) => `- ${peer.name} does not work here, so it has no row: ${reason}`),
  ].join('\n')
}

process.exit(
  await main().catch((error) => {
    progress(`The benchmark broke off: ${error instanceof Error ? error.message : error}`)
    return 1
  }),
)
