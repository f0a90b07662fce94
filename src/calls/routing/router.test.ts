import { describe, expect, test } from 'bun:test'
import { always, failed, limited, notAccepted, refused, settled, setUp, unreachable } from '../../../test/kit/router.ts'
import { GatewayError } from '../../spec/error.ts'

describe('one call', () => {
  test('tries each target once, in order, until one succeeds', async () => {
    const { call, tried } = setUp()
    expect(await call({ a: always(failed), b: always(failed) })).toBe('c')
    expect(tried).toEqual(['a', 'b', 'c'])
  })

  test('fails with the last failure when all fail', async () => {
    const { call, tried } = setUp()
    expect(await call({ a: always(failed), b: always(failed), c: always(limited()) })).toMatchObject({
      code: 'rate_limit_exceeded',
    })
    expect(tried).toEqual(['a', 'b', 'c'])
  })

  test('fails without a target', async () => {
    expect(await setUp([]).call()).toMatchObject({ code: 'no_available_channel' })
  })

  test.each([
    new GatewayError('invalid_value', 'Wrong at every target.'),
    new GatewayError('internal_error', 'A fault of the gateway.'),
    new GatewayError('shutting_down', 'The gateway stops.'),
    new TypeError('A fault of the gateway.'),
  ])('stops after an error that the target did not cause: %p', async (error) => {
    const { call, tried } = setUp()
    expect(await call({ a: always(error) })).toBe(error)
    expect(tried).toEqual(['a'])
  })

  test('stops when the client has left', async () => {
    const { call, tried } = setUp()
    await call({ a: always(failed) }, { signal: AbortSignal.abort() })
    expect(tried).toEqual(['a'])
  })

  test('that is charged each time goes on only after one that was certainly not accepted', async () => {
    const { call, tried } = setUp()
    const policy = 'until_accepted'
    expect(await call({ a: always(notAccepted), b: always(unreachable) }, { policy })).toBe(unreachable)
    expect(tried).toEqual(['a', 'b'])
  })

  test('makes at most five tries without a setting', async () => {
    const { call, tried } = setUp(Array.from({ length: 7 }, () => ({})))
    const all = Object.fromEntries(['a', 'b', 'c', ''].map((id) => [id, always(failed)]))
    expect(await call(all)).toBe(failed)
    expect(tried).toHaveLength(5)
  })

  test.each([1, 2, 3])('makes at most the %d tries of the setting, over all targets', async (tries) => {
    const { call, tried } = setUp()
    await call({ a: always(failed), b: always(failed), c: always(failed) }, { routing: { tries } })
    expect(tried).toHaveLength(tries)
  })

  test('tries a target a second time only after all others, and after a pause', async () => {
    const { call, tried, clock } = setUp([{}, {}], () => 0.5)
    const first = call({ a: always(failed), b: always(failed) }, { routing: { tries: 3 } })
    await settled()
    expect(tried).toEqual(['a', 'b'])
    clock.advance(124)
    await settled()
    expect(tried).toEqual(['a', 'b'])
    clock.advance(1)
    await first
    expect(tried).toEqual(['a', 'b', 'a'])
  })

  test('waits as long as the provider asks before it repeats, and gives up where that is too long', async () => {
    const { call, tried, clock } = setUp([{}])
    const short = call({ a: always(limited(3)) }, { routing: { tries: 2 } })
    await settled()
    clock.advance(2_999)
    await settled()
    expect(tried).toEqual(['a'])
    clock.advance(1)
    await short
    expect(tried).toEqual(['a', 'a'])
    clock.advance(60_000)
    await call({ a: always(limited(11)) }, { routing: { tries: 2 } })
    expect(tried).toEqual(['a'])
  })

  test('does not repeat a request that the provider says not to retry', async () => {
    const { call, tried } = setUp([{}])
    const final = new GatewayError('bad_upstream_response', 'May be charged.', { retry: false })
    await call({ a: always(final) }, { routing: { tries: 3 } })
    expect(tried).toEqual(['a'])
  })

  test('begins no try after the deadline', async () => {
    const { call, tried, clock } = setUp()
    const slowly = async () => {
      clock.advance(2_000)
      return failed
    }
    const outcome = await call({ a: slowly, b: slowly }, { routing: { deadline_seconds: 3 } })
    expect(tried).toEqual(['a', 'b'])
    expect(outcome).toMatchObject({ code: 'upstream_timeout' })
  })
})

