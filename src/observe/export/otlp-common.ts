/** Shared by the exporters of spans and of log records. Loads the SDK: see `otlp-traces.ts`. */
import { type ExportResult, ExportResultCode } from '@opentelemetry/core'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BatchQueue } from '../../kit/batch-queue.ts'
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { BatchLimits, ExportCounts, OtlpEndpoint, OtlpSettings } from './otlp-settings.ts'

export type ExporterParts = {
  settings: OtlpSettings
  endpoint: OtlpEndpoint
  version: string
  /** Of this process. */
  instance_id: string
  clock: Clock
  log: Log
}

export const originOf = ({ settings: { attributes }, version, instance_id }: ExporterParts) => ({
  resource: resourceFromAttributes({ 'service.version': version, 'service.instance.id': instance_id, ...attributes }),
  instrumentationScope: { name: 'gatehouse', version },
})

/** Certificates are read by the SDK: OTEL_EXPORTER_OTLP_CERTIFICATE, _CLIENT_KEY and _CLIENT_CERTIFICATE. */
export const exporterOptions = ({ url, headers, timeout_ms, gzip }: OtlpEndpoint) => ({
  url,
  headers,
  timeoutMillis: timeout_ms,
  // The SDK has an enum for it, in a package that is not ours to import.
  ...(gzip ? { compression: 'gzip' as never } : {}),
})

type Exporter<T> = Exporting<T> & { shutdown(): Promise<void> }

export type ExportQueue<T> = {
  /** Returns at once. `bytes`: about what it holds in memory. */
  add(item: T, bytes: number): void
  counts(): ExportCounts
  /** Exports what is queued, at most until the deadline. */
  close(options: { deadline_ms: number }): Promise<void>
}

const MAX_BYTES = 16 * 1024 * 1024
/** A request each: to encode an item takes some 20 microseconds, and calls go on between two requests. */
const ITEMS_PER_TURN = 64

type QueueParts = { name: string; limits: BatchLimits; clock: Clock; log: Log }

export function createExportQueue<T>(exporter: Exporter<T>, { name, limits, clock, log }: QueueParts): ExportQueue<T> {
  const queue = new BatchQueue<T>({
    name,
    write: (items) => exportInTurns(exporter, items),
    is_repeated: false,
    max_queued: limits.max_queue,
    max_bytes: MAX_BYTES,
    max_batch: limits.max_batch,
    writes_full: true,
    every_ms: limits.delay_ms,
    timeout_ms: limits.timeout_ms,
    clock,
    log,
  })
  return {
    add: (item, bytes) => void queue.push(item, bytes),
    counts() {
      const { written, dropped, refused, queued } = queue.health()
      return { exported: written, dropped: dropped - refused, failed: refused, queued }
    },
    async close(options) {
      await queue.close(options)
      // Not awaited: it may wait for the last export, which has had its time.
      exporter.shutdown().catch(() => {})
    },
  }
}

/** The number of items that the collector did not take. */
async function exportInTurns<T>(exporter: Exporter<T>, items: readonly T[]): Promise<number> {
  const refused: Promise<number>[] = []
  for (let at = 0; at < items.length; at += ITEMS_PER_TURN) {
    if (at > 0) await new Promise(setImmediate)
    const some = items.slice(at, at + ITEMS_PER_TURN)
    refused.push(
      exportBatch(exporter, some).then(
        () => 0,
        () => some.length,
      ),
    )
  }
  return (await Promise.all(refused)).reduce((sum, count) => sum + count, 0)
}

type Exporting<T> = { export(items: T[], done: (result: ExportResult) => void): void }

/** Rejects where the collector did not take them. */
export const exportBatch = <T>(exporter: Exporting<T>, items: T[]): Promise<void> =>
  new Promise((resolve, reject) =>
    exporter.export(items, ({ code, error }) => {
      if (code === ExportResultCode.SUCCESS) resolve()
      else reject(error ?? new Error('not exported'))
    }),
  )

/** Unix milliseconds as seconds and nanoseconds. */
export function hrTime(ms: number): [number, number] {
  const seconds = Math.floor(ms / 1000)
  return [seconds, Math.floor((ms - seconds * 1000) * 1e6)]
}
