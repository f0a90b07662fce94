/** Reads the settings of OTLP export from the configuration and the standard `OTEL_*` variables, which win. Pure. */
import type { OtlpConfig } from '../../config/schema/telemetry-schema.ts'

type Environment = Record<string, string | undefined>

export type OtlpEndpoint = { url: string; headers: Record<string, string>; timeout_ms: number; gzip: boolean }

const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const
type SamplerName = (typeof SAMPLERS)[number]

/** Items of one queue of spans or log records, since the start. */
export type ExportCounts = {
  exported: number
  /** The queue was full, or the gateway stopped before they could be exported. */
  dropped: number
  /** The receiver refused them, or did not answer in time. */
  failed: number
  queued: number
}

export type BatchLimits = { max_queue: number; max_batch: number; delay_ms: number; timeout_ms: number }

export type OtlpSettings = {
  /** Undefined: no spans. */
  traces: OtlpEndpoint | undefined
  /** Undefined: no log records. */
  logs: OtlpEndpoint | undefined
  /** Undefined: no metrics. */
  metrics: OtlpEndpoint | undefined
  metrics_reader: { interval_ms: number; timeout_ms: number }
  sampler: { name: SamplerName; ratio: number }
  /** Whether spans hold prompts and responses. */
  contents: boolean
  /** Whether the headers of W3C Trace Context are read and sent. */
  is_propagated: boolean
  propagate_to: readonly string[]
  /** Of the resource; the service's name is one of them. */
  attributes: Record<string, string>
  spans_batch: BatchLimits
  logs_batch: BatchLimits
}

type Read = {
  /** Undefined: nothing is exported. */
  settings: OtlpSettings | undefined
  /** What is wrong with variables, which then count as not set. Never a value: it may be a secret. */
  problems: string[]
}

const MAX_TIMER_MILLISECONDS = 2_147_483_647

