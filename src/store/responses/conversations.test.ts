/** The store's contract for conversations, tested on every engine. */
import { afterEach, describe, expect, test } from 'bun:test'
import { ENGINES } from '../../../test/kit/engines.ts'
import type { ConversationItem, StoredConversation } from './conversation-store.ts'
import type { StoredResponse } from './response-row.ts'

const NOW = 1_700_000_500
const NOW_MS = NOW * 1000
const conversation = (name: string, change: Partial<StoredConversation> = {}): StoredConversation => ({
  conversation_id: `conv_${name}`,
  token_id: 'tok_a',
  created_at: 1_700_000_000,
  expires_at: 1_700_001_000,
  metadata: { topic: 'demo — "ü"' },
  ...change,
})
const item = (id: string): ConversationItem => ({ id, type: 'message', role: 'user', content: `to ${id} \u2028` })
const key = (name: string, token_id = 'tok_a', now = NOW) => ({ conversation_id: `conv_${name}`, token_id, now })
const lock = (owner: string, now_ms = NOW_MS) => ({ owner, now_ms, until_ms: now_ms + 60_000 })
const ids = (items: ConversationItem[] = []) => items.map(({ id }) => id)
const response = (id: string): StoredResponse => ({
  response_id: id,
  token_id: 'tok_a',
  previous_id: null,
  created_at: 1_700_000_000,
  expires_at: 1_700_001_000,
  input: [],
  response: { id, output: [] },
})
const appending = (owner: string, items: ConversationItem[], expires_at = 1_700_002_000) => ({
  conversation_id: 'conv_one',
  owner,
  items,
  expires_at,
})

