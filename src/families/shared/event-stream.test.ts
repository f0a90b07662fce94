import { describe, expect, test } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import type { Parts } from '../../calls/family.ts'
import type { Outcome } from '../../http/context.ts'
import { awaitStart, eventStream, type Framing } from './event-stream.ts'

/** A stream over items that the test hands out one by one. */
function streamOf(framing?: Framing, waited_ms = 0, first?: string) {
  const clock = manualClock()
  const waiting: ((item: IteratorResult<string>) => void)[] = []
  const ready: IteratorResult<string>[] = []
  const outcomes: Outcome[] = []
  let pulls = 0
  let aborted = 0
  let returned = 0
  let firstBytes = 0
  const source: Parts = {
    ...(first === undefined ? {} : { takeFirst: () => first }),
    [Symbol.asyncIterator]: () => ({
      next() {
        pulls++
        const item = ready.shift()
        return item ? Promise.resolve(item) : new Promise((resolve) => waiting.push(resolve))
      },
      async return() {
        returned++
        return { done: true, value: undefined }
      },
    }),
  }
  const give = (item: IteratorResult<string>) => {
    const taker = waiting.shift()
    if (taker) taker(item)
    else ready.push(item)
  }
  const response = eventStream({
    batches: source,
    keep_alive_ms: 15_000,
    clock,
    ...(waited_ms > 0 ? { arrived: clock.now() - waited_ms } : {}),
    headers: { 'x-extra': 'yes' },
    ...(framing ? { framing } : {}),
    abort: () => void aborted++,
    onFirstByte: () => void firstBytes++,
    onEnd: (outcome) => void outcomes.push(outcome),
  })
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  return {
    clock,
    response,
    reader,
    say: (value: string) => give({ done: false, value }),
    finish: () => give({ done: true, value: undefined }),
    async read() {
      const { done, value } = await reader.read()
      return done ? undefined : new TextDecoder().decode(value)
    },
    outcomes,
    counts: () => ({ pulls, aborted, returned, firstBytes }),
  }
}

test('has the headers that stop proxies from buffering events', () => {
  const { headers } = streamOf().response
  expect(Object.fromEntries(headers)).toEqual({
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache, no-transform',
    connection: 'keep-alive',
    'x-accel-buffering': 'no',
    'x-extra': 'yes',
  })
})

test('writes every batch as one chunk and reports its end once', async () => {
  const stream = streamOf()
  stream.say('data: 1\n\n')
  stream.say('data: 2\n\ndata: 3\n\n')
  stream.finish()
  expect(await stream.read()).toBe('data: 1\n\n')
  expect(await stream.read()).toBe('data: 2\n\ndata: 3\n\n')
  expect(await stream.read()).toBeUndefined()
  expect(stream.outcomes).toEqual(['done'])
  expect(stream.clock.waiting()).toBe(0)
})

test('reads nothing from its source before the client reads', async () => {
  const stream = streamOf()
  for (let i = 0; i < 10; i++) stream.say(`data: ${i}\n\n`)
  await Promise.resolve()
  expect(stream.counts().pulls).toBe(0)
  await stream.read()
  await Promise.resolve()
  expect(stream.counts().pulls).toBe(1)
})

test('a first part that is there is in the body before the client reads, and once', async () => {
  const stream = streamOf(undefined, 15_000, 'data: 1\n\n')
  expect(stream.counts()).toEqual({ pulls: 0, aborted: 0, returned: 0, firstBytes: 1 })
  stream.say('data: 2\n\n')
  stream.finish()
  expect([await stream.read(), await stream.read(), await stream.read()]).toEqual([
    'data: 1\n\n',
    'data: 2\n\n',
    undefined,
  ])
  expect(stream.counts().firstBytes).toBe(1)
})

