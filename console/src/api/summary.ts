/** Sums of calls over time, as charts need them: `GET /admin/v1/summary`. */
import { useApi } from './hooks.ts'
import type { Api, Summary, SummarySeries } from './types.ts'

export type Sums = Summary['total']
type Query = Omit<Api['GET /admin/v1/summary']['query'], 'start' | 'end' | 'from' | 'to'>
/** Of a page: `useTimeRange`. */
type Range = { start: number; end: number; step: Summary['step'] }

const STEP_SECONDS = { minute: 60, hour: 3_600, day: 86_400 }
const REFRESH_MILLISECONDS = 30_000

export function useSummary({ start, end, step }: Range, query: Query = {}, { enabled = true } = {}) {
  return useApi(
    'GET /admin/v1/summary',
    { query: { start: String(start), end: String(end), step, ...query } },
    { enabled, refetch_ms: REFRESH_MILLISECONDS, keepPrevious: true },
  )
}

export const errorsOf = ({ errors }: Pick<Sums, 'errors'>): number =>
  Object.values(errors).reduce((sum, count) => sum + count, 0)

/** The start of each step of a summary that has begun, also of those without calls. */
export function timesOf({ start, end, step }: Pick<Summary, 'start' | 'end' | 'step'>): number[] {
  const seconds = STEP_SECONDS[step]
  const last = Math.min(end, Math.floor(Date.now() / 1000) + 1)
  const times: number[] = []
  for (let time = Math.floor(start / seconds) * seconds; time < last; time += seconds) times.push(time)
  return times
}

/** The value of each of these steps. `without`: that of a step without calls. */
export function valuesOf<Without extends number | null>(
  series: Pick<SummarySeries, 'points'> | undefined,
  times: number[],
  { read, without }: { read(sums: SummarySeries['points'][number]): number | null; without: Without },
): (number | null)[] {
  const points = new Map(series?.points.map((point) => [point.time, point]))
  return times.map((time) => {
    const point = points.get(time)
    return point ? read(point) : without
  })
}
