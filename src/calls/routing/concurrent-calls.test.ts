/** Checks that concurrent calls, deadlines and hedges do not disturb each other or the state of a target. */
import { describe, expect, test } from 'bun:test'
import { always, failed, limited, refused, settled, setUp, unreachable } from '../../../test/kit/router.ts'
import { GatewayError } from '../../spec/error.ts'

const cut = new GatewayError('upstream_cut', 'It broke.')
/** A result that a test gives later. */
const gate = () => Promise.withResolvers<unknown>()

describe('calls at the same time', () => {
  test('that are all limited let a target rest for one second, not for two minutes', async () => {
    const { call, serve, clock } = setUp()
    const held = gate()
    const calls = Array.from({ length: 20 }, () => call({ a: () => held.promise }))
    await settled()
    clock.advance(50)
    held.resolve(limited())
    await Promise.all(calls)
    clock.advance(999)
    expect(await serve(1)).toBe('b')
    clock.advance(1)
    expect(await serve(1)).toBe('a')
  })

  test('do not shorten the rest that the provider asked for', async () => {
    const { call, serve, clock } = setUp()
    const held = gate()
    const older = call({ a: () => held.promise })
    await settled()
    clock.advance(50)
    await call({ a: always(limited(30)) })
    held.resolve(limited())
    await older
    clock.advance(29_000)
    expect(await serve(1)).toBe('b')
  })

  test.each([
    ['limited', limited(30)],
    ['refused', refused],
    ['unreachable', unreachable],
  ])('of which an older one is answered do not make a %s target available', async (_, error) => {
    const { call, serve, clock } = setUp()
    const held = gate()
    const older = call({ a: () => held.promise })
    await settled()
    clock.advance(50)
    await call({ a: always(error) })
    held.resolve(undefined)
    expect(await older).toBe('a')
    expect(await serve(1)).toBe('b')
  })

  test('that were sent before an ejection do not prolong it', async () => {
    const { call, serve, clock } = setUp()
    const held = gate()
    const older = call({ a: () => held.promise })
    await settled()
    clock.advance(50)
    await call({ a: always(unreachable) })
    clock.advance(5_000)
    held.resolve(unreachable)
    await older
    expect(await serve(1)).toBe('a')
  })

  test('wait for a broken target and then send one probe, not all of them', async () => {
    const { call, clock } = setUp([{}])
    const routing = { tries: 2 }
    const held = gate()
    let sent = 0
    const a = () => (++sent <= 3 ? unreachable : held.promise)
    const calls = Array.from({ length: 3 }, () => call({ a }, { routing }))
    await settled()
    expect(sent).toBe(3)
    clock.advance(5_000)
    await settled()
    expect(sent).toBe(4)
    held.resolve(undefined)
    expect((await Promise.all(calls)).filter((result) => result === 'a')).toHaveLength(1)
  })

  test('keep the retry budget of a provider after a pause, too', async () => {
    const { call, clock } = setUp([{}], () => 0.99)
    const held = gate()
    let sent = 0
    const a = () => (++sent <= 4 ? failed : held.promise)
    const calls = Array.from({ length: 4 }, () => call({ a }, { routing: { tries: 2 } }))
    await settled()
    clock.advance(250)
    await settled()
    expect(sent).toBe(4 + 3)
    held.resolve(undefined)
    expect((await Promise.all(calls)).filter((result) => result === failed)).toHaveLength(1)
  })
})

describe('a provider without a retry left', () => {
  test('is passed over for another one', async () => {
    const b = { provider: { id: 'b', kind: 'test' }, priority: 2 }
    const { call, tried } = setUp([{ key: 'k1', priority: 0 }, { key: 'k2', priority: 1 }, b])
    const held = gate()
    const waiting = Array.from({ length: 3 }, () => call({ k1: always(failed), k2: () => held.promise }))
    await settled()
    expect(await call({ k1: always(failed) })).toBe('b')
    expect(tried).toEqual(['k1', 'b'])
    held.resolve(undefined)
    await Promise.all(waiting)
  })
})

describe('streams that break', () => {
  test('count once each: a target that breaks four of five is avoided', async () => {
    const { call, ends, tried } = setUp()
    for (let i = 0; i < 11; i++) {
      await call()
      ends.pop()?.(i % 5 === 4 ? undefined : cut)
    }
    await call()
    expect(tried).toEqual(['b'])
  })

  test('leave a target that completes two of three available', async () => {
    const { call, ends, tried } = setUp()
    for (let i = 0; i < 30; i++) {
      await call()
      ends.pop()?.(i % 3 === 0 ? cut : undefined)
    }
    await call()
    expect(tried).toEqual(['a'])
  })
})