export function otlpSettings(config: OtlpConfig | undefined, environment: Environment): Read {
  const problems: string[] = []
  const variable = (name: string): string | undefined => environment[name]?.trim() || undefined
  const isDisabled = variable('OTEL_SDK_DISABLED')?.toLowerCase() === 'true'
  const isNamed = ['', '_TRACES', '_LOGS', '_METRICS'].some((signal) =>
    variable(`OTEL_EXPORTER_OTLP${signal}_ENDPOINT`),
  )
  if (isDisabled || (config?.endpoint === undefined && !isNamed)) return { settings: undefined, problems }

  function number(name: string, usual: number, { min = 1, max = MAX_TIMER_MILLISECONDS } = {}): number {
    const text = variable(name)
    if (text === undefined) return usual
    const value = Number(text)
    if (Number.isFinite(value) && value >= min && value <= max) return value
    problems.push(`${name} must be a number from ${min} to ${max}; ${usual} is used`)
    return usual
  }

  function address(name: string): string | undefined {
    const text = variable(name)
    if (text === undefined || /^https?:$/.test(URL.parse(text)?.protocol ?? '')) return text
    problems.push(`${name} must be an http:// or https:// URL; it is ignored`)
    return undefined
  }

  function endpointOf(signal: 'TRACES' | 'LOGS' | 'METRICS', path: string, isOn: boolean): OtlpEndpoint | undefined {
    const exporter = variable(`OTEL_${signal}_EXPORTER`)
    const isKnown = exporter === undefined || exporter === 'otlp' || exporter === 'none'
    if (!isKnown) problems.push(`OTEL_${signal}_EXPORTER must be otlp or none; it is ignored`)
    if (exporter === 'none' || !(isOn || exporter === 'otlp')) return undefined
    const prefix = `OTEL_EXPORTER_OTLP_${signal}`
    const base = address('OTEL_EXPORTER_OTLP_ENDPOINT') ?? config?.endpoint
    const url = address(`${prefix}_ENDPOINT`) ?? (base && `${base.replace(/\/+$/, '')}/v1/${path}`)
    if (url === undefined) return undefined
    const protocol = variable(`${prefix}_PROTOCOL`) ?? variable('OTEL_EXPORTER_OTLP_PROTOCOL')
    if (protocol !== undefined && protocol !== 'http/protobuf')
      problems.push('OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf, which is used')
    const compression = variable(`${prefix}_COMPRESSION`) ?? variable('OTEL_EXPORTER_OTLP_COMPRESSION')
    return {
      url,
      headers: { ...config?.headers, ...pairs('OTEL_EXPORTER_OTLP_HEADERS'), ...pairs(`${prefix}_HEADERS`) },
      timeout_ms: number(`${prefix}_TIMEOUT`, number('OTEL_EXPORTER_OTLP_TIMEOUT', 10_000)),
      gzip: compression === 'gzip',
    }
  }

  /** `a=1,b=2`, percent-encoded. */
  function pairs(name: string): Record<string, string> {
    const found: Record<string, string> = {}
    for (const pair of variable(name)?.split(',') ?? []) {
      const [key = '', ...rest] = pair.split('=')
      try {
        if (key.trim() === '' || rest.length === 0) throw new URIError()
        found[decodeURIComponent(key.trim())] = decodeURIComponent(rest.join('=').trim())
      } catch {
        problems.push(`${name} must be a list such as name=value,name=value; an entry is ignored`)
      }
    }
    return found
  }

  function sampler(): OtlpSettings['sampler'] {
    const usual = { name: 'parentbased_traceidratio', ratio: config?.sampling ?? 1 } as const
    const text = variable('OTEL_TRACES_SAMPLER')
    if (text === undefined) return usual
    const name = SAMPLERS.find((one) => one === text)
    if (name) return { name, ratio: number('OTEL_TRACES_SAMPLER_ARG', 1, { min: 0, max: 1 }) }
    problems.push(`OTEL_TRACES_SAMPLER must be one of ${SAMPLERS.join(', ')}; it is ignored`)
    return usual
  }

  function batch(prefix: 'BSP' | 'BLRP', delay_ms: number): BatchLimits {
    const max_queue = number(`OTEL_${prefix}_MAX_QUEUE_SIZE`, 2_048, { max: 1_000_000 })
    return {
      max_queue,
      max_batch: Math.min(max_queue, number(`OTEL_${prefix}_MAX_EXPORT_BATCH_SIZE`, 512)),
      delay_ms: number(`OTEL_${prefix}_SCHEDULE_DELAY`, delay_ms),
      timeout_ms: number(`OTEL_${prefix}_EXPORT_TIMEOUT`, 30_000),
    }
  }

  const attributes = pairs('OTEL_RESOURCE_ATTRIBUTES')
  attributes['service.name'] = variable('OTEL_SERVICE_NAME') ?? attributes['service.name'] ?? 'gatehouse'
  const propagators = variable('OTEL_PROPAGATORS')?.split(',') ?? ['tracecontext']
  const settings: OtlpSettings = {
    traces: endpointOf('TRACES', 'traces', config?.traces ?? true),
    logs: endpointOf('LOGS', 'logs', config?.logs ?? false),
    metrics: endpointOf('METRICS', 'metrics', config?.metrics ?? false),
    metrics_reader: {
      interval_ms: number('OTEL_METRIC_EXPORT_INTERVAL', 60_000),
      timeout_ms: number('OTEL_METRIC_EXPORT_TIMEOUT', 30_000),
    },
    sampler: sampler(),
    contents: config?.contents ?? false,
    is_propagated: propagators.some((name) => name.trim() === 'tracecontext'),
    propagate_to: config?.propagate_to ?? [],
    attributes,
    spans_batch: batch('BSP', 5_000),
    logs_batch: batch('BLRP', 1_000),
  }
  const isOn = settings.traces !== undefined || settings.logs !== undefined || settings.metrics !== undefined
  return { settings: isOn ? settings : undefined, problems: [...new Set(problems)] }
}
