/** `npm run bench:routing`: an hour of virtual time with 5 targets, and 20 minutes with 3 of which one is down for ten. */
import type { RoutingConfig } from '../../src/config/schema/routing-schema.ts'
import { type CreateSubject, type Figures, simulate } from './simulate.ts'
import { gatehouse, leastRequest, roundRobin, simpleShuffle } from './subjects.ts'
import { createWorld, outagesOf, type World } from './world.ts'

const SEEDS = [1, 2, 3]
const PER_SECOND = 50

const STRATEGIES = ['priority', 'weighted', 'least_latency', 'least_busy', 'cheapest'] as const
const ours = (settings: RoutingConfig): [string, CreateSubject] => [
  `Gatehouse, ${settings.strategy}${settings.hedge ? ', hedged' : ''}`,
  gatehouse(settings),
]
const SUBJECTS = new Map<string, CreateSubject>([
  ['round robin', roundRobin],
  ['LiteLLM, simple-shuffle', simpleShuffle],
  ['Envoy, least request', leastRequest],
  ...STRATEGIES.map((strategy) => ours({ strategy })),
  ...STRATEGIES.map((strategy) => ours({ strategy, hedge: true })),
])

const SCENARIOS: Record<string, (seed: number) => World> = {
  'One hour, 5 targets with drift, spikes and 11 faults of 3 minutes': (seed) => {
    const [seconds, targets] = [3_600, 5]
    return createWorld({ seconds, targets, seed, outages: outagesOf(seconds, targets, seed) })
  },
  '20 minutes, 3 targets, one of them down for 10 (refuses connections for 5, silent for 5)': (seed) => {
    const target = seed % 3
    const outages = [
      { target, fault: 'refuses' as const, from: 300, to: 600 },
      { target, fault: 'silent' as const, from: 600, to: 900 },
    ]
    return createWorld({ seconds: 1_200, targets: 3, seed, outages })
  },
}

const median = (values: number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
const print = (line: string) => void process.stdout.write(`${line}\n`)

const HEAD = '| | errors, % | p50, ms | p99, ms | cost per request | upstream calls per request |'

/** The medians of the seeds. */
function row(name: string, runs: Figures[]): string {
  const of = (figure: (run: Figures) => number) => median(runs.map(figure))
  const cells = [
    of(({ errors, requests }) => (100 * errors) / requests).toFixed(3),
    of(({ p50 }) => p50).toFixed(0),
    of(({ p99 }) => p99).toFixed(0),
    of(({ cost, requests }) => cost / requests).toFixed(2),
    of(({ upstream, requests }) => upstream / requests).toFixed(3),
  ]
  return `| ${name} | ${cells.join(' | ')} |`
}

for (const [title, worldOf] of Object.entries(SCENARIOS)) {
  print(`\n${title}; ${PER_SECOND} requests a second; the median of ${SEEDS.length} seeds\n\n${HEAD}`)
  print('| --- | ---: | ---: | ---: | ---: | ---: |')
  for (const [name, create] of SUBJECTS) {
    const runs: Figures[] = []
    for (const seed of SEEDS) runs.push(await simulate({ world: worldOf(seed), create, per_second: PER_SECOND, seed }))
    print(row(name, runs))
  }
}
