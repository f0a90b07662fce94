import { describe, expect, it } from 'bun:test'
import { otlpSettings } from './otlp-settings.ts'

const BASE = 'http://collector.test:4318'
const read = (environment: Record<string, string>, config?: Parameters<typeof otlpSettings>[0]) =>
  otlpSettings(config, environment)

describe('the settings of OTLP', () => {
  it('are absent where neither the file nor a variable names an endpoint', () => {
    expect(read({ OTEL_SERVICE_NAME: 'x' }, { sampling: 0.5 }).settings).toBeUndefined()
  })

  it.each([
    ['in the file', {}, { endpoint: `${BASE}/` }, `${BASE}/v1/traces`],
    ['in OTEL_EXPORTER_OTLP_ENDPOINT', { OTEL_EXPORTER_OTLP_ENDPOINT: BASE }, undefined, `${BASE}/v1/traces`],
    [
      'in OTEL_EXPORTER_OTLP_ENDPOINT, which wins over the file',
      { OTEL_EXPORTER_OTLP_ENDPOINT: BASE },
      { endpoint: 'http://other.test' },
      `${BASE}/v1/traces`,
    ],
    [
      'in OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, which is used as it is',
      { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${BASE}/x`, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://other.test' },
      undefined,
      `${BASE}/x`,
    ],
  ])('take the endpoint of traces %s', (_, environment, config, url) => {
    expect(read(environment as Record<string, string>, config).settings?.traces?.url).toBe(url)
  })

  it('export logs where the file or OTEL_LOGS_EXPORTER says so, and no traces where told not to', () => {
    expect(read({}, { endpoint: BASE }).settings?.logs).toBeUndefined()
    expect(read({}, { endpoint: BASE, logs: true }).settings?.logs?.url).toBe(`${BASE}/v1/logs`)
    const logsOnly = { OTEL_LOGS_EXPORTER: 'otlp', OTEL_TRACES_EXPORTER: 'none' }
    expect(read(logsOnly, { endpoint: BASE }).settings).toMatchObject({ traces: undefined, logs: { gzip: false } })
    expect(read({}, { endpoint: BASE, traces: false }).settings).toBeUndefined()
  })

  it('are absent with OTEL_SDK_DISABLED=true', () => {
    expect(read({ OTEL_SDK_DISABLED: 'true' }, { endpoint: BASE }).settings).toBeUndefined()
    expect(read({ OTEL_SDK_DISABLED: 'false' }, { endpoint: BASE }).settings).toBeDefined()
  })

  it('merge headers: those of a signal win, and values are percent-decoded', () => {
    const { settings } = read(
      { OTEL_EXPORTER_OTLP_HEADERS: 'a=1, b=2%20x', OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'b=3=' },
      { endpoint: BASE, headers: { a: '0', c: '9' } },
    )
    expect(settings?.traces?.headers).toEqual({ a: '1', b: '3=', c: '9' })
  })

  it('sample all by default, by the file, and by OTEL_TRACES_SAMPLER', () => {
    const sampler = (environment: Record<string, string>, sampling?: number) =>
      read(environment, { endpoint: BASE, ...(sampling === undefined ? {} : { sampling }) }).settings?.sampler
    expect(sampler({})).toEqual({ name: 'parentbased_traceidratio', ratio: 1 })
    expect(sampler({}, 0.25)).toEqual({ name: 'parentbased_traceidratio', ratio: 0.25 })
    expect(sampler({ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.1' }, 0.25)).toEqual({
      name: 'traceidratio',
      ratio: 0.1,
    })
  })

  it('describe the service by OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES', () => {
    const attributes = (environment: Record<string, string>) =>
      read(environment, { endpoint: BASE }).settings?.attributes
    expect(attributes({})).toEqual({ 'service.name': 'gatehouse' })
    const given = { OTEL_RESOURCE_ATTRIBUTES: 'service.name=a,deployment.environment.name=eu%2C1' }
    expect(attributes(given)).toEqual({ 'service.name': 'a', 'deployment.environment.name': 'eu,1' })
    expect(attributes({ ...given, OTEL_SERVICE_NAME: 'b' })?.['service.name']).toBe('b')
  })

  it('bound the queue as OTEL_BSP_* and OTEL_BLRP_* say', () => {
    const { settings } = read(
      { OTEL_BSP_MAX_QUEUE_SIZE: '100', OTEL_BSP_SCHEDULE_DELAY: '50', OTEL_BLRP_MAX_EXPORT_BATCH_SIZE: '7' },
      { endpoint: BASE, logs: true },
    )
    expect(settings?.spans_batch).toEqual({ max_queue: 100, max_batch: 100, delay_ms: 50, timeout_ms: 30_000 })
    expect(settings?.logs_batch).toEqual({ max_queue: 2048, max_batch: 7, delay_ms: 1000, timeout_ms: 30_000 })
  })

  it('name variables that are wrong without their values, and use the defaults', () => {
    const { settings, problems } = read(
      {
        OTEL_EXPORTER_OTLP_HEADERS: 'secret',
        OTEL_EXPORTER_OTLP_TIMEOUT: '-secret',
        OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
        OTEL_EXPORTER_OTLP_ENDPOINT: 'ftp://secret',
        OTEL_TRACES_SAMPLER: 'secret',
        OTEL_TRACES_EXPORTER: 'secret',
      },
      { endpoint: BASE },
    )
    expect(settings).toMatchObject({ traces: { url: `${BASE}/v1/traces`, timeout_ms: 10_000 }, sampler: { ratio: 1 } })
    expect(problems).toHaveLength(6)
    expect(problems.join()).not.toContain('secret')
  })
})
