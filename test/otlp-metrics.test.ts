/** The numbers of `/metrics`, as an OTLP collector receives them. */
import { afterEach, describe, expect, it } from 'bun:test'
import type { OtlpConfig } from '../src/config/schema/telemetry-schema.ts'
import { type Collector, startCollector } from './kit/collector.ts'
import { startGateway } from './kit/gateway.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

function collector(): Collector {
  const started = startCollector()
  closing.push(started.stop)
  return started
}

async function gatewayOf(otlp: OtlpConfig, environment = {}) {
  const gateway = await startGateway({ telemetry: { otlp } }, { environment })
  closing.push(() => gateway[Symbol.asyncDispose]())
  return gateway
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('metrics by OTLP', () => {
  it('are exported at the interval, as /metrics shows them', async () => {
    const otlp = collector()
    const gateway = await gatewayOf({ endpoint: otlp.url, metrics: true, traces: false })
    for (let call = 0; call < 3; call++)
      await gateway.call('/v1/moderations', { json: { model: 'sandbox/moderation', input: 'hi' } })
    await turn()
    gateway.clock.advance(59_999)
    expect(otlp.exports).toEqual([])
    gateway.clock.advance(1)
    while (otlp.metrics.length === 0) await Bun.sleep(5)
    expect(otlp.exports[0]?.path).toBe('/v1/metrics')
    const text = await (await gateway.call('/metrics')).text()
    const duration = otlp.metrics.find(({ name }) => /request_duration_seconds$/.test(name))
    expect(duration).toMatchObject({ kind: 'histogram', unit: 's' })
    const points = duration?.points.filter(({ count }) => count === 3) ?? []
    expect(points).toHaveLength(1)
    const [point] = points
    expect(point?.buckets.length).toBe((point?.bounds.length ?? 0) + 1)
    expect(point?.buckets.reduce((sum, count) => sum + count, 0)).toBe(3)
    const bounds = [...text.matchAll(new RegExp(`^${duration?.name}_bucket{le="([0-9.]+)"`, 'gm'))].map(([, le]) =>
      Number(le),
    )
    expect(new Set(point?.bounds)).toEqual(new Set(bounds))
    const names = new Set(text.match(/^# TYPE \S+/gm)?.map((line) => line.slice('# TYPE '.length)))
    expect(otlp.metrics.length).toBeGreaterThan(10)
    for (const { name } of otlp.metrics) expect(names).toContain(name)
    expect(new Set(otlp.metrics.map(({ kind }) => kind))).toEqual(new Set(['counter', 'gauge', 'histogram']))
  })

  it('are exported a last time by a stop, and not at all without the setting', async () => {
    const otlp = collector()
    const gateway = await startGateway({ telemetry: { otlp: { endpoint: otlp.url, metrics: true } } })
    await gateway.instance.close({ deadline_ms: 1_000 })
    expect(otlp.metrics.length).toBeGreaterThan(0)
    const other = collector()
    const silent = await startGateway({ telemetry: { otlp: { endpoint: other.url } } })
    await silent.instance.close({ deadline_ms: 1_000 })
    expect(other.exports).toEqual([])
  })

  it('that a collector refuses are logged once, and calls go on', async () => {
    const otlp = collector()
    otlp.answer = () => new Response('', { status: 400 })
    const gateway = await gatewayOf(
      { endpoint: otlp.url },
      { OTEL_METRICS_EXPORTER: 'otlp', OTEL_METRIC_EXPORT_INTERVAL: '100' },
    )
    for (let round = 1; round <= 3; round++) {
      gateway.clock.advance(100)
      while (otlp.exports.length < round) await Bun.sleep(5)
      await Bun.sleep(20)
    }
    expect(gateway.logged().match(/metrics could not be exported/g)).toHaveLength(1)
    expect((await gateway.call('/v1/models')).status).toBe(200)
  })
})
