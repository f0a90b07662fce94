/** The metrics of several processes as one: what each has counted is added up. */
import { type Clock, endsWithin } from '../../kit/clock.ts'
import { Histogram, type MetricDefinition, type ReadFamily, type Series } from './metrics.ts'

type HistogramValues = { counts: number[]; sum: number; count: number }
type SeriesValues = { labels: Record<string, string>; value: number | HistogramValues }

/** The values of one metric, as plain data. */
export type FamilyValues = { name: string; type: MetricDefinition['type']; series: SeriesValues[] }

/** A metric that cannot be read in time is left out. */
const READ_MILLISECONDS = 300

export async function readValues(families: readonly ReadFamily[], clock: Clock): Promise<FamilyValues[]> {
  const found = await Promise.all(families.map((family) => valuesOf(family, clock)))
  return found.flatMap((values) => values ?? [])
}

async function valuesOf({ definition, read }: ReadFamily, clock: Clock): Promise<FamilyValues | undefined> {
  const { name, type } = definition
  try {
    const reading = read()
    if (!(await endsWithin(clock, READ_MILLISECONDS, reading))) return undefined
    const series = Array.from(await reading, ({ labels, value }) => ({ labels, value: plain(value) }))
    return { name, type, series }
  } catch {
    return undefined
  }
}

const plain = (value: number | Histogram): SeriesValues['value'] =>
  value instanceof Histogram ? { counts: [...value.counts], sum: value.sum, count: value.count } : value

/** These metrics, with what other processes have counted of them. */
export const withOthers = (
  families: readonly ReadFamily[],
  others: readonly (readonly FamilyValues[])[],
): ReadFamily[] =>
  families.map(({ definition, read }) => ({
    definition,
    async read() {
      const sums = new Map<string, Series<number | Histogram>>()
      for (const { labels, value } of await read()) addTo(sums, { labels, value: plain(value) }, definition)
      for (const values of others) {
        for (const one of values.find(({ name }) => name === definition.name)?.series ?? []) {
          addTo(sums, one, definition)
        }
      }
      return sums.values()
    },
  }))

function addTo(
  sums: Map<string, Series<number | Histogram>>,
  { labels, value }: SeriesValues,
  { labels: names, type, is_divided, buckets = [] }: MetricDefinition,
): void {
  const key = names.map((name) => labels[name] ?? '').join('\n')
  const found = sums.get(key)
  if (typeof value === 'number') {
    if (!found) sums.set(key, { labels, value })
    else if (type === 'counter' || is_divided) found.value = Number(found.value) + value
    else found.value = Math.max(Number(found.value), value)
    return
  }
  const sum = found?.value instanceof Histogram ? found.value : new Histogram(buckets)
  sum.sum += value.sum
  sum.count += value.count
  for (const [at, count] of value.counts.entries()) sum.counts[at] = (sum.counts[at] ?? 0) + count
  if (!found) sums.set(key, { labels, value: sum })
}

/** Adds what a process has counted that is gone: it has no gauges any more. */
export function addCounts(into: Map<string, FamilyValues>, values: readonly FamilyValues[]): void {
  for (const { name, type, series } of values) {
    if (type === 'gauge') continue
    const kept = into.get(name) ?? { name, type, series: [] }
    into.set(name, kept)
    const known = new Map(kept.series.map((one) => [keyOf(one), one]))
    for (const one of series) {
      const same = known.get(keyOf(one))
      if (same) same.value = sumOf(same.value, one.value)
      else kept.series.push(one)
    }
  }
}

const keyOf = ({ labels }: SeriesValues): string => JSON.stringify(Object.entries(labels).sort())

function sumOf(one: SeriesValues['value'], other: SeriesValues['value']): SeriesValues['value'] {
  if (typeof one === 'number' || typeof other === 'number') return Number(one) + Number(other)
  return {
    counts: one.counts.map((count, at) => count + (other.counts[at] ?? 0)),
    sum: one.sum + other.sum,
    count: one.count + other.count,
  }
}
