/** The router against random targets, providers, clients and time: what must hold in every sequence of calls. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { manualClock } from '../../../test/kit/clock.ts'
import { failed, limited, notAccepted, refused, settled, unreachable } from '../../../test/kit/router.ts'
import type { CallLimits, RoutingConfig } from '../../config/schema/routing-schema.ts'
import { createLog } from '../../kit/log.ts'
import type { Target } from '../../providers/provider.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Attempt } from './attempt.ts'
import { boundsOf } from './bounds.ts'
import type { AttemptPolicy } from './outcome.ts'
import { createRouter } from './router.ts'
import { avoidedBecause, type TargetState } from './target-state.ts'

const invalid = new GatewayError('upstream_invalid_request', 'No.', { upstream_status: 400 })
const cut = new GatewayError('upstream_cut', 'It broke.')
const ERRORS = { failed, unreachable, notAccepted, refused, invalid, limited: limited(), limitedLong: limited(30) }
type Behaviour = keyof typeof ERRORS | 'ok' | 'silent'
const BEHAVIOURS: readonly Behaviour[] = ['ok', 'silent', ...(Object.keys(ERRORS) as (keyof typeof ERRORS)[])]

type Step =
  | { do: 'call'; behaviours: readonly Behaviour[]; observed?: boolean; fallback?: boolean }
  /** The oldest silent upstream call is answered. */
  | { do: 'answer'; behaviour: Behaviour; which: number }
  | { do: 'advance'; ms: number }
  | { do: 'abort'; which: number; error: 'unreachable' | 'limited' | 'reason' }
  /** A response ends, complete or broken. */
  | { do: 'end'; which: number; isBroken: boolean }

type Case = {
  targets: Partial<Target>[]
  /** Of the provider `p`. */
  limits: CallLimits | undefined
  routing: RoutingConfig
  policy: AttemptPolicy
  steps: Step[]
  seed: number
}

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('call' as const),
      behaviours: fc.array(fc.constantFrom(...BEHAVIOURS), { minLength: 1, maxLength: 4 }),
      observed: fc.constantFrom(true, true, true, false),
      fallback: fc.constantFrom(false, false, true),
    }),
  },
  fc.record({ do: fc.constant('answer' as const), behaviour: fc.constantFrom(...BEHAVIOURS), which: fc.nat(3) }),
  fc.record({
    do: fc.constant('advance' as const),
    ms: fc.constantFrom(1, 300, 1_000, 5_000, 15_000, 31_000, 400_000),
  }),
  fc.record({
    do: fc.constant('abort' as const),
    which: fc.nat(3),
    error: fc.constantFrom('unreachable' as const, 'limited' as const, 'reason' as const),
  }),
  fc.record({ do: fc.constant('end' as const), which: fc.nat(3), isBroken: fc.boolean() }),
)

const target: fc.Arbitrary<Partial<Target>> = fc.record(
  { priority: fc.nat(2), weight: fc.constantFrom(0, 1, 3), key: fc.constantFrom('k1', 'k2') },
  { requiredKeys: [] },
)

const caseOf = (most: { steps: number; hedge: boolean }): fc.Arbitrary<Case> =>
  fc.record({
    targets: fc.array(target, { minLength: most.hedge ? 2 : 1, maxLength: 4 }),
    limits: fc.option(
      fc.record({
        max: fc.constantFrom(1, 2, 'adaptive' as const),
        queue: fc.record({ length: fc.constantFrom(0, 1, 5), seconds: fc.constantFrom(1, 30) }),
      }),
      { nil: undefined },
    ),
    routing: fc.record(
      {
        strategy: fc.constantFrom(
          'priority' as const,
          'weighted' as const,
          'least_latency' as const,
          'least_busy' as const,
        ),
        tries: fc.integer({ min: 1, max: 5 }),
        hedge: fc.constant(most.hedge),
        sticky: fc.constant('prefix' as const),
        deadline_seconds: fc.constantFrom(0.5, 3, 40),
        first_byte_seconds: fc.constantFrom(1, 10),
      },
      { requiredKeys: most.hedge ? ['hedge'] : [] },
    ),
    policy: most.hedge ? fc.constant('until_answered' as const) : fc.constantFrom('until_answered', 'until_accepted'),
    steps: fc.array(step, { minLength: 3, maxLength: most.steps, size: 'max' }),
    seed: fc.nat(),
  })

