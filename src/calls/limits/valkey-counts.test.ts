/** Several processes count their limits in one Valkey: simulated in virtual time, on a real server. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import { ENGINES } from '../../../test/kit/engines.ts'
import { hasValkey, startValkey, type ValkeyServer } from '../../../test/kit/valkey.ts'
import { type Clock, systemClock } from '../../kit/clock.ts'
import { createLog } from '../../kit/log.ts'
import { randomAlphanumerics } from '../../kit/secret.ts'
import { GatewayError } from '../../spec/error.ts'
import type { RateLimits } from '../../spec/rate-limit.ts'
import { NO_UNITS } from '../../spec/usage.ts'
import { createValkey, type Valkey, ValkeyError } from '../../store/engines/valkey.ts'
import { connectValkey } from '../../store/engines/valkey-connection.ts'
import { openStore } from '../../store/open-store.ts'
import type { Store } from '../../store/store.ts'
import { LEASE_LAPSES_MS, type RateLimitStore } from '../../store/tokens/lease-store.ts'
import type { LimitedCaller } from './plans.ts'
import { createRateLimiter } from './rate-limits.ts'

type Admitted = { at: number; amount: number }

/** The most that any window of this length holds. */
function most(calls: Admitted[], length: number): number {
  let [first, sum, highest] = [0, 0, 0]
  for (const call of calls) {
    sum += call.amount
    for (let old = calls[first]; old && old.at + length <= call.at; old = calls[++first]) sum -= old.amount
    highest = Math.max(highest, sum)
  }
  return highest
}