for (const engine of ENGINES) {
  describe(`conversations: ${engine.name}`, () => {
    afterEach(() => engine.cleanup())

    test('returns a conversation unchanged, only to its token, until it expires', async () => {
      const { conversations } = await engine.open()
      const one = conversation('one')
      await conversations.add(one, [item('a'), item('b')])
      const text_length = JSON.stringify(item('a')).length * 2
      expect(await conversations.find(key('one'))).toEqual({ conversation: one, revision: 0, text_length })
      expect(await conversations.items('conv_one')).toEqual([item('a'), item('b')])
      expect(await conversations.find(key('one', 'tok_b'))).toBeUndefined()
      expect(await conversations.find(key('one', 'tok_a', one.expires_at - 1))).toBeDefined()
      expect(await conversations.find(key('one', 'tok_a', one.expires_at))).toBeUndefined()
      expect(await conversations.find(key('none'))).toBeUndefined()
    })

    test('replaces the metadata of the own token only', async () => {
      const { conversations } = await engine.open()
      await conversations.add(conversation('one'), [])
      const change = { metadata: { x: 'y' }, expires_at: 1_700_003_000 }
      expect(await conversations.update(key('one', 'tok_b'), change)).toBe(false)
      expect(await conversations.update(key('one'), change)).toBe(true)
      expect((await conversations.find(key('one')))?.conversation).toMatchObject(change)
    })

    test('deletes a conversation with its items, of the own token only', async () => {
      const { conversations } = await engine.open()
      await conversations.add(conversation('one'), [item('a')])
      expect(await conversations.remove('conv_one', 'tok_b')).toBe(false)
      expect(await conversations.remove('conv_one', 'tok_a')).toBe(true)
      expect(await conversations.remove('conv_one', 'tok_a')).toBe(false)
      expect(await conversations.items('conv_one')).toEqual([])
    })

    test('is locked for one owner, until the lock is released or ends', async () => {
      const { conversations } = await engine.open()
      await conversations.add(conversation('one'), [])
      expect(await conversations.lock(key('none'), lock('x'))).toBe('missing')
      expect(await conversations.lock(key('one', 'tok_b'), lock('x'))).toBe('missing')
      expect(await conversations.lock(key('one'), lock('x'))).toBe('held')
      expect(await conversations.lock(key('one'), lock('y'))).toBe('locked')
      await conversations.unlock('conv_one', 'y')
      expect(await conversations.lock(key('one'), lock('y', NOW_MS + 59_999))).toBe('locked')
      expect(await conversations.lock(key('one'), lock('y', NOW_MS + 60_000))).toBe('held')
      await conversations.renew('conv_one', 'x', NOW_MS + 999_000)
      await conversations.renew('conv_one', 'y', NOW_MS + 200_000)
      expect(await conversations.lock(key('one'), lock('z', NOW_MS + 199_999))).toBe('locked')
      await conversations.unlock('conv_one', 'y')
      expect(await conversations.lock(key('one'), lock('z'))).toBe('held')
    })

    test('is not locked once its items have changed', async () => {
      const { conversations } = await engine.open()
      await conversations.add(conversation('one'), [])
      await conversations.append(appending('x', [item('a')]))
      expect(await conversations.lock(key('one'), { ...lock('y'), revision: 0 })).toBe('locked')
      expect(await conversations.lock(key('one'), { ...lock('y'), revision: 1 })).toBe('held')
    })

    test('stays locked while the background response that holds the lock has not ended', async () => {
      const { conversations, responseRuns } = await engine.open()
      await conversations.add(conversation('one'), [])
      await conversations.lock(key('one'), lock('resp_1'))
      await responseRuns.add({ response: response('resp_1'), request: {}, events: undefined, due_ms: NOW_MS }, [])
      const later = NOW_MS + 3_600_000
      expect(await conversations.lock(key('one'), lock('y', later))).toBe('locked')
      const [run] = await responseRuns.claim({ now_ms: NOW_MS, until_ms: later, limit: 1 })
      const end = { response: { id: 'resp_1', output: [] }, appending: appending('resp_1', [item('a')]) }
      const fence = run?.fence ?? 0
      expect(await responseRuns.end({ response_id: 'resp_1', fence: fence - 1 }, end)).toBe(false)
      expect(ids(await conversations.items('conv_one'))).toEqual([])
      expect(await responseRuns.end({ response_id: 'resp_1', fence }, end)).toBe(true)
      expect(ids(await conversations.items('conv_one'))).toEqual(['a'])
      expect(await conversations.lock(key('one'), lock('y'))).toBe('held')
    })

    test('is unlocked when the background response that holds the lock is canceled', async () => {
      const { conversations, responseRuns } = await engine.open()
      await conversations.add(conversation('one'), [])
      await conversations.lock(key('one'), { ...lock('resp_1'), until_ms: NOW_MS })
      await responseRuns.add({ response: response('resp_1'), request: {}, events: undefined, due_ms: NOW_MS }, [])
      expect(await conversations.lock(key('one'), lock('y'))).toBe('locked')
      await responseRuns.cancel('resp_1', 'tok_a', { id: 'resp_1' })
      expect(await conversations.lock(key('one'), lock('y'))).toBe('held')
    })

    test('appends items with the response, releases the lock and lasts longer', async () => {
      const { conversations, responses } = await engine.open()
      await conversations.add(conversation('one'), [item('a')])
      await conversations.lock(key('one'), lock('x'))
      expect(await conversations.append(appending('x', [item('b'), item('c')]), response('resp_1'))).toBe(true)
      expect(ids(await conversations.items('conv_one'))).toEqual(['a', 'b', 'c'])
      expect((await responses.find(['resp_1'], 'tok_a', NOW)).length).toBe(1)
      const found = await conversations.find(key('one'))
      expect([found?.revision, found?.conversation.expires_at]).toEqual([1, 1_700_002_000])
      expect(await conversations.append(appending('y', [], 5))).toBe(true)
      expect((await conversations.find(key('one')))?.conversation.expires_at).toBe(1_700_002_000)
    })

    test('stores the response without items where another owner holds the lock', async () => {
      const { conversations, responses } = await engine.open()
      await conversations.add(conversation('one'), [])
      await conversations.lock(key('one'), lock('x'))
      expect(await conversations.append(appending('y', [item('b')]), response('resp_1'))).toBe(false)
      expect(await conversations.items('conv_one')).toEqual([])
      expect((await responses.find(['resp_1'], 'tok_a', NOW)).length).toBe(1)
    })

    test('lists items by pages in both orders, and none after an unknown one', async () => {
      const { conversations } = await engine.open()
      await conversations.add(
        conversation('one'),
        ['a', 'b', 'c', 'd'].map((id) => item(id)),
      )
      const page = async (order: 'asc' | 'desc', limit: number, after?: string) => {
        const items = await conversations.page('conv_one', { order, limit, after })
        return items && ids(items)
      }
      expect(await page('asc', 3)).toEqual(['a', 'b', 'c'])
      expect(await page('asc', 3, 'c')).toEqual(['d'])
      expect(await page('desc', 2)).toEqual(['d', 'c'])
      expect(await page('desc', 2, 'c')).toEqual(['b', 'a'])
      expect(await page('desc', 2, 'a')).toEqual([])
      expect(await page('desc', 2, 'x')).toBeUndefined()
    })

    test('returns and removes one item; items after it keep their order', async () => {
      const { conversations } = await engine.open()
      await conversations.add(
        conversation('one'),
        ['a', 'b', 'c'].map((id) => item(id)),
      )
      expect(await conversations.item('conv_one', 'b')).toEqual(item('b'))
      expect(await conversations.item('conv_one', 'x')).toBeUndefined()
      expect(await conversations.removeItem('conv_one', 'c')).toBe(true)
      expect(await conversations.removeItem('conv_one', 'c')).toBe(false)
      await conversations.append(appending('x', [item('d')]))
      expect(ids(await conversations.items('conv_one'))).toEqual(['a', 'b', 'd'])
      expect((await conversations.find(key('one')))?.revision).toBe(2)
    })

    test('deletes expired conversations with their items, a few at a time', async () => {
      const { conversations } = await engine.open()
      await conversations.add(conversation('old', { expires_at: 5 }), [item('a')])
      await conversations.add(conversation('older', { expires_at: 4 }), [item('a')])
      await conversations.add(conversation('one'), [item('a')])
      expect(await conversations.deleteExpired(5, 1)).toBe(1)
      expect(ids(await conversations.items('conv_older'))).toEqual([])
      expect(ids(await conversations.items('conv_old'))).toEqual(['a'])
      expect(await conversations.deleteExpired(5, 9)).toBe(1)
      expect(await conversations.deleteExpired(5, 9)).toBe(0)
      expect(ids(await conversations.items('conv_one'))).toEqual(['a'])
    })

    test('stores more items than one statement takes', async () => {
      const { conversations } = await engine.open()
      const many = Array.from({ length: 1_201 }, (_, index) => item(`i${index}`))
      await conversations.add(conversation('one'), many)
      expect(ids(await conversations.items('conv_one'))).toEqual(ids(many))
    })
  })
}
