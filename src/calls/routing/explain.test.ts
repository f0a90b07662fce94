import { describe, expect, test } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import type { RoutingConfig } from '../../config/schema/routing-schema.ts'
import { createLog } from '../../kit/log.ts'
import type { Target } from '../../providers/provider.ts'
import { GatewayError } from '../../spec/error.ts'
import { boundsOf } from './bounds.ts'
import { explain } from './explain.ts'
import { createRouter } from './router.ts'

const NOW = 1_000_000
const target = (id: string, options: Partial<Target> = {}): Target => ({
  provider: { id, kind: 'test' },
  model: 'm',
  ...options,
})
const inOrder = (...ids: string[]) => ids.map((id, priority) => target(id, { priority }))

/** A router that has called the targets of one model; each answers as given, `ok` by default. */
function remembering(targets: Target[], settings: RoutingConfig = {}) {
  const clock = manualClock()
  const router = createRouter({
    clock,
    log: createLog({ clock, level: 'error', pretty: false, write() {} }),
    random: () => 0,
  })
  const ends: (() => void)[] = []
  const called: string[] = []
  const call = (failures: Record<string, GatewayError> = {}) =>
    router
      .attempt(
        targets,
        {
          settings,
          token_id: 't',
          bounds: boundsOf(settings, clock.steady()),
          signal: new AbortController().signal,
          is_stream: true,
          policy: 'until_answered',
          is_observed: true,
          is_hedged: true,
          has_fallback: false,
          attemptStarted() {},
          attemptFailed() {},
          serving: (attempt) => void ends.push(() => attempt.end()),
        },
        {
          async sendTo({ provider: { id } }) {
            called.push(id)
            if (failures[id]) throw failures[id]
            return id
          },
        },
      )
      .catch((error: unknown) => error)
  const decision = (has_fallback = false) =>
    explain({
      candidates: router.candidates(targets, settings),
      settings,
      now: clock.steady(),
      is_stream: true,
      has_fallback,
    })
  return { clock, router, call, ends, called, decision }
}

const fresh = (targets: Target[]) => remembering(targets).router.candidates(targets, {})
const decide = (targets: Target[], settings: RoutingConfig = {}, affinity?: number) =>
  explain({ candidates: fresh(targets), settings, now: NOW, is_stream: true, affinity })
const namesInOrder = ({ targets }: ReturnType<typeof explain>) =>
  targets
    .filter(({ order }) => order !== null)
    .toSorted((a, b) => (a.order ?? 0) - (b.order ?? 0))
    .map((one) => one.target)

const unreachable = new GatewayError('upstream_unreachable', 'No connection.')
const limited = new GatewayError('rate_limit_exceeded', 'Slow down.', { upstream_status: 429, retry_after: 30 })
const refused = new GatewayError('upstream_auth', 'A bad key.', { upstream_status: 401 })

