/** An order in doubt is recognised in its provider's list: which one it is, when that is certain, and what its absence means. */
import { describe, expect, test } from 'bun:test'
import type { ListedOrder, OrderList } from '../src/providers/orders/order-list.ts'
import type { VideoCall } from '../src/providers/provider.ts'
import { GatewayError } from '../src/spec/error.ts'
import { manualClock } from './kit/clock.ts'
import { CALLER, scriptedVendor, taskEngine } from './kit/task-engine.ts'

const broken = () => new GatewayError('upstream_cut', 'The connection broke.')

type Entry = { prompt?: string; created_at: number; label?: string; seconds?: string }

/**
 * A provider whose list shows prompts. Each order breaks its connection; `accepts` says whether it was accepted. The list
 * shows an order `lag` seconds after it was sent.
 */
function listingVendor({
  now,
  accepts = () => true,
  absent = 'unknown',
  lag = 0,
  more = [],
  answers = () => false,
  listed_seconds,
  idOf = (nth) => `op-${String(nth).padStart(3, '0')}`,
}: {
  now: () => number
  accepts?: (call: VideoCall, nth: number) => boolean
  absent?: OrderList<VideoCall>['absent']
  lag?: number
  /** Orders of others in the same account. */
  more?: Entry[]
  /** Whether the response to an order arrives. */
  answers?: (call: VideoCall, nth: number) => boolean
  listed_seconds?: number
  idOf?: (nth: number) => string
}) {
  const accepted: { id: string; prompt: string; created_at: number }[] = []
  let count = 0
  const orderList: OrderList<VideoCall> = {
    absent,
    ...(listed_seconds === undefined ? {} : { listed_seconds }),
    async since() {
      const own = accepted
        .filter(({ created_at }) => created_at + lag <= now())
        .map(({ id, prompt, created_at }) => ({ id, operation: { id }, created_at, fields: { prompt } }))
      const others = more.map(({ created_at, prompt, seconds, ...rest }, index): ListedOrder => {
        return {
          id: `other-${index}`,
          operation: { id: `other-${index}` },
          created_at,
          fields: { ...(prompt === undefined ? {} : { prompt }), ...(seconds === undefined ? {} : { seconds }) },
          ...rest,
        }
      })
      return [...own, ...others]
    },
    fieldsOf: ({ request }) =>
      request.image === undefined ? { always: { prompt: request.prompt }, where_shown: { seconds: '4' } } : undefined,
  }
  const vendor = scriptedVendor({
    orderList,
    async start(call) {
      const nth = ++count
      const id = idOf(nth)
      if (accepts(call, nth)) accepted.push({ id, prompt: call.request.prompt, created_at: now() })
      if (answers(call, nth)) return { operation: { id } }
      throw broken()
    },
  })
  return { vendor, accepted }
}

async function engineWith(options: Omit<Parameters<typeof listingVendor>[0], 'now'>, keys?: string[]) {
  const clock = manualClock()
  const { vendor, accepted } = listingVendor({ ...options, now: () => clock.now() / 1000 })
  const engine = await taskEngine({ vendors: { acme: vendor }, clock, ...(keys && { keys }) })
  return { engine, vendor, accepted }
}

const endOf = ({ status, fail_code }: { status: string; fail_code: string }) => `${status} ${fail_code}`

