import { describe, expect, it } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { createLog } from '../kit/log.ts'
import { createExportQueue } from './export-queue.ts'

const LIMITS = { max_queue: 5, max_batch: 2, delay_ms: 1_000, timeout_ms: 10_000 }

function build(send: (items: number[]) => Promise<void>, limits = LIMITS) {
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
  const queue = createExportQueue<number>({ name: 'spans', limits, send, clock, log })
  const logged = () => {
    log.flush()
    return lines
  }
  return { queue, clock, logged }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('an export queue', () => {
  it('sends a full batch at once, and the rest after the delay', async () => {
    const sent: number[][] = []
    const { queue, clock } = build(async (items) => void sent.push(items))
    for (const item of [1, 2, 3]) queue.add(item, 1)
    await turn()
    expect(sent).toEqual([[1, 2]])
    clock.advance(999)
    await turn()
    expect(sent).toEqual([[1, 2]])
    clock.advance(1)
    await turn()
    expect(sent).toEqual([[1, 2], [3]])
    expect(queue.counts()).toEqual({ exported: 3, dropped: 0, failed: 0, queued: 0 })
  })

  it('drops and counts what does not fit while a receiver is silent, and goes on after its time-out', async () => {
    let isSilent = true
    const { queue, clock, logged } = build(() => (isSilent ? new Promise(() => {}) : Promise.resolve()))
    for (let item = 0; item < 20; item++) queue.add(item, 1)
    expect(queue.counts()).toEqual({ exported: 0, dropped: 13, failed: 0, queued: 5 })
    isSilent = false
    clock.advance(10_000)
    await turn()
    await turn()
    clock.advance(1_000)
    await turn()
    expect(queue.counts()).toEqual({ exported: 5, dropped: 13, failed: 2, queued: 0 })
    expect(logged().match(/could not be exported/g)).toHaveLength(1)
  })

  it('holds at most 16 MiB', () => {
    const { queue } = build(() => new Promise(() => {}), { ...LIMITS, max_queue: 100, max_batch: 100 })
    for (let item = 0; item < 20; item++) queue.add(item, 1024 * 1024)
    expect(queue.counts()).toMatchObject({ queued: 16, dropped: 4 })
  })

  it('counts what a receiver refuses, and logs it once a minute without the cause', async () => {
    const { queue, clock, logged } = build(() => Promise.reject(new Error('http://secret')))
    for (let round = 0; round < 4; round++) {
      queue.add(round, 1)
      clock.advance(20_000)
      await turn()
    }
    expect(queue.counts()).toMatchObject({ failed: 4, exported: 0 })
    expect(logged().match(/could not be exported/g)).toHaveLength(2)
    expect(logged()).not.toContain('secret')
  })

  it('sends everything when it is closed', async () => {
    const sent: number[] = []
    const { queue } = build(async (items) => void sent.push(...items))
    for (const item of [1, 2, 3, 4, 5]) queue.add(item, 1)
    await queue.close({ deadline_ms: 1_000 })
    expect(sent).toEqual([1, 2, 3, 4, 5])
    queue.add(6, 1)
    expect(queue.counts()).toEqual({ exported: 5, dropped: 1, failed: 0, queued: 0 })
  })

  it('gives up at the deadline of the stop, and counts what is left', async () => {
    const { queue, clock, logged } = build(() => new Promise(() => {}))
    for (const item of [1, 2, 3, 4, 5]) queue.add(item, 1)
    const closed = queue.close({ deadline_ms: 500 })
    clock.advance(500)
    await closed
    expect(queue.counts()).toMatchObject({ dropped: 3, queued: 0 })
    expect(logged()).toContain('before the gateway stopped')
  })
})
