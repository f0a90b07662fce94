/** Describes a run of the benchmark: its parts, how long and how often they run, and what they pass to each other. */
import type { Tools } from './find-tools.ts'
import { coreBusySeconds, cpuSeconds, GATEWAY_CORE, type Group } from './processes.ts'
import type { Subject, SubjectName } from './subjects.ts'

export const PARTS = ['unary', 'latency', 'streams', 'routes', 'slow', 'start', 'rest'] as const
export type Part = (typeof PARTS)[number]

export type Plan = {
  /** Runs of each load for each subject, taken in turns. */
  repeats: number
  seconds: number
  /** Just-in-time compilers need some seconds of load before they are at their best. */
  warmSeconds: number
  rateSeconds: number
  starts: number
  /** From the start to the first reading of memory at rest. */
  settleSeconds: number
  /** From the end of a burst to the second reading. */
  idleSeconds: number
}

export const FULL: Plan = {
  repeats: 5,
  seconds: 5,
  warmSeconds: 4,
  rateSeconds: 8,
  starts: 9,
  settleSeconds: 15,
  idleSeconds: 15,
}

export const QUICK: Plan = {
  repeats: 2,
  seconds: 2,
  warmSeconds: 2,
  rateSeconds: 3,
  starts: 3,
  settleSeconds: 12,
  idleSeconds: 12,
}

export type Bench = {
  plan: Plan
  tools: Tools
  subjects: Subject[]
  /** Tells the person who waits what is being done. */
  progress: (text: string) => void
  /** The share of the gateway's core that was busy with something else, one number a run. */
  others: number[]
}

export type Figures = Partial<Record<SubjectName, number>>

/** A line of the table. A goal compares Gatehouse's figure, or its ratio to another subject's, with a limit. */
export type Row = {
  name: string
  figures: Figures
  /** Said after a figure, e.g. why there is none. */
  remarks?: Partial<Record<SubjectName, string>>
  goals?: Goal[]
}
export type Goal = { of?: 'nginx' | 'portkey'; atLeast: number } | { of?: 'nginx' | 'portkey'; below: number }

export type Usage = { cpu: number; others: number }

/** Does something while watching the gateway's core: how much of it the group used, and how much somebody else. */
export async function watched<T>(group: Group | undefined, work: () => Promise<T>): Promise<{ result: T } & Usage> {
  const before = { at: performance.now(), busy: coreBusySeconds(GATEWAY_CORE), own: group ? cpuSeconds(group) : 0 }
  const result = await work()
  const seconds = (performance.now() - before.at) / 1000
  const own = (group ? cpuSeconds(group) : 0) - before.own
  const busy = coreBusySeconds(GATEWAY_CORE) - before.busy
  return { result, cpu: own / seconds, others: Math.max(0, (busy - own) / seconds) }
}

/** Somebody else at work on the gateway's core for longer than this share of a run, and it is worth another try. */
const DISTURBED = 0.1
const TRIES = 3

/** Runs until nobody disturbed it, a few times at most, and keeps the run that was disturbed least. */
export async function quietest<T extends { others: number }>(run: () => Promise<T>): Promise<T> {
  let best = await run()
  for (let tries = 1; tries < TRIES && best.others > DISTURBED; tries++) {
    const again = await run()
    if (again.others < best.others) best = again
  }
  return best
}
