import { describe, expect, it } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import { createLog } from '../../kit/log.ts'
import { GatewayError } from '../../spec/error.ts'
import { RATE_LIMIT_KEYS, type RateLimitKey, type RateLimits } from '../../spec/rate-limit.ts'
import { NO_UNITS, type Units } from '../../spec/usage.ts'
import type { LimitedCaller } from './plans.ts'
import { createRateLimiter, type LimitSettings } from './rate-limits.ts'
import { WINDOW_MS } from './window.ts'

const SILENT = createLog({ clock: manualClock(), level: 'silent', pretty: false, write: () => {} })

type Options = {
  rate_limits?: RateLimits
  models?: Record<string, { rate_limits?: RateLimits }>
  tokens?: { rate_limits?: RateLimits; end_users?: { rate_limits?: RateLimits } }
  limits?: Partial<LimitSettings>
}

function limiterWith({ models = {}, tokens = {}, limits, rate_limits }: Options = {}) {
  const clock = manualClock()
  const settings = { queue_seconds: 0, max_end_users: 1_000, when_store_fails: 'share' as const, ...limits }
  let config = { models, tokens, limits: settings, ...(rate_limits && { rate_limits }) }
  const limiter = createRateLimiter({ config: () => config, clock, log: SILENT, shared: undefined })
  const caller: LimitedCaller = { token_id: 'tok_a' }
  const control = new AbortController()
  function requestOf(
    units: Partial<Units> = {},
    from: { caller?: LimitedCaller; end_user?: string; model?: string } = {},
  ) {
    const call = {
      caller: from.caller ?? caller,
      signal: control.signal,
      ...(from.end_user && { end_user: from.end_user }),
    }
    const expected = { ...NO_UNITS, ...units }
    return { call, model: { id: from.model ?? 'acme/a' }, estimate: { expected, most: expected } }
  }
  /** The hold of a call that is admitted at once. */
  const admit = (...args: Parameters<typeof requestOf>) => {
    const hold = limiter.admit(requestOf(...args))
    if (hold instanceof Promise) throw new Error('the call waits')
    return hold
  }
  return {
    clock,
    limiter,
    requestOf,
    admit,
    control,
    refusal(...args: Parameters<typeof requestOf>): GatewayError {
      try {
        admit(...args)
      } catch (thrown) {
        if (thrown instanceof GatewayError) return thrown
        throw thrown
      }
      throw new Error('the call was admitted')
    },
    reload(change: Options) {
      config = { ...config, ...change, limits: settings }
    },
  }
}

const UNITS: Partial<Record<string, Partial<Units>>> = {
  requests: {},
  input_tokens: { input_tokens: 1 },
  output_tokens: { output_tokens: 1 },
  tokens: { input_tokens: 1 },
  images: { images: 1 },
  videos: { videos: 1 },
  video_seconds: { video_seconds: 1 },
  three_d: { three_d: 1 },
  audio_seconds: { audio_seconds: 1 },
  concurrent_requests: {},
}
const COUNTED = RATE_LIMIT_KEYS.filter((key) => key !== 'tasks_in_flight')
const unitsFor = (key: RateLimitKey) => UNITS[key.split('_per_')[0] ?? ''] ?? {}

describe('each limit', () => {
  it.each(COUNTED)('%s admits as much as it is, and refuses more', (key) => {
    for (const limit of [0, 1, 3]) {
      const { admit, refusal } = limiterWith({ rate_limits: { [key]: limit } })
      for (let count = 0; count < limit; count++) admit(unitsFor(key))
      const error = refusal(unitsFor(key))
      expect(error).toMatchObject({ code: 'rate_limit_exceeded', status: 429 })
      expect(error.message).toContain(`the installation: ${key} is ${limit}`)
    }
  })

  it.each(COUNTED.filter((key) => key !== 'concurrent_requests'))('%s admits again after its window', (key) => {
    const { clock, admit, refusal } = limiterWith({ rate_limits: { [key]: 1 } })
    admit(unitsFor(key))
    const { retry_after = 0 } = refusal(unitsFor(key)).detail
    const retry_after_ms = retry_after * 1000
    const length = WINDOW_MS[(key.split('_per_')[1] ?? '') as keyof typeof WINDOW_MS]
    expect(retry_after_ms).toBeGreaterThan(length)
    expect(retry_after_ms).toBeLessThanOrEqual(Math.ceil(length * (129 / 128)))
    clock.advance(retry_after_ms - 1)
    refusal(unitsFor(key))
    clock.advance(1)
    admit(unitsFor(key))
  })

  it('counts open calls until they are settled', () => {
    const { admit, refusal } = limiterWith({ rate_limits: { concurrent_requests: 2 } })
    const first = admit()
    admit()
    expect(refusal().detail.retry_after).toBe(1)
    first?.settle(NO_UNITS)
    admit()
    refusal()
  })

  it('does not count calls that use nothing of its unit', () => {
    const { admit } = limiterWith({ rate_limits: { images_per_day: 0, input_tokens_per_day: 0 } })
    admit({ output_tokens: 5 })
  })

  it('says that a request is too large which alone exceeds it, and that a repetition is of no use', () => {
    const { refusal } = limiterWith({ rate_limits: { tokens_per_minute: 100 } })
    const error = refusal({ input_tokens: 60, output_tokens: 41 })
    expect(error.message).toBe(
      'Rate limit reached for the installation: tokens_per_minute is 100, and this request alone needs 101. Make it smaller.',
    )
    expect(error.detail).toMatchObject({ retry: false })
    expect(error.detail.retry_after).toBeUndefined()
  })
})