describe('an order in doubt in the list of its provider', () => {
  test('is found by what the list shows of it, and polled', async () => {
    const { engine, vendor } = await engineWith({})
    await using gateway = engine
    const id = await gateway.submit({ prompt: 'one' })
    await gateway.run(30)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS', operation: { id: 'op-001' } })
    expect(vendor.calls).toHaveLength(1)
  })

  test('is found when the list shows it late', async () => {
    const { engine, vendor } = await engineWith({ lag: 250 })
    await using gateway = engine
    const id = await gateway.submit({ prompt: 'one' })
    await gateway.run(240)
    expect((await gateway.read(id)).operation).toBeNull()
    await gateway.run(100)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS', operation: { id: 'op-001' } })
    expect(vendor.calls).toHaveLength(1)
  })

  test('is not one that another task has, though it looks the same', async () => {
    const { engine } = await engineWith({ accepts: (_, nth) => nth === 1, answers: (_, nth) => nth === 1 })
    await using gateway = engine
    const [first, second] = [await gateway.submit({ prompt: 'one' }), await gateway.submit({ prompt: 'one' })]
    await gateway.run(540)
    const tasks = [await gateway.read(first), await gateway.read(second)]
    expect(tasks.map(endOf).sort()).toEqual(['FAILURE submit_outcome_unknown', 'SUCCESS '])
  })

  test('is found although its id is the beginning of the id of another task', async () => {
    const { engine, vendor } = await engineWith({
      absent: 'not accepted',
      answers: (_, nth) => nth === 1,
      idOf: (nth) => (nth === 1 ? '12' : '1'),
    })
    await using gateway = engine
    const ids = [await gateway.submit({ prompt: 'one' }), await gateway.submit({ prompt: 'one' })]
    await gateway.run(540)
    const tasks = await Promise.all(ids.map((id) => gateway.read(id)))
    expect(tasks.map(endOf)).toEqual(['SUCCESS ', 'SUCCESS '])
    expect(tasks.map(({ operation }) => JSON.stringify(operation)).sort()).toEqual(['{"id":"1"}', '{"id":"12"}'])
    expect(vendor.calls).toHaveLength(2)
  })

  test.each([
    ['another prompt', { prompt: 'two' }, 10],
    ['a time before it was sent', { prompt: 'one' }, -61],
    ['a time after it can have arrived', { prompt: 'one' }, 152],
    ['the name of another task', { prompt: 'one', label: 'task_x' }, 10],
    ['no prompt', {}, 10],
  ])('is not one with %s', async (_, entry, after) => {
    const more: Entry[] = []
    const { engine } = await engineWith({ accepts: () => false, more })
    await using gateway = engine
    more.push({ ...entry, created_at: gateway.clock.now() / 1000 + after })
    const id = await gateway.submit({ prompt: 'one' })
    await gateway.run(540)
    expect(endOf(await gateway.read(id))).toBe('FAILURE submit_outcome_unknown')
  })

  test.each([
    [-59, 'SUCCESS '],
    [149, 'SUCCESS '],
  ])('may be one whose time differs by %d s: the clocks may differ by a minute', async (after, end) => {
    const more: Entry[] = []
    const { engine } = await engineWith({ accepts: () => false, more })
    await using gateway = engine
    more.push({ prompt: 'one', created_at: gateway.clock.now() / 1000 + after })
    const id = await gateway.submit({ prompt: 'one' })
    await gateway.run(200)
    expect(endOf(await gateway.read(id))).toBe(end)
  })

  test('is found by its name at once, whatever else the list shows', async () => {
    const more: Entry[] = []
    const { engine } = await engineWith({ more })
    await using gateway = engine
    const id = await gateway.submit({ prompt: 'one' })
    more.push({ prompt: 'x', created_at: 0, label: id })
    await gateway.run(30)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS', operation: { id: 'other-0' } })
  })

  test('is not guessed among several', async () => {
    const more: Entry[] = []
    const { engine } = await engineWith({ more })
    await using gateway = engine
    more.push({ prompt: 'one', created_at: gateway.clock.now() / 1000 })
    const id = await gateway.submit({ prompt: 'one' })
    await gateway.run(540)
    expect(endOf(await gateway.read(id))).toBe('FAILURE submit_outcome_unknown')
  })

  test('is not looked up by its prompt when the list does not show its image', async () => {
    const { engine } = await engineWith({ absent: 'not accepted' })
    await using gateway = engine
    const id = await gateway.submit({ prompt: 'one', image: 'data:image/png;base64,AAAA' })
    await gateway.run(540)
    expect(endOf(await gateway.read(id))).toBe('FAILURE submit_outcome_unknown')
  })
})

