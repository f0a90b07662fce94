import { describe, expect, test } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import { GatewayError } from '../../spec/error.ts'
import type { BatchProvider, BatchState } from './batch-provider.ts'
import { placeOrder } from './place-order.ts'

type Order = Parameters<typeof placeOrder>[0]
type Placing = Parameters<typeof placeOrder>[1]
type Found = Awaited<ReturnType<BatchProvider['find']>>

const PLAIN = { mark: 'gh1_', model: 'm', path: '/chat/completions', lines: 2, bytes: 100 }
const MINUTE = 60_000
const refusal = (code: 'bad_upstream_response' | 'server_is_overloaded', accepted?: 'no') =>
  new GatewayError(code, 'The vendor says no.', { upstream_status: 429, ...(accepted && { accepted }) })

class Crash extends Error {}

/** A vendor that remembers what it was asked, and an order as the store has it. */
function placing(stored: Partial<Order> = {}) {
  const clock = manualClock()
  const signal = new AbortController().signal
  const asked: string[] = []
  const warned: string[] = []
  const seen: Parameters<BatchProvider['find']>[] = []
  const replies: {
    create?: (() => string) | undefined
    find?: Found
    state?: BatchState
    hasLines?: boolean
    crash?: string | undefined
    restored?: Placing['restored']
    isLost?: boolean
  } = {}
  let row: Order = { ...PLAIN, stage: 'marked', ...stored }
  const vendor = {
    async upload() {
      asked.push('upload')
      return 'file-1'
    },
    async create(_: unknown, uploaded: unknown) {
      asked.push(`create of ${uploaded}`)
      return replies.create?.() ?? 'batch-1'
    },
    async find(...given: Parameters<BatchProvider['find']>) {
      asked.push('find')
      seen.push(given)
      return replies.find ?? 'absent'
    },
    async state() {
      asked.push('state')
      return replies.state ?? { is: 'running' }
    },
    async cancel() {
      asked.push('cancel')
      if (replies.isLost) throw new Error('gone')
    },
  } as unknown as BatchProvider
  return {
    clock,
    asked,
    warned,
    seen,
    replies,
    row: () => row,
    /** One step of a process, which reads what is stored. */
    place(isOver = false) {
      const order = { ...row }
      return placeOrder(order, {
        vendor,
        lines: async () => new ReadableStream(),
        async save(change) {
          Object.assign(order, change)
          row = { ...order }
        },
        isOver,
        restored: replies.restored,
        hasLines: async () => replies.hasLines ?? true,
        onAbsent: () => void asked.push('absent'),
        crashHook(point) {
          if (point === replies.crash) throw new Crash()
        },
        warn: (event) => void warned.push(event),
        clock,
        signal,
      })
    },
  }
}

