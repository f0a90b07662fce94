/** Summaries of the request log for charts: series of sums by time, of the largest keys of one dimension, and of the rest. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import Type from 'typebox'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import { orNull } from '../../spec/fields.ts'
import { fromNano } from '../../spec/price.ts'
import {
  addSum,
  emptySum,
  type QuantileSketch,
  quantilesOf,
  type RequestSum,
  sumAt,
} from '../../store/requests/request-sum.ts'
import {
  type RequestSumStore,
  SUM_STEPS,
  type SumPoint,
  type SumPoints,
  type SumStep,
} from '../../store/requests/request-sums.ts'
import type { SumDimension } from '../../store/requests/sum-row.ts'
import { planSummary, type SummaryFilter, type SummaryPlan } from './summary-plan.ts'

export const SUMMARY_ORDERS = ['calls', 'charge', 'cost'] as const

/** `from` and `to` in unix seconds. `limit`: of series, besides that of the rest. */
export type SummaryQuery = {
  from: number
  to: number
  step: SumStep
  by: SumDimension | 'none'
  filter: SummaryFilter
  limit: number
  order: (typeof SUMMARY_ORDERS)[number]
  /** false: only the totals of the series. Default: their points too. */
  points?: boolean
}

const count = () => Type.Integer({ minimum: 0 })
/** Milliseconds. */
const Quantiles = Type.Object({
  p50: orNull(Type.Number()),
  p95: orNull(Type.Number(), 'At most 2 % from the exact value; null: no calls.'),
})
export const SUMMARY_SUMS = {
  calls: count(),
  errors: Type.Record(Type.String(), Type.Integer(), { description: 'The count of each error code.' }),
  input_tokens: count(),
  output_tokens: count(),
  cost: Type.Number({
    description: 'What the providers charge, in the currency of the ledger, as far as it is known.',
  }),
  charge: Type.Number({ description: 'What the callers are charged, in the same way.' }),
  cache_hits: count(),
  duration: Quantiles,
  first_byte: Quantiles,
}
type SummarySums = Type.Static<Type.TObject<typeof SUMMARY_SUMS>>

/** `key`: null for all calls together, and for the rest. Times without calls have no point. */
export type SummarySeries = {
  key: string | null
  points: ({ time: number } & SummarySums)[]
  total: SummarySums
}

/** With the step that was used: shorter ones are deleted first. `other`: whether the last series is that of the rest. */
export type Summary = Pick<SummaryQuery, 'from' | 'to' | 'step'> & {
  series: SummarySeries[]
  other: boolean
  total: SummarySums
}

export type Summaries = {
  /** Throws invalid_value where no sums are kept for the filter, or there would be too many points. */
  read(query: SummaryQuery): Promise<Summary>
}

type SummariesParts = {
  store: Pick<RequestSumStore, 'read'>
  /** Writes what this process has in memory. */
  flush(): Promise<void>
  settings(): { minutes_keep_hours: number; hours_keep_days: number }
  clock: Clock
}

/** Of more hours the largest keys are chosen by the sums of days. */
const MOST_HOURS_READ = 48

/** Sums of one series by time. */
type Line = Map<number, RequestSum>