describe('equal orders in doubt', () => {
  test('each get one of the listed orders', async () => {
    const { engine, vendor } = await engineWith({})
    await using gateway = engine
    const ids: string[] = []
    for (let order = 0; order < 4; order++) ids.push(await gateway.submit({ prompt: 'same' }))
    await gateway.run(540)
    const tasks = await Promise.all(ids.map((id) => gateway.read(id)))
    expect(tasks.map(endOf)).toEqual(ids.map(() => 'SUCCESS '))
    const operations = tasks.map(({ operation }) => JSON.stringify(operation))
    expect(new Set(operations).size).toBe(ids.length)
    expect(vendor.calls).toHaveLength(ids.length)
  })

  test('share those that were accepted, and the rest is sent again where the list is complete', async () => {
    const { engine, vendor, accepted } = await engineWith({
      absent: 'not accepted',
      accepts: (_, nth) => nth !== 2,
      answers: (_, nth) => nth > 3,
    })
    await using gateway = engine
    const ids: string[] = []
    for (let order = 0; order < 3; order++) ids.push(await gateway.submit({ prompt: 'same' }))
    await gateway.run(900)
    const tasks = await Promise.all(ids.map((id) => gateway.read(id)))
    expect(tasks.map(endOf)).toEqual(ids.map(() => 'SUCCESS '))
    expect(new Set(tasks.map(({ operation }) => JSON.stringify(operation))).size).toBe(3)
    expect([vendor.calls.length, accepted.length]).toEqual([4, 3])
  })

  test('of two keys are not exchanged, and none is sent again: the keys may be of one account or of two', async () => {
    const { engine, vendor, accepted } = await engineWith({ absent: 'not accepted', accepts: (_, nth) => nth !== 2 }, [
      'one',
      'two',
    ])
    await using gateway = engine
    const ids = [await gateway.submit({ prompt: 'same' }), await gateway.submit({ prompt: 'same' })]
    await gateway.run(900)
    const tasks = await Promise.all(ids.map((id) => gateway.read(id)))
    expect(tasks.map(({ provider_key }) => provider_key).sort()).toEqual(['one', 'two'])
    expect(tasks.map(endOf)).toEqual(ids.map(() => 'FAILURE submit_outcome_unknown'))
    expect([vendor.calls.length, accepted.length]).toEqual([2, 1])
  })

  test('that differ in what the list does not show are not exchanged', async () => {
    const { engine } = await engineWith({})
    await using gateway = engine
    const ids = [await gateway.submit({ prompt: 'same' }), await gateway.submit({ prompt: 'same', seed: 7 })]
    await gateway.run(540)
    const tasks = await Promise.all(ids.map((id) => gateway.read(id)))
    expect(tasks.map(endOf)).toEqual(ids.map(() => 'FAILURE submit_outcome_unknown'))
  })

  test('of which one was canceled are not given its order', async () => {
    const { engine } = await engineWith({ accepts: (_, nth) => nth === 1 })
    await using gateway = engine
    const canceled = await gateway.submit({ prompt: 'same' })
    const other = await gateway.submit({ prompt: 'same' })
    await gateway.run(1)
    await gateway.tasks.cancel(canceled, CALLER)
    await gateway.run(540)
    expect([endOf(await gateway.read(canceled)), endOf(await gateway.read(other))]).toEqual([
      'FAILURE canceled',
      'FAILURE submit_outcome_unknown',
    ])
  })
})

