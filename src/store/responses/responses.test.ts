/** The store's contract for stored responses, tested on every engine. */
import { afterEach, describe, expect, test } from 'bun:test'
import { ENGINES } from '../../../test/kit/engines.ts'
import type { StoredResponse } from './response-row.ts'

function answer(name: string, change: Partial<StoredResponse> = {}): StoredResponse {
  return {
    response_id: `resp_${name}`,
    token_id: 'tok_a',
    previous_id: null,
    created_at: 1_700_000_000,
    expires_at: 1_700_001_000,
    input: [{ type: 'message', role: 'user', content: `to ${name} — "ü" \u2028` }],
    response: { id: `resp_${name}`, output: [], nested: { is: [null, 1, 'x'] } },
    ...change,
  }
}
const NOW = 1_700_000_500
const at = (token_id: string, max_length = 1_000_000) => ({ token_id, now: NOW, max_length })
const ids = (rows: StoredResponse[]) => rows.map(({ response_id }) => response_id)

for (const engine of ENGINES) {
  describe(engine.name, () => {
    afterEach(() => engine.cleanup())

    test('returns a stored response unchanged, only to its token, until it expires', async () => {
      const { responses } = await engine.open()
      const one = answer('one')
      await responses.add(one, [])
      await responses.add(answer('other', { token_id: 'tok_b' }), [])
      expect(await responses.find(['resp_one', 'resp_other', 'resp_none'], 'tok_a', NOW)).toEqual([one])
      expect(await responses.find(['resp_one'], 'tok_b', NOW)).toEqual([])
      expect(await responses.find([], 'tok_a', NOW)).toEqual([])
      const texts = JSON.stringify(one.input).length + JSON.stringify(one.response).length
      expect(await responses.textLength(['resp_one', 'resp_other', 'resp_none'], 'tok_a', NOW)).toBe(texts)
      expect(await responses.textLength(['resp_one'], 'tok_a', one.expires_at)).toBe(0)
      expect(await responses.textLength([], 'tok_a', NOW)).toBe(0)
      expect(ids(await responses.find(['resp_one'], 'tok_a', one.expires_at - 1))).toEqual(['resp_one'])
      expect(await responses.find(['resp_one'], 'tok_a', one.expires_at)).toEqual([])
    })

    test('returns a conversation from its start, and stops at a missing response', async () => {
      const { responses } = await engine.open()
      await responses.add(answer('a'), [])
      await responses.add(answer('b', { previous_id: 'resp_a' }), [])
      await responses.add(answer('c', { previous_id: 'resp_b' }), [])
      await responses.add(answer('aside', { previous_id: 'resp_a' }), [])
      expect(ids(await responses.conversation('resp_c', at('tok_a')))).toEqual(['resp_a', 'resp_b', 'resp_c'])
      expect(ids(await responses.conversation('resp_aside', at('tok_a')))).toEqual(['resp_a', 'resp_aside'])
      expect(await responses.conversation('resp_c', at('tok_b'))).toEqual([])
      expect(await responses.conversation('resp_none', at('tok_a'))).toEqual([])
      await responses.remove('resp_a', 'tok_a')
      expect(ids(await responses.conversation('resp_c', at('tok_a')))).toEqual(['resp_b', 'resp_c'])
    })

    test('excludes the responses of another token from a conversation', async () => {
      const { responses } = await engine.open()
      await responses.add(answer('theirs', { token_id: 'tok_b' }), [])
      await responses.add(answer('mine', { previous_id: 'resp_theirs' }), [])
      expect(ids(await responses.conversation('resp_mine', at('tok_a')))).toEqual(['resp_mine'])
    })

    test('stops a conversation at the response that exceeds the maximum length', async () => {
      const { responses } = await engine.open()
      const [a, b, c] = [
        answer('a'),
        answer('b', { previous_id: 'resp_a' }),
        answer('c', { previous_id: 'resp_b' }),
      ] as const
      for (const one of [a, b, c]) await responses.add(one, [])
      const lengthOf = ({ input, response }: StoredResponse) =>
        JSON.stringify(input).length + JSON.stringify(response).length
      const both = lengthOf(b) + lengthOf(c)
      expect(ids(await responses.conversation('resp_c', at('tok_a', both)))).toEqual(['resp_a', 'resp_b', 'resp_c'])
      expect(ids(await responses.conversation('resp_c', at('tok_a', both - 1)))).toEqual(['resp_b', 'resp_c'])
    })

    test('keeps previous responses at least as long as the new one', async () => {
      const { responses } = await engine.open()
      await responses.add(answer('a', { expires_at: NOW + 10 }), [])
      await responses.add(answer('b', { expires_at: NOW + 90 }), [])
      await responses.add(answer('c', { expires_at: NOW + 50, previous_id: 'resp_b' }), ['resp_a', 'resp_b'])
      expect(ids(await responses.find(['resp_a'], 'tok_a', NOW + 49))).toEqual(['resp_a'])
      expect(ids(await responses.find(['resp_a'], 'tok_a', NOW + 50 + 86_400))).toEqual([])
      expect(ids(await responses.find(['resp_b'], 'tok_a', NOW + 89))).toEqual(['resp_b'])
    })

    test('removes a response, but not another token’s', async () => {
      const { responses } = await engine.open()
      await responses.add(answer('one'), [])
      expect(await responses.remove('resp_one', 'tok_b')).toBe(false)
      expect(await responses.remove('resp_one', 'tok_a')).toBe(true)
      expect(await responses.remove('resp_one', 'tok_a')).toBe(false)
      expect(await responses.find(['resp_one'], 'tok_a', NOW)).toEqual([])
    })

    test('deletes expired responses, the oldest first, up to the limit', async () => {
      const { responses } = await engine.open()
      for (const [name, expires_at] of [
        ['a', NOW - 3],
        ['b', NOW - 2],
        ['c', NOW],
        ['d', NOW + 1],
      ] as const)
        await responses.add(answer(name, { expires_at }), [])
      expect(await responses.deleteExpired(NOW, 2)).toBe(2)
      expect(ids(await responses.find(['resp_a', 'resp_b', 'resp_c'], 'tok_a', NOW - 4))).toEqual(['resp_c'])
      expect(await responses.deleteExpired(NOW, 2)).toBe(1)
      expect(await responses.deleteExpired(NOW, 2)).toBe(0)
      expect(ids(await responses.find(['resp_d'], 'tok_a', NOW))).toEqual(['resp_d'])
    })
  })
}