type Upstream = { signal: AbortSignal; settle(behaviour: Behaviour): void; isOpen: boolean }
type Call = {
  client: AbortController
  started: Attempt[]
  errors: Map<Attempt, unknown>
  served: Attempt | undefined
  end: ((error?: unknown) => void) | undefined
  abortWith: unknown
}

/** A generator of numbers from 0 to 1: the sequence is that of its seed. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

function simulate({ targets: given, limits, routing, policy, seed }: Case) {
  const clock = manualClock()
  const log = createLog({ clock, level: 'error', pretty: false, write() {} })
  const router = createRouter({ clock, log, random: randomOf(seed) })
  // Two targets may be of one provider; each is another model there, or another key.
  const targets = given.map(
    (option, index): Target => ({
      provider: {
        id: 'pq'.charAt(index % 2),
        kind: 'test',
        ...(limits && index % 2 === 0 ? { callLimits: limits } : {}),
      },
      model: `m${index}`,
      ...option,
    }),
  )
  const idOf = ({ provider, model, key }: Target) => `${provider.id}/${model}${key === undefined ? '' : `#${key}`}`
  const calls: Call[] = []
  const upstream: Upstream[] = []
  let before = new Map<string, TargetState>()
  /** The targets of which a call has ended in this step, which may have been the probe. */
  const endedInStep = new Set<string>()
  /** The open calls of each provider. */
  const open = new Map<string, number>()
  const addOpen = ({ target }: Attempt, count: number) =>
    void open.set(target.provider.id, (open.get(target.provider.id) ?? 0) + count)
  let hedges = 0
  const problems: string[] = []
  const stateOf = (id: string) => [...router.states()].find((state) => state.id === id)

  /** Whether it could be chosen at the begin of the step and still can. */
  function isAvailable(id: string): boolean {
    const now = clock.steady()
    const [then, state] = [before.get(id), stateOf(id)]
    return !(then && avoidedBecause(then, now)) && !(state && avoidedBecause(state, now))
  }
  /** Whether it was avoided at the begin of the step, at the present time, and is now for the same reason. */
  function isAvoided(id: string): boolean {
    const now = clock.steady()
    const [then, state] = [before.get(id), stateOf(id)]
    const reason = then && avoidedBecause(then, now)
    if (reason === 'probing') return !endedInStep.has(id)
    return reason !== undefined && state !== undefined && avoidedBecause(state, now) === reason
  }

  type Given = { deadline: number; observed: boolean; fallback: boolean }

  function checkStart(call: Call, attempt: Attempt, { deadline, observed, fallback }: Given): void {
    const { id, callLimits } = attempt.target.provider
    if (typeof callLimits?.max === 'number' && (open.get(id) ?? 0) > callLimits.max)
      problems.push(`${open.get(id)} open calls of ${id}, which may have ${callLimits.max}`)
    const tries = routing.tries ?? 5
    if (call.started.length > tries) problems.push(`${call.started.length} tries of ${tries}`)
    if (call.served) problems.push('a try after the first byte')
    if (clock.steady() >= deadline) problems.push('a try after the deadline')
    const earlier = call.started.slice(0, -1)
    if (routing.tries === undefined && earlier.some(({ target }) => target === attempt.target))
      problems.push('a target called twice without a setting')
    if (policy === 'until_accepted' && earlier.some((one) => call.errors.get(one) !== notAccepted))
      problems.push('a second try of a request that may have been accepted')
    // One that waited for its provider was chosen before; one that is not observed remembers nothing.
    if (callLimits || !observed) return
    if (isAvoided(idOf(attempt.target)) && fallback)
      problems.push(`${idOf(attempt.target)} was avoided, and another model serves`)
    const others = targets.filter((one) => !call.started.some(({ target }) => target === one))
    if (isAvoided(idOf(attempt.target)) && others.some((one) => isAvailable(idOf(one))))
      problems.push(`${idOf(attempt.target)} was avoided while another target was available`)
  }

  function call({ behaviours, observed = true, fallback = false }: Extract<Step, { do: 'call' }>): void {
    const client = new AbortController()
    const own: Call = {
      client,
      started: [],
      errors: new Map(),
      served: undefined,
      end: undefined,
      abortWith: undefined,
    }
    calls.push(own)
    const bounds = boundsOf(routing, clock.steady())
    let sent = 0
    const result = router.attempt(
      targets,
      {
        settings: routing,
        bounds,
        token_id: 't',
        signal: client.signal,
        is_stream: true,
        policy,
        is_observed: observed,
        is_hedged: true,
        has_fallback: fallback,
        affinity: () => calls.length % 3,
        attemptStarted(attempt) {
          own.started.push(attempt)
          addOpen(attempt, 1)
          if (attempt.is_hedge) hedges++
          checkStart(own, attempt, { deadline: bounds.deadline, observed, fallback })
        },
        attemptFailed(attempt, error) {
          if (own.errors.has(attempt) || own.served === attempt) problems.push('an attempt ended twice')
          own.errors.set(attempt, error)
          addOpen(attempt, -1)
          endedInStep.add(idOf(attempt.target))
        },
        serving(attempt) {
          if (own.served) problems.push('two attempts serve one call')
          own.served = attempt
          endedInStep.add(idOf(attempt.target))
          own.end = (error) => {
            addOpen(attempt, -1)
            attempt.end(error)
          }
        },
      },
      {
        sendTo: (_, limited) =>
          new Promise((resolve, reject) => {
            const signal = limited ?? client.signal
            const one: Upstream = {
              signal,
              isOpen: true,
              settle(behaviour) {
                if (behaviour === 'silent') return
                one.isOpen = false
                if (behaviour === 'ok') resolve('ok')
                else reject(ERRORS[behaviour])
              },
            }
            upstream.push(one)
            signal.addEventListener('abort', () => {
              one.isOpen = false
              reject(own.abortWith ?? signal.reason)
            })
            one.settle(behaviours[sent++ % behaviours.length] ?? 'ok')
          }),
      },
    )
    result.catch(() => {})
  }

  function abort(which: number, error: 'unreachable' | 'limited' | 'reason'): void {
    const open = calls.filter(({ client, served, end }) => !client.signal.aborted && (!served || end))
    const one = open[which % Math.max(1, open.length)]
    if (!one) return
    one.abortWith = error === 'reason' ? undefined : ERRORS[error]
    one.client.abort(new GatewayError('client_closed_request', 'It left.'))
    one.end?.(cut)
    one.end = undefined
  }

  function snapshot(): void {
    endedInStep.clear()
    before = new Map([...router.states()].map((state) => [state.id, { ...state }]))
  }

  async function run(one: Step): Promise<void> {
    snapshot()
    const sent = upstream.length
    if (one.do === 'call') call(one)
    else if (one.do === 'advance') clock.advance(one.ms)
    else if (one.do === 'abort') abort(one.which, one.error)
    else if (one.do === 'answer') {
      const open = upstream.filter(({ isOpen }) => isOpen)
      open[one.which % Math.max(1, open.length)]?.settle(one.behaviour)
    } else {
      const open = calls.filter(({ end }) => end)
      const ended = open[one.which % Math.max(1, open.length)]
      ended?.end?.(one.isBroken ? cut : undefined)
      if (ended) ended.end = undefined
    }
    await settled()
    // A call that waited for the place of the aborted one may fail by itself.
    if (one.do === 'abort' && upstream.length === sent) problems.push(...worseStates(before, router.states()))
    for (const { id, open, waiting } of router.states()) {
      if (open < 0) problems.push(`${id}: ${open} open calls`)
      if (waiting < 0 || waiting > open) problems.push(`${id}: ${waiting} of ${open} calls wait for their first byte`)
    }
  }

  /** Lets everything end, and checks that nothing is left over. */
  async function finish(): Promise<void> {
    for (let i = 0; i < 40; i++) {
      snapshot()
      for (const one of upstream) if (one.isOpen) one.settle('ok')
      for (const one of calls) {
        one.end?.()
        one.end = undefined
      }
      // A call may fail at several targets, one after the other.
      for (let i = 0; i < 4; i++) await settled()
      const isIdle = upstream.every(({ isOpen }) => !isOpen) && calls.every(({ end }) => !end)
      if (isIdle && clock.waiting() === 0) break
      snapshot()
      clock.advance(10_000)
      await settled()
    }
    const started = calls.reduce((sum, one) => sum + one.started.length, 0)
    const ended = calls.reduce((sum, one) => sum + one.errors.size + (one.served ? 1 : 0), 0)
    if (started !== ended) problems.push(`${started} attempts began, ${ended} ended`)
    if (started !== upstream.length) problems.push(`${started} attempts, ${upstream.length} upstream calls`)
    for (const { id, open, waiting, is_probing } of router.states()) {
      if (waiting !== 0) problems.push(`${id}: ${waiting} calls wait for ever`)
      if (open !== 0) problems.push(`${id}: ${open} calls open for ever`)
      if (is_probing) problems.push(`${id}: tested for ever`)
    }
    for (const [id, calls] of open) if (calls !== 0) problems.push(`${id}: ${calls} calls are open for ever`)
    if (clock.waiting() > 0) problems.push(`${clock.waiting()} timers for ever`)
  }

  return { run, finish, problems, calls, hedges: () => hedges }
}