describe('an order in doubt that is not listed', () => {
  test('is sent again five minutes after it can have arrived, where the list is complete', async () => {
    const { engine, vendor } = await engineWith({
      absent: 'not accepted',
      accepts: (_, nth) => nth > 1,
      answers: (_, nth) => nth > 1,
    })
    await using gateway = engine
    const id = await gateway.submit({ prompt: 'one' })
    await gateway.run(385)
    expect(vendor.calls).toHaveLength(1)
    await gateway.run(100)
    expect(vendor.calls).toHaveLength(2)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS', operation: { id: 'op-002' } })
  })

  test('is not sent again where the list may be incomplete', async () => {
    const { engine, vendor } = await engineWith({ accepts: () => false })
    await using gateway = engine
    const id = await gateway.submit({ prompt: 'one' })
    await gateway.run(540)
    expect(endOf(await gateway.read(id))).toBe('FAILURE submit_outcome_unknown')
    expect(vendor.calls).toHaveLength(1)
  })

  test('is not sent again while a listed order may be it', async () => {
    const more: Entry[] = []
    const { engine, vendor } = await engineWith({ absent: 'not accepted', accepts: () => false, more })
    await using gateway = engine
    more.push({ created_at: gateway.clock.now() / 1000 + 5 })
    const id = await gateway.submit({ prompt: 'one' })
    await gateway.run(540)
    expect(endOf(await gateway.read(id))).toBe('FAILURE submit_outcome_unknown')
    expect(vendor.calls).toHaveLength(1)
  })

  test.each([
    ['the clock of the provider is behind by hours', { prompt: 'one' }, -7_200],
    ['the clock of the gateway is behind by hours', { prompt: 'one' }, 7_200],
    ['the list shows no time', { prompt: 'one' }, Number.NaN],
    ['the list shows neither time nor prompt', {}, Number.NaN],
    ['the provider changed a field', { prompt: 'one', seconds: '5' }, 5],
  ])('is not sent again where it may be a listed order and %s', async (_, entry, after) => {
    const more: Entry[] = []
    const { engine, vendor } = await engineWith({ absent: 'not accepted', accepts: () => false, more })
    await using gateway = engine
    more.push({ ...entry, created_at: gateway.clock.now() / 1000 + after })
    const id = await gateway.submit({ prompt: 'one' })
    await gateway.run(540)
    expect(endOf(await gateway.read(id))).toBe('FAILURE submit_outcome_unknown')
    expect(vendor.calls).toHaveLength(1)
  })

  test.each([
    ['another prompt', { prompt: 'two' }, -7_200],
    ['the name of another task', { prompt: 'one', label: 'task_x' }, 5],
    ['no prompt, hours before', {}, -7_200],
  ])('is sent again where the list shows one with %s', async (_, entry, after) => {
    const more: Entry[] = []
    const { engine, vendor } = await engineWith({
      absent: 'not accepted',
      accepts: (_call, nth) => nth > 1,
      answers: (_call, nth) => nth > 1,
      more,
    })
    await using gateway = engine
    more.push({ ...entry, created_at: gateway.clock.now() / 1000 + after })
    const id = await gateway.submit({ prompt: 'one' })
    await gateway.run(540)
    expect(endOf(await gateway.read(id))).toBe('SUCCESS ')
    expect(vendor.calls).toHaveLength(2)
  })

  test('is sent again where equal orders of hours before belong to other tasks', async () => {
    const { engine, vendor } = await engineWith({
      absent: 'not accepted',
      accepts: (_, nth) => nth !== 2,
      answers: (_, nth) => nth !== 2,
    })
    await using gateway = engine
    await gateway.submit({ prompt: 'one' })
    await gateway.run(10_000)
    const id = await gateway.submit({ prompt: 'one' })
    await gateway.run(540)
    expect(endOf(await gateway.read(id))).toBe('SUCCESS ')
    expect(vendor.calls).toHaveLength(3)
  })

  test('is expected for as long as the vendor takes to list it', async () => {
    const { engine } = await engineWith({ lag: 900, listed_seconds: 1_000 })
    await using gateway = engine
    const id = await gateway.submit({ prompt: 'one' })
    await gateway.run(1_000)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS', operation: { id: 'op-001' } })
  })

  test('ends at the deadline as not accepted where the list is complete', async () => {
    const { engine } = await engineWith({ absent: 'not accepted', accepts: () => false, listed_seconds: 330 })
    await using gateway = engine
    gateway.settings.deadline_minutes = 7 // when it is no longer expected, so that it is not sent again before
    const id = await gateway.submit({ prompt: 'one' })
    await gateway.run(500)
    const { status, fail_code, fail_reason } = await gateway.read(id)
    expect({ status, fail_code, fail_reason }).toEqual({
      status: 'FAILURE',
      fail_code: 'timeout',
      fail_reason: 'No provider accepted the order before the deadline.',
    })
  })
})