describe('the deadline of a request', () => {
  const silent = () => new Promise(() => {})

  test('that has passed before the first try is an error without a call', async () => {
    const { call, clock, tried } = setUp()
    const arrived = clock.steady() - 3_000
    expect(await call({}, { routing: { deadline_seconds: 3 }, arrived })).toMatchObject({ code: 'upstream_timeout' })
    expect(tried).toEqual([])
    expect(await call({}, { routing: { deadline_seconds: 3.001 }, arrived })).toBe('a')
  })

  test('does not count against a target that had less time than it is given', async () => {
    const { call, clock, serve } = setUp()
    for (let i = 0; i < 10; i++) {
      const short = call({ a: silent }, { routing: { deadline_seconds: 1 } })
      await settled()
      clock.advance(1_000)
      expect(await short).toMatchObject({ code: 'upstream_timeout' })
    }
    expect(await serve(1)).toBe('a')
  })

  test('counts against a target that was silent for all of its time', async () => {
    const { call, clock, serve } = setUp([{}, {}])
    const long = call({ a: silent, b: silent }, { routing: { deadline_seconds: 30 } })
    await settled()
    clock.advance(15_000)
    await settled()
    clock.advance(15_000)
    expect(await long).toMatchObject({ code: 'upstream_timeout' })
    clock.advance(4_000)
    expect(await serve(1)).toBe('a')
  })

  test('ends a hedge, too', async () => {
    const { call, clock } = await warm()
    const routing = { hedge: true, deadline_seconds: 2 }
    const slow = call({ a: silent, b: silent }, { routing })
    await settled()
    clock.advance(1_000)
    await settled()
    clock.advance(1_000)
    expect(await slow).toMatchObject({ code: 'upstream_timeout' })
  })
})

describe('a hedge', () => {
  test.each([
    [1, ['a']],
    [2, ['a', 'b']],
  ])('counts as a try of the %d that are allowed', async (tries, expected) => {
    const { call, clock, tried } = await warm(3)
    const held = gate()
    const slow = call({ a: () => held.promise, b: () => held.promise }, { routing: { hedge: true, tries } })
    await settled()
    clock.advance(1_000)
    await settled()
    held.resolve(failed)
    expect(await slow).toBe(failed)
    expect(tried).toEqual(expected)
  })

  test('is reported as given up if it answers in the same moment as the other', async () => {
    const { call, clock, failures, router } = await warm()
    const held = gate()
    const slow = call({ a: () => held.promise, b: () => held.promise }, { routing: { hedge: true } })
    await settled()
    clock.advance(1_000)
    await settled()
    held.resolve(undefined)
    const winner = await slow
    await settled()
    expect(failures.map(({ is_lost }) => is_lost)).toEqual([true])
    expect(failures[0]?.target.provider.id).toBe(winner === 'a' ? 'b' : 'a')
    expect([...router.states()].reduce((sum, { open }) => sum + open, 0)).toBe(1)
  })

  test('is not sent for a client that has left', async () => {
    const { call, clock, tried } = await warm()
    const client = new AbortController()
    const held = gate()
    const slow = call({ a: () => held.promise }, { routing: { hedge: true }, signal: client.signal })
    await settled()
    client.abort()
    clock.advance(1_000)
    await settled()
    expect(tried).toEqual(['a'])
    held.resolve(failed)
    await slow
  })
})

describe('a hedge and what it leaves behind', () => {
  const slow = { hedge: true }

  test('notes for the target that lost that it takes at least as long', async () => {
    const { call, clock, router } = await warm()
    const held = gate()
    const answer = call({ a: () => held.promise }, { routing: slow })
    await settled()
    clock.advance(1_000)
    expect(await answer).toBe('b')
    await settled()
    const a = [...router.states()].find(({ id }) => id === 'a/m')
    expect([a?.latency_ms, a?.count, a?.open]).toEqual([1_000, 41, 0])
    expect(a?.samples.at(-1)).toBe(1_000)
    expect([a?.consecutive_failures, a?.ok[0]]).toEqual([0, 40])
  })

  test('notes nothing for a hedge that lost sooner than its target usually answers', async () => {
    const { call, clock, router, finish } = await warm()
    await call({ a: always(failed), b: () => void clock.advance(500) })
    finish()
    const held = gate()
    const answer = call({ a: () => held.promise, b: () => gate().promise }, { routing: slow })
    await settled()
    clock.advance(100)
    await settled()
    clock.advance(50)
    held.resolve(undefined)
    expect(await answer).toBe('a')
    await settled()
    const b = [...router.states()].find(({ id }) => id === 'b/m')
    expect([b?.latency_ms, b?.count, b?.open]).toEqual([500, 1, 0])
  })

  const ofOneProvider = [
    { key: 'k1', priority: 0 },
    { key: 'k2', priority: 1 },
  ]

  test.each([
    [2, ['k1', 'k2']],
    [3, ['k1']],
  ])('is sent to the same provider as the first try beside %d retries there: %p', async (retries, expected) => {
    const { call, clock, tried, finish } = setUp(ofOneProvider)
    for (let i = 0; i < 40; i++) {
      await call({ k1: () => void clock.advance(100) }, { routing: WARM })
      finish()
    }
    const held = gate()
    for (let i = 0; i < retries; i++) void call({ k1: always(limited(0)), k2: () => held.promise })
    await settled()
    const answer = call({ k1: () => held.promise, k2: () => held.promise }, { routing: WARM })
    await settled()
    clock.advance(100)
    await settled()
    expect(tried).toEqual(expected)
    held.resolve(undefined)
    await answer
  })

  test('goes past a provider without a retry left to another one', async () => {
    const { call, clock, tried, finish } = setUp([
      ...ofOneProvider,
      { provider: { id: 'b', kind: 'test' }, priority: 2 },
    ])
    for (let i = 0; i < 40; i++) {
      await call({ k1: () => void clock.advance(100) }, { routing: WARM })
      finish()
    }
    const held = gate()
    for (let i = 0; i < 3; i++) void call({ k1: always(limited(0)), k2: () => held.promise })
    await settled()
    const answer = call({ k1: () => held.promise }, { routing: WARM })
    await settled()
    clock.advance(100)
    expect(await answer).toBe('b')
    expect(tried).toEqual(['k1', 'b'])
    held.resolve(undefined)
  })

  test('does not wait at a provider that has as many open calls as it may', async () => {
    const full = { provider: { id: 'b', kind: 'test', callLimits: { max: 1 } }, priority: 1 }
    const { call, clock, tried, finish } = setUp([{}, full])
    for (let i = 0; i < 40; i++) {
      await call({ a: () => void clock.advance(100) }, { routing: WARM })
      finish()
    }
    await call({ a: always(failed) })
    const held = gate()
    const answer = call({ a: () => held.promise }, { routing: WARM })
    await settled()
    clock.advance(100)
    await settled()
    expect(tried).toEqual(['a'])
    finish()
    await settled()
    expect(tried).toEqual(['a'])
    held.resolve(undefined)
    expect(await answer).toBe('a')
  })
})

