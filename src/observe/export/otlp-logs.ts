/**
 * Log records by OTLP, such as the rows of the request log: one record a row, its members as attributes. This file loads
 * the SDK, so it is imported only where an export is configured.
 */
import { type AnyValue, SeverityNumber, TraceFlags } from '@opentelemetry/api'
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-proto'
import {
  createExportQueue,
  type ExporterParts,
  type ExportQueue,
  exporterOptions,
  hrTime,
  originOf,
} from './otlp-common.ts'

/** Plain data: JSON, where members that are undefined or null are left out. */
type LogRow = {
  /** Unix milliseconds. */
  at_ms: number
  /** 32 hexadecimal digits; null or absent: none. */
  trace_id?: string | null
  /** A code; null or absent: it did not fail. */
  error?: string | null
  readonly [name: string]: unknown
}

export type OtlpLogs = {
  /** Returns at once. */
  add(rows: readonly LogRow[]): void
} & Pick<ExportQueue<unknown>, 'counts' | 'close'>

type Record = Parameters<OTLPLogExporter['export']>[0][number]

/** `event_name`: what each row is, such as `gatehouse.request`. */
export function createOtlpLogs(parts: ExporterParts & { event_name: string }): OtlpLogs {
  const { settings, endpoint, event_name, clock, log } = parts
  const origin = originOf(parts)
  const exporter = new OTLPLogExporter(exporterOptions(endpoint))
  const queue = createExportQueue<Record>(exporter, { name: 'log records', limits: settings.logs_batch, clock, log })

  function recordOf({ at_ms, trace_id, ...row }: LogRow): Record {
    const failed = row.error !== undefined && row.error !== null
    const context =
      typeof trace_id === 'string' ? { traceId: trace_id, spanId: '', traceFlags: TraceFlags.NONE } : undefined
    return {
      hrTime: hrTime(at_ms),
      hrTimeObserved: hrTime(clock.now()),
      severityNumber: failed ? SeverityNumber.ERROR : SeverityNumber.INFO,
      severityText: failed ? 'ERROR' : 'INFO',
      eventName: event_name,
      body: event_name,
      ...(context ? { spanContext: context } : {}),
      attributes: valuesOf(row),
      droppedAttributesCount: 0,
      ...origin,
    }
  }

  return {
    add(rows) {
      for (const row of rows) queue.add(recordOf(row), BARE_BYTES + 2 * JSON.stringify(row).length)
    },
    counts: queue.counts,
    close: queue.close,
  }
}

/** What a record holds besides its values. */
const BARE_BYTES = 1_024

function valuesOf(row: object): { [name: string]: AnyValue } {
  const found: { [name: string]: AnyValue } = {}
  for (const [name, value] of Object.entries(row))
    if (value !== undefined && value !== null) found[name] = anyValue(value)
  return found
}

function anyValue(value: unknown): AnyValue {
  if (Array.isArray(value)) return value.map(anyValue)
  if (typeof value === 'object' && value !== null) return valuesOf(value)
  return typeof value === 'bigint' ? Number(value) : (value as AnyValue)
}