describe('without a memory', () => {
  test('every target is available, and they are tried by their priority', () => {
    const decision = decide([target('b', { priority: 1 }), target('a', { priority: 0 })])
    expect(namesInOrder(decision)).toEqual(['a/m', 'b/m'])
    expect(decision).toMatchObject({ strategy: 'priority', order: 'fixed', tries: 5, deadline_seconds: null })
    expect(decision.targets.every(({ available }) => available)).toBe(true)
  })

  test('a target beyond the number of tries has no place in the order', () => {
    const decision = decide(inOrder('a', 'b', 'c'), { tries: 2 })
    expect(decision.targets.map(({ order }) => order)).toEqual([1, 2, null])
  })

  test('a request without fallback has one try, and its own deadline', () => {
    const candidates = fresh(inOrder('a', 'b'))
    const options = { no_fallback: true as const, timeout_ms: 2_000 }
    const decision = explain({ candidates, settings: {}, options, now: NOW, is_stream: true })
    expect(decision).toMatchObject({ tries: 1, deadline_seconds: 2 })
    expect(decision.targets.map(({ order }) => order)).toEqual([1, null])
  })

  test('targets of one priority share the calls, which the decision says', () => {
    expect(decide([target('a'), target('b')], { strategy: 'weighted' }).order).toBe('shared')
    expect(decide([target('a'), target('b', { weight: 0 })], { strategy: 'weighted' }).order).toBe('fixed')
  })

  test('the first target of a sticky conversation is fixed', () => {
    const targets = ['a', 'b', 'c'].map((id) => target(id))
    const firsts = new Set(Array.from({ length: 30 }, (_, at) => namesInOrder(decide(targets, {}, at * 7919))[0]))
    expect([...firsts].sort()).toEqual(['a/m', 'b/m', 'c/m'])
    expect(decide(targets, {}, 7).order).toBe('fixed')
  })

  test('the limit of the first byte is that of a stream or of a whole response', () => {
    const targets = inOrder('a')
    expect(decide(targets).targets[0]?.first_byte_seconds).toBe(15)
    const whole = explain({ candidates: fresh(targets), settings: {}, now: NOW, is_stream: false })
    expect(whole.targets[0]?.first_byte_seconds).toBe(60)
    expect(decide(targets, { first_byte_seconds: 3 }).targets[0]?.first_byte_seconds).toBe(3)
  })

  test('a target of another family is not tried', () => {
    const targets = inOrder('a', 'b')
    const serves = ({ provider }: Target) => provider.id === 'b'
    const decision = explain({ candidates: fresh(targets), settings: {}, now: NOW, is_stream: false, serves })
    expect(decision.targets[0]).toMatchObject({ available: false, reason: 'wrong family', order: null })
    expect(decision.targets[1]).toMatchObject({ available: true, order: 1 })
  })
})

describe('with a memory', () => {
  test.each([
    [unreachable, 'ejected', 5],
    [limited, 'rate limited', 30],
    [refused, 'key refused', 300],
  ] as const)(
    'a target that failed is not in the order, with the reason and the time (%#)',
    async (error, reason, s) => {
      const { call, decision } = remembering(inOrder('a', 'b'))
      await call({ a: error })
      expect(decision().targets[0]).toMatchObject({ available: false, reason, available_in_seconds: s, order: null })
      expect(decision().targets[1]).toMatchObject({ available: true, order: 1, open_calls: 1 })
    },
  )

  test('if all are avoided, the one that returns first is tried first, unless a fallback model serves the call', async () => {
    const { call, decision } = remembering(inOrder('a', 'b'))
    await call({ a: limited, b: unreachable })
    expect(namesInOrder(decision())).toEqual(['b/m', 'a/m'])
    expect(namesInOrder(decision(true))).toEqual([])
  })

  test('explaining changes no memory: the next calls go where they would have gone', async () => {
    const targets = [target('a', { weight: 2 }), target('b', { weight: 1 })]
    const [asked, unasked] = [remembering(targets), remembering(targets)]
    for (let i = 0; i < 9; i++) {
      const first = namesInOrder(asked.decision())[0]
      await asked.call()
      await unasked.call()
      expect(first).toBe(`${asked.called.at(-1)}/m`)
    }
    expect(asked.called).toEqual(unasked.called)
  })
})

describe('a reset of the memory', () => {
  test('of one target lets it be called again at once, and leaves the others', async () => {
    const { router, call, called } = remembering(inOrder('a', 'b', 'c'))
    await call({ a: unreachable, b: unreachable })
    expect(router.reset('a/m')).toBe(1)
    called.length = 0
    await call()
    expect(called).toEqual(['a'])
    expect([...router.states()].find(({ id }) => id === 'b/m')?.ejections).toBe(1)
  })

  test('of all, says how many there were; of an unknown one, that there is none', async () => {
    const { router, call, decision } = remembering(inOrder('a', 'b'))
    await call({ a: unreachable })
    expect(router.reset('x/m')).toBe(0)
    expect(router.reset()).toBe(2)
    expect(namesInOrder(decision())).toEqual(['a/m', 'b/m'])
  })

  test('still counts the calls that are open', async () => {
    const { router, call, ends, decision } = remembering(inOrder('a'))
    await call()
    router.reset()
    expect(decision().targets[0]?.open_calls).toBe(1)
    for (const end of ends) end()
    expect(decision().targets[0]?.open_calls).toBe(0)
  })
})
