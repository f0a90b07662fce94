/** Measures a peer in one run with all others. */
import { CASES, runCase } from '../conformance/cases.ts'
import type { Vendor } from '../conformance/vendor.ts'
import { median } from '../figures.ts'
import type { SlowOrder, SlowResult } from '../load.ts'
import { cpuSeconds, endGroup, type Group, residentBytes, runOnLoadCore } from '../processes.ts'
import { checkAnswers, untilAccepted } from '../subjects.ts'
import { EVENTS_A_STREAM } from '../vendor-answers.ts'
import { runWrk, type WrkResult } from '../wrk.ts'
import type { Peer } from './peer.ts'

export type Plan = {
  rounds: number
  seconds: number
  warmSeconds: number
  idleSeconds: number
  heldStreams: number
  starts: number
}

export type Cost = { perSecond: number; microseconds: number; p50: number; p99: number; failed: number }
export type Result = {
  peer: Peer
  /** Why it is not measured. */
  broken?: string
  start_ms: number
  whole: Cost
  events: Cost
  /** Of all its processes, in bytes. */
  memory: { before: number; highest: number; after: number }
  /** Undefined: not all streams were held. */
  heldBytes: number | undefined
  /** What each case that fails showed instead. */
  failures: Map<string, string>
}

type Parts = { wrk: string; plan: Plan; vendor: Vendor; load: string; progress: (text: string) => void }

/** All are started, and take turns, so that a noisy minute falls on all alike; idle ones cost next to nothing. */
export async function measurePeers(peers: readonly Peer[], parts: Parts): Promise<Result[]> {
  const { plan, progress } = parts
  const results: Result[] = []
  const running: { result: Result; group: Group; runs: { whole: Run[]; events: Run[] } }[] = []
  try {
    for (const peer of peers) {
      progress(`${peer.name}: start`)
      const result = emptyResult(peer)
      results.push(result)
      try {
        result.start_ms = await startTime(peer, plan.starts)
        const group = peer.start()
        await untilAccepted(asSubject(peer), group, peer.start_seconds)
        await checkAnswers(asSubject(peer))
        await Bun.sleep(2000)
        result.memory.before = residentBytes(group)
        running.push({ result, group, runs: { whole: [], events: [] } })
      } catch (error) {
        result.broken = (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? ''
      }
    }
    for (const { result, group, runs } of running) {
      progress(`${result.peer.name}: cases`)
      await playCases(result, parts)
      for (const [kind, model] of LOADS) {
        progress(`${result.peer.name}: ${kind}, warming up`)
        await load(result, group, model, plan.warmSeconds, parts.wrk)
        runs[kind].length = 0
      }
    }
    for (let round = 1; round <= plan.rounds; round++) {
      for (const { result, group, runs } of running) {
        for (const [kind, model] of LOADS) {
          progress(`${result.peer.name}: ${kind}, ${round} of ${plan.rounds}`)
          runs[kind].push(await load(result, group, model, plan.seconds, parts.wrk))
        }
      }
    }
    progress(`${plan.idleSeconds} s of rest`)
    await Bun.sleep(plan.idleSeconds * 1000)
    for (const { result, group, runs } of running) {
      result.whole = costOf(runs.whole, 1)
      result.events = costOf(runs.events, EVENTS_A_STREAM)
      result.memory.after = residentBytes(group)
    }
  } finally {
    for (const { group } of running) await endGroup(group)
  }
  for (const { result } of running) await holdStreams(result, parts)
  return results
}

const LOADS = [
  ['whole', 'whole'],
  ['events', 'stream'],
] as const

type Run = WrkResult & { cpu: number }

async function load(result: Result, group: Group, model: string, seconds: number, wrk: string): Promise<Run> {
  const before = cpuSeconds(group)
  const reading = setInterval(() => {
    result.memory.highest = Math.max(result.memory.highest, residentBytes(group))
  }, 500)
  try {
    const run = await runWrk(wrk, result.peer.target(model, model !== 'whole'), seconds)
    return { ...run, cpu: cpuSeconds(group) - before }
  } finally {
    clearInterval(reading)
  }
}

/** `each`: how many things one answer has. */
function costOf(runs: readonly Run[], each: number): Cost {
  const of = (pick: (run: Run) => number) => median(runs.map(pick))
  return {
    perSecond: of((run) => run.perSecond * each),
    microseconds: of((run) => (run.cpu * 1_000_000) / (run.requests * each)),
    p50: of((run) => run.p50),
    p99: of((run) => run.p99),
    failed: runs.reduce((sum, run) => sum + run.failed, 0),
  }
}

/** The first start fills caches, and does not count. */
async function startTime(peer: Peer, starts: number): Promise<number> {
  const times: number[] = []
  for (let run = 0; run <= starts; run++) {
    const from = performance.now()
    const group = peer.start()
    try {
      await untilAccepted(asSubject(peer), group, peer.start_seconds)
      if (run > 0 || starts === 0) times.push(performance.now() - from)
    } finally {
      await endGroup(group)
    }
  }
  return median(times)
}

async function playCases(result: Result, { vendor, progress }: Parts): Promise<void> {
  for (const one of CASES) {
    const reason = await runCase(one, result.peer.conformance, vendor)
    if (reason === undefined) continue
    result.failures.set(one.name, reason)
    progress(`  ${one.name}: ${reason}`)
  }
}

/** In a fresh process: the highest reading while all streams are open, less that before. */
async function holdStreams(result: Result, { plan, load: script, progress }: Parts): Promise<void> {
  const { peer } = result
  progress(`${peer.name}: ${plan.heldStreams} streams held`)
  const group = peer.start()
  try {
    await untilAccepted(asSubject(peer), group, peer.start_seconds)
    await Bun.sleep(2000)
    const before = residentBytes(group)
    const order: SlowOrder = { load: 'slow', streams: plan.heldStreams, ...peer.target('slow', true) }
    let highest = 0
    const reading = setInterval(() => {
      highest = Math.max(highest, residentBytes(group))
    }, 1000)
    try {
      const output = await runOnLoadCore([process.execPath, script], { BENCH_ORDER: JSON.stringify(order) })
      const held = JSON.parse(output.trim().split('\n').at(-1) ?? '{}') as SlowResult
      if (held.events === held.expected) result.heldBytes = (highest - before) / plan.heldStreams
      else progress(`  ${held.failed} streams failed, ${held.expected - held.events} events lost`)
    } finally {
      clearInterval(reading)
    }
  } catch (error) {
    progress(`  ${error instanceof Error ? error.message : error}`)
  } finally {
    await endGroup(group)
  }
}

const asSubject = (peer: Peer) => ({
  name: peer.name,
  target: (answer: string) => peer.target(answer, answer !== 'whole'),
})

const NO_COST: Cost = { perSecond: Number.NaN, microseconds: Number.NaN, p50: Number.NaN, p99: Number.NaN, failed: 0 }
const emptyResult = (peer: Peer): Result => ({
  peer,
  start_ms: Number.NaN,
  whole: NO_COST,
  events: NO_COST,
  memory: { before: Number.NaN, highest: 0, after: Number.NaN },
  heldBytes: undefined,
  failures: new Map(),
})
