/**
 * What routing adds to a call: the processor time of `Router.attempt` over three targets that answer at once, less that of
 * calling the same target directly, in the same run. Ends with status 1 where the default strategy takes more than the bound.
 */
import { boundsOf } from '../src/calls/routing/bounds.ts'
import { createRouter } from '../src/calls/routing/router.ts'
import type { RoutingConfig } from '../src/config/schema/routing-schema.ts'
import { systemClock } from '../src/kit/clock.ts'
import { createLog } from '../src/kit/log.ts'
import type { Target } from '../src/providers/provider.ts'

const MOST_MICROSECONDS = 3
const ROUNDS = 15
const CALLS = 20_000

const CASES: Record<string, RoutingConfig> = {
  'priority (default)': {},
  weighted: { strategy: 'weighted' },
  least_latency: { strategy: 'least_latency' },
  least_busy: { strategy: 'least_busy' },
  cheapest: { strategy: 'cheapest' },
  'sticky: prefix': { sticky: 'prefix' },
  'hedge: true': { hedge: true },
  'deadline_seconds: 60': { deadline_seconds: 60 },
}

/** The settings of the strategies share the calls: without a priority of their own. */
const targetsOf = ({ strategy, sticky }: RoutingConfig): Target[] =>
  ['a', 'b', 'c'].map((id, index) => ({
    provider: { id, kind: 'test' },
    model: 'm',
    ...(strategy === undefined && !sticky ? { priority: index } : {}),
  }))

const execute = async (target: Target, _: AbortSignal): Promise<string> => target.model

/** Microseconds of processor time a call, all threads of the process included. */
async function measure(call: (signal: AbortSignal) => Promise<unknown>): Promise<number> {
  Bun.gc(true)
  const before = process.cpuUsage()
  for (let i = 0; i < CALLS; i++) await call(new AbortController().signal)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / CALLS
}

function routed(settings: RoutingConfig) {
  const log = createLog({ clock: systemClock, level: 'error', pretty: false, write() {} })
  const router = createRouter({ clock: systemClock, log })
  const targets = targetsOf(settings)
  let cost = 0
  return async (signal: AbortSignal) => {
    let ended: ((error?: unknown) => void) | undefined
    const routing = {
      settings,
      bounds: boundsOf(settings, systemClock.steady()),
      token_id: 't',
      signal,
      is_stream: true,
      policy: 'until_answered',
      is_observed: true,
      is_hedged: true,
      has_fallback: false,
      costOf: () => cost++ % 3,
      affinity: () => cost++,
      attemptStarted() {},
      attemptFailed() {},
      serving(attempt: { end(error?: unknown): void }) {
        ended = () => attempt.end()
      },
    } as const
    const answer = await router.attempt(targets, routing, { sendTo: execute })
    ended?.()
    return answer
  }
}

const print = (line: string) => void process.stdout.write(`${line}\n`)
const median = (values: number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN

async function main(): Promise<void> {
  const first = targetsOf({})[0]
  if (!first) return
  const direct = (signal: AbortSignal) => execute(first, signal)
  const subjects = Object.entries(CASES).map(([name, settings]) => ({
    name,
    call: routed(settings),
    added: [0].slice(1),
  }))
  // The first rounds are compiled code in the making.
  for (let round = -3; round < ROUNDS; round++) {
    for (const { call, added } of subjects) {
      const base = await measure(direct)
      const own = await measure(call)
      if (round >= 0) added.push(own - base)
    }
  }
  print('| settings | added, µs a call | slowest round |\n| --- | ---: | ---: |')
  for (const { name, added } of subjects) {
    print(`| ${name} | ${median(added).toFixed(2)} | ${Math.max(...added).toFixed(2)} |`)
  }
  const added = median(subjects[0]?.added ?? [])
  print(`\nThe default adds ${added.toFixed(2)} µs; the bound is ${MOST_MICROSECONDS} µs.`)
  if (!(added <= MOST_MICROSECONDS)) process.exitCode = 1
}

await main()
