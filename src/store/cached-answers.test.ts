/** The store's contract for the response cache, tested on every engine. */
import { afterEach, describe, expect, it } from 'bun:test'
import { ENGINES } from '../../test/kit/engines.ts'
import type { CachedAnswer } from './cached-answer.ts'

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
  })
}