describe('scopes', () => {
  const project = { project_id: 'proj_p', rate_limits: { requests_per_minute: 4 } }
  const a = { token_id: 'tok_a', rate_limits: { requests_per_minute: 3 }, project }
  const b = { token_id: 'tok_b', rate_limits: { requests_per_minute: 3 }, project }

  it('count apart for each token, and together for their project', () => {
    const { admit, refusal } = limiterWith()
    for (let count = 0; count < 3; count++) admit({}, { caller: a })
    expect(refusal({}, { caller: a }).message).toContain('token tok_a: requests_per_minute is 3')
    admit({}, { caller: b })
    expect(refusal({}, { caller: b }).message).toContain('project proj_p: requests_per_minute is 4')
  })

  it('count apart for each model', () => {
    const { admit, refusal } = limiterWith({ models: { 'acme/a': { rate_limits: { requests_per_hour: 1 } } } })
    admit()
    expect(refusal().message).toContain('model acme/a: requests_per_hour is 1')
    admit({}, { model: 'acme/b' })
    admit({}, { model: 'constructor' })
  })

  it('take the defaults for a token without limits of its own', () => {
    const { admit, refusal } = limiterWith({ tokens: { rate_limits: { requests_per_hour: 1 } } })
    admit()
    expect(refusal().message).toContain('token tok_a')
    for (let count = 0; count < 3; count++) admit({}, { caller: a })
  })

  it('count nothing for a call that one of them refuses', () => {
    const { clock, admit, refusal } = limiterWith({ rate_limits: { requests_per_day: 4 } })
    for (let count = 0; count < 3; count++) admit({}, { caller: a })
    for (let count = 0; count < 50; count++) refusal({}, { caller: a })
    clock.advance(61_000)
    admit({}, { caller: a })
    expect(refusal({}, { caller: a }).message).toContain('the installation')
  })

  it('count apart for each end user of a token, and of a project', () => {
    const { admit, refusal } = limiterWith()
    const own = { token_id: 'tok_a', end_users: { rate_limits: { requests_per_minute: 1 } } }
    const ofProject = {
      token_id: 'tok_c',
      project: { project_id: 'proj_p', end_users: { rate_limits: { requests_per_minute: 1 } } },
    }
    admit({}, { caller: own, end_user: 'ann' })
    admit({}, { caller: own, end_user: 'bob' })
    expect(refusal({}, { caller: own, end_user: 'ann' }).message).toContain(
      'end user "ann" of token tok_a: requests_per_minute is 1',
    )
    admit({}, { caller: { ...own, token_id: 'tok_b' }, end_user: 'ann' })
    admit({}, { caller: own })
    admit({}, { caller: ofProject, end_user: 'ann' })
    expect(refusal({}, { caller: { ...ofProject, token_id: 'tok_d' }, end_user: 'ann' }).message).toContain(
      'project proj_p',
    )
  })

  it('keep what they have counted when the limits change', () => {
    const { admit, refusal, reload } = limiterWith({ rate_limits: { requests_per_day: 2 } })
    admit()
    admit()
    refusal()
    reload({ rate_limits: { requests_per_day: 3 } })
    admit()
    refusal()
    reload({ rate_limits: { requests_per_day: 1 } })
    refusal()
    reload({ rate_limits: { requests_per_minute: 5 } })
    admit()
    reload({ rate_limits: { requests_per_day: 4 } })
    admit()
    refusal()
  })
})