/** A generator of numbers from 0 to 1 that repeats with its seed. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

let server: ValkeyServer
const closing: (() => unknown)[] = []
beforeAll(async () => {
  if (hasValkey) server = await startValkey()
})
afterAll(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
  await server?.stop()
})

type Options = {
  rate_limits?: RateLimits
  models?: Record<string, { rate_limits?: RateLimits }>
  providers?: Record<string, { rate_limits?: RateLimits }>
  tokens?: { end_users?: { rate_limits?: RateLimits } }
  limits?: { queue_seconds?: number; when_store_fails?: 'share' | 'refuse' | 'allow' }
}

async function cluster(
  { rate_limits = {}, models = {}, providers = {}, tokens = {}, limits = {} }: Options,
  { openedStore, user, prefix = randomAlphanumerics(12) }: { openedStore?: Store; user?: string; prefix?: string } = {},
) {
  const clock = manualClock()
  const store = openedStore ?? (await openStore({ url: 'sqlite::memory:' }))
  if (!openedStore) closing.push(store.close)
  /** Calls, and requests to the server and the store. */
  const open = new Set<Promise<unknown>>()
  const asking = new Set<Promise<unknown>>()
  const admitted: Admitted[] = []
  const fault = { isStoreDown: false }
  let logged = ''
  const write = (text: string) => {
    logged += text
  }
  const log = createLog({ clock, level: 'info', pretty: false, write })

  /** Lets everything that was started end, and what that starts: calls may wait for a part of a second. */
  async function settleAll(): Promise<void> {
    for (let steps = 0; ; steps++) {
      for (let turn = 0; turn < 3; ) {
        await Promise.allSettled([...asking])
        await new Promise<void>((resolve) => setImmediate(resolve))
        turn = asking.size > 0 ? 0 : turn + 1
      }
      if (open.size === 0 || steps === 100) return
      clock.advance(10)
    }
  }
  let settling: Promise<void> | undefined
  function settle(): Promise<void> {
    settling ??= settleAll().finally(() => {
      settling = undefined
    })
    return settling
  }

  async function start() {
    const process_id = randomAlphanumerics(16)
    const own = new Set<Promise<unknown>>()
    const state = { isDead: false, isCut: false, losesAnswers: 0, scripts: 0 }
    function note<T>(promise: Promise<T>, among = asking): Promise<T> {
      among.add(promise)
      own.add(promise)
      const end = () => {
        among.delete(promise)
        own.delete(promise)
      }
      promise.then(end, end)
      return promise
    }
    // Each process has a steady clock of its own.
    const skew = Math.floor(process_id.charCodeAt(0) * 977)
    const local: Clock = {
      now: clock.now,
      steady: () => clock.steady() + skew,
      after: (ms, work) => clock.after(ms, () => void (state.isDead || work())),
    }
    const real = createValkey({
      connect: (onLost) => connectValkey(user ? server.url.replace(/\/\/.*@/, `//${user}@`) : server.url, onLost),
      prefix,
      timeout_ms: 2_000,
      clock: systemClock,
      log,
    })
    closing.push(() => real.close())
    await real.opened
    const valkey: Valkey = {
      ...real,
      isAvailable: () => !state.isCut,
      script(lua) {
        const script = real.script(lua)
        return {
          run(...args) {
            state.scripts++
            if (state.isDead) return new Promise(() => {})
            if (state.isCut) return Promise.reject(new ValkeyError('unavailable', 'down'))
            if (state.losesAnswers === 0) return note(script.run(...args))
            state.losesAnswers--
            return note(
              script.run(...args).then(() => {
                throw new ValkeyError('timeout', 'Valkey did not answer in time.')
              }),
            )
          },
        }
      },
    }
    const exchanging: RateLimitStore = {
      exchange(...given) {
        if (state.isDead) return new Promise(() => {})
        if (fault.isStoreDown) return Promise.reject(new GatewayError('storage_unavailable', 'down'))
        return note(store.rateLimits.exchange(...given))
      },
    }
    const config = {
      rate_limits,
      models,
      providers,
      tokens,
      limits: { queue_seconds: 0, max_end_users: 1_000, when_store_fails: 'share' as const, ...limits },
    }
    const limiter = createRateLimiter({
      config: () => config,
      clock: local,
      log,
      shared: { store: exchanging, process_id, valkey },
    })
    await settle()
    const control = new AbortController()
    function requestOf(
      amount = 1,
      {
        caller = { token_id: 'tok_a' },
        end_user,
        model = 'm',
      }: { caller?: LimitedCaller; end_user?: string; model?: string } = {},
    ) {
      const expected = { ...NO_UNITS, input_tokens: amount }
      const call = { caller, signal: control.signal, ...(end_user && { end_user }) }
      return { call, model: { id: model }, estimate: { expected, most: expected } }
    }
    /** The hold of a call; undefined where it was refused. */
    async function call(...args: Parameters<typeof requestOf>) {
      try {
        const hold = await limiter.admit(requestOf(...args))
        admitted.push({ at: clock.steady(), amount: args[0] ?? 1 })
        return hold
      } catch (thrown) {
        if (thrown instanceof GatewayError) return undefined
        throw thrown
      }
    }
    return {
      limiter,
      requestOf,
      state,
      control,
      call(...args: Parameters<typeof requestOf>) {
        const called = note(call(...args), open)
        return settle().then(() => called)
      },
      async refusal(...args: Parameters<typeof requestOf>): Promise<GatewayError> {
        const thrown = await Promise.resolve(limiter.admit(requestOf(...args))).catch((error: unknown) => error)
        if (thrown instanceof GatewayError) return thrown
        throw new Error('the call was admitted')
      },
      kill() {
        state.isDead = true
        for (const one of own) {
          open.delete(one)
          asking.delete(one)
        }
      },
    }
  }

  return {
    prefix,
    clock,
    start,
    settle,
    admitted,
    fault,
    async advance(ms: number) {
      clock.advance(ms)
      await settle()
    },
    sum: () => admitted.reduce((sum, { amount }) => sum + amount, 0),
    events() {
      log.flush()
      return logged
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line).event as string)
    },
  }
}

