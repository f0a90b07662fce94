/** Measures subjects under load: requests and events a second, and the latency that each adds. */
import { join } from 'node:path'
import { median, show } from './figures.ts'
import type { RateOrder, RateResult } from './load.ts'
import { type Bench, type Figures, quietest, type Row, watched } from './plan.ts'
import { endGroup, type Group, runOnLoadCore } from './processes.ts'
import { type Answer, checkAnswers, type Subject, type SubjectName, untilAccepted } from './subjects.ts'
import { EVENTS_A_STREAM } from './vendor-answers.ts'
import { CONNECTIONS, runWrk, type WrkResult } from './wrk.ts'

/** The rate of the goal for added latency. */
const FIXED_RATE = 1000
const LOAD = join(import.meta.dir, 'load.ts')

type Running = { subject: Subject; group: Group | undefined }
type Run<T> = T & { cpu: number }

/** Starts every subject, gives them to `work`, and ends them whatever happens. Idle ones cost nothing measurable. */
async function withAll<T>(bench: Bench, work: (running: Running[]) => Promise<T>): Promise<T> {
  const running: Running[] = bench.subjects.map((subject) => ({ subject, group: subject.start?.() }))
  try {
    for (const { subject, group } of running) {
      if (group) await untilAccepted(subject, group)
      await checkAnswers(subject)
    }
    return await work(running)
  } finally {
    for (const { group } of running) if (group) await endGroup(group)
  }
}

/** Takes turns, so that a noisy minute of the machine falls on all subjects alike. */
async function inTurns<T>(bench: Bench, running: Running[], repeats: number, run: (one: Running) => Promise<T>) {
  const runs = new Map<SubjectName, Run<T>[]>(running.map(({ subject }) => [subject.name, []]))
  for (let turn = 1; turn <= repeats; turn++) {
    for (const one of running) {
      bench.progress(`  ${one.subject.name}, ${turn} of ${repeats}`)
      const { result, cpu, others } = await quietest(() => watched(one.group, () => run(one)))
      bench.others.push(others)
      runs.get(one.subject.name)?.push({ ...result, cpu })
    }
  }
  return runs
}

function medians<T>(runs: Map<SubjectName, T[]>, pick: (run: T) => number): Figures {
  return Object.fromEntries([...runs].map(([name, all]) => [name, median(all.map(pick))]))
}

async function warmUp(bench: Bench, running: Running[], answer: Answer, wrk: string): Promise<void> {
  for (const { subject } of running) {
    bench.progress(`  ${subject.name}, warming up`)
    await runWrk(wrk, subject.target(answer), bench.plan.warmSeconds)
  }
}

async function wrkInTurns(bench: Bench, running: Running[], answer: Answer, wrk: string) {
  await warmUp(bench, running, answer, wrk)
  return inTurns(bench, running, bench.plan.repeats, ({ subject }) =>
    runWrk(wrk, subject.target(answer), bench.plan.seconds),
  )
}

/** Failures are said beside the figure: a fast refusal is no throughput. */
function failures(runs: Map<SubjectName, WrkResult[]>): Partial<Record<SubjectName, string>> {
  const sums = [...runs].map(([name, all]) => [name, all.reduce((sum, run) => sum + run.failed, 0)] as const)
  return Object.fromEntries(sums.filter(([, sum]) => sum > 0).map(([name, sum]) => [name, `${show(sum)} failed`]))
}

function cpuRow<T extends { cpu: number }>(runs: Map<SubjectName, T[]>): Row {
  const { direct: _, ...figures } = medians(runs, (run) => run.cpu * 100)
  return { name: '– its processor time, % of the core', figures }
}

export async function measureUnary(bench: Bench): Promise<Row[]> {
  const { wrk } = bench.tools
  if (!wrk) return []
  const runs = await withAll(bench, (running) => wrkInTurns(bench, running, 'whole', wrk))
  return [
    {
      name: `Whole answers, requests/s (${CONNECTIONS} connections)`,
      figures: medians(runs, (run) => run.perSecond),
      remarks: failures(runs),
      goals: [
        { of: 'nginx', atLeast: 0.25 },
        { of: 'portkey', atLeast: 15 },
      ],
    },
    { name: '– latency p50, ms', figures: medians(runs, (run) => run.p50) },
    { name: '– latency p99, ms', figures: medians(runs, (run) => run.p99) },
    cpuRow(runs),
  ]
}

export async function measureStreams(bench: Bench): Promise<Row[]> {
  const { wrk } = bench.tools
  if (!wrk) return []
  const rows: Row[] = []
  await withAll(bench, async (running) => {
    bench.progress(' answers that arrive at once')
    const atOnce = await wrkInTurns(bench, running, 'stream', wrk)
    bench.progress(' answers that arrive event by event')
    const single = await wrkInTurns(bench, running, 'single', wrk)
    const events = (run: WrkResult) => run.perSecond * EVENTS_A_STREAM
    rows.push(
      {
        name: `Streamed events/s (answers of ${EVENTS_A_STREAM})`,
        figures: medians(atOnce, events),
        remarks: failures(atOnce),
        goals: [{ atLeast: 150_000 }],
      },
      cpuRow(atOnce),
      {
        name: '– when the vendor writes each event alone',
        figures: medians(single, events),
        remarks: failures(single),
      },
      cpuRow(single),
    )
  })
  return rows
}

/** The latency at a fixed rate, less what the vendor itself takes over the same connections. */
export async function measureLatency(bench: Bench): Promise<Row[]> {
  const { plan, tools } = bench
  const order = { load: 'rate', perSecond: FIXED_RATE, seconds: plan.rateSeconds, warmSeconds: 1 } as const
  const runs = await withAll(bench, async (running) => {
    if (tools.wrk) await warmUp(bench, running, 'whole', tools.wrk)
    return inTurns(bench, running, plan.repeats, ({ subject }) => fixedRate({ ...order, ...subject.target('whole') }))
  })
  const all = FIXED_RATE * plan.rateSeconds
  const behind = new Map(
    [...runs].flatMap(([name, each]) => {
      const answered = median(each.map((run) => run.answered))
      // A hundredth may be lost to a noisy second at the end; more is a server that does not keep up.
      return answered < all * 0.99 ? [[name, `fell behind: ${show((100 * answered) / all)} % answered`]] : []
    }),
  )
  const rows = (['p50', 'p99'] as const).map((which): Row => {
    const figures = medians(runs, (run) => run[which])
    for (const name of behind.keys()) figures[name] = Number.NaN
    const { direct = Number.NaN, ...through } = figures
    const added = Object.entries(through).map(([name, value]) => [name, value - direct])
    return {
      name: `Added latency at ${show(FIXED_RATE)} requests/s, ${which}, ms`,
      figures: Object.fromEntries(added),
      remarks: { ...Object.fromEntries(behind), direct: `takes ${show(direct)}` },
      ...(which === 'p50' ? { goals: [{ below: 0.5 }] } : {}),
    }
  })
  return [...rows, cpuRow(runs)]
}

export async function fixedRate(order: RateOrder): Promise<RateResult> {
  // The least urgent priority: the load turns without a pause, and the vendor beside it must not wait for it.
  const command = ['nice', '-n', '19', process.execPath, LOAD]
  return JSON.parse(await runOnLoadCore(command, { BENCH_ORDER: JSON.stringify(order) }))
}