describe('a settled call', () => {
  it('counts what it used instead of its estimate', () => {
    const { admit, refusal } = limiterWith({ rate_limits: { tokens_per_minute: 100 } })
    const hold = admit({ input_tokens: 20, output_tokens: 80 })
    refusal({ input_tokens: 1 })
    hold?.settle({ input_tokens: 20, output_tokens: 10 })
    admit({ input_tokens: 70 })
    refusal({ input_tokens: 1 })
  })

  it('counts more than its estimate from its end on', () => {
    const { clock, admit, refusal } = limiterWith({ rate_limits: { tokens_per_minute: 100 } })
    const hold = admit({ input_tokens: 10 })
    clock.advance(59_000)
    hold?.settle({ input_tokens: 10, output_tokens: 500 })
    clock.advance(2_000)
    expect(refusal({ input_tokens: 1 }).detail.retry_after).toBeGreaterThan(57)
    clock.advance(60_000)
    admit({ input_tokens: 100 })
  })

  it('counts nothing but its request when it failed, and nothing at all when it was cancelled', () => {
    const { admit, refusal } = limiterWith({ rate_limits: { tokens_per_minute: 100, requests_per_minute: 2 } })
    admit({ input_tokens: 100 })?.settle(NO_UNITS)
    admit({ input_tokens: 100 })?.cancel()
    admit({ input_tokens: 100 })
    expect(refusal().message).toContain('requests_per_minute is 2')
  })

  /** https://github.com/BerriAI/litellm/issues/27639, /30460: reservations that leaked refused calls for ever. */
  it('leaves no phantom reservation behind, however it ended', () => {
    const { clock, admit } = limiterWith({
      rate_limits: { tokens_per_day: 1_000, concurrent_requests: 3, requests_per_day: 100_000 },
    })
    for (let count = 0; count < 3_000; count++) {
      const hold = admit({ input_tokens: 1_000 })
      if (count % 3 === 0) clock.advance(90_000)
      if (count % 2 === 0) hold?.settle(NO_UNITS)
      else hold?.cancel()
    }
    expect(admit({ input_tokens: 1_000 })).toBeDefined()
  })

  /** https://github.com/BerriAI/litellm/issues/34732: calls that were admitted together passed the limit together. */
  it('is not overtaken by calls that are admitted while it is open', () => {
    const { admit, refusal } = limiterWith({ rate_limits: { tokens_per_minute: 1_000 } })
    const holds = Array.from({ length: 10 }, () => admit({ output_tokens: 100 }))
    for (let count = 0; count < 100; count++) refusal({ output_tokens: 1 })
    for (const hold of holds) hold?.settle({ input_tokens: 0, output_tokens: 100 })
    refusal({ output_tokens: 1 })
  })
})

describe('a fallback', () => {
  const models = {
    'acme/a': { rate_limits: { requests_per_minute: 1, tokens_per_minute: 100 } },
    'acme/b': { rate_limits: { requests_per_minute: 1 } },
  }

  it('takes the call from the limits of the first model to its own', () => {
    const { admit, requestOf, refusal } = limiterWith({ models, rate_limits: { requests_per_minute: 2 } })
    const hold = admit({ input_tokens: 90 })
    hold?.moveTo(requestOf({ input_tokens: 80 }, { model: 'acme/b' }))
    expect(refusal({}, { model: 'acme/b' }).message).toContain('model acme/b')
    admit({ input_tokens: 100 })
    hold?.settle(NO_UNITS)
    expect(refusal({}, { model: 'acme/c' }).message).toContain('the installation: requests_per_minute is 2')
  })

  it('holds what it held where its limits refuse the call', () => {
    const { admit, requestOf, refusal } = limiterWith({ models })
    const hold = admit({ input_tokens: 90 })
    admit({}, { model: 'acme/b' })
    expect(() => hold?.moveTo(requestOf({}, { model: 'acme/b' }))).toThrow('model acme/b: requests_per_minute is 1')
    expect(refusal().message).toContain('model acme/a')
    hold?.cancel()
    admit({ input_tokens: 100 })
  })
})