export function createSummaries({ store, flush, settings, clock }: SummariesParts): Summaries {
  function keptStep({ from, step }: SummaryQuery): SumStep {
    const { minutes_keep_hours, hours_keep_days } = settings()
    const age = unixSeconds(clock) - from
    if (step !== 'day' && age > hours_keep_days * SUM_STEPS.day) return 'day'
    return step === 'minute' && age > minutes_keep_hours * SUM_STEPS.hour ? 'hour' : step
  }

  /** Where the parts of a scope are not all stored, a key may be missing: its own scope has all of its calls. */
  async function completeLines(
    lines: Map<string, Line>,
    points: readonly [number, SumPoint][],
    { plan: { by, scope, own_project }, range }: { plan: SummaryPlan; range: Range },
  ): Promise<void> {
    if (by === undefined || (scope.kind !== 'all' && own_project === undefined)) return
    const cut = points.filter(([, { is_cut }]) => is_cut).map(([time]) => time)
    const keys = [...lines].filter(([key, line]) => key !== '' && cut.some((time) => !line.has(time)))
    if (keys.length === 0) return
    const parts_by = own_project === undefined ? undefined : ('project' as const)
    const found = await store.read({ ...range, kind: by, keys: keys.map(([key]) => key), by: parts_by })
    for (const [key, own] of found) {
      for (const [time, { total, parts }] of own) {
        const sum = own_project === undefined ? total : parts.get(own_project)
        if (sum) lines.get(key)?.set(time, sum)
      }
    }
  }

  /** The keys of the largest parts, by the sums of days where the time is long; undefined: they are read with the points. */
  async function largestKeys({ from, to, step }: Range, plan: SummaryPlan, query: SummaryQuery) {
    if (plan.by === undefined || step !== 'hour' || to - from < MOST_HOURS_READ * SUM_STEPS.hour) return undefined
    const { kind, key } = plan.scope
    const days = wholeSteps({ from, to, step: 'day' })
    const points = await store.read({ ...days, kind, keys: [key], by: plan.by })
    return new Set(largestLines(scopePoints(points, key), query).keys())
  }

  return {
    async read(query) {
      const plan = planSummary(query)
      const { points: hasPoints = true } = query
      const step = keptStep(query)
      const range = wholeSteps({ ...query, step })
      await flush()
      const { kind, key } = plan.scope
      const parts_by = plan.by ?? plan.part?.kind
      const only = plan.part ? new Set([plan.part.key]) : await largestKeys(range, plan, query)
      const points = scopePoints(await store.read({ ...range, kind, keys: [key], by: parts_by, only }), key)
      const all = plan.part ? partLine(points, plan.part.key) : totalLine(points)
      if (plan.by === undefined) {
        const series = seriesOf(plan.key, all, hasPoints)
        return { ...range, series: [series], other: false, total: series.total }
      }
      const lines = largestLines(points, query)
      await completeLines(lines, points, { plan, range })
      const series: SummarySeries[] = []
      for (const [name, line] of lines) {
        series.push(seriesOf(name, line, hasPoints))
        // A long series takes some milliseconds; calls go on in between.
        await nextTurn()
      }
      // A call may have several tags, so the total minus the tags shown is not the sum of the other tags.
      const rest = plan.by === 'tag' ? new Map() : restLine(all, lines)
      if (rest.size > 0) series.push(seriesOf(null, rest, hasPoints))
      return { ...range, series, other: rest.size > 0, total: seriesOf(null, all, false).total }
    },
  }
}

/** Of calls that the caller may not see. */
export const noSummary = ({ from, to, step }: SummaryQuery): Summary => ({
  from,
  to,
  step,
  series: [],
  other: false,
  total: toSums(emptySum()),
})

type Range = Pick<SummaryQuery, 'from' | 'to' | 'step'>

function wholeSteps({ from, to, step }: Range): Range {
  const seconds = SUM_STEPS[step]
  return { from: Math.floor(from / seconds) * seconds, to: Math.ceil(to / seconds) * seconds, step }
}

const scopePoints = (points: SumPoints, key: string): [number, SumPoint][] =>
  [...(points.get(key) ?? [])].sort(([a], [b]) => a - b)

const totalLine = (points: readonly [number, SumPoint][]): Line =>
  new Map(points.map(([time, { total }]) => [time, total]))

function partLine(points: readonly [number, SumPoint][], key: string): Line {
  const line: Line = new Map()
  for (const [time, { parts }] of points) {
    const part = parts.get(key)
    if (part) line.set(time, part)
  }
  return line
}

function largestLines(
  points: readonly [number, SumPoint][],
  { limit, order }: Pick<SummaryQuery, 'limit' | 'order'>,
): Map<string, Line> {
  const totals = new Map<string, number>()
  for (const [, { parts }] of points)
    for (const [key, sum] of parts) totals.set(key, (totals.get(key) ?? 0) + sum[order])
  const keys = [...totals].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)).slice(0, limit)
  return new Map(keys.map(([key]) => [key, partLine(points, key)]))
}

/** What no line contains. Sketches are subtracted exactly, since none of their buckets were ever joined. */
function restLine(all: Line, lines: ReadonlyMap<string, Line>): Line {
  const rest: Line = new Map()
  for (const [time, total] of all) {
    const sum = sumAt(rest, time)
    addSum(sum, total)
    for (const line of lines.values()) {
      const part = line.get(time)
      if (part) addSum(sum, part, -1)
    }
    if (sum.calls <= 0 && sum.charge <= 0 && sum.cost <= 0) rest.delete(time)
  }
  return rest
}

function seriesOf(key: string | null, line: Line, hasPoints: boolean): SummarySeries {
  const total = emptySum()
  const points: SummarySeries['points'] = []
  for (const [time, sum] of [...line].sort(([a], [b]) => a - b)) {
    addSum(total, sum)
    if (hasPoints) points.push({ time, ...toSums(sum) })
  }
  return { key, points, total: toSums(total) }
}

const toSums = ({ cost, charge, errors, duration, first_byte, ...counts }: RequestSum): SummarySums => ({
  ...counts,
  cost: fromNano(cost),
  charge: fromNano(charge),
  errors: Object.fromEntries([...errors].sort(([, a], [, b]) => b - a)),
  duration: toQuantiles(duration),
  first_byte: toQuantiles(first_byte),
})

function toQuantiles(sketch: QuantileSketch): SummarySums['duration'] {
  const [p50 = null, p95 = null] = quantilesOf(sketch, [0.5, 0.95])
  return { p50, p95 }
}