async function clientOf(url = server.url): Promise<Bun.RedisClient> {
  const client = new Bun.RedisClient(url)
  closing.push(() => client.close())
  await client.connect()
  return client
}

describe.skipIf(!hasValkey)('limits that processes count in Valkey', () => {
  it.each([
    ['requests_per_second', 1_000, 60],
    ['requests_per_minute', 60_000, 600],
    ['tokens_per_minute', 60_000, 20_000],
  ] as const)('are exact: %s is never exceeded, and used up', async (key, length, limit) => {
    const set = await cluster({ rate_limits: { [key]: limit } })
    const random = randomFrom(limit)
    const amount = () => (key === 'tokens_per_minute' ? 1 + Math.floor(random() * 100) : 1)
    const processes = [await set.start(), await set.start(), await set.start(), await set.start()]
    for (let step = 0; step < 300; step++) {
      for (let count = 0; count < 12; count++) void processes[Math.floor(random() * 4)]?.call(amount())
      await set.settle()
      await set.advance(Math.floor(random() * 250))
    }
    expect(most(set.admitted, length)).toBeLessThanOrEqual(limit)
    expect(most(set.admitted, length)).toBeGreaterThanOrEqual(limit - 100 * (key === 'tokens_per_minute' ? 1 : 0))
    expect(processes.every(({ state }) => state.scripts > 500)).toBe(true)
  })

  it('admit what a limit leaves, in all processes together, and refuse what is more', async () => {
    const set = await cluster({ rate_limits: { requests_per_minute: 5, tokens_per_day: 100 } })
    const [one, other] = [await set.start(), await set.start()]
    for (let count = 0; count < 2; count++) expect(await one.call(10)).toBeDefined()
    for (let count = 0; count < 2; count++) expect(await other.call(10)).toBeDefined()
    expect((await one.refusal(61)).message).toContain('tokens_per_day is 100. Try again in 24h')
    expect((await one.refusal(101)).message).toContain('this request alone needs 101')
    expect(await one.call(60)).toBeDefined()
    const { message, detail } = await other.refusal(0)
    expect(message).toContain('requests_per_minute is 5')
    expect(detail.retry_after).toBeGreaterThan(60)
    expect(detail.retry_after).toBeLessThanOrEqual(60.5)
    await set.advance(60_000)
    expect(await other.call(0)).toBeUndefined()
    await set.advance((detail.retry_after ?? 0) * 1000 - 60_000)
    for (let count = 0; count < 5; count++) expect(await other.call(0)).toBeDefined()
    expect(await one.call(0)).toBeUndefined()
  })

  it('count what a call has used instead of its estimate, also in other processes', async () => {
    const set = await cluster({ rate_limits: { tokens_per_minute: 100 } })
    const [one, other] = [await set.start(), await set.start()]
    const hold = await one.call(100)
    expect(await other.call(1)).toBeUndefined()
    hold?.settle({ input_tokens: 20, output_tokens: 10 })
    await set.advance(10) // sent in the background
    expect(await other.call(71)).toBeUndefined()
    const next = await other.call(70)
    next?.settle({ input_tokens: 90, output_tokens: 0 })
    expect(await other.call(1)).toBeUndefined()
    await set.advance(61_000)
    expect(await one.call(100)).toBeDefined()
  })

  it('count open calls until they end, and forget those of a process that was killed', async () => {
    const set = await cluster({ rate_limits: { concurrent_requests: 4 } })
    const [one, other] = [await set.start(), await set.start()]
    const holds = [await one.call(), await one.call(), await other.call()]
    const last = await other.call()
    expect(await one.call()).toBeUndefined()
    holds[0]?.settle(NO_UNITS)
    expect(await one.call()).toBeDefined()
    last?.cancel()
    await set.advance(10)
    expect(await one.call()).toBeDefined()
    for (let second = 0; second < 20; second++) await set.advance(1_000)
    expect(await other.call()).toBeUndefined()
    one.kill() // three are open there
    await set.advance(3_000)
    expect(await other.call()).toBeUndefined()
    await set.advance(1_001)
    for (let count = 0; count < 3; count++) expect(await other.call()).toBeDefined()
    expect(await other.call()).toBeUndefined()
  })

  it('count what a killed process has used until it leaves the window, and no longer', async () => {
    const set = await cluster({ rate_limits: { tokens_per_hour: 100 } })
    const [one, other] = [await set.start(), await set.start()]
    await one.call(60)
    await set.advance(1_000)
    one.kill()
    await set.advance(1_800_000)
    expect(await other.call(41)).toBeUndefined()
    expect(await other.call(40)).toBeDefined()
    const third = await set.start()
    await set.advance(1_830_000)
    expect(await third.call(61)).toBeUndefined()
    expect(await third.call(60)).toBeDefined()
  })

  it('count a call once whose answer is lost, whether it is admitted by a lease or not', async () => {
    const set = await cluster({ rate_limits: { tokens_per_minute: 100 } })
    const [one, other] = [await set.start(), await set.start()]
    await one.call(10)
    await other.call(10)
    one.state.losesAnswers = 1
    const hold = await one.call(10)
    expect(hold).toBeDefined()
    await set.advance(3_000)
    expect(one.limiter.isInValkey()).toBe(true)
    expect(await other.call(71)).toBeUndefined()
    expect(await other.call(70)).toBeDefined()
    hold?.cancel()
    await set.advance(10)
    one.state.losesAnswers = 1
    expect(await one.call(11)).toBeUndefined() // that script and its lease refuse it
    await set.advance(3_000)
    expect(await other.call(11)).toBeUndefined()
    expect(await other.call(10)).toBeDefined()
  })

  it('wait for what the database does not know yet, when a process loses Valkey', async () => {
    const set = await cluster({ rate_limits: { requests_per_minute: 3 } })
    const [one, other] = [await set.start(), await set.start()]
    await one.call()
    await one.call()
    await other.call()
    other.state.losesAnswers = 1
    expect(await other.call()).toBeUndefined()
    other.state.isCut = true
    expect(await other.call()).toBeUndefined()
    expect(set.sum()).toBe(3)
  })

  it('are shared through the database while Valkey is away, for some or all, and in Valkey again later', async () => {
    const set = await cluster({ rate_limits: { requests_per_hour: 1_000 } })
    const [one, other] = [await set.start(), await set.start()]
    const use = async (count: number) => {
      for (let done = 0; done < count; done++) await (done % 2 ? one : other).call()
      await set.advance(1_000)
    }
    for (let second = 0; second < 5; second++) await use(40)
    one.state.isCut = true
    for (let second = 0; second < 5; second++) await use(40)
    expect([one, other].map(({ limiter }) => limiter.isInValkey())).toEqual([false, false])
    other.state.isCut = true
    for (let second = 0; second < 5; second++) await use(40)
    expect(set.sum()).toBe(600)
    one.state.isCut = false
    other.state.isCut = false
    for (let second = 0; second < 3; second++) await use(10)
    expect([one, other].map(({ limiter }) => limiter.isInValkey())).toEqual([true, true])
    const before = one.state.scripts + other.state.scripts
    for (let second = 0; second < 20; second++) await use(40)
    expect(set.sum()).toBe(1_000)
    expect(one.state.scripts + other.state.scripts - before).toBeGreaterThan(800)
    expect(set.events().filter((event) => event.includes('valkey'))).toEqual([
      'rate limits are not counted in valkey',
      'rate limits are not counted in valkey',
      'rate limits are counted in valkey again',
      'rate limits are counted in valkey again',
    ])
  })

  it.each([
    ['share', 50],
    ['refuse', 0],
    ['allow', 98],
  ] as const)('with the database away as well: %s admits %d of what is left', async (when_store_fails, expected) => {
    const set = await cluster({ rate_limits: { requests_per_day: 100 }, limits: { when_store_fails } })
    const [one, other] = [await set.start(), await set.start()]
    await one.call()
    await other.call()
    for (let second = 0; second < 3; second++) await set.advance(1_000)
    set.fault.isStoreDown = true
    await set.advance(10_000)
    expect(await one.call()).toBeDefined() // Valkey does without the database
    one.state.isCut = true
    other.state.isCut = true
    const before = set.sum()
    for (let count = 0; count < 200; count++) await one.call()
    expect(set.sum() - before).toBe(expected - (when_store_fails === 'share' ? 2 : 0))
  })

  it('are written again when the server has lost its data', async () => {
    const set = await cluster({ rate_limits: { requests_per_day: 100 } })
    const [one, other] = [await set.start(), await set.start()]
    for (let count = 0; count < 30; count++) await one.call()
    for (let count = 0; count < 30; count++) await other.call()
    await set.advance(1_000)
    const client = await clientOf()
    await client.send('FLUSHALL', [])
    await one.call()
    for (let second = 0; second < 4; second++) await set.advance(1_000)
    expect([one, other].map(({ limiter }) => limiter.isInValkey())).toEqual([true, true])
    for (let count = 0; count < 60; count++) await (count % 2 ? one : other).call()
    expect(set.sum()).toBe(100)
  })

  it.each([
    [
      'its clock was set',
      async (client: Bun.RedisClient, meta: string) => {
        await client.send('HINCRBY', [meta, 'wall', '-3600000'])
      },
    ],
    [
      'it has lost the last scripts',
      async (client: Bun.RedisClient, meta: string) => {
        await client.send('HINCRBY', [meta, 'count:1', '-1'])
        await client.send('HDEL', [meta, 'session:1'])
      },
    ],
  ] as const)('are written again when the server continues and %s', async (_, change) => {
    const set = await cluster({ rate_limits: { tokens_per_day: 100 } })
    const [one, other] = [await set.start(), await set.start()]
    await one.call(40)
    await other.call(30)
    await set.advance(1_000)
    const client = await clientOf()
    const meta = `${set.prefix}:{limits}:meta`
    const before = await client.hget(meta, 'generation')
    const counter = ((await client.keys(`${set.prefix}:*tokens_per_day`)) as string[])[0] ?? ''
    await client.del(counter)
    await change(client, meta)
    expect(await one.call(31)).toBeUndefined()
    for (let second = 0; second < 5; second++) await set.advance(1_000)
    expect(await client.hget(meta, 'generation')).not.toBe(before)
    expect([one, other].map(({ limiter }) => limiter.isInValkey())).toEqual([true, true])
    expect(await one.call(31)).toBeUndefined()
    expect(await other.call(30)).toBeDefined()
  })

  it('are counted once by a server that stands still and goes on', async () => {
    const frozen = await startValkey()
    closing.push(frozen.stop)
    const store = await openStore({ url: 'sqlite::memory:' })
    closing.push(store.close)
    const log = createLog({ clock: systemClock, level: 'silent', pretty: false, write: () => {} })
    const valkey = createValkey({
      connect: (onLost) => connectValkey(frozen.url, onLost),
      prefix: 'p',
      timeout_ms: 300,
      clock: systemClock,
      log,
    })
    closing.push(() => valkey.close())
    const config = {
      rate_limits: { requests_per_day: 10 },
      models: {},
      tokens: {},
      limits: { queue_seconds: 0, max_end_users: 10, when_store_fails: 'share' as const },
    }
    const shared = { store: store.rateLimits, process_id: 'p1', valkey }
    const limiter = createRateLimiter({ config: () => config, clock: systemClock, log, shared })
    closing.push(() => limiter.close())
    const counting = async () => {
      while (!limiter.isInValkey()) await new Promise((resolve) => setImmediate(resolve))
    }
    const units = { expected: { ...NO_UNITS }, most: { ...NO_UNITS } }
    const call = { caller: { token_id: 'tok_a' }, signal: new AbortController().signal }
    const admit = () =>
      Promise.resolve(limiter.admit({ call, model: { id: 'm' }, estimate: units })).catch(() => undefined)
    await counting()
    await admit()
    const goOn = frozen.freeze()
    const together = await Promise.all([admit(), admit(), admit()])
    const later = [await admit(), await admit()]
    expect([...together, ...later].every((hold) => hold !== undefined)).toBe(true)
    goOn()
    await counting()
    const rest = [await admit(), await admit(), await admit(), await admit(), await admit()]
    expect(rest.filter((hold) => hold !== undefined)).toHaveLength(4)
  })

  it('are not opened by a clock that is set', async () => {
    const store = await openStore({ url: 'sqlite::memory:' })
    closing.push(store.close)
    const set = await cluster({ rate_limits: { requests_per_minute: 50 } }, { openedStore: store })
    const [one, other] = [await set.start(), await set.start()]
    for (let step = 0; step < 60; step++) {
      await one.call()
      await other.call()
      if (step === 10 || step === 30) {
        const by = step === 10 ? 3_600_000 : -7_200_000
        set.clock.jump(by)
        await store.dueTimes.move(by, await store.dueTimes.moves())
      }
      await set.advance(500)
    }
    expect(set.sum()).toBe(50)
  })

  it('take as many calls at once as come', async () => {
    const set = await cluster({ rate_limits: { requests_per_minute: 2_500 } })
    const one = await set.start()
    await Promise.all(Array.from({ length: 3_000 }, () => one.call()))
    expect(set.sum()).toBe(2_500)
    expect(one.limiter.isInValkey()).toBe(true)
  })

  it('exceed a limit by at most 1 %, whatever fails', async () => {
    for (const [key, length, limit, kills] of [
      ['tokens_per_minute', 60_000, 15_000, 0.01],
      ['tokens_per_hour', 3_600_000, 30_000, 0.001], // each may leave its last second uncounted
    ] as const) {
      const set = await cluster({ rate_limits: { [key]: limit } })
      const random = randomFrom(limit)
      let processes = [await set.start(), await set.start(), await set.start(), await set.start()]
      for (let step = 0; step < 400; step++) {
        for (let count = 0; count < 4; count++) {
          void processes[Math.floor(random() * 4)]?.call(1 + Math.floor(random() * 60))
        }
        const index = Math.floor(random() * 4)
        const one = processes[index]
        if (one && random() < 0.03) one.state.losesAnswers = 1 + Math.floor(random() * 3)
        if (one && random() < 0.05) one.state.isCut = !one.state.isCut
        if (random() < 0.02) for (const { state } of processes) state.isCut = false
        if (one && random() < kills) {
          one.kill()
          processes = processes.with(index, await set.start())
        }
        await set.settle()
        await set.advance(Math.floor(random() * 500))
      }
      expect(most(set.admitted, length)).toBeLessThanOrEqual(limit * 1.01)
      expect(set.sum()).toBeGreaterThan(limit * 0.9)
    }
  })

  it('leave keys that expire, in one slot, and none for an end user that has stopped', async () => {
    const set = await cluster({ tokens: { end_users: { rate_limits: { requests_per_second: 5 } } } })
    const one = await set.start()
    for (let user = 0; user < 200; user++) await one.call(1, { end_user: `user${user}@example.com` })
    const client = await clientOf()
    const keys = (await client.keys(`${set.prefix}:*`)) as string[]
    expect(keys).toHaveLength(201)
    for (const key of keys) {
      expect(key).toStartWith(`${set.prefix}:{limits}:`)
      expect(key).not.toContain('example')
      const left_ms = (await client.send('PTTL', [key])) as number
      expect(left_ms).toBeGreaterThan(1_000)
      if (!key.endsWith(':meta')) expect(left_ms).toBeLessThanOrEqual(62_000)
    }
  })

  it('need no other permission than the manual names', async () => {
    const manual = await Bun.file(new URL('../../../docs/manual/how-to/several-gateways.md', import.meta.url)).text()
    const rule = /^ACL SETUSER gatehouse on (.*)$/m.exec(manual)?.[1] ?? ''
    const admin = await clientOf()
    await admin.send('ACL', ['SETUSER', 'limited', 'reset', 'on', ...rule.replace('password', 'canary').split(' ')])
    const prefix = `gatehouse:${randomAlphanumerics(8)}`
    const set = await cluster(
      { rate_limits: { requests_per_minute: 2, concurrent_requests: 5 } },
      { user: 'limited:canary', prefix },
    )
    const [one, other] = [await set.start(), await set.start()]
    const hold = await one.call()
    hold?.settle(NO_UNITS)
    expect(await other.call()).toBeDefined()
    expect(await one.call()).toBeUndefined()
    await set.advance(1_000)
    other.state.losesAnswers = 1
    expect(await other.call()).toBeUndefined()
    await set.advance(4_000)
    await set.advance(61_000)
    expect(await other.call()).toBeDefined()
    expect([one, other].map(({ limiter }) => limiter.isInValkey())).toEqual([true, true])
  })

  it('say in headers and states what all processes have used', async () => {
    const caller = { token_id: 'tok_a', rate_limits: { requests_per_minute: 10, concurrent_requests: 9 } }
    const set = await cluster({})
    const [one, other] = [await set.start(), await set.start()]
    for (let count = 0; count < 3; count++) await other.call(1, { caller })
    await set.advance(30_000)
    const request = one.requestOf(1, { caller })
    await one.limiter.admit(request)
    const limits = (request.call as { limits?: { statuses(): object[] } }).limits
    expect(limits?.statuses()).toEqual([{ unit: 'requests', limit: 10, remaining: 6, reset_ms: expect.any(Number) }])
    const { token } = await other.limiter.statesOf(caller)
    expect(token).toMatchObject([
      { limit: 'requests_per_minute', amount: 10, remaining: 6 },
      { limit: 'concurrent_requests', amount: 9, remaining: 5, reset_ms: undefined },
    ])
    expect(token[0]?.reset_ms).toBeGreaterThan(60_000 - 500)
    expect(token[0]?.reset_ms).toBeLessThanOrEqual(60_469)
  })

  it('let a call wait until another process gives something back', async () => {
    const set = await cluster({ rate_limits: { concurrent_requests: 1 }, limits: { queue_seconds: 10 } })
    const [one, other] = [await set.start(), await set.start()]
    const hold = await one.call()
    const waiting = Promise.resolve(other.limiter.admit(other.requestOf()))
    await set.settle()
    for (let count = 0; count < 4; count++) await set.advance(250)
    expect(other.limiter.waiting).toBe(1)
    hold?.settle(NO_UNITS)
    await set.advance(10)
    await set.advance(250)
    await set.advance(250)
    const admitted = await waiting
    expect(admitted).toBeDefined()
    expect(other.limiter.waiting).toBe(0)
    const late = Promise.resolve(one.limiter.admit(one.requestOf())).catch((error: unknown) => error)
    await set.settle()
    one.control.abort('left')
    expect(await late).toBe('left')
    admitted?.settle(NO_UNITS)
    await set.advance(10)
    expect(await other.call()).toBeDefined()
  })

  it('take a fallback from the limits of its first model to those of the next, or change nothing', async () => {
    const set = await cluster({
      rate_limits: { requests_per_minute: 3 },
      models: {
        a: { rate_limits: { tokens_per_minute: 100, concurrent_requests: 1 } },
        b: { rate_limits: { tokens_per_minute: 50 } },
      },
    })
    const [one, other] = [await set.start(), await set.start()]
    const hold = await one.call(90, { model: 'a' })
    await expect((async () => hold?.moveTo(one.requestOf(51, { model: 'b' })))()).rejects.toThrow('model b')
    expect(await other.call(1, { model: 'a' })).toBeUndefined()
    await hold?.moveTo(one.requestOf(40, { model: 'b' }))
    expect(await other.call(11, { model: 'b' })).toBeUndefined()
    expect(await other.call(100, { model: 'a' })).toBeDefined()
    hold?.settle({ input_tokens: 30, output_tokens: 0 })
    await set.advance(10)
    expect(await other.call(20, { model: 'b' })).toBeDefined()
    expect((await other.refusal(1, { model: 'c' })).message).toContain('requests_per_minute is 3')
  })

  it.each(['settled', 'cancelled'] as const)(
    'count a call once that is %s while it moves to another model',
    async (end) => {
      const set = await cluster({
        models: { a: { rate_limits: { concurrent_requests: 1 } }, b: { rate_limits: { concurrent_requests: 1 } } },
      })
      const [one, other] = [await set.start(), await set.start()]
      for (let time = 0; time < 2; time++) {
        const hold = await one.call(1, { model: 'a' })
        const moving = hold?.moveTo(one.requestOf(1, { model: 'b' }))
        if (end === 'settled') hold?.settle({ input_tokens: 1, output_tokens: 0 })
        else hold?.cancel()
        await moving
        await set.advance(10)
      }
      for (const model of ['a', 'b']) {
        const [first, second] = [await other.call(1, { model }), await one.call(1, { model })]
        expect([first !== undefined, second !== undefined]).toEqual([true, false])
      }
    },
  )

  it('count attempts at a provider, and pass over one that is at its limit', async () => {
    const set = await cluster({ providers: { acme: { rate_limits: { requests_per_minute: 2 } } } })
    const [one, other] = [await set.start(), await set.start()]
    const { estimate } = one.requestOf()
    expect(await one.limiter.admitAttempt('acme', estimate)).toBeDefined()
    expect(await other.limiter.admitAttempt('acme', estimate)).toBeDefined()
    await expect(Promise.resolve(one.limiter.admitAttempt('acme', estimate))).rejects.toThrow('provider acme')
    expect(await one.limiter.mayAttempt('acme', estimate)).toBe(false)
    await set.advance(LEASE_LAPSES_MS)
    expect(await one.limiter.mayAttempt('acme', estimate)).toBe(true) // the attempt asks
    await set.advance(60_500)
    expect(await one.limiter.admitAttempt('acme', estimate)).toBeDefined()
  })
})