describe('an order', () => {
  test('leaves nothing open when its target has answered', () => {
    const { router, targets } = setUp([{}])
    for (const target of targets) router.begin(target)()
    expect([...router.states()].map(({ open, waiting }) => [open, waiting])).toEqual([[0, 0]])
  })
})

describe('a reload of the configuration', () => {
  const limited = (max: number) => ({ provider: { id: 'a', kind: 'test', callLimits: { max } }, model: 'm' })

  test.each([
    ['keeps', 1],
    ['counts, under a new limit of its open calls,', 2],
  ])('%s the calls that a provider has open', async (_, max) => {
    const { call, targets, ends, tried } = setUp([limited(1)])
    expect(await call()).toBe('a')
    targets.splice(0, 1, limited(max))
    for (let i = 1; i < max; i++) expect(await call()).toBe('a')
    const waiting = call()
    await settled()
    expect(tried).toEqual([])
    ends.shift()?.()
    expect(await waiting).toBe('a')
  })

  test('lets calls that wait go as soon as the new limit allows it', async () => {
    const { call, targets } = setUp([limited(1)])
    await call()
    const waiting = call()
    await settled()
    targets.splice(0, 1, limited(3))
    expect(await call()).toBe('a')
    expect(await waiting).toBe('a')
  })

  test('is not undone by a call from before it', async () => {
    const { call, targets, tried } = setUp([limited(1)])
    const [old] = targets
    await call()
    targets.splice(0, 1, limited(2))
    await call()
    if (old) targets.splice(0, 1, old)
    void call()
    await settled()
    targets.splice(0, 1, limited(2))
    void call()
    await settled()
    expect(tried).toEqual([])
  })
})

describe('a single target', () => {
  test('that is tried again keeps the time limits of its provider', async () => {
    const { call, clock } = setUp([{}])
    void call({ a: () => new Promise(() => {}) }, { routing: { tries: 3 } })
    await settled()
    expect(clock.waiting()).toBe(0)
  })

  test('is not tried while it is avoided, where another model serves', async () => {
    const { call, tried } = setUp([{}])
    await call({ a: always(unreachable) })
    expect(await call({}, { fallback: true })).toMatchObject({ code: 'no_available_channel' })
    expect(tried).toEqual([])
    expect(await call({})).toBe('a')
  })

  test('is given up when it is silent, where another model serves', async () => {
    const { call, clock } = setUp([{}])
    const answer = call({ a: () => new Promise(() => {}) }, { fallback: true })
    await settled()
    clock.advance(15_000)
    expect(await answer).toMatchObject({ code: 'upstream_timeout' })
  })
})

/** A router that knows that `a` takes 100 ms, and has saved a hedge. */
async function warm(targets = 2) {
  const set = setUp(Array.from({ length: targets }, () => ({})))
  const a = () => void set.clock.advance(100)
  for (let i = 0; i < 40; i++) {
    await set.call({ a }, { routing: WARM })
    set.finish()
  }
  // The hedges that it saved are those of its settings object.
  const call: typeof set.call = (answers, given) => {
    if (given?.routing) Object.assign(WARM, { tries: undefined, deadline_seconds: undefined }, given.routing)
    return set.call(answers, { ...given, routing: WARM })
  }
  set.tried.length = 0
  set.failures.length = 0
  return { ...set, call }
}
const WARM: { hedge: boolean } = { hedge: true }