describe('silence', () => {
  test('is interrupted by a comment every 15 s, not earlier, and only while the client is reading', async () => {
    const stream = streamOf()
    const first = stream.read()
    stream.clock.advance(14_999)
    expect(await Promise.race([first, Promise.resolve('nothing')])).toBe('nothing')
    stream.clock.advance(1)
    expect(await first).toBe(': keep-alive\n\n')
    stream.clock.advance(60_000)
    stream.say('data: 1\n\n')
    expect(await stream.read()).toBe(': keep-alive\n\n')
    expect(await stream.read()).toBe('data: 1\n\n')
  })

  test('is measured from the last chunk', async () => {
    const stream = streamOf()
    stream.clock.advance(10_000)
    stream.say('data: 1\n\n')
    await stream.read()
    const next = stream.read()
    stream.clock.advance(14_000)
    expect(await Promise.race([next, Promise.resolve('nothing')])).toBe('nothing')
    stream.clock.advance(1_000)
    expect(await next).toBe(': keep-alive\n\n')
  })
})

describe('silence before the head', () => {
  const soon = (next: Promise<unknown>) => Promise.race([next, Promise.resolve('nothing')])

  test('counts: 15 s after the arrival a comment is sent with the head', async () => {
    const stream = streamOf(undefined, 15_000)
    expect(await stream.read()).toBe(': keep-alive\n\n')
    const next = stream.read()
    stream.clock.advance(14_999)
    expect(await soon(next)).toBe('nothing')
    stream.clock.advance(1)
    expect(await next).toBe(': keep-alive\n\n')
  })

  test('of less than 15 s leaves the rest for the first comment', async () => {
    const stream = streamOf(undefined, 14_998)
    const next = stream.read()
    stream.clock.advance(1)
    expect(await soon(next)).toBe('nothing')
    stream.clock.advance(1)
    expect(await next).toBe(': keep-alive\n\n')
  })

  test.each([0, 4_000, 15_000, 40_000])(
    'ends the wait for a start 15 s after the arrival, of which %d ms are over',
    async (over) => {
      const clock = manualClock()
      const waited = awaitStart(new Promise(() => {}), { arrived: clock.now() - over, keep_alive_ms: 15_000, clock })
      const left = Math.max(0, 15_000 - over)
      if (left > 0) {
        clock.advance(left - 1)
        expect(await soon(waited.then(() => 'over'))).toBe('nothing')
      }
      clock.advance(left > 0 ? 1 : 0)
      expect(await waited).toBeUndefined()
      expect(clock.waiting()).toBe(0)
    },
  )

  test('ends with the start, or with its failure', async () => {
    const clock = manualClock()
    const silence = { arrived: clock.now(), keep_alive_ms: 15_000, clock }
    expect(await awaitStart(Promise.resolve('started'), silence)).toBeUndefined()
    expect(await awaitStart(Promise.reject(new Error('refused')), silence).catch(String)).toBe('Error: refused')
    expect(clock.waiting()).toBe(0)
  })
})

test('a stream of another form has its own media type and its own keep-alive', async () => {
  const stream = streamOf({ content_type: 'application/json', keep_alive: '\n' })
  expect(stream.response.headers.get('content-type')).toBe('application/json')
  expect(stream.response.headers.get('x-accel-buffering')).toBe('no')
  const next = stream.read()
  await Promise.resolve()
  stream.clock.advance(15_000)
  expect(await next).toBe('\n')
})

describe('a client', () => {
  test('that leaves while the source is waiting ends the wait first, then the source', async () => {
    const stream = streamOf()
    const pending = stream.read()
    await Promise.resolve()
    await stream.reader.cancel()
    await pending
    expect(stream.outcomes).toEqual(['client_gone'])
    expect(stream.counts()).toEqual({ pulls: 1, aborted: 1, returned: 1, firstBytes: 0 })
    expect(stream.clock.waiting()).toBe(0)
  })

  test('that reads nothing for two minutes counts as gone, and not before', async () => {
    const stream = streamOf()
    stream.say('data: 1\n\n')
    await stream.read()
    stream.clock.advance(105_000)
    expect(stream.outcomes).toEqual([])
    stream.clock.advance(30_000)
    expect(stream.outcomes).toEqual(['client_gone'])
    expect(stream.counts()).toMatchObject({ aborted: 1, returned: 1 })
    expect(stream.reader.read()).rejects.toThrow('read nothing')
  })

  test('that keeps reading never counts as gone', async () => {
    const stream = streamOf()
    for (let i = 0; i < 40; i++) {
      const next = stream.read()
      await Promise.resolve()
      stream.clock.advance(15_000)
      expect(await next).toBe(': keep-alive\n\n')
    }
    expect(stream.outcomes).toEqual([])
  })
})
