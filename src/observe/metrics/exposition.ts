/** Metrics as text for a scrape: the Prometheus text format 0.0.4, or OpenMetrics 1.0.0, written by prom-client. */
import type { Metric, RegistryContentType } from 'prom-client'
import type { Clock } from '../../kit/clock.ts'
import { Histogram, type MetricDefinition, type ReadFamily, readInTime, type Series } from './metrics.ts'

export type MetricsFormat = 'text' | 'openmetrics'

type Exposition = {
  content_type: string
  body: string
  /** The metrics that could not be read, or not in time; they are left out. */
  failed: { name: string; cause: unknown }[]
}

/** Lets other work run after each metric: a scrape of many series takes some milliseconds. */
export async function expose(
  families: readonly ReadFamily[],
  { format, clock }: { format: MetricsFormat; clock: Clock },
): Promise<Exposition> {
  // Loaded with the first scrape.
  const { Registry } = await import('prom-client')
  const writer = new Registry<RegistryContentType>()
  writer.setContentType(format === 'openmetrics' ? Registry.OPENMETRICS_CONTENT_TYPE : Registry.PROMETHEUS_CONTENT_TYPE)
  const parts: string[] = []
  const failed: Exposition['failed'] = []
  const reads = families.map((family) => readInTime(family, clock))
  for (const reading of reads) {
    const { definition, series, ...failure } = await reading
    if ('cause' in failure) failed.push({ name: definition.name, cause: failure.cause })
    // Without a series there is nothing to show.
    const values = valuesOf(definition, series)
    if (values.length === 0) continue
    const { name, metric } = metricOf(definition, { values, format })
    writer.registerMetric(metric)
    parts.push(await writer.getSingleMetricAsString(name))
    await new Promise((resolve) => setImmediate(resolve))
  }
  const end = format === 'openmetrics' ? '# EOF\n' : ''
  return { content_type: writer.contentType, body: `${parts.join('\n')}\n${end}`, failed }
}

/** As prom-client's own metrics describe their values to its registry. `sharedLabels` are written once and remembered. */
type Value = {
  metricName: string
  labels: Record<string, string | number>
  sharedLabels: Record<string, string>
  value: number
}

function valuesOf(
  { name, buckets = [], divide_by = 1 }: MetricDefinition,
  all: Iterable<Series<number | Histogram>>,
): Value[] {
  const values: Value[] = []
  for (const { labels: sharedLabels, value } of all) {
    if (!(value instanceof Histogram)) {
      values.push({ metricName: name, labels: {}, sharedLabels, value: value / divide_by })
      continue
    }
    let below = 0
    for (const [at, le] of buckets.entries()) {
      below += value.counts[at] ?? 0
      values.push({ metricName: `${name}_bucket`, labels: { le }, sharedLabels, value: below })
    }
    values.push({ metricName: `${name}_bucket`, labels: { le: '+Inf' }, sharedLabels, value: value.count })
    values.push({ metricName: `${name}_sum`, labels: {}, sharedLabels, value: value.sum })
    values.push({ metricName: `${name}_count`, labels: {}, sharedLabels, value: value.count })
  }
  return values
}

/** A custom metric: the registry of prom-client reads it by `get`. In OpenMetrics it adds `_total` to counters itself. */
function metricOf(
  { name, type, help }: MetricDefinition,
  { values, format }: { values: Value[]; format: MetricsFormat },
): { name: string; metric: Metric } {
  const isBare = format === 'openmetrics' && type === 'counter'
  const shown = isBare ? name.replace(/_total$/, '') : name
  const given = isBare ? values.map((value) => ({ ...value, metricName: shown })) : values
  const custom = { name: shown, get: async () => ({ name: shown, help, type, values: given }) }
  return { name: shown, metric: custom as unknown as Metric }
}
