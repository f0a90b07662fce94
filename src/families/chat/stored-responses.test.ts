/** Checks which answers are stored, and when they are removed. */
import { describe, expect, test } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import { NO_QUOTA } from '../../../test/kit/quota.ts'
import type { StoredResponse } from '../../store/responses/response-row.ts'
import type { ResponseStore } from '../../store/responses/response-store.ts'
import { createStoredResponses } from './stored-responses.ts'

/** A store of so many answers that are over their time. */
function storeOf(over: number) {
  const added: StoredResponse[] = []
  const writes: number[] = []
  const store: ResponseStore = {
    add: async (response) => void added.push(response),
    find: async () => [],
    textLength: async () => 0,
    conversation: async () => [],
    remove: async () => false,
    async deleteExpired(_now, limit) {
      const removed = Math.min(limit, over)
      over -= removed
      writes.push(removed)
      return removed
    },
  }
  return { store, added, writes }
}
const caller = { token_id: 'tok_a', mayUseModel: () => true, mayUseFamily: () => true }
const GOING = { caller, before: { items: [], ids: [] }, input: [], previous_response_id: undefined }

test('expired responses are removed once a minute, in writes of bounded size', async () => {
  const { store, writes } = storeOf(450)
  const clock = manualClock()
  const storedResponses = createStoredResponses({
    store,
    settings: () => ({ keep_days: 30, store_default: true }),
    quota: NO_QUOTA,
    clock,
  })
  await storedResponses.forget()
  expect(writes).toEqual([200, 200, 50])
  clock.advance(59_000)
  await storedResponses.forget()
  expect(writes).toHaveLength(3)
  clock.advance(1_000)
  await storedResponses.forget()
  expect(writes).toHaveLength(4)
})

test('a response is stored for as long as is configured at that time', async () => {
  const { store, added } = storeOf(0)
  let keep_days = 0.5
  const storedResponses = createStoredResponses({
    store,
    settings: () => ({ keep_days, store_default: true }),
    quota: NO_QUOTA,
    clock: manualClock(),
  })
  await storedResponses.storeFor(GOING)?.({ id: 'resp_a', created_at: 100 })
  keep_days = 2
  await storedResponses.storeFor(GOING)?.({ id: 'resp_b', created_at: 100 })
  keep_days = 0
  expect([storedResponses.storeFor(GOING), storedResponses.isStoring()]).toEqual([undefined, false])
  expect(added.map(({ expires_at }) => expires_at)).toEqual([100 + 43_200, 100 + 172_800])
})

test('a conversation that is too long is distinguished from one with a gap', async () => {
  const turn = (id: string, previous_id: string | null): StoredResponse => ({
    response_id: id,
    token_id: 'tok_a',
    previous_id,
    created_at: 1,
    expires_at: 2,
    input: [],
    response: {},
  })
  const isThere = { a: true }
  const store: ResponseStore = {
    ...storeOf(0).store,
    conversation: async () => [turn('resp_b', 'resp_a'), turn('resp_c', 'resp_b')],
    find: async () => (isThere.a ? [turn('resp_a', null)] : []),
  }
  const storedResponses = createStoredResponses({
    store,
    settings: () => ({ keep_days: 30, store_default: true }),
    quota: NO_QUOTA,
    clock: manualClock(),
  })
  const refusal = () => storedResponses.conversation('resp_c', 'tok_a').catch((error) => error.code)
  expect(await refusal()).toBe('context_length_exceeded')
  isThere.a = false
  expect(await refusal()).toBe('previous_response_not_found')
})

describe('referenced items', () => {
  const storedResponses = (text: string, length = 0) => {
    const output = [{ type: 'message', id: 'msg_a_0', role: 'assistant', content: text }]
    const row = { response_id: 'resp_a', token_id: 'tok_a', previous_id: null, created_at: 1, expires_at: 2, input: [] }
    const found = { ...row, response: { output } }
    const store: ResponseStore = { ...storeOf(0).store, find: async () => [found], textLength: async () => length }
    return createStoredResponses({
      store,
      settings: () => ({ keep_days: 30, store_default: true }),
      quota: NO_QUOTA,
      clock: manualClock(),
    })
  }
  const references = (count: number) =>
    Array.from({ length: count }, () => ({ type: 'item_reference', id: 'msg_a_0' }) as const)
  const MILLION = 'x'.repeat(1024 * 1024)

  test('may have a total length up to the limit, and not more', async () => {
    expect(await storedResponses(MILLION).resolved(references(63), 'tok_a')).toHaveLength(63)
    const refusal = await storedResponses(MILLION)
      .resolved(references(64), 'tok_a')
      .catch((error) => error)
    expect(refusal).toMatchObject({ code: 'context_length_exceeded', detail: { param: 'input' } })
  })

  test('are not read if the responses that contain them are too long', async () => {
    expect(await storedResponses('', 64 * 1024 * 1024).resolved(references(1), 'tok_a')).toHaveLength(1)
    const refusal = await storedResponses('', 64 * 1024 * 1024 + 1)
      .resolved(references(1), 'tok_a')
      .catch((error) => error)
    expect(refusal).toMatchObject({ code: 'context_length_exceeded' })
  })
})
