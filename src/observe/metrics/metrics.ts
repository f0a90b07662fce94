/**
 * Metrics in memory: whoever counts finds a series once, keeps it, and then only adds to it. Label values are bounded in
 * number: whatever comes after them counts as `other`.
 */
import { type Clock, endsWithin } from '../../kit/clock.ts'

type MetricType = 'counter' | 'gauge' | 'histogram'

export type MetricDefinition = {
  /** With its unit; that of a counter ends with `_total`. */
  name: string
  type: MetricType
  help: string
  labels: readonly string[]
  /** Upper bounds of the buckets of a histogram, ascending, without infinity. */
  buckets?: readonly number[]
  /** A gauge of which every process has a part. Other gauges have the same value in each, or only the largest says something. */
  is_divided?: true
  /** It is counted in whole parts of its unit, so that the sum is exact: so many of them are one. */
  divide_by?: number
}

export class Counter {
  value = 0
  add(amount: number): void {
    this.value += amount
  }
}

export class Histogram {
  /** One for each bucket; values above the last bound are only in `count`. */
  readonly counts: Float64Array
  readonly #bounds: readonly number[]
  sum = 0
  count = 0

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.counts = new Float64Array(bounds.length)
  }

  observe(value: number): void {
    this.sum += value
    this.count++
    const bounds = this.#bounds
    for (let at = 0; at < bounds.length; at++) {
      if (value > (bounds[at] as number)) continue
      this.counts[at] = (this.counts[at] as number) + 1
      return
    }
  }
}

/** A value that is read for each scrape. `labels`: in the order of the definition. */
export type Sample = { labels?: readonly string[]; value: number }

export type Series<Value> = { labels: Record<string, string>; value: Value }

type Family<Value> = {
  /** The series of these label values, in the order of the definition. The same object each time. */
  with(...values: string[]): Value
}

export type ReadFamily = { definition: MetricDefinition; read(): Promise<Iterable<Series<number | Histogram>>> }

/** A metric that is read from the database may have to wait for it; the other metrics must not. */
const READ_MILLISECONDS = 1_000

type Reading = { definition: MetricDefinition; series: Iterable<Series<number | Histogram>>; cause?: unknown }

/** Without series, and with a cause, where they could not be read, or not in time. */
export async function readInTime({ definition, read }: ReadFamily, clock: Clock): Promise<Reading> {
  try {
    const reading = read()
    if (await endsWithin(clock, READ_MILLISECONDS, reading)) return { definition, series: await reading }
    throw new Error(`not read within ${READ_MILLISECONDS} ms`)
  } catch (cause) {
    return { definition, series: [], cause }
  }
}

export type Metrics = {
  counter(definition: MetricDefinition): Family<Counter>
  histogram(definition: MetricDefinition): Family<Histogram>
  /** The values are read for each scrape; those of equal labels, such as `other`, are added up. */
  collect(definition: MetricDefinition, read: () => Iterable<Sample> | Promise<Iterable<Sample>>): void
  families(): readonly ReadFamily[]
  /** How many label values were counted as `other`, by label. */
  overflows(): ReadonlyMap<string, number>
}

type Bounds = {
  /** Distinct values of one label, in all metrics together. */
  max_values: number
  /** Series of one metric. */
  max_series: number
}

const OTHER = 'other'
const DEFAULT_BOUNDS: Bounds = { max_values: 200, max_series: 1_000 }
/** A client can choose some names. */
const MAX_VALUE_LENGTH = 128

export function createMetrics({ max_values, max_series }: Bounds = DEFAULT_BOUNDS): Metrics {
  const known = new Map<string, Set<string>>()
  const overflows = new Map<string, number>()
  const all: ReadFamily[] = []

  function bounded(label: string, given: string): string {
    const value = given.length > MAX_VALUE_LENGTH ? given.slice(0, MAX_VALUE_LENGTH) : given
    let values = known.get(label)
    if (!values) {
      values = new Set()
      known.set(label, values)
    }
    if (values.has(value)) return value
    if (values.size >= max_values) {
      overflows.set(label, (overflows.get(label) ?? 0) + 1)
      return OTHER
    }
    values.add(value)
    return value
  }

  function seriesOf<Value>({ labels }: MetricDefinition, create: () => Value) {
    const series = new Map<string, Series<Value>>()
    return {
      series,
      with(...values: string[]): Value {
        const own = labels.map((label, at) => bounded(label, values[at] ?? ''))
        const found = series.get(own.join('\n'))
        if (found) return found.value
        const names = series.size < max_series ? own : labels.map(() => OTHER)
        const key = names.join('\n')
        const other = series.get(key)
        if (other) return other.value
        const value = create()
        series.set(key, { labels: Object.fromEntries(labels.map((label, at) => [label, names[at] ?? ''])), value })
        return value
      },
    }
  }

  return {
    counter(definition) {
      const family = seriesOf(definition, () => new Counter())
      const read = async () => [...family.series.values()].map(({ labels, value }) => ({ labels, value: value.value }))
      all.push({ definition, read })
      return family
    },
    histogram(definition) {
      const family = seriesOf(definition, () => new Histogram(definition.buckets ?? []))
      all.push({ definition, read: async () => family.series.values() })
      return family
    },
    collect(definition, read) {
      all.push({
        definition,
        async read() {
          // Created for each scrape: what is gone is not shown any more.
          const { series, with: find } = seriesOf(definition, () => new Counter())
          for (const { labels = [], value } of await read()) find(...labels).add(value)
          return [...series.values()].map(({ labels, value }) => ({ labels, value: value.value }))
        },
      })
    },
    families: () => all,
    overflows: () => overflows,
  }
}
