/** `npm run bench:tasks`: what durable tasks cost, and how soon what is done can be seen. */
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, release, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { show } from '../figures.ts'
import { endEverything, GATEWAY_CORE, LOAD_CORE, whyNot } from '../processes.ts'
import { measureInFlight } from './in-flight.ts'
import { measureReads } from './reads.ts'
import { measureSubmissions } from './submissions.ts'

const HELP = `usage: npm run bench:tasks -- [--quick] [--only PART,PART]

  --quick           a tenth of the tasks, and shorter runs
  --only PART,...   only these parts: submissions, reads, in-flight
`

export type Figure = { name: string; value: number; unit: string; goal?: string }
type Plan = { in_flight: number; stored: number; seconds: number }
export type TaskBench = { dir: string; plan: Plan; progress: (text: string) => void }

const FULL: Plan = { in_flight: 10_000, stored: 1_000_000, seconds: 8 }
const QUICK: Plan = { in_flight: 1_000, stored: 100_000, seconds: 3 }

const PARTS: Record<string, (bench: TaskBench) => Promise<Figure[]>> = {
  submissions: measureSubmissions,
  reads: measureReads,
  'in-flight': measureInFlight,
}

const progress = (text: string) => void process.stderr.write(`${text}\n`)

function render(figures: Figure[]): string {
  const rows = figures.map(({ name, value, unit, goal = '' }) => `| ${name} | ${show(value)} ${unit} | ${goal} |`)
  return ['| | | goal |', '|---|---:|---|', ...rows].join('\n')
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string', default: Object.keys(PARTS).join(',') },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    progress(HELP)
    return 0
  }
  const names = values.only.split(',').map((name) => name.trim())
  const unknown = names.find((name) => !Object.hasOwn(PARTS, name))
  if (unknown !== undefined) {
    progress(`--only ${unknown}: there is no such part.\n\n${HELP}`)
    return 2
  }
  const obstacle = whyNot()
  if (obstacle) {
    progress(`The benchmark cannot run here: ${obstacle}.`)
    return 1
  }
  Bun.spawnSync(['taskset', '-a', '-c', '-p', String(LOAD_CORE), String(process.pid)])
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-bench-tasks-'))
  process.on('exit', () => {
    endEverything()
    rmSync(dir, { recursive: true, force: true })
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(130))
  const figures: Figure[] = []
  for (const name of names) {
    progress(name)
    figures.push(...((await PARTS[name]?.({ dir, plan: values.quick ? QUICK : FULL, progress })) ?? []))
  }
  const [cpu] = cpus()
  const machine = `${cpus().length} cores (${cpu?.model ?? 'unknown'}), ${Math.round(totalmem() / 2 ** 30)} GB, Linux ${release()}`
  process.stdout.write(
    `\n${render(figures)}\n\n${new Date().toISOString().slice(0, 10)}; ${machine}; Bun ${Bun.version}. ` +
      `The gateway runs on core ${GATEWAY_CORE}; load and vendor on core ${LOAD_CORE}.\n`,
  )
  return 0
}

process.exit(
  await main().catch((error: unknown) => {
    progress(`The benchmark broke off: ${error instanceof Error ? error.message : error}`)
    return 1
  }),
)
