import { describe, expect, it } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import { expose } from './exposition.ts'
import { createMetrics, type MetricDefinition } from './metrics.ts'

const counter = (labels: string[]): MetricDefinition => ({
  name: 'calls_total',
  type: 'counter',
  help: 'Calls.',
  labels,
})
const text = async (metrics: ReturnType<typeof createMetrics>, format: 'text' | 'openmetrics' = 'text') =>
  (await expose(metrics.families(), { format, clock: manualClock() })).body

describe('metrics', () => {
  it('writes the Prometheus text format', async () => {
    const metrics = createMetrics()
    metrics
      .counter(counter(['model']))
      .with('a "b"\\\n')
      .add(2)
    const sizes = metrics.histogram({
      name: 'size',
      type: 'histogram',
      help: 'Size.',
      labels: ['a'],
      buckets: [1, 2.5],
    })
    for (const value of [1, 1.5, 3]) sizes.with('x').observe(value)
    metrics.collect({ name: 'open', type: 'gauge', help: 'Open.', labels: [] }, () => [{ value: 7 }])
    expect(await text(metrics)).toBe(`# HELP calls_total Calls.
# TYPE calls_total counter
calls_total{model="a \\"b\\"\\\\\\n"} 2
# HELP size Size.
# TYPE size histogram
size_bucket{le="1",a="x"} 1
size_bucket{le="2.5",a="x"} 2
size_bucket{le="+Inf",a="x"} 3
size_sum{a="x"} 5.5
size_count{a="x"} 3
# HELP open Open.
# TYPE open gauge
open 7
`)
  })

  it('writes OpenMetrics', async () => {
    const metrics = createMetrics()
    metrics
      .counter(counter(['model']))
      .with('a')
      .add(1)
    expect(await text(metrics, 'openmetrics')).toBe(`# HELP calls Calls.
# TYPE calls counter
calls_total{model="a"} 1
# EOF
`)
  })

  it('shows whole units of what is counted in parts', async () => {
    const metrics = createMetrics()
    metrics
      .counter({ ...counter([]), divide_by: 1e9 })
      .with()
      .add(1_230_000_000)
    expect(await text(metrics)).toContain('\ncalls_total 1.23\n')
  })

  it('counts the 201st value of a label as other, in every metric alike', async () => {
    const metrics = createMetrics()
    const calls = metrics.counter(counter(['token']))
    for (let n = 0; n < 10_000; n++) calls.with(`tok_${n}`).add(1)
    const others = metrics.counter({ ...counter(['token']), name: 'others_total' })
    others.with('tok_199').add(1)
    others.with('tok_200').add(1)
    const lines = (await text(metrics)).split('\n').filter((line) => line.startsWith('calls_total'))
    expect(lines).toHaveLength(201)
    expect(lines).toContain('calls_total{token="tok_199"} 1')
    expect(lines).toContain('calls_total{token="other"} 9800')
    expect(await text(metrics)).toContain('others_total{token="tok_199"} 1\nothers_total{token="other"} 1\n')
    expect(metrics.overflows().get('token')).toBe(9_801)
  })

  it('has a bounded number of series, however many combinations there are', async () => {
    const metrics = createMetrics({ max_values: 100, max_series: 50 })
    const calls = metrics.counter(counter(['a', 'b']))
    for (let a = 0; a < 90; a++) for (let b = 0; b < 90; b++) calls.with(`a${a}`, `b${b}`).add(1)
    const lines = (await text(metrics)).split('\n').filter((line) => line.startsWith('calls_total'))
    expect(lines).toHaveLength(51)
    expect(lines).toContain('calls_total{a="other",b="other"} 8050')
  })

  it('leaves out a metric that cannot be read, or not within a second, and shows the others', async () => {
    const metrics = createMetrics()
    const clock = manualClock()
    const gauge = (name: string): MetricDefinition => ({ name, type: 'gauge', help: name, labels: [] })
    metrics.collect(gauge('broken'), () => Promise.reject(new Error('away')))
    metrics.collect(gauge('slow'), () => new Promise(() => {}))
    metrics.collect(gauge('fine'), () => [{ value: 1 }])
    const scrape = expose(metrics.families(), { format: 'text', clock })
    await new Promise((resolve) => setImmediate(resolve))
    clock.advance(999)
    const early = await Promise.race([
      scrape.then(() => 'done'),
      new Promise((resolve) => setImmediate(() => resolve('waits'))),
    ])
    expect(early).toBe('waits')
    clock.advance(1)
    const { body, failed } = await scrape
    expect(failed.map(({ name }) => name)).toEqual(['broken', 'slow'])
    expect(body).toBe('# HELP fine fine\n# TYPE fine gauge\nfine 1\n')
  })

  it('does not show what is gone, and adds up what has the same labels', async () => {
    const metrics = createMetrics()
    let samples = [
      { labels: ['a'], value: 1 },
      { labels: ['a'], value: 2 },
    ]
    metrics.collect({ name: 'open', type: 'gauge', help: 'Open.', labels: ['x'] }, () => samples)
    expect(await text(metrics)).toContain('open{x="a"} 3')
    samples = []
    expect(await text(metrics)).toBe('\n')
  })
})