describe('a silent target', () => {
  const silent = (signal: AbortSignal) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

  test('is given up after 15 s while another is left, and its request is aborted', async () => {
    const { call, tried, clock } = setUp()
    let seen: AbortSignal | undefined
    const answer = call({
      a(signal) {
        seen = signal
        return silent(signal)
      },
    })
    await settled()
    clock.advance(14_999)
    await settled()
    expect([tried.length, seen?.aborted]).toEqual([1, false])
    clock.advance(1)
    expect(await answer).toBe('b')
    expect(seen?.reason).toMatchObject({ code: 'upstream_timeout' })
  })

  test('is given up even if its adapter ignores the signal', async () => {
    const { call, clock } = setUp()
    const answer = call({ a: () => new Promise(() => {}) })
    await settled()
    clock.advance(15_000)
    expect(await answer).toBe('b')
  })

  test('has the time limits of its provider where no other is left', async () => {
    const { call, tried, clock } = setUp([{}])
    void call({ a: silent })
    await settled()
    expect(clock.waiting()).toBe(0)
    expect(tried).toEqual(['a'])
  })

  test('has the time of the setting', async () => {
    const { call, clock } = setUp()
    const answer = call({ a: silent }, { routing: { first_byte_seconds: 2 } })
    await settled()
    clock.advance(2_000)
    expect(await answer).toBe('b')
  })

  describe('that was measured', () => {
    /** Calls of one target, each of which takes so long, one each second. */
    async function measured(times: number[]) {
      const set = setUp([{}, {}])
      for (const ms of times) {
        await set.call({ a: () => void set.clock.advance(ms) })
        set.clock.advance(1_000)
      }
      return set
    }

    async function givenUpAfter({ call, clock, tried }: ReturnType<typeof setUp>): Promise<number> {
      const answer = call({ a: () => new Promise(() => {}) })
      await settled()
      for (let seconds = 1; seconds <= 60; seconds++) {
        clock.advance(1_000)
        await settled()
        if (tried.length > 1) return Number((await answer) === 'b') && seconds
      }
      return 0
    }

    test('has three times its p99', async () => {
      expect(await givenUpAfter(await measured(Array(20).fill(3_000)))).toBe(9)
    })

    test('never has more than the default, however slow it is', async () => {
      expect(await givenUpAfter(await measured(Array(300).fill(14_000)))).toBe(15)
    })

    test('is not used to being slow after some minutes', async () => {
      expect(await givenUpAfter(await measured([...Array(64).fill(2_000), ...Array(30).fill(4_900)]))).toBeLessThan(9)
    })

    test('is used to it after half an hour', async () => {
      const set = await measured([...Array(64).fill(2_000), ...Array(300).fill(4_900)])
      expect(await givenUpAfter(set)).toBe(15)
    })
  })

  test('ends with the call after its first byte, too', async () => {
    const client = new AbortController()
    const { call } = setUp()
    let seen: AbortSignal | undefined
    const a = (signal: AbortSignal) => {
      seen = signal
    }
    await call({ a }, { signal: client.signal })
    expect(seen?.aborted).toBe(false)
    client.abort()
    expect(seen?.aborted).toBe(true)
  })
})