for (const { name, open, cleanup } of ENGINES) {
  describe.skipIf(!hasValkey)(`limits in Valkey after a process has ended that counted on ${name} alone`, () => {
    afterEach(cleanup)

    it('count what it has used, in processes that were there and in new ones', async () => {
      const set = await cluster({ rate_limits: { tokens_per_hour: 100 } }, { openedStore: await open() })
      const [one, other] = [await set.start(), await set.start()]
      await other.call(10)
      one.state.isCut = true
      for (let count = 0; count < 6; count++) await one.call(10)
      await set.advance(1_000)
      expect(other.limiter.isInValkey()).toBe(false)
      one.kill()
      for (let second = 0; second < 6; second++) await set.advance(1_000)
      const third = await set.start()
      for (let second = 0; second < 2; second++) await set.advance(1_000)
      expect([other, third].map(({ limiter }) => limiter.isInValkey())).toEqual([true, true])
      expect(await third.call(31)).toBeUndefined()
      expect(await third.call(20)).toBeDefined()
      expect(await other.call(11)).toBeUndefined()
      expect(await other.call(10)).toBeDefined()
      await set.advance(600_000)
      expect(await other.call(1)).toBeUndefined()
      await set.advance(3_030_000)
      expect(await other.call(100)).toBeDefined()
    })
  })
}
