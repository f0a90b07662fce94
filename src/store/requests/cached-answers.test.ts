/** The store's contract for the response cache, tested on every engine. */
import { afterEach, describe, expect, it } from 'bun:test'
import { ENGINES } from '../../../test/kit/engines.ts'
import type { CachedAnswer } from './cache-store.ts'

const entry = (created_ms: number, change: Partial<CachedAnswer> = {}): CachedAnswer => ({
  created_ms,
  expires_ms: 10_000,
  bytes: 100,
  answer: '{"text":"ü \\u0000 \\ud800"}',
  ...change,
})
const WIDE = { max_entries: 100, max_bytes: 100_000 }

for (const engine of ENGINES) {
  describe(engine.name, () => {
    afterEach(() => engine.cleanup())

    it('returns a cached answer unchanged until it expires', async () => {
      const { cachedAnswers } = await engine.open()
      await cachedAnswers.put('a', entry(1), WIDE)
      expect(await cachedAnswers.find('a', 9_999)).toEqual(entry(1))
      expect(await cachedAnswers.find('a', 10_000)).toBeUndefined()
      expect(await cachedAnswers.find('b', 1)).toBeUndefined()
    })

    it('replaces the answer of the same key', async () => {
      const { cachedAnswers } = await engine.open()
      await cachedAnswers.put('a', entry(1), WIDE)
      await cachedAnswers.put('a', entry(2, { answer: '"new"', bytes: 5 }), WIDE)
      expect(await cachedAnswers.find('a', 5)).toEqual(entry(2, { answer: '"new"', bytes: 5 }))
    })

    it('removes the oldest answers above the number of entries, and none at it', async () => {
      const { cachedAnswers } = await engine.open()
      const bounds = { max_entries: 2, max_bytes: 1000 }
      await cachedAnswers.put('a', entry(1), bounds)
      await cachedAnswers.put('b', entry(2), bounds)
      expect(await cachedAnswers.find('a', 5)).toBeDefined()
      await cachedAnswers.put('c', entry(3), bounds)
      expect(await cachedAnswers.find('a', 5)).toBeUndefined()
      expect(await cachedAnswers.find('b', 5)).toBeDefined()
      expect(await cachedAnswers.find('c', 5)).toBeDefined()
    })

    it('removes the oldest answers above the total of bytes, and none at it', async () => {
      const { cachedAnswers } = await engine.open()
      const bounds = { max_entries: 10, max_bytes: 300 }
      for (const [at, key] of ['a', 'b', 'c'].entries()) await cachedAnswers.put(key, entry(at), bounds)
      expect(await cachedAnswers.find('a', 5)).toBeDefined()
      await cachedAnswers.put('d', entry(4, { bytes: 101 }), bounds)
      expect(await cachedAnswers.find('a', 5)).toBeUndefined()
      expect(await cachedAnswers.find('b', 5)).toBeUndefined()
      expect(await cachedAnswers.find('c', 5)).toBeDefined()
    })

    it('deletes expired answers in batches', async () => {
      const { cachedAnswers } = await engine.open()
      for (const key of ['a', 'b', 'c']) await cachedAnswers.put(key, entry(1), WIDE)
      await cachedAnswers.put('d', entry(1, { expires_ms: 10_001 }), WIDE)
      expect(await cachedAnswers.deleteExpired(9_999, 2)).toBe(0)
      expect(await cachedAnswers.deleteExpired(10_000, 2)).toBe(2)
      expect(await cachedAnswers.deleteExpired(10_000, 2)).toBe(1)
      expect(await cachedAnswers.find('d', 10_000)).toBeDefined()
    })

    it('counts purges of all models and of each, with their rows of the audit log', async () => {
      const { cachedAnswers, audit } = await engine.open()
      const row = { actor: 'cli:a', at_ms: 1, action: 'cache.purge', object_type: 'cache', object_id: '' }
      expect(await cachedAnswers.purges()).toEqual(new Map())
      await cachedAnswers.countPurge(undefined, row)
      await cachedAnswers.countPurge('a', row)
      await cachedAnswers.countPurge('a')
      expect(Object.fromEntries(await cachedAnswers.purges())).toEqual({ '': 1, a: 2 })
      expect((await audit.page({ limit: 9 })).rows.map(({ action }) => action)).toEqual(['cache.purge', 'cache.purge'])
    })

    it('deletes in batches the answers whose key has a text, which is no pattern', async () => {
      const { cachedAnswers } = await engine.open()
      for (const key of ['a_|1', 'x|a_|2', 'a_|3', 'ab|1', 'A_|1']) await cachedAnswers.put(key, entry(1), WIDE)
      expect(await cachedAnswers.deleteWith('a_|', 2)).toBe(2)
      expect(await cachedAnswers.deleteWith('a_|', 2)).toBe(1)
      expect(await cachedAnswers.deleteWith('%', 2)).toBe(0)
      expect(await cachedAnswers.find('ab|1', 5)).toBeDefined()
      expect(await cachedAnswers.find('A_|1', 5)).toBeDefined()
      expect(await cachedAnswers.deleteWith('', 9)).toBe(2)
    })
  })
}