describe('memory of failures', () => {
  test('avoids an unreachable target at once, and tests it with one call after 5 s', async () => {
    const { call, serve, clock, tried, finish, logged } = setUp()
    await call({ a: always(unreachable) })
    finish()
    expect(await serve(3)).toBe('bbb')
    clock.advance(5_000)
    const probe = Promise.withResolvers<void>()
    const probing = call({ a: () => probe.promise })
    expect(await serve(2)).toBe('bb')
    probe.resolve()
    expect(await probing).toBe('a')
    finish()
    expect(await serve(2)).toBe('aa')
    expect(tried).toEqual(['a'])
    expect(logged()).toContain('"target ejected","target":"a/m"')
    expect(logged()).toContain('"target returned","target":"a/m"')
  })

  test('doubles the time for each probe that fails', async () => {
    const { call, serve, clock } = setUp()
    await call({ a: always(unreachable) })
    clock.advance(5_000)
    expect(await call({ a: always(unreachable) })).toBe('b')
    clock.advance(9_999)
    expect(await serve(1)).toBe('b')
    clock.advance(1)
    expect(await serve(1)).toBe('a')
  })

  test('avoids a target after five errors in a row, not after four', async () => {
    const { call, tried, serve } = setUp()
    for (let i = 0; i < 4; i++) await call({ a: always(failed) })
    expect(await serve(1)).toBe('a')
    for (let i = 0; i < 5; i++) await call({ a: always(failed) })
    expect(tried).toEqual(['a', 'b'])
    expect(await serve(1)).toBe('b')
  })

  test('avoids a target of which half of at least ten calls fail', async () => {
    const { call, serve, finish } = setUp()
    for (let i = 0; i < 5; i++) {
      await call({ a: always(failed) })
      if (i < 4) expect(await serve(1)).toBe('a')
    }
    finish()
    expect(await serve(1)).toBe('a')
    await call({ a: always(failed) })
    expect(await serve(1)).toBe('b')
  })

  test('counts a silent target as dead only if it answered nobody in the meantime', async () => {
    const dead = setUp()
    await timeOut(dead)
    expect(await dead.serve(1)).toBe('b')
    const alive = setUp()
    await timeOut(alive, () => alive.serve(1))
    expect(await alive.serve(1)).toBe('a')
  })

  test('counts a stream that breaks after its first byte', async () => {
    const { call, ends, serve } = setUp()
    for (let i = 0; i < 5; i++) {
      await call()
      ends.pop()?.(new GatewayError('upstream_cut', 'It broke.'))
    }
    expect(await serve(1)).toBe('b')
  })

  test('never counts a client that leaves', async () => {
    const { call, serve, ends } = setUp()
    for (let i = 0; i < 50; i++) {
      const client = new AbortController()
      const closed = new GatewayError('client_closed_request', 'It left.')
      const a = () => {
        client.abort()
        return i % 2 ? closed : unreachable
      }
      await call({ a }, { signal: client.signal })
      await call({}, { signal: client.signal })
      ends.pop()?.(new GatewayError('upstream_cut', 'The connection was closed for it.'))
    }
    expect(await serve(2)).toBe('aa')
  })

  test('never counts what is no test of the target', async () => {
    const { call, serve } = setUp()
    for (let i = 0; i < 10; i++) await call({ a: always(failed) }, { observed: false })
    expect(await serve(1)).toBe('a')
  })

  test('counts a rejected request as an answer', async () => {
    const { call, serve, clock } = setUp()
    await call({ a: always(unreachable) })
    clock.advance(5_000)
    await call({ a: always(new GatewayError('upstream_invalid_request', 'No.', { upstream_status: 400 })) })
    expect(await serve(1)).toBe('a')
  })

  test('tries an avoided target rather than none', async () => {
    const { call, tried, serve } = setUp([{}, {}])
    expect(await call({ a: always(unreachable), b: always(unreachable) })).toBe(unreachable)
    expect(await serve(1)).toBe('a')
    expect(tried).toEqual(['a'])
  })

  test('goes back to no avoided target after an available one has failed', async () => {
    const { call, tried } = setUp([{}, {}])
    await call({ a: always(unreachable) })
    expect(await call({ b: always(failed) })).toBe(failed)
    expect(tried).toEqual(['b'])
  })
})

describe('several keys', () => {
  const two = [
    { key: 'k1', priority: 0 },
    { key: 'k2', priority: 0 },
  ]

  test('share the calls', async () => {
    expect(await setUp(two).serve(6)).toBe('k1k2k1k2k1k2')
  })

  test('share the calls by weight', async () => {
    const [one, other] = two
    const { serve } = setUp([
      { ...one, weight: 3 },
      { ...other, weight: 1 },
    ])
    const served = (await serve(8)).match(/k\d/g) ?? []
    expect(served.filter((key) => key === 'k1')).toHaveLength(6)
  })

  test('a limited key rests for the time that the provider asks, and the other serves', async () => {
    const { call, serve, clock } = setUp(two)
    expect(await call({ k1: always(limited(7)) })).toBe('k2')
    expect(await serve(3)).toBe('k2k2k2')
    clock.advance(7_000)
    expect(await serve(4)).toContain('k1')
  })

  test('a limited key rests for at most two minutes', async () => {
    const { call, serve, clock } = setUp(two)
    await call({ k1: always(limited(86_400)) })
    clock.advance(119_999)
    expect(await serve(2)).toBe('k2k2')
    clock.advance(1)
    expect(await serve(2)).toContain('k1')
  })

  test('a refused key is taken out and reported; it is tried again after five minutes', async () => {
    const { call, serve, clock, logged } = setUp(two)
    expect(await call({ k1: always(refused) })).toBe('k2')
    expect(logged()).toContain('"target key refused","target":"v/m#k1"')
    clock.advance(299_999)
    expect(await serve(3)).toBe('k2k2k2')
    clock.advance(1)
    expect(await serve(2)).toContain('k1')
  })
})

