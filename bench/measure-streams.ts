/** Measures passthrough and translation through Gatehouse in one run: events a second, and the processor time that an event takes. */
import { median } from './figures.ts'
import { type Bench, quietest, type Row, watched } from './plan.ts'
import { endGroup } from './processes.ts'
import { ROUTES, type StreamRoute, type Subject, untilAccepted, type Way } from './subjects.ts'
import { EVENTS_A_STREAM } from './vendor-answers.ts'
import { CONNECTIONS, runWrk } from './wrk.ts'

/** The goals for streams of chat completions that arrive at once. */
const GOALS: Record<StreamRoute, number> = { relayed: 300_000, translated: 150_000 }

type Measured = { events: number; microseconds: number }

export async function measureRoutes(bench: Bench): Promise<Row[]> {
  const subject = bench.subjects.find(({ name }) => name === 'gatehouse')
  const { wrk } = bench.tools
  if (!wrk || !subject?.way || !subject.start) return []
  const group = subject.start()
  try {
    await untilAccepted(subject, group)
    const rows: Row[] = []
    for (const dialect of ['chat completions', 'messages'] as const) {
      for (const answer of ['stream', 'single'] as const) {
        const runs: Record<StreamRoute, Measured[]> = { relayed: [], translated: [] }
        const run = async (route: StreamRoute): Promise<Measured> => {
          const target = wayOf(subject, { route, dialect, answer })
          const measured = await quietest(() => watched(group, () => runWrk(wrk, target, bench.plan.seconds)))
          bench.others.push(measured.others)
          const { perSecond, failed } = measured.result
          if (failed > 0) throw new Error(`${failed} answers failed: ${dialect}, ${route}`)
          const events = perSecond * EVENTS_A_STREAM
          return { events, microseconds: (measured.cpu * 1e6) / events }
        }
        for (const route of ROUTES)
          await runWrk(wrk, wayOf(subject, { route, dialect, answer }), bench.plan.warmSeconds)
        for (let turn = 1; turn <= bench.plan.repeats; turn++) {
          bench.progress(`  ${dialect}, ${answer}, ${turn} of ${bench.plan.repeats}`)
          for (const route of ROUTES) runs[route].push(await run(route))
        }
        rows.push(
          ...rowsOf(
            `${dialect}${answer === 'single' ? ', each event alone' : ''}`,
            runs,
            dialect === 'messages' || answer === 'single',
          ),
        )
      }
    }
    return rows
  } finally {
    await endGroup(group)
  }
}

function wayOf({ way }: Subject, asked: Way) {
  if (!way) throw new Error('There are no routes to choose from.')
  return way(asked)
}

function rowsOf(name: string, runs: Record<StreamRoute, Measured[]>, withoutGoals: boolean): Row[] {
  const costs = ROUTES.map((route) => median(runs[route].map(({ microseconds }) => microseconds)))
  const [relayed = Number.NaN, translated = Number.NaN] = costs
  return [
    ...ROUTES.map(
      (route): Row => ({
        name: `${route}: ${name}, events/s (${CONNECTIONS} connections)`,
        figures: { gatehouse: median(runs[route].map(({ events }) => events)) },
        ...(withoutGoals ? {} : { goals: [{ atLeast: GOALS[route] }] }),
      }),
    ),
    ...ROUTES.map(
      (route, at): Row => ({
        name: `– ${route}: processor time an event, µs`,
        figures: { gatehouse: costs[at] ?? Number.NaN },
      }),
    ),
    { name: '– translated ÷ relayed', figures: { gatehouse: translated / relayed } },
  ]
}
