import { describe, expect, it } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import { createLog } from '../../kit/log.ts'
import type { CachedAnswer, CachedAnswerStore } from '../../store/requests/cache-store.ts'
import { createMemoryEntries } from './memory-entries.ts'
import { createResponseCache, type Hit, type Lookup, type Miss } from './response-cache.ts'
import { createVectors } from './vectors.ts'

const NO_STORE: CachedAnswerStore = {
  find: () => Promise.reject(new Error('the database is down')),
  put: () => Promise.reject(new Error('the database is down')),
  deleteExpired: async () => 0,
  countPurge: () => Promise.reject(new Error('the database is down')),
  purges: async () => new Map(),
  deleteWith: async () => 0,
  size: async () => ({ entries: 0, bytes: 0 }),
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
    settings: () => ({ storage, max_entries: 10, max_bytes: 1000, max_vector_bytes: 1000 }),
    clock,
    log,
  })
  const signal = new AbortController().signal
  const find = (change: Partial<Lookup> = {}) =>
    cache.find({
      model: 'm',
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

describe('a similar request', () => {
  const lookupOf = (key: string, numbers?: number[], partition = 'p'): Partial<Lookup> => ({
    key,
    semantic: { partition, threshold: 0.9, embed: async () => numbers },
  })

  it('gets the answer, with the similarity and the age', async () => {
    const { find, clock } = start()
    miss(await find(lookupOf('a', [2, 0]))).put('"a"')
    clock.advance(2_000)
    const found = await find(lookupOf('b', [1, 0.1]))
    expect(found).toMatchObject({ answer: '"a"', age_seconds: 2 })
    expect('similarity' in found && found.similarity).toBeCloseTo(0.995, 3)
  })

  it.each([
    ['at the threshold', [0.9, Math.sqrt(1 - 0.81) - 1e-7], 'p', true],
    ['below it', [0.89, Math.sqrt(1 - 0.89 ** 2)], 'p', false],
    ['of another partition', [1, 0], 'q', false],
    ['with a vector of another length', [1, 0, 0], 'p', false],
    ['with a vector without direction', [0, 0], 'p', false],
    ['with numbers that are none', [Number.NaN, 1], 'p', false],
    ['without a vector', undefined, 'p', false],
  ] as const)('%s', async (_, numbers, partition, expected) => {
    const { find } = start()
    miss(await find(lookupOf('a', [1, 0]))).put('"a"')
    expect(isHit(await find(lookupOf('b', numbers && [...numbers], partition)))).toBe(expected)
  })

  it('gets the most similar answer', async () => {
    const together = start()
    const threshold = 0.9999
    for (const [key, y] of [
      ['a', 0.3],
      ['b', 0.1],
      ['c', 0.2],
    ] as const) {
      const semantic = { partition: 'p', threshold, embed: async () => [1, y] }
      miss(await together.find({ key, semantic })).put(`"${key}"`)
    }
    expect(await together.find(lookupOf('d', [1, 0.12]))).toMatchObject({ answer: '"b"' })
  })

  it('is embedded only after an exact miss, and not while an equal one is open', async () => {
    const { find } = start()
    let embedded = 0
    const semantic = {
      partition: 'p',
      threshold: 0.9,
      embed: async () => {
        embedded++
        return [1, 0]
      },
    }
    const first = miss(await find({ key: 'a', semantic }))
    const second = find({ key: 'a', semantic })
    first.put('"a"')
    expect(await second).toEqual({ answer: '"a"', age_seconds: 0 })
    expect(await find({ key: 'a', semantic })).toEqual({ answer: '"a"', age_seconds: 0 })
    expect(embedded).toBe(1)
  })

  it('shares what it gets with the equal requests that wait for it', async () => {
    const { find } = start()
    miss(await find(lookupOf('a', [1, 0]))).put('"a"')
    const shared = { answer: '"a"', age_seconds: 0, similarity: 1 }
    const both = await Promise.all([find(lookupOf('b', [1, 0])), find(lookupOf('b', undefined))])
    expect(both).toEqual([shared, shared])
  })

  it('gets no answer that has expired, or that was removed', async () => {
    const { find, clock } = start()
    miss(await find(lookupOf('a', [1, 0]))).put('"a"')
    for (let n = 0; n < 10; n++) miss(await find({ key: `other${n}` })).put('""')
    const removed = await find(lookupOf('b', [1, 0]))
    expect(isHit(removed)).toBe(false)
    miss(removed).put('"b"')
    clock.advance(9_999)
    expect(isHit(await find(lookupOf('c', [1, 0])))).toBe(true)
    clock.advance(1)
    expect(isHit(await find(lookupOf('d', [1, 0])))).toBe(false)
  })

  it('leaves the others when its client leaves while it is embedded', async () => {
    const { find } = start()
    const control = new AbortController()
    const embedding = Promise.withResolvers<undefined>()
    const semantic = { partition: 'p', threshold: 0.9, embed: () => embedding.promise }
    const leaving = find({ key: 'a', semantic, signal: control.signal })
    const other = find(lookupOf('a', [1, 0]))
    control.abort(new Error('gone'))
    embedding.resolve(undefined)
    await expect(leaving).rejects.toThrow('gone')
    miss(await other).put('"a"')
  })

  it('has at most so many bytes of vectors, of which the newest stay', async () => {
    const vectors = createVectors()
    const bounds = { max_vector_bytes: 16 }
    const add = (key: string, x: number, y: number) =>
      vectors.add({ partition: 'p', key, vector: Float32Array.of(x, y), expires_ms: 100 }, bounds)
    const at = (x: number, y: number) =>
      vectors.nearest('p', { vector: Float32Array.of(x, y), threshold: 0.9, now_ms: 0 })?.key
    add('a', 1, 0)
    add('b', 0, 1)
    expect([at(1, 0), at(0, 1)]).toEqual(['a', 'b'])
    add('c', -1, 0)
    expect([at(1, 0), at(0, 1), at(-1, 0)]).toEqual([undefined, 'b', 'c'])
    add('b', 0, -1)
    expect([at(0, 1), at(0, -1), at(-1, 0)]).toEqual([undefined, 'b', 'c'])
  })

  it('is compared with the newest 2,000 of its partition', async () => {
    const vectors = createVectors()
    const add = (key: string, x: number) =>
      vectors.add(
        { partition: 'p', key, vector: Float32Array.of(x, 1 - x), expires_ms: 100 },
        { max_vector_bytes: 1_000_000 },
      )
    const found = () => vectors.nearest('p', { vector: Float32Array.of(1, 0), threshold: 0.9, now_ms: 0 })?.key
    add('first', 1)
    for (let n = 0; n < 1_999; n++) add(`n${n}`, 0)
    expect(found()).toBe('first')
    add('last', 0)
    expect(found()).toBeUndefined()
  })
})

it('vectors that are long are compared with fewer', () => {
  const vectors = createVectors()
  const vector = new Float32Array(1_536_000)
  vector[0] = 1
  const other = new Float32Array(vector.length)
  const add = (key: string, vector: Float32Array) =>
    vectors.add({ partition: 'p', key, vector, expires_ms: 100 }, { max_vector_bytes: 100_000_000 })
  const found = () => vectors.nearest('p', { vector, threshold: 0.9, now_ms: 0 })?.key
  add('first', vector)
  add('second', other)
  expect(found()).toBe('first')
  add('third', other)
  expect(found()).toBeUndefined()
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