describe('strategies', () => {
  const equal = [{ priority: 0 }, { priority: 0 }, { priority: 0 }]

  test('priority: the lowest number first, and by weight among equals', async () => {
    const { call, serve } = setUp([{ priority: 1 }, { priority: 0 }, { priority: 0 }])
    expect(await serve(4)).toBe('bcbc')
    expect(await call({ b: always(failed), c: always(failed) })).toBe('a')
  })

  test('weight 0 serves only where no other is left', async () => {
    const { call, serve } = setUp([{ priority: 0, weight: 0 }, { priority: 5 }])
    expect(await serve(3)).toBe('bbb')
    expect(await call({ b: always(unreachable) })).toBe('a')
  })

  test('weighted: exact shares', async () => {
    const { serve } = setUp([
      { priority: 0, weight: 5 },
      { priority: 0, weight: 1 },
      { priority: 0, weight: 1 },
    ])
    expect(await serve(7)).toBe('aabacaa')
  })

  test('least_busy: the one with the fewest open calls', async () => {
    const { call, ends } = setUp(equal)
    const routing = { strategy: 'least_busy' } as const
    const served = [await call({}, { routing }), await call({}, { routing }), await call({}, { routing })]
    expect(new Set(served).size).toBe(3)
    ends[1]?.()
    expect(await call({}, { routing })).toBe(served[1])
  })

  test('least_latency: the faster of two random ones; one that was slow is tried again later', async () => {
    let last = 0
    const random = () => {
      last = 0.6 - last
      return last
    }
    const { call, clock, finish } = setUp([{ priority: 0 }, { priority: 0 }], random)
    const routing = { strategy: 'least_latency' } as const
    const takes = (ms: number) => () => void clock.advance(ms)
    const speeds = { a: takes(900), b: takes(100) }
    const served: unknown[] = []
    for (let i = 0; i < 14; i++) {
      served.push(await call(speeds, { routing }))
      finish()
    }
    expect(served.slice(4).filter((target) => target === 'b').length).toBeGreaterThanOrEqual(9)
  })
})

describe('least_latency with a target that is silent', () => {
  test('counts the time for which its calls wait, before any of them is answered', async () => {
    const always0 = () => 0
    const { call, clock, finish, tried } = setUp([{ priority: 0 }, { priority: 0 }], always0)
    const routing = { strategy: 'least_latency' } as const
    const takes = (ms: number) => () => void clock.advance(ms)
    // Both are known: with these numbers, `a` and `b` are the two that are compared.
    await call({ a: takes(400) }, { routing })
    await call({ b: takes(500) }, { routing })
    finish()
    const held = Promise.withResolvers<unknown>()
    const waiting = call({ a: () => held.promise }, { routing })
    await settled()
    expect(tried).toEqual(['a'])
    clock.advance(5_000)
    for (let i = 0; i < 3; i++) expect(await call({}, { routing })).toBe('b')
    held.resolve(undefined)
    await waiting
  })
})

describe('sticky calls', () => {
  const four = Array.from({ length: 4 }, () => ({ priority: 0 }))
  const named = ['a', 'b', 'c', 'd'].map((id) => ({ provider: { id, kind: 'test' }, priority: 0 }))
  const routing = { sticky: 'prefix' } as const

  test('of one conversation go to one target; conversations share the targets', async () => {
    const { serve } = setUp(named)
    const counts = new Map<string, number>()
    for (let conversation = 1; conversation <= 400; conversation++) {
      const served = await serve(3, { routing, affinity: () => conversation * 7919 })
      expect(new Set(served).size).toBe(1)
      counts.set(served.charAt(0), (counts.get(served.charAt(0)) ?? 0) + 1)
    }
    for (const count of counts.values()) expect(Math.abs(count - 100)).toBeLessThan(40)
  })

  test('move only while their target is avoided, and only they move', async () => {
    const { call, serve, clock, finish } = setUp(named)
    const targetOf = (affinity: number) => serve(1, { routing, affinity: () => affinity })
    const before = await Promise.all(Array.from({ length: 40 }, (_, one) => targetOf(one)))
    const gone = before[0] ?? ''
    await call({ [gone]: always(unreachable) }, { routing, affinity: () => 0 })
    finish()
    const during = await Promise.all(Array.from({ length: 40 }, (_, one) => targetOf(one)))
    for (const [one, target] of before.entries()) {
      if (target === gone) expect(during[one]).not.toBe(gone)
      else expect(during[one]).toBe(target)
    }
    clock.advance(5_000)
    expect(await targetOf(0)).toBe(gone)
    expect(await Promise.all(Array.from({ length: 40 }, (_, one) => targetOf(one)))).toEqual(before)
  })

  test('without a conversation follow the strategy', async () => {
    expect(await setUp(four.slice(0, 2)).serve(4, { routing, affinity: () => undefined })).toBe('abab')
  })
})