describe('end users', () => {
  const caller = { token_id: 'tok_a', end_users: { rate_limits: { requests_per_minute: 1 } } }

  it('are counted apart up to a bound, then together, and forgotten once their windows are empty', () => {
    const { clock, limiter, admit, refusal } = limiterWith({ limits: { max_end_users: 20_000 } })
    const call = (end_user: string) => admit({}, { caller, end_user })?.settle(NO_UNITS)
    for (let user = 0; user < 10_000; user++) call(`u${user}`)
    call('one more') // the first of those that count together
    for (let user = 10_000; user < 100_000; user++) {
      expect(refusal({}, { caller, end_user: `u${user}` }).message).toContain('not counted apart of token tok_a')
    }
    expect(limiter.scopes).toBeLessThan(10_010)
    admit({}, { caller: { ...caller, token_id: 'tok_b' }, end_user: 'another owner' })
    clock.advance(61_000)
    for (let user = 10_000; user < 20_000; user++) call(`u${user}`)
    refusal({}, { caller, end_user: 'u19999' })
    expect(limiter.scopes).toBeLessThan(10_010)
  })

  it('are not forgotten while a call of theirs is open or waits, however long', async () => {
    const caller = { token_id: 'tok_a', end_users: { rate_limits: { tokens_per_hour: 100 } } }
    const { clock, admit, requestOf, limiter } = limiterWith({
      limits: { max_end_users: 6, queue_seconds: 10_000 },
      models: { 'acme/one': { rate_limits: { concurrent_requests: 1 } } },
    })
    /** What was estimated has left the window since. */
    const used = { ...NO_UNITS, input_tokens: 101 }
    /** As many as there may be of one token. */
    const others = () => {
      for (const end_user of ['a', 'b', 'c']) admit({ input_tokens: 1 }, { caller, end_user })?.settle(NO_UNITS)
    }
    const call = (end_user: string) =>
      limiter.admit(requestOf({ input_tokens: 1 }, { caller, end_user, model: 'acme/one' }))
    const isAdmitted = (end_user: string) =>
      !(limiter.admit(requestOf({ input_tokens: 1 }, { caller, end_user })) instanceof Promise)
    const open = await call('open')
    const waiting = call('waits')
    clock.advance(3_700_000)
    others()
    open?.settle(used)
    expect(isAdmitted('open')).toBe(false)
    ;(await waiting)?.settle(used)
    expect(isAdmitted('waits')).toBe(false)
    clock.advance(3_700_000)
    others()
    expect(isAdmitted('open')).toBe(true)
  })
})

describe('waiting', () => {
  const limits = { queue_seconds: 10 }
  const settled = async () => {
    for (let turn = 0; turn < 10; turn++) await Promise.resolve()
  }

  it('admits a call when it fits, and tells how long it waited', async () => {
    const { clock, limiter, requestOf, admit } = limiterWith({ rate_limits: { requests_per_second: 1 }, limits })
    admit()
    const request = { ...requestOf() }
    const record: { queued_ms?: number } = {}
    const waiting = limiter.admit({ ...request, call: { ...request.call, record } })
    expect(waiting).toBeInstanceOf(Promise)
    clock.advance(990)
    await settled()
    expect(limiter.waiting).toBe(1)
    clock.advance(20)
    expect(await waiting).toBeDefined()
    expect(limiter.waiting).toBe(0)
    expect(record.queued_ms).toBeGreaterThanOrEqual(1_000)
  })

  it('refuses at once what cannot fit in time, or never', () => {
    const { admit, refusal } = limiterWith({ rate_limits: { requests_per_minute: 1, images_per_second: 1 }, limits })
    admit()
    refusal()
    refusal({ images: 2 })
  })

  it('refuses after its time what has not fitted', async () => {
    const { clock, limiter, requestOf, admit } = limiterWith({ rate_limits: { concurrent_requests: 1 }, limits })
    admit()
    const waiting = Promise.resolve(limiter.admit(requestOf()))
    waiting.catch(() => {})
    clock.advance(9_999)
    expect(limiter.waiting).toBe(1)
    clock.advance(1)
    await expect(waiting).rejects.toMatchObject({ code: 'rate_limit_exceeded' })
    expect(limiter.waiting).toBe(0)
  })

  it('takes turns between tokens, and keeps the order of each; nobody overtakes', async () => {
    const { limiter, requestOf, admit, refusal } = limiterWith({ rate_limits: { concurrent_requests: 1 }, limits })
    const order: string[] = []
    let open = admit()
    const enter = (token_id: string, name: string) =>
      void Promise.resolve(limiter.admit(requestOf({}, { caller: { token_id } }))).then((hold) => {
        order.push(name)
        open = hold
      })
    for (const name of ['a1', 'a2', 'a3']) enter('tok_a', name)
    for (const name of ['b1', 'b2']) enter('tok_b', name)
    for (let turn = 0; turn < 5; turn++) {
      open?.settle(NO_UNITS)
      expect(refusal).toThrow('the call waits')
      await settled()
    }
    expect(order).toEqual(['a1', 'b1', 'a2', 'b2', 'a3'])
  })

  it('ends at once when the client has left, and is bounded', async () => {
    const { limiter, requestOf, admit, control, refusal } = limiterWith({
      rate_limits: { concurrent_requests: 1 },
      limits,
    })
    const hold = admit()
    const waiting = Array.from({ length: 100 }, () => Promise.resolve(limiter.admit(requestOf())))
    const failures = waiting.map((one) =>
      one.then(
        () => 'admitted',
        (reason) => reason,
      ),
    )
    refusal()
    control.abort('left')
    expect(new Set(await Promise.all(failures))).toEqual(new Set(['left']))
    expect(limiter.waiting).toBe(0)
    hold?.settle(NO_UNITS)
    expect(admit()).toBeDefined()
  })
})
