/** What the exporters of spans and of log records have in common. Loads the SDK: see `otlp-traces.ts`. */
import { type ExportResult, ExportResultCode } from '@opentelemetry/core'
import { resourceFromAttributes } from '@opentelemetry/resources'
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { OtlpEndpoint, OtlpSettings } from './otlp-settings.ts'

export type ExporterParts = {
  settings: OtlpSettings
  endpoint: OtlpEndpoint
  version: string
  /** Of this process. */
  instance_id: string
  clock: Clock
  log: Log
}

/** Who exports. */
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

type Exporter<T> = { export(items: T[], done: (result: ExportResult) => void): void }

/** Rejects where the collector did not take them. */
export const exportBatch = <T>(exporter: Exporter<T>, items: T[]): Promise<void> =>
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