describe('hedging', () => {
  const routing = { hedge: true } as const

  /** A router that knows that `a` takes 100 ms, and has saved so many hedges. */
  async function warm(hedges: number) {
    const set = setUp([{}, {}])
    const a = () => void set.clock.advance(100)
    for (let i = 0; i < Math.max(40, hedges * 20); i++) {
      await set.call({ a }, { routing })
      set.finish()
    }
    return set
  }

  test('asks a second target after the p95 of the first, and aborts the slower one', async () => {
    const { call, clock, tried, ends, router } = await warm(2)
    let aborted: AbortSignal | undefined
    const slow = call(
      {
        a(signal) {
          aborted = signal
          return new Promise(() => {})
        },
      },
      { routing },
    )
    await settled()
    clock.advance(99)
    await settled()
    expect(tried).toEqual(['a'])
    clock.advance(1)
    expect(await slow).toBe('b')
    expect(tried).toEqual(['a', 'b'])
    expect(aborted?.aborted).toBe(true)
    await settled()
    ends.pop()?.()
    expect([...router.states()].map(({ open, consecutive_failures }) => [open, consecutive_failures])).toEqual([
      [0, 0],
      [0, 0],
    ])
  })

  test('takes the first target where that answers first after all', async () => {
    const { call, clock, ends, router } = await warm(2)
    const gate = Promise.withResolvers<void>()
    let second: AbortSignal | undefined
    const b = (signal: AbortSignal) => {
      second = signal
      return new Promise(() => {})
    }
    const slow = call({ a: () => gate.promise, b }, { routing })
    await settled()
    clock.advance(100)
    await settled()
    gate.resolve()
    expect(await slow).toBe('a')
    expect(second?.aborted).toBe(true)
    await settled()
    ends.pop()?.()
    expect([...router.states()].map(({ open }) => open)).toEqual([0, 0])
  })

  test('fails only when both have failed', async () => {
    const { call, clock } = await warm(2)
    const gate = Promise.withResolvers<Error>()
    const slow = call({ a: () => gate.promise, b: always(failed) }, { routing })
    await settled()
    clock.advance(100)
    await settled()
    gate.resolve(unreachable)
    expect([failed, unreachable]).toContain((await slow) as GatewayError)
  })

  test('hedges at most one of twenty calls', async () => {
    const { call, clock, tried, finish } = await warm(10)
    let hedged = 0
    for (let i = 0; i < 200; i++) {
      const gate = Promise.withResolvers<void>()
      const slow = call({ a: () => gate.promise }, { routing })
      await settled()
      clock.advance(20_000)
      await settled()
      if (tried.length > 1) hedged++
      gate.resolve()
      await slow
      finish()
    }
    expect(hedged).toBeLessThanOrEqual(10 + 200 / 20)
  })

  test('is off by default, and for calls that are charged each time', async () => {
    const { call, clock, tried } = await warm(2)
    for (const given of [{}, { routing, policy: 'until_accepted' as const }]) {
      const gate = Promise.withResolvers<void>()
      const slow = call({ a: () => gate.promise }, given)
      await settled()
      clock.advance(1_000)
      await settled()
      expect(tried).toEqual(['a'])
      gate.resolve()
      await slow
    }
  })
})

describe('retries at one provider', () => {
  test('are at most three, or a fifth of its open calls', async () => {
    const keys = Array.from({ length: 2 }, (_, index) => ({ key: `k${index + 1}`, priority: index }))
    const { call, tried } = setUp(keys)
    const gate = Promise.withResolvers<void>()
    /** Calls that failed with the first key and wait at the second one. */
    const waiting = Array.from({ length: 3 }, () => call({ k1: always(failed), k2: () => gate.promise }))
    await settled()
    expect(await call({ k1: always(failed) })).toBe(failed)
    expect(tried).toEqual(['k1'])
    gate.resolve()
    await Promise.all(waiting)
  })

  test('do not count failovers to another provider', async () => {
    const { call } = setUp([{}, {}])
    const gate = Promise.withResolvers<void>()
    const waiting = Array.from({ length: 20 }, () => call({ a: always(failed), b: () => gate.promise }))
    await settled()
    gate.resolve()
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(['b']))
  })
})

/** A call whose first target is silent until its time is up. */
async function timeOut({ call, clock }: ReturnType<typeof setUp>, meanwhile = async () => '') {
  const answer = call({ a: () => new Promise(() => {}) })
  await settled()
  clock.advance(1_000)
  await meanwhile()
  clock.advance(14_000)
  return await answer
}
