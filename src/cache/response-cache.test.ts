import { describe, expect, it } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { createLog } from '../kit/log.ts'
import type { CachedAnswer, CachedAnswerStore } from '../store/cached-answer.ts'
import { createMemoryEntries } from './memory-entries.ts'
import { createResponseCache, type Hit, type Lookup, type Miss } from './response-cache.ts'

const NO_STORE: CachedAnswerStore = {
  find: () => Promise.reject(new Error('the database is down')),
  put: () => Promise.reject(new Error('the database is down')),
  deleteExpired: async () => 0,
}

function start({
  storage = 'memory',
  store = NO_STORE,
}: {
  storage?: 'memory' | 'database'
  store?: CachedAnswerStore
} = {}) {
  const clock = manualClock()
  let logged = ''
  const write = (text: string) => {
    logged += text
  }
  const log = createLog({ clock, level: 'error', pretty: false, write })
  const cache = createResponseCache({
    store,
    settings: () => ({ storage, max_entries: 10, max_bytes: 1000 }),
    clock,
    log,
  })
  const signal = new AbortController().signal
  const find = (change: Partial<Lookup> = {}) =>
    cache.find({
      key: 'k',
      ttl_seconds: 10,
      max_entry_bytes: 10,
      is_refresh: false,
      deadline: Number.POSITIVE_INFINITY,
      signal,
      ...change,
    })
  const logText = () => {
    log.flush()
    return logged
  }
  return { clock, cache, find, logText }
}

function miss(found: Hit | Miss): Miss {
  if ('put' in found) return found
  throw new Error(`expected a miss, got ${found.answer}`)
}
const isHit = (found: Hit | Miss) => 'answer' in found

describe('a cached answer', () => {
  it('is found with its age until it expires', async () => {
    const { clock, find } = start()
    miss(await find()).put('"a"')
    clock.advance(9_999)
    expect(await find()).toEqual({ answer: '"a"', age_seconds: 9 })
    clock.advance(1)
    expect(isHit(await find())).toBe(false)
  })

  it('has at most the bytes of an entry, in UTF-8', async () => {
    for (const [answer, is_cached] of [
      ['1234567890', true],
      ['12345678901', false],
      ['äääää', true],
      ['äääää1', false],
    ] as const) {
      const { find } = start()
      miss(await find()).put(answer)
      expect(isHit(await find())).toBe(is_cached)
    }
  })

  it('is kept from a database that does not answer, and the request proceeds', async () => {
    const { find, cache, logText } = start({ storage: 'database' })
    miss(await find()).put('"a"')
    await cache.close()
    expect(isHit(await find())).toBe(false)
    expect(logText()).toContain('response cache not read')
    expect(logText()).toContain('response cache not written')
  })

  it('is found while it is still being written', async () => {
    const written = Promise.withResolvers<void>()
    const store = { ...NO_STORE, find: async () => undefined, put: () => written.promise }
    const { find, cache, clock } = start({ storage: 'database', store })
    miss(await find()).put('"a"')
    expect(isHit(await find())).toBe(true)
    clock.advance(10_000)
    const late = await find()
    expect(isHit(late)).toBe(false)
    miss(late).drop('failed')
    written.resolve()
    await cache.close()
    expect(isHit(await find())).toBe(false)
  })
})

describe('equal requests', () => {
  /** The first one, and the number of those that wait for it. */
  async function waiting(count: number) {
    const started = start()
    const first = miss(await started.find())
    const others = Array.from({ length: count }, () => started.find())
    return { ...started, first, others }
  }

  it('begin one call, even before the cache was read', async () => {
    const { find } = start()
    const all = [find(), find(), find()]
    const first = miss(await Promise.race(all))
    first.put('"a"')
    expect((await Promise.all(all)).map(isHit)).toEqual([false, true, true])
  })

  it('each call by themselves after a failure', async () => {
    const { first, others } = await waiting(3)
    first.drop('failed')
    expect((await Promise.all(others)).map(isHit)).toEqual([false, false, false])
  })

  it('wait for another one when the client of the first one has left', async () => {
    const { first, others } = await waiting(3)
    first.drop('left')
    const second = miss(await Promise.race(others))
    second.put('"a"')
    const found = await Promise.all(others)
    expect(found.filter(isHit)).toHaveLength(2)
  })

  it('do not wait when they replace the answer', async () => {
    const { first, find } = await waiting(0)
    miss(await find({ is_refresh: true })).put('"new"')
    first.put('"old"')
    expect(await find()).toEqual({ answer: '"old"', age_seconds: 0 })
  })

  it('wait a minute at most', async () => {
    const { clock, others } = await waiting(1)
    const settled: string[] = []
    void others[0]?.then(() => settled.push('done'))
    clock.advance(59_999)
    await Promise.resolve()
    expect(settled).toEqual([])
    clock.advance(1)
    expect((await Promise.all(others)).map(isHit)).toEqual([false])
    expect(clock.waiting()).toBe(0)
  })

  it('wait until their deadline at most', async () => {
    const { clock, find } = await waiting(0)
    const other = find({ deadline: clock.steady() + 500 })
    let is_done = false
    void other.then(() => {
      is_done = true
    })
    clock.advance(499)
    await Promise.resolve()
    expect(is_done).toBe(false)
    clock.advance(1)
    expect(isHit(await other)).toBe(false)
  })

  it('stop waiting when their client leaves', async () => {
    const { first, find, clock } = await waiting(0)
    const control = new AbortController()
    const leaving = find({ signal: control.signal })
    const staying = find()
    control.abort(new Error('gone'))
    await expect(leaving).rejects.toThrow('gone')
    await expect(find({ signal: control.signal })).rejects.toThrow('gone')
    first.put('"a"')
    expect(isHit(await staying)).toBe(true)
    expect(clock.waiting()).toBe(0)
  })
})

describe('entries in memory', () => {
  const entry = (bytes: number): CachedAnswer => ({ created_ms: 0, expires_ms: 100, bytes, answer: '' })
  const keysIn = (memory: ReturnType<typeof createMemoryEntries>, keys: string) =>
    [...keys].filter((key) => memory.find(key, 1)).join('')

  it('remove the least recently used above the number, and none at it', () => {
    const memory = createMemoryEntries()
    const bounds = { max_entries: 2, max_bytes: 100 }
    for (const key of 'ab') memory.put(key, entry(1), bounds)
    expect(keysIn(memory, 'ba')).toBe('ba')
    memory.put('c', entry(1), bounds)
    expect(keysIn(memory, 'abc')).toBe('ac')
  })

  it('remove the least recently used above the bytes, and none at them', () => {
    const memory = createMemoryEntries()
    const bounds = { max_entries: 9, max_bytes: 100 }
    for (const key of 'ab') memory.put(key, entry(50), bounds)
    expect(keysIn(memory, 'ab')).toBe('ab')
    memory.put('b', entry(51), bounds)
    expect(keysIn(memory, 'ab')).toBe('b')
    memory.put('c', entry(101), bounds)
    expect(keysIn(memory, 'bc')).toBe('')
    memory.put('d', entry(100), bounds)
    expect(keysIn(memory, 'd')).toBe('d')
  })

  it('free the bytes of expired ones', () => {
    const memory = createMemoryEntries()
    const bounds = { max_entries: 9, max_bytes: 100 }
    memory.put('a', entry(100), bounds)
    expect(memory.find('a', 100)).toBeUndefined()
    memory.put('b', entry(50), bounds)
    memory.put('c', entry(50), bounds)
    expect(keysIn(memory, 'bc')).toBe('bc')
  })
})
