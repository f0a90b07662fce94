/**
 * Metrics by OTLP: the numbers of `/metrics`, read and exported at an interval, under the same names. This file loads the
 * SDK, so it is imported only where an export is configured.
 */
import { ValueType } from '@opentelemetry/api'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto'
import {
  AggregationTemporality,
  DataPointType,
  type MetricData,
  type ResourceMetrics,
} from '@opentelemetry/sdk-metrics'
import { endsWithin } from '../../kit/clock.ts'
import { Histogram, type MetricDefinition, type ReadFamily, readInTime, type Series } from '../metrics/metrics.ts'
import { type ExporterParts, exportBatch, exporterOptions, hrTime, originOf } from './otlp-common.ts'

type OtlpMetrics = {
  /** Exports these from now on. */
  start(families: () => readonly ReadFamily[]): void
  /** Exports them a last time, at most until the deadline. */
  close(options: { deadline_ms: number }): Promise<void>
}

export function createOtlpMetrics(parts: ExporterParts): OtlpMetrics {
  const { settings, endpoint, clock, log } = parts
  const { interval_ms, timeout_ms } = settings.metrics_reader
  const exporter = new OTLPMetricExporter(exporterOptions(endpoint))
  const { resource, instrumentationScope: scope } = originOf(parts)
  const started = hrTime(clock.now())
  let families: (() => readonly ReadFamily[]) | undefined
  let cancel: (() => void) | undefined
  let running: Promise<void> | undefined
  let hasFailed = false

  async function exportNow(): Promise<void> {
    const reads = await Promise.all((families?.() ?? []).map((family) => readInTime(family, clock)))
    const time = { startTime: started, endTime: hrTime(clock.now()) }
    // `/metrics` reports what could not be read.
    const metrics = reads.flatMap(({ definition, series }) => metricOf(definition, [...series], time))
    const batch: ResourceMetrics = { resource, scopeMetrics: [{ scope, metrics }] }
    const sending = exportBatch({ export: (_: ResourceMetrics[], done) => exporter.export(batch, done) }, [batch])
    if (!(await endsWithin(clock, timeout_ms, sending))) throw new Error('timeout')
    hasFailed = false
  }

  /** One at a time; what is counted meanwhile is in the next one. */
  function run(): Promise<void> {
    running ??= exportNow()
      .catch(() => {
        // Without the cause, which may contain a URL or a header. Once until it works again.
        if (!hasFailed) log.warn('metrics could not be exported')
        hasFailed = true
      })
      .finally(() => {
        running = undefined
      })
    return running
  }

  function schedule(): void {
    cancel = clock.after(interval_ms, () => {
      void run()
      schedule()
    })
  }

  return {
    start(given) {
      families = given
      schedule()
    },
    async close({ deadline_ms }) {
      cancel?.()
      if (!families) return
      await endsWithin(clock, deadline_ms, running ?? run())
      exporter.shutdown().catch(() => {})
    },
  }
}

type Time = { startTime: [number, number]; endTime: [number, number] }

/** Without a series there is nothing to export. */
function metricOf(definition: MetricDefinition, series: Series<number | Histogram>[], time: Time): MetricData[] {
  if (series.length === 0) return []
  const { name, help, type, buckets = [], divide_by = 1 } = definition
  const common = {
    descriptor: { name, description: help, unit: unitOf(name), valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  }
  if (type === 'histogram') {
    const boundaries = [...buckets]
    const dataPoints = series.flatMap(({ labels, value }) => {
      if (!(value instanceof Histogram)) return []
      const within = value.counts.reduce((sum, count) => sum + count, 0)
      // Values above the last bound are only in the whole count.
      const counts = [...value.counts, value.count - within]
      const total = { buckets: { boundaries, counts }, sum: value.sum, count: value.count }
      return [{ ...time, attributes: labels, value: total }]
    })
    return [{ ...common, dataPointType: DataPointType.HISTOGRAM, dataPoints }]
  }
  const dataPoints = series.map(({ labels, value }) => ({
    ...time,
    attributes: labels,
    value: Number(value) / divide_by,
  }))
  return type === 'counter'
    ? [{ ...common, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }]
    : [{ ...common, dataPointType: DataPointType.GAUGE, dataPoints }]
}

/** Names end with their unit, as Prometheus has them; UCUM has other symbols. */
function unitOf(name: string): string {
  const plain = name.replace(/_total$/, '')
  if (plain.endsWith('_seconds')) return 's'
  return plain.endsWith('_bytes') ? 'By' : ''
}
