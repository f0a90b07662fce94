/** `npm run bench`: measures Gatehouse beside the bare vendor, nginx and Portkey, and prints one table. */
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, release, tmpdir, totalmem } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { median, show } from './figures.ts'
import { findTools, type Tools, versionOf } from './find-tools.ts'
import { measureLatency, measureStreams, measureUnary } from './measure-load.ts'
import { measureRest, measureSlow, measureStart } from './measure-state.ts'
import { measureRoutes } from './measure-streams.ts'
import { type Bench, FULL, PARTS, type Part, QUICK, type Row } from './plan.ts'
import { endEverything, endGroup, GATEWAY_CORE, LOAD_CORE, whyNot } from './processes.ts'
import { checkAnswers, createSubjects, type Subject, startVendor, untilAccepted } from './subjects.ts'
import { renderTable } from './table.ts'

const HELP = `usage: npm run bench -- [--quick] [--only PART,PART] [--gatehouse FILE] [--keep]

  --quick           shorter and fewer runs: about five minutes instead of fifteen; figures vary more
  --only PART,...   only these parts: ${PARTS.join(', ')}
  --gatehouse FILE  another executable than bin/gatehouse, for example of another version
  --keep            keep the logs and say where they are
`

const MEASURES: Record<Part, { title: string; measure: (bench: Bench) => Promise<Row[]> }> = {
  unary: { title: 'whole answers', measure: measureUnary },
  latency: { title: 'added latency at a fixed rate', measure: measureLatency },
  streams: { title: 'streams', measure: measureStreams },
  routes: { title: 'streams relayed and translated', measure: measureRoutes },
  slow: { title: 'many slow streams', measure: measureSlow },
  start: { title: 'start-up', measure: measureStart },
  rest: { title: 'memory at rest', measure: measureRest },
}

type Options = {
  quick: boolean
  keep: boolean
  gatehouse: { binary: string; isOurs: boolean }
  parts: Part[]
}

/** What the arguments ask for; a text is what to say instead of running. */
function readOptions(args: string[]): Options | { refusal: string } {
  try {
    const { values } = parseArgs({
      args,
      options: {
        quick: { type: 'boolean', default: false },
        only: { type: 'string', default: PARTS.join(',') },
        gatehouse: { type: 'string' },
        keep: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    })
    if (values.help) return { refusal: HELP }
    const names = values.only.split(',').map((name) => name.trim())
    const unknown = names.find((name) => !PARTS.some((part) => part === name))
    if (unknown !== undefined) return { refusal: `--only ${unknown}: there is no such part.\n\n${HELP}` }
    const parts = PARTS.filter((part) => names.includes(part))
    const isOurs = values.gatehouse === undefined
    const binary = resolve(values.gatehouse ?? join(import.meta.dir, '../bin/gatehouse'))
    return { quick: values.quick, keep: values.keep, gatehouse: { binary, isOurs }, parts }
  } catch (error) {
    return { refusal: `${error instanceof Error ? error.message : error}\n\n${HELP}` }
  }
}

const progress = (text: string) => process.stderr.write(`${text}\n`)

async function measureAll(bench: Bench, parts: Part[]): Promise<Row[]> {
  const rows: Row[] = []
  for (const part of parts) {
    progress(`${MEASURES[part].title} (${parts.indexOf(part) + 1} of ${parts.length})`)
    rows.push(...(await MEASURES[part].measure(bench)))
  }
  return rows
}

/** Tries each subject once. A rival that does not work here is left out, and said so; Gatehouse must work. */
async function thatWork(subjects: Subject[], tools: Tools): Promise<Subject[]> {
  const working: Subject[] = []
  for (const subject of subjects) {
    const group = subject.start?.()
    try {
      if (group) await untilAccepted(subject, group)
      await checkAnswers(subject)
      working.push(subject)
    } catch (error) {
      if (subject.name === 'direct' || subject.name === 'gatehouse') throw error
      tools.missing.push(`${subject.name} does not work here, so its column is left out: ${firstLine(error)}`)
    } finally {
      if (group) await endGroup(group)
    }
  }
  return working
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? ''
}

/** What a reader needs to place the figures: never the machine's name. */
function describe(tools: Tools, gatehouse: string, others: number[]): string {
  const [cpu] = cpus()
  const versions = [
    `Bun ${Bun.version}`,
    `Gatehouse ${versionOf([gatehouse, 'version'])}`,
    ...(tools.nginx ? [`nginx ${versionOf([tools.nginx, '-v'])}`] : []),
    ...(tools.wrk ? [`wrk ${versionOf([tools.wrk, '-v'])}`] : []),
    ...(tools.node ? [`Node ${versionOf([tools.node, '--version'])}`] : []),
    ...(tools.portkey
      ? [`Portkey ${versionOf(['node', '-p', `require('${tools.portkey}/../../package.json').version`])}`]
      : []),
  ]
  const highest = Math.max(0, ...others)
  return [
    `${new Date().toISOString().slice(0, 10)}; ${cpus().length} cores (${cpu?.model ?? 'unknown'}), ` +
      `${Math.round(totalmem() / 2 ** 30)} GB, Linux ${release()}; ${versions.join(', ')}.`,
    `The gateway runs on core ${GATEWAY_CORE}; load and vendor on core ${LOAD_CORE}. Each figure is the median of its ` +
      `runs. Other work on the gateway's core meanwhile: median ${show(100 * (median(others) || 0))} %, ` +
      `at most ${show(100 * highest)} %.`,
    ...tools.missing,
  ].join('\n')
}

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2))
  if ('refusal' in options) {
    progress(options.refusal)
    return options.refusal === HELP ? 0 : 2
  }
  const obstacle = whyNot()
  if (obstacle) {
    progress(`The benchmark cannot run here: ${obstacle}.`)
    return 1
  }
  // This process only waits and polls; it belongs on the load's core with all its threads.
  Bun.spawnSync(['taskset', '-a', '-c', '-p', String(LOAD_CORE), String(process.pid)])
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'))
  process.on('exit', () => {
    endEverything()
    if (!options.keep) rmSync(dir, { recursive: true, force: true })
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(130))
  const tools = await findTools(progress)
  const vendor = await startVendor(dir)
  const all = createSubjects({ dir, tools, vendorPort: vendor.port, gatehouse: options.gatehouse })
  const subjects = await thatWork(all, tools)
  for (const text of tools.missing) progress(text)
  const bench: Bench = { plan: options.quick ? QUICK : FULL, tools, subjects, progress, others: [] }
  const rows = await measureAll(bench, options.parts)
  process.stdout.write(`\n${renderTable(rows)}\n\n${describe(tools, options.gatehouse.binary, bench.others)}\n`)
  if (options.keep) progress(`Logs: ${dir}`)
  return 0
}

process.exit(
  await main().catch((error) => {
    progress(`The benchmark broke off: ${error instanceof Error ? error.message : error}`)
    return 1
  }),
)
