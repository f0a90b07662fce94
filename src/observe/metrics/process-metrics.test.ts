import { describe, expect, it } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import { expose } from './exposition.ts'
import { createMetrics, type MetricDefinition, type Metrics } from './metrics.ts'
import { addCounts, type FamilyValues, readValues, withOthers } from './process-metrics.ts'

const CALLS: MetricDefinition = { name: 'calls_total', type: 'counter', help: 'Calls.', labels: ['model'] }
const OPEN: MetricDefinition = { name: 'open', type: 'gauge', help: 'Open.', labels: [], is_divided: true }
const BUDGET: MetricDefinition = { name: 'budget', type: 'gauge', help: 'Budget.', labels: [] }
const TIMES: MetricDefinition = { name: 'seconds', type: 'histogram', help: 'Times.', labels: [], buckets: [1, 2] }

function counted(work: (parts: { metrics: Metrics; call(model: string): void; time(seconds: number): void }) => void) {
  const metrics = createMetrics()
  const calls = metrics.counter(CALLS)
  const times = metrics.histogram(TIMES)
  work({ metrics, call: (model) => calls.with(model).add(1), time: (seconds) => times.with().observe(seconds) })
  return metrics.families()
}

const textOf = async (families: ReturnType<typeof withOthers>) =>
  (await expose(families, { format: 'text', clock: manualClock() })).body

describe('the metrics of several processes', () => {
  const clock = manualClock()

  it('add up counters, histograms and divided gauges, and show the largest of other gauges', async () => {
    const own = counted(({ metrics, call, time }) => {
      call('a')
      time(0.5)
      metrics.collect(OPEN, () => [{ value: 3 }])
      metrics.collect(BUDGET, () => [{ value: 7 }])
    })
    const other = counted(({ metrics, call, time }) => {
      call('a')
      call('b')
      time(1.5)
      time(9)
      metrics.collect(OPEN, () => [{ value: 4 }])
      metrics.collect(BUDGET, () => [{ value: 9 }])
    })
    const sent = JSON.parse(JSON.stringify(await readValues(other, clock))) as FamilyValues[]
    const lines = (await textOf(withOthers(own, [sent]))).split('\n').filter((line) => line && !line.startsWith('#'))
    expect(lines).toEqual([
      'calls_total{model="a"} 2',
      'calls_total{model="b"} 1',
      'seconds_bucket{le="1"} 1',
      'seconds_bucket{le="2"} 2',
      'seconds_bucket{le="+Inf"} 3',
      'seconds_sum 11',
      'seconds_count 3',
      'open 7',
      'budget 9',
    ])
  })

  it('keep what was counted by processes that are gone, and not their gauges', async () => {
    const ended = new Map<string, FamilyValues>()
    for (const times of [[0.5], [1.5, 3]]) {
      const families = counted(({ metrics, call, time }) => {
        call('a')
        for (const one of times) time(one)
        metrics.collect(OPEN, () => [{ value: 4 }])
      })
      addCounts(ended, await readValues(families, clock))
    }
    const own = counted(({ metrics, call }) => {
      call('a')
      metrics.collect(OPEN, () => [{ value: 1 }])
    })
    const text = await textOf(withOthers(own, [[...ended.values()]]))
    for (const line of [
      'calls_total{model="a"} 3',
      'seconds_bucket{le="1"} 1',
      'seconds_sum 5',
      'seconds_count 3',
      'open 1',
    ])
      expect(text).toContain(`${line}\n`)
  })

  it('leave out what cannot be read, or not in time', async () => {
    const families = counted(({ metrics }) => {
      metrics.collect(OPEN, () => Promise.reject(new Error('away')))
      metrics.collect(BUDGET, () => new Promise(() => {}))
    })
    const reading = readValues(families, clock)
    await new Promise<void>((resolve) => setImmediate(resolve))
    clock.advance(300)
    expect((await reading).map(({ name }) => name)).toEqual(['calls_total', 'seconds'])
  })
})