/** What a client that has left must not change. */
function worseStates(before: ReadonlyMap<string, TargetState>, states: Iterable<TargetState>): string[] {
  const worse: string[] = []
  for (const state of states) {
    const old = before.get(state.id)
    if (!old) continue
    for (const name of [
      'consecutive_failures',
      'consecutive_cuts',
      'ejected_until',
      'cooling_until',
      'refused_until',
    ] as const)
      if (state[name] > old[name]) worse.push(`${state.id}: ${name} rose because a client left`)
    if (state.failed[0] > old.failed[0]) worse.push(`${state.id}: an error was counted because a client left`)
  }
  return worse
}

/** All calls go to the first target, which is soon known well enough for a hedge. */
const inOrder = (one: Partial<Target>, priority: number): Partial<Target> => ({ ...one, priority, weight: 1 })

async function check(one: Case): Promise<void> {
  const { run, finish, problems } = simulate(one)
  for (const each of one.steps) await run(each)
  await finish()
  expect(problems).toEqual([])
}

describe('every sequence of calls keeps the bounds of the router', () => {
  test.each([1, 2, 3, 4, 5, 6])('4,000 short ones, part %d of 6', async (seed) => {
    await fc.assert(fc.asyncProperty(caseOf({ steps: 8, hedge: false }), check), { numRuns: 4_000, seed })
  })

  test('1,000 long ones', async () => {
    await fc.assert(fc.asyncProperty(caseOf({ steps: 40, hedge: false }), check), { numRuns: 1_000, seed: 7 })
  })

  test('700 with hedges, which are at most 5 % of the calls and ten', async () => {
    let hedged = 0
    const property = fc.asyncProperty(caseOf({ steps: 30, hedge: true }), async (one) => {
      const { run, finish, problems, calls, hedges } = simulate({
        ...one,
        limits: undefined,
        targets: one.targets.map(inOrder),
      })
      for (let i = 0; i < 90; i++) {
        await run({ do: 'call', behaviours: ['ok'] })
        await run({ do: 'end', which: 0, isBroken: false })
      }
      for (const each of one.steps) {
        await run(each)
        expect(hedges()).toBeLessThanOrEqual(calls.length * 0.05 + 1e-9)
      }
      await finish()
      hedged += hedges()
      expect(problems).toEqual([])
    })
    await fc.assert(property, { numRuns: 700, seed: 11 })
    expect(hedged).toBeGreaterThan(20)
  })
})
