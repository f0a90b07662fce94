/** Measures what subjects hold and how fast they are up: slow streams, start-up, memory at rest. */
import { join } from 'node:path'
import { median, percentile } from './figures.ts'
import type { SlowOrder, SlowResult } from './load.ts'
import { type Bench, type Figures, quietest, type Row, watched } from './plan.ts'
import { endGroup, type Group, residentBytes, runOnLoadCore } from './processes.ts'
import { checkAnswers, type Subject, untilAccepted } from './subjects.ts'
import { runWrk } from './wrk.ts'

const SLOW_STREAMS = 2000
/** Within the time that every slow stream is open. */
const PLATEAU_SECONDS = 10
const LOAD = join(import.meta.dir, 'load.ts')
const MEGABYTE = 1024 * 1024

async function withFresh<T>(subject: Subject, work: (group: Group | undefined) => Promise<T>): Promise<T> {
  const group = subject.start?.()
  try {
    if (group) await untilAccepted(subject, group)
    return await work(group)
  } finally {
    if (group) await endGroup(group)
  }
}

type SlowReading = SlowResult & { bytesAStream: number; cpu: number; others: number }

/** The memory is the highest reading while all streams are open, less that of the fresh process. */
async function readSlow(bench: Bench, subject: Subject, group: Group | undefined): Promise<SlowReading> {
  await checkAnswers(subject)
  await Bun.sleep(2000)
  const before = group ? residentBytes(group) : 0
  const order: SlowOrder = { load: 'slow', streams: SLOW_STREAMS, ...subject.target('slow') }
  const opened = Promise.withResolvers<void>()
  const load = runOnLoadCore([process.execPath, LOAD], { BENCH_ORDER: JSON.stringify(order) }, (line) => {
    if (line.includes('"opened"')) opened.resolve()
  })
  // A load that fails before all streams are open says so below, when its result is awaited.
  await Promise.race([opened.promise, load])
  const plateau = await watched(group, async () => {
    let highest = 0
    for (let second = 0; second < PLATEAU_SECONDS; second++) {
      await Bun.sleep(1000)
      if (group) highest = Math.max(highest, residentBytes(group))
    }
    return highest
  })
  bench.progress(`  ${subject.name}, reading the streams to their ends`)
  const last = (await load).trim().split('\n').at(-1) ?? '{}'
  const { result: highest, cpu, others } = plateau
  return { ...(JSON.parse(last) as SlowResult), bytesAStream: (highest - before) / SLOW_STREAMS, cpu, others }
}

export async function measureSlow(bench: Bench): Promise<Row[]> {
  const memory: Figures = {}
  const cpu: Figures = {}
  const delay50: Figures = {}
  const delay99: Figures = {}
  const remarks: Row['remarks'] = {}
  for (const subject of bench.subjects) {
    bench.progress(`  ${subject.name}, opening ${SLOW_STREAMS} streams`)
    const result = await quietest(() => withFresh(subject, (group) => readSlow(bench, subject, group)))
    bench.others.push(result.others)
    if (result.events < result.expected) {
      // Figures of fewer streams than asked for would flatter whoever dropped the rest.
      const lost = `${result.expected - result.events} events lost`
      remarks[subject.name] = result.failed > 0 ? `${result.failed} streams failed` : lost
      continue
    }
    if (subject.start) {
      memory[subject.name] = result.bytesAStream / 1024
      cpu[subject.name] = result.cpu * 100
    }
    delay50[subject.name] = result.delayP50
    delay99[subject.name] = result.delayP99
  }
  return [
    { name: '2,000 slow streams: memory a stream, KB', figures: memory, remarks, goals: [{ below: 60 }] },
    { name: '– its processor time, % of the core', figures: cpu },
    { name: '– delay of an event p50, ms', figures: delay50 },
    { name: '– delay of an event p99, ms', figures: delay99 },
  ]
}

/** From the start of the process to a chat request answered with 200; the first start, which fills caches, is not counted. */
export async function measureStart(bench: Bench): Promise<Row[]> {
  const own: Figures = {}
  const others: Row[] = []
  for (const subject of bench.subjects) {
    if (!subject.start) continue
    bench.progress(`  ${subject.name}`)
    own[subject.name] = await startMilliseconds(bench, subject, subject.start)
    for (const { name, start } of subject.alsoStarts) {
      bench.progress(`  ${subject.name}, by ${name}`)
      const figures = { [subject.name]: await startMilliseconds(bench, subject, start) }
      others.push({ name: `– by \`${name}\`, ms`, figures, goals: [{ below: 300 }] })
    }
  }
  return [{ name: 'Start to first answered request, ms', figures: own, goals: [{ below: 300 }] }, ...others]
}

async function startMilliseconds(bench: Bench, subject: Subject, start: () => Group): Promise<number> {
  const times: number[] = []
  for (let run = 0; run <= bench.plan.starts; run++) {
    const from = performance.now()
    const group = start()
    try {
      await untilAccepted(subject, group)
      if (run > 0) times.push(performance.now() - from)
    } finally {
      await endGroup(group)
    }
  }
  return median(times)
}

export async function measureRest(bench: Bench): Promise<Row[]> {
  const fresh: Figures = {}
  const later: Figures = {}
  const { wrk } = bench.tools
  for (const subject of bench.subjects) {
    if (!subject.start) continue
    bench.progress(`  ${subject.name}, at rest`)
    await withFresh(subject, async (group) => {
      if (!group) return
      fresh[subject.name] = await restingMegabytes(group, bench.plan.settleSeconds)
      if (!wrk) return
      bench.progress(`  ${subject.name}, a burst and its end`)
      await runWrk(wrk, subject.target('whole'), bench.plan.seconds)
      await runWrk(wrk, subject.target('stream'), bench.plan.seconds)
      later[subject.name] = await restingMegabytes(group, bench.plan.idleSeconds)
    })
  }
  const rows: Row[] = [{ name: 'Memory at rest after the start, MB', figures: fresh, goals: [{ below: 80 }] }]
  if (wrk) rows.push({ name: '– after a burst, idle again, MB', figures: later, goals: [{ below: 80 }] })
  return rows
}

/** Waits, then takes the median of a few readings. */
async function restingMegabytes(group: Group, seconds: number): Promise<number> {
  await Bun.sleep(seconds * 1000)
  const readings: number[] = []
  for (let reading = 0; reading < 5; reading++) {
    readings.push(residentBytes(group))
    await Bun.sleep(200)
  }
  return percentile(readings, 50) / MEGABYTE
}
