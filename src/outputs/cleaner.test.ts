import { describe, expect, test } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { createLog } from '../kit/log.ts'
import type { TaskOutput } from '../spec/task.ts'
import { createCleaner } from './cleaner.ts'

type Row = { task_id: string; expires: number; outputs: TaskOutput[] }

/** In the order of the store: the oldest first. */
function world(rows: Row[], { keys = 0, broken = [] as string[] } = {}) {
  const clock = manualClock()
  const files = new Set(rows.flatMap(({ outputs }) => outputs.flatMap(({ key }) => key ?? [])))
  const events: string[] = []
  const limits: number[] = []
  let tidied = 0
  let isDown = false
  let lines = ''
  const write = (text: string) => {
    lines += text
  }
  const log = createLog({ clock, level: 'error', pretty: false, write })
  const cleaner = createCleaner({
    tasks: {
      async outputsToRemove(now, limit) {
        if (isDown) throw new Error('the store is down')
        limits.push(limit)
        return rows.filter((row) => row.expires <= now && row.outputs.length > 0).slice(0, limit)
      },
      async outputsRemoved(task_ids) {
        for (const row of rows.filter(({ task_id }) => task_ids.includes(task_id))) {
          events.push(`row ${row.task_id}`)
          row.outputs = []
        }
      },
      async deleteExpiredKeys(_now, limit) {
        const forgotten = Math.min(keys, limit)
        keys -= forgotten
        return forgotten
      },
    },
    outputs: {
      async remove(key) {
        if (broken.includes(key)) throw new Error('the disk is gone')
        events.push(`file ${key}`)
        files.delete(key)
      },
      async removeLeftovers() {
        tidied++
        return 0
      },
    },
    clock,
    log,
  })
  return {
    cleaner,
    clock,
    files,
    events,
    limits,
    keysLeft: () => keys,
    tidied: () => tidied,
    lines: () => lines,
    breakDown: (down: boolean) => {
      isDown = down
    },
  }
}

const NOW = Date.UTC(2026, 0, 1) / 1000
const row = (number: number, expires = NOW): Row => ({
  task_id: `task_${number}`,
  expires,
  outputs: [{ key: `task_${number}/0`, content_type: 'video/mp4', bytes: 1 }],
})
const rowsOf = (count: number) => Array.from({ length: count }, (_, index) => row(index))

describe('a sweep', () => {
  test('removes expired outputs, the files before their row, and keeps the rest', async () => {
    const two = { ...row(1), outputs: [...row(1).outputs, { key: 'task_1/1', content_type: 'video/mp4' }] }
    const kept = row(2, NOW + 1)
    const { cleaner, files, events } = world([two, kept])
    await cleaner.sweep()
    expect(events).toEqual(['file task_1/0', 'file task_1/1', 'row task_1'])
    expect([...files]).toEqual(['task_2/0'])
  })

  test('clears outputs that are stored at the provider without removing a file', async () => {
    const { cleaner, events } = world([
      { ...row(1), outputs: [{ url: 'https://a.example/1', content_type: 'video/mp4' }] },
    ])
    await cleaner.sweep()
    expect(events).toEqual(['row task_1'])
  })

  test('handles any number of tasks, in small batches', async () => {
    const { cleaner, files, limits } = world(rowsOf(205))
    await cleaner.sweep()
    expect(files.size).toBe(0)
    expect(Math.max(...limits)).toBe(20)
  })

  test('continues past files that cannot be removed, and retries them in the next sweep', async () => {
    const broken = Array.from({ length: 25 }, (_, index) => `task_${index}/0`)
    const { cleaner, files, lines } = world(rowsOf(100), { broken })
    await cleaner.sweep()
    expect([...files].sort()).toEqual(broken.toSorted())
    expect(lines()).toContain('the disk is gone')
    broken.length = 0
    await cleaner.sweep()
    expect(files.size).toBe(0)
  })

  test('deletes keys and leftovers even if the outputs could not be cleaned', async () => {
    const { cleaner, keysLeft, tidied, breakDown, lines } = world([], { keys: 1201 })
    breakDown(true)
    await cleaner.sweep()
    expect([keysLeft(), tidied()]).toEqual([0, 1])
    expect(lines()).toContain('the store is down')
  })
})

describe('the cleaner', () => {
  const settled = () => new Promise((resolve) => setImmediate(resolve))

  test('sweeps soon after its start, and then every quarter of an hour, despite failures', async () => {
    const { cleaner, clock, tidied, breakDown } = world([])
    cleaner.start()
    clock.advance(29_999)
    await settled()
    expect(tidied()).toBe(0)
    clock.advance(1)
    await settled()
    expect(tidied()).toBe(1)
    breakDown(true)
    for (const sweeps of [2, 3]) {
      clock.advance(15 * 60_000)
      await settled()
      expect(tidied()).toBe(sweeps)
    }
  })

  test('continues soon where a sweep has not deleted all, and waits where files cannot be removed', async () => {
    const { cleaner, clock, keysLeft, tidied } = world([], { keys: 250_000 })
    cleaner.start()
    clock.advance(30_000)
    const left = [250_000, 150_000, 50_000]
    for (const [at, keys] of left.entries()) {
      while (tidied() <= at) await settled()
      await settled()
      expect(keysLeft()).toBe(Math.max(0, keys - 100_000))
      clock.advance(1_000)
    }
    await settled()
    expect(tidied()).toBe(left.length)
    await cleaner.stop()
    const rows = rowsOf(4_001)
    const broken = world(rows, { broken: rows.map(({ task_id }) => `${task_id}/0`) })
    broken.cleaner.start()
    broken.clock.advance(30_000)
    while (broken.tidied() === 0) await settled()
    broken.clock.advance(1_000)
    await settled()
    expect(broken.tidied()).toBe(1)
    await broken.cleaner.stop()
  })

  test('does not sweep after it was stopped', async () => {
    const { cleaner, clock, tidied } = world([])
    cleaner.start()
    await cleaner.stop()
    expect(clock.waiting()).toBe(0)
    clock.advance(3_600_000)
    await settled()
    expect(tidied()).toBe(0)
  })

  test('finishes only the current batch when it is stopped during a sweep', async () => {
    const { cleaner, files, clock } = world(rowsOf(100))
    cleaner.start()
    clock.advance(30_000)
    await cleaner.stop()
    expect(files.size).toBe(80)
    expect(clock.waiting()).toBe(0)
  })
})
