import { describe, expect, it } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { BatchQueue } from './batch-queue.ts'
import { createLog } from './log.ts'

type Write = (items: readonly number[], signal: AbortSignal) => Promise<number>
type Limits = Partial<
  Pick<
    ConstructorParameters<typeof BatchQueue>[0],
    'is_repeated' | 'writes_full' | 'max_bytes' | 'max_queued' | 'max_batch_behind'
  >
>

function setUp(write: Write, limits: Limits = {}) {
  const clock = manualClock()
  let lines = ''
  const log = createLog({
    clock,
    level: 'info',
    pretty: false,
    write(text) {
      lines += text
    },
  })
  const batches = new BatchQueue<number>({
    name: 'a sink',
    write,
    max_queued: 10,
    max_batch: 4,
    every_ms: 100,
    timeout_ms: 1_000,
    ...limits,
    clock,
    log,
  })
  const advance = async (ms: number) => {
    clock.advance(ms)
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  }
  const logged = () => {
    log.flush()
    return lines
  }
  return { batches, clock, advance, logged }
}

describe('a batch queue', () => {
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
    expect(batches.health()).toEqual({ queued: 0, written: 5, dropped: 0, refused: 0, is_failing: false })
  })

  it('writes a full batch at once where that is set, and the rest after the interval', async () => {
    const written: number[][] = []
    const { batches, advance } = setUp(async (items) => written.push([...items]) * 0, { writes_full: true })
    for (const item of [1, 2, 3, 4, 5]) batches.push(item)
    await advance(0)
    expect(written).toEqual([[1, 2, 3, 4]])
    await advance(99)
    expect(written).toEqual([[1, 2, 3, 4]])
    await advance(1)
    expect(written).toEqual([[1, 2, 3, 4], [5]])
  })

  it('writes larger batches while more than ten of them wait', async () => {
    const sizes: number[] = []
    const write: Write = async (items) => sizes.push(items.length) * 0
    const { batches, advance } = setUp(write, { max_queued: 100, max_batch_behind: 16 })
    for (let item = 0; item < 60; item++) batches.push(item)
    for (let turn = 0; turn < 20; turn++) await advance(100)
    expect(sizes).toEqual([16, 16, 4, 4, 4, 4, 4, 4, 4])
    for (let item = 0; item < 60; item++) batches.push(item)
    await batches.flush()
    expect(batches.health()).toMatchObject({ queued: 0, written: 120 })
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
    expect(batches.health()).toEqual({ queued: 0, written: 2, dropped: 0, refused: 0, is_failing: false })
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
    expect(batches.health()).toMatchObject({ queued: 0, written: 1, dropped: 1, refused: 1 })
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

  it('holds at most so many bytes, and has room again for what was written', async () => {
    const { batches, advance } = setUp(async () => 0, { max_bytes: 10 })
    expect([batches.push(1, 6), batches.push(2, 5), batches.push(3, 4)]).toEqual([true, false, true])
    expect(batches.health()).toMatchObject({ queued: 2, dropped: 1 })
    await advance(100)
    expect([batches.push(4, 10), batches.push(5, 1)]).toEqual([true, false])
  })

  it('gives up the items of a write that fails where it is not to be repeated, without its error in the log', async () => {
    let attempts = 0
    const refuse = async () => {
      attempts++
      throw new Error('http://secret')
    }
    const { batches, advance, logged } = setUp(refuse, { is_repeated: false })
    for (let round = 0; round < 4; round++) {
      batches.push(round)
      await advance(20_000)
    }
    expect(attempts).toBe(4)
    expect(batches.health()).toEqual({ queued: 0, written: 0, dropped: 4, refused: 4, is_failing: false })
    expect(logged().match(/a sink: items lost[^}]*/g)).toMatchObject([
      expect.stringContaining('"lost":1'),
      expect.stringContaining('"lost":3'),
    ])
    expect(logged()).not.toContain('secret')
  })

  it('goes on after a silent receiver where a write is not repeated', async () => {
    let isSilent = true
    const { batches, advance } = setUp(() => (isSilent ? new Promise(() => {}) : Promise.resolve(0)), {
      is_repeated: false,
      writes_full: true,
    })
    for (let item = 0; item < 20; item++) batches.push(item)
    await advance(0)
    expect(batches.health()).toMatchObject({ queued: 10, dropped: 10 })
    isSilent = false
    await advance(1_000)
    await advance(0)
    await advance(100)
    expect(batches.health()).toMatchObject({ queued: 0, written: 6, dropped: 14, refused: 4 })
  })

  it('tries three times to write the rest when it is closed', async () => {
    let attempts = 0
    const { batches, logged } = setUp(() => Promise.reject(new Error(`away ${++attempts}`)))
    batches.push(1)
    await batches.close({ deadline_ms: 1_000 })
    expect([attempts, batches.health().dropped]).toEqual([3, 1])
    expect(logged()).toContain('a sink: items lost')
  })
})