describe('an order', () => {
  test('is uploaded, created once, and polled less and less often until it has ended', async () => {
    const order = placing()
    const waits: unknown[] = []
    for (let poll = 0; poll < 12; poll++) waits.push(await order.place())
    expect(order.asked.slice(0, 3)).toEqual(['upload', 'create of file-1', 'state'])
    expect(order.asked.filter((one) => one !== 'state')).toHaveLength(2)
    expect(waits.slice(0, 3)).toEqual([15_000, 22_500, 33_750].map((wait_ms) => ({ is: 'later', wait_ms })))
    expect(waits.at(-1)).toEqual({ is: 'later', wait_ms: 5 * MINUTE })
    order.replies.state = { is: 'ended', problem: 'bad file' }
    expect(await order.place()).toEqual({ is: 'ended', problem: 'bad file' })
  })

  test.each([
    ['batch: order uploaded', 'marked', ['upload', 'upload', 'create of file-1']],
    ['batch: order sent', 'sent', ['upload', 'find']],
    ['batch: order created', 'sent', ['upload', 'create of file-1', 'find']],
    ['batch: order polled', 'created', ['upload', 'create of file-1', 'state']],
  ] as const)('whose process dies at "%s" is not created twice', async (crash, stage, asked) => {
    const order = placing()
    if (crash === 'batch: order polled') await order.place()
    order.replies.crash = crash
    await expect(order.place()).rejects.toThrow(Crash)
    expect(order.row().stage).toBe(stage)
    order.replies.crash = undefined
    order.replies.find = { id: 'batch-7' }
    await order.place()
    expect(order.asked.slice(0, asked.length)).toEqual([...asked])
    expect(order.asked.filter((one) => one.startsWith('create')).length).toBeLessThanOrEqual(1)
    expect(order.row()).toMatchObject({ stage: 'created', id: asked.includes('find' as never) ? 'batch-7' : 'batch-1' })
  })

  test('that may exist is created again only once its vendor must have listed it', async () => {
    const order = placing()
    const lost = () => {
      throw refusal('bad_upstream_response')
    }
    order.replies.create = lost
    await expect(order.place()).rejects.toThrow('says no')
    expect(order.row().stage).toBe('sent')
    order.replies.create = undefined
    for (const find of ['absent', 'unsure', 'hidden'] as const) {
      order.replies.find = find
      expect(await order.place()).toEqual({ is: 'later', wait_ms: MINUTE })
    }
    order.clock.advance(5 * MINUTE)
    // Not even then where the vendor does not tell.
    for (const find of ['unsure', 'hidden'] as const) {
      order.replies.find = find
      expect(await order.place()).toEqual({ is: 'later', wait_ms: MINUTE })
    }
    order.replies.find = 'absent'
    await order.place()
    expect(order.asked.filter((one) => one.startsWith('create'))).toHaveLength(2)
    const [sought, since] = order.seen.at(-1) ?? []
    expect(sought).toMatchObject({ mark: 'gh1_', uploaded: 'file-1' })
    expect(since).toBe(Math.floor((order.clock.now() - 10 * MINUTE) / 1000))
  })

  test('that its vendor refuses is refused, and one that it has no room for waits', async () => {
    const order = placing()
    order.replies.create = () => {
      throw refusal('bad_upstream_response', 'no')
    }
    expect(await order.place()).toEqual({
      is: 'refused',
      code: 'bad_upstream_response',
      message: 'The vendor says no.',
    })
    const other = placing()
    other.replies.create = () => {
      throw refusal('server_is_overloaded', 'no')
    }
    await expect(other.place()).rejects.toThrow('says no')
    other.replies.create = undefined
    other.clock.advance(MINUTE)
    expect(await other.place()).toEqual({ is: 'later', wait_ms: 4 * MINUTE })
    other.clock.advance(4 * MINUTE)
    await other.place()
    expect(other.asked).toEqual(['upload', 'create of file-1', 'create of file-1'])
  })

  test('that fails for want of room is created again, of what was uploaded', async () => {
    const order = placing()
    await order.place()
    order.replies.state = { is: 'ended', problem: 'no room', is_full: true }
    expect(await order.place()).toEqual({ is: 'later', wait_ms: 5 * MINUTE })
    expect(order.warned).toEqual(['batch has no room at its provider'])
    expect(order.row().id).toBeUndefined()
    expect(await order.place()).toEqual({ is: 'later', wait_ms: 5 * MINUTE })
    order.clock.advance(5 * MINUTE)
    expect(await order.place()).toEqual({ is: 'later', wait_ms: 15_000 })
    expect(order.asked).toEqual(['upload', 'create of file-1', 'state', 'create of file-1'])
    expect(await order.place(true)).toMatchObject({ is: 'ended', problem: 'no room' })
  })

  test('whose file its vendor has not processed yet is tried again at the next step', async () => {
    const order = placing()
    order.replies.create = () => {
      throw new GatewayError('server_is_overloaded', 'Not processed.', { accepted: 'no' })
    }
    await expect(order.place()).rejects.toThrow('Not processed')
    order.replies.create = undefined
    order.clock.advance(MINUTE)
    expect(await order.place()).toEqual({ is: 'later', wait_ms: 15_000 })
  })

  test('that was being created when it was backed up is created only once lists have what came before the restore', async () => {
    const sent_ms = placing().clock.now()
    const order = placing({ stage: 'sent', uploaded: 'file-1', sent_ms })
    order.clock.advance(60 * MINUTE)
    order.replies.restored = { backup_ms: sent_ms, at_ms: order.clock.now() }
    expect(await order.place()).toEqual({ is: 'later', wait_ms: MINUTE })
    order.clock.advance(5 * MINUTE)
    await order.place()
    expect(order.asked).toEqual(['find', 'find', 'create of file-1'])
  })

  test('of a batch that is over is never sent, and cancelled once where it was', async () => {
    expect(await placing().place(true)).toEqual({ is: 'unsent' })
    expect(await placing({ stage: 'uploaded' }).place(true)).toEqual({ is: 'unsent' })
    const order = placing({ stage: 'created', id: 'batch-1' })
    order.replies.isLost = true
    expect(await order.place(true)).toEqual({ is: 'later', wait_ms: 15_000 })
    expect(await order.place(true)).toMatchObject({ is: 'later' })
    expect(order.asked).toEqual(['cancel', 'state', 'state'])
    expect(order.warned).toEqual(['batch not cancelled at its provider'])
    order.replies.state = { is: 'ended' }
    expect(await order.place(true)).toEqual({ is: 'ended' })
  })

  test('of a restored batch is adopted where its vendor has it', async () => {
    const order = placing({ stage: 'uploaded', uploaded: 'file-1' })
    order.replies.restored = { backup_ms: order.clock.now() - 60 * MINUTE, at_ms: order.clock.now() }
    order.replies.find = { id: 'batch-7' }
    await order.place()
    expect(order.row()).toMatchObject({ stage: 'created', id: 'batch-7', is_adopted: true, is_sought: true })
    expect(order.asked).toEqual(['find'])
    expect(order.seen[0]?.[0]).toEqual({
      mark: 'gh1_',
      uploaded: 'file-1',
      lines: 2,
      until: order.clock.now() / 1000 + 60,
    })
  })

  test.each([
    ['unsure', false, 5, { is: 'later', wait_ms: MINUTE }],
    ['unsure', true, 5, { is: 'unknown' }],
    ['hidden', false, 5, { is: 'unknown' }],
    ['absent', false, 4, { is: 'later', wait_ms: MINUTE }],
    ['absent', true, 5, { is: 'unsent' }],
    ['absent', false, 5, { is: 'later', wait_ms: 15_000 }],
  ] as const)(
    'of a restored batch that is %s (over: %p) ends after %p minutes as %p',
    async (find, isOver, minutes, is) => {
      const order = placing()
      order.replies.restored = { backup_ms: order.clock.now() - 60 * MINUTE, at_ms: order.clock.now() }
      order.replies.find = find
      order.clock.advance(minutes * MINUTE)
      expect(await order.place(isOver)).toEqual(is)
      expect(order.asked.includes('absent')).toBe(find === 'absent' && minutes === 5)
      expect(order.asked.includes('create of file-1')).toBe(is.is === 'later' && is.wait_ms === 15_000)
    },
  )

  test('of a restored batch whose lines are gone is gone', async () => {
    const order = placing()
    order.replies.restored = { backup_ms: 0, at_ms: 0 }
    order.replies.hasLines = false
    expect(await order.place()).toEqual({ is: 'gone' })
  })
})
