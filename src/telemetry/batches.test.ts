import { describe, expect, it } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { createLog } from '../kit/log.ts'
import { createBatches } from './batches.ts'

function setUp(write: (items: readonly number[], signal: AbortSignal) => Promise<number>) {
  const clock = manualClock()
  const log = createLog({ clock, level: 'silent', pretty: false, write() {} })
  const batches = createBatches<number>({
    name: 'a sink',
    write,
    max_queued: 10,
    max_batch: 4,
    every_ms: 100,
    timeout_ms: 1_000,
    clock,
    log,
  })
  const advance = async (ms: number) => {
    clock.advance(ms)
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  }
  return { batches, clock, advance }
}

describe('batches', () => {
  it('writes together what came within the interval, in order', async () => {
    const written: number[][] = []
    const { batches, advance } = setUp(async (items) => written.push([...items]) * 0)
    for (const item of [1, 2, 3, 4, 5]) batches.push(item)
    await advance(99)
    expect(written).toEqual([])
    await advance(1)
    expect(written).toEqual([[1, 2, 3, 4]])
    await advance(100)
    expect(written).toEqual([[1, 2, 3, 4], [5]])
    expect(batches.health()).toEqual({ queued: 0, written: 5, dropped: 0, is_failing: false })
  })

  it('retries with growing pauses, and loses nothing that has a place', async () => {
    let [attempts, isAway] = [0, true]
    const written: number[] = []
    const { batches, advance } = setUp(async (items) => {
      attempts++
      if (isAway) throw new Error('away')
      return written.push(...items) * 0
    })
    batches.push(1)
    await advance(100)
    await advance(1_000)
    await advance(1_999)
    expect(attempts).toBe(2)
    await advance(1)
    expect([attempts, batches.health().is_failing]).toEqual([3, true])
    isAway = false
    batches.push(2)
    await advance(4_000)
    expect(written).toEqual([1, 2])
    expect(batches.health()).toEqual({ queued: 0, written: 2, dropped: 0, is_failing: false })
  })

  it('drops and counts what exceeds the queue of a dead sink', async () => {
    const { batches } = setUp(() => Promise.reject(new Error('dead')))
    for (let item = 0; item < 25; item++) batches.push(item)
    expect(batches.health()).toMatchObject({ queued: 10, dropped: 15 })
  })

  it('gives up a write that hangs, and tells it so', async () => {
    let [attempts, aborted] = [0, 0]
    const { batches, advance } = setUp((_, signal) => {
      attempts++
      signal.addEventListener('abort', () => aborted++)
      return new Promise(() => {})
    })
    batches.push(1)
    await advance(100)
    await advance(999)
    expect([attempts, aborted]).toEqual([1, 0])
    await advance(1)
    await advance(1_000)
    expect([attempts, aborted]).toEqual([2, 1])
  })

  it('counts what the sink has refused for good, and goes on', async () => {
    const { batches, advance } = setUp(async () => 1)
    batches.push(1)
    batches.push(2)
    await advance(100)
    expect(batches.health()).toMatchObject({ queued: 0, written: 1, dropped: 1 })
  })

  it('writes the rest when it is closed, and counts what it could not write by the deadline', async () => {
    const written: number[] = []
    const working = setUp(async (items) => written.push(...items) * 0)
    for (let item = 0; item < 9; item++) working.batches.push(item)
    await working.batches.close({ deadline_ms: 1_000 })
    expect(written).toHaveLength(9)
    const hanging = setUp(() => new Promise(() => {}))
    hanging.batches.push(1)
    const closed = hanging.batches.close({ deadline_ms: 500 })
    await hanging.advance(500)
    await closed
    hanging.batches.push(2)
    expect(hanging.batches.health()).toMatchObject({ queued: 0, dropped: 2 })
  })

  it('flushes what is queued at the call, not what is added meanwhile', async () => {
    let more = 0
    const { batches } = setUp(async () => {
      if (more++ < 100) batches.push(more)
      return 0
    })
    for (const item of [1, 2, 3, 4, 5]) batches.push(item)
    await batches.flush()
    expect([more, batches.health().queued]).toEqual([2, 1])
  })
})
