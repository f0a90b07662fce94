import { describe, expect, test } from 'bun:test'
import { always, failed, setUp } from '../../../test/kit/router.ts'
import type { Override } from '../../store/admin/override-store.ts'
import { createOverrides } from './overrides.ts'
import { targetHealth } from './target-health.ts'

const row = (kind: Override['kind'], name: string, set: Partial<Override>): Override => ({
  kind,
  name,
  weight: null,
  state: null,
  set_by: 'test',
  set_at: 1,
  ...set,
})

describe('a target that is drained or disabled', () => {
  test.each(['drained', 'disabled'] as const)(
    'gets no call while it is %s, and calls again afterwards',
    async (state) => {
      const { call, router, tried } = setUp()
      router.override(createOverrides([row('target', 'a/m', { state })]))
      expect(await call()).toBe('b')
      router.override(createOverrides([]))
      expect(await call()).toBe('a')
      expect(tried).toEqual(['a'])
    },
  )

  test('is not called when every other target fails, nor when it is the only one', async () => {
    const { call, router, tried } = setUp()
    router.override(createOverrides([row('provider', 'a', { state: 'drained' })]))
    expect(await call({ b: always(failed), c: always(failed) })).toBe(failed)
    expect(tried).toEqual(['b', 'c'])
    router.override(createOverrides(['a', 'b', 'c'].map((name) => row('provider', name, { state: 'drained' }))))
    expect(await call()).toMatchObject({ code: 'no_available_channel' })
    expect(tried).toEqual([])
  })

  test('gets no further try of a call that began before', async () => {
    const { call, router, tried } = setUp()
    const drains = () => {
      router.override(createOverrides([row('target', 'b/m', { state: 'drained' })]))
      return failed
    }
    await call() // so that the state of each is known
    expect(await call({ a: drains })).toBe('c')
    expect(tried).toEqual(['a', 'c'])
  })

  test('ends its open calls by itself, and shows how many are left', async () => {
    const { call, router, ends, clock } = setUp()
    await call()
    router.override(createOverrides([row('target', 'a/m', { state: 'drained' })]))
    const state = () => [...router.states()].find(({ id }) => id === 'a/m')
    const shown = () => {
      const found = state()
      return found && targetHealth(found, clock)
    }
    expect(shown()).toMatchObject({ state: 'drained', open_calls: 1 })
    ends.pop()?.()
    expect(shown()).toMatchObject({ state: 'drained', open_calls: 0, until: null })
  })

  test('is not called by calls that leave no trace either', async () => {
    const { call, router } = setUp()
    router.override(createOverrides([row('target', 'a/m', { state: 'drained' })]))
    expect(await call({}, { observed: false })).toBe('b')
  })

  test('stays so when its breaker is reset', async () => {
    const { call, router } = setUp()
    await call()
    router.override(createOverrides([row('target', 'a/m', { state: 'drained' })]))
    router.reset('a/m')
    expect(await call()).toBe('b')
  })

  test('takes the most restrictive of what is set for it, its key and its provider', () => {
    const { stateOf } = createOverrides([
      row('provider', 'v', { state: 'drained' }),
      row('key', 'v#one', { state: 'disabled' }),
    ])
    expect(stateOf({ provider: { id: 'v' }, model: 'm', key: 'one' })).toBe('disabled')
    expect(stateOf({ provider: { id: 'v' }, model: 'm', key: 'two' })).toBe('drained')
    expect(stateOf({ provider: { id: 'w' }, model: 'm' })).toBeUndefined()
  })
})

describe('a weight that is set', () => {
  const equal = [{ priority: 0 }, { priority: 0 }, { priority: 0 }]

  test('replaces that of the target from the next call on', async () => {
    const { serve, router } = setUp(equal)
    expect(await serve(6)).toBe('abcabc')
    router.override(createOverrides([row('target', 'a/m', { weight: 4 })]))
    const served = await serve(12)
    expect([...served].filter((one) => one === 'a')).toHaveLength(8)
    router.override(createOverrides([]))
    expect([...(await serve(6))].filter((one) => one === 'a')).toHaveLength(2)
  })

  test('of 0 leaves the target for when no other is left', async () => {
    const { call, router } = setUp(equal)
    router.override(createOverrides([row('provider', 'a', { weight: 0 })]))
    expect(await call({ b: always(failed), c: always(failed) })).toBe('a')
  })

  test('is shared by the keys of the target as their own weights say', () => {
    const keys = {
      weight: 6,
      shares: [
        { name: 'one', weight: 1 },
        { name: 'two', weight: 2 },
      ],
    }
    const target = (key: string) => ({ provider: { id: 'v' }, model: 'm', key, weight: key === 'one' ? 2 : 4, keys })
    const weights = (...rows: Override[]) => {
      const { weightOf } = createOverrides(rows)
      return [weightOf(target('one')), weightOf(target('two'))]
    }
    expect(weights()).toEqual([2, 4])
    expect(weights(row('target', 'v/m', { weight: 3 }))).toEqual([1, 2])
    expect(weights(row('provider', 'v', { weight: 30 }))).toEqual([10, 20])
    expect(weights(row('key', 'v#one', { weight: 2 }))).toEqual([3, 3])
    expect(weights(row('key', 'v#one', { state: 'drained' }))).toEqual([0, 6])
    expect(weights(row('target', 'v/m#one', { weight: 9 }))).toEqual([9, 4])
    expect(weights(row('key', 'v#one', { state: 'drained' }), row('key', 'v#two', { state: 'drained' }))).toEqual([
      6, 6,
    ])
    expect(weights(row('key', 'other#one', { weight: 7 }))).toEqual([2, 4])
  })
})

test('health shows the state of a breaker, since when, and the last error', async () => {
  const { call, router, clock } = setUp()
  clock.advance(10_000)
  for (let calls = 0; calls < 5; calls++) await call({ a: always(failed) })
  const found = [...router.states()].find(({ id }) => id === 'a/m')
  if (!found) throw new Error('not known')
  const now = Math.floor(clock.now() / 1000)
  expect(targetHealth(found, clock)).toMatchObject({
    state: 'ejected',
    since: now,
    until: now + 5,
    open_calls: 0,
    recent: { succeeded: 0, failed: 5, error_rate: 1 },
    ejections: 1,
    active_health: null,
    last_ok_at: null,
    last_error: { at: now, code: 'bad_upstream_response', upstream_status: 500, message: 'It failed.' },
  })
  clock.advance(120_000)
  await call()
  expect(targetHealth(found, clock)).toMatchObject({ state: 'available', since: now + 120, until: null, ejections: 0 })
})
