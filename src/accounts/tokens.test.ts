import { afterEach, describe, expect, test } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { unixSeconds } from '../kit/clock.ts'
import { createLog } from '../kit/log.ts'
import { GatewayError } from '../spec/error.ts'
import type { Caller } from '../spec/token.ts'
import { openStore } from '../store/open-store.ts'
import type { Store } from '../store/store.ts'
import type { TokenStore } from '../store/tokens/account-store.ts'
import { newSecret } from './issue.ts'
import { MAX_LOOK_UPS } from './known.ts'
import { FREE_FAILURES } from './slow-down.ts'
import { createTokens, type Tokens } from './tokens.ts'

const stores: Store[] = []
const running: Tokens[] = []
afterEach(async () => {
  for (const tokens of running.splice(0)) await tokens.close()
  for (const store of stores.splice(0)) await store.close()
})

const settle = () => new Promise<void>((resolve) => setImmediate(resolve))
const never = new AbortController().signal
const INVALID_KEY = 'Missing or invalid API key. Send it as "Authorization: Bearer <token>".'

/** A store, two processes that use it (`tokens` and `elsewhere`), and the lookups of the first one. */
async function setUp() {
  const store = await openStore({ url: 'sqlite::memory:' })
  stores.push(store)
  const clock = manualClock()
  let logged = ''
  const log = createLog({ clock, level: 'debug', pretty: false, write: (text) => (logged += text) })
  const state = { failing: false, finds: 0, revisions: 0, held: undefined as Promise<void> | undefined }
  const guard = () => {
    if (state.failing) throw new Error('store away')
  }
  const watched: TokenStore = {
    ...store.tokens,
    async findByHash(hash) {
      state.finds++
      guard()
      const found = await store.tokens.findByHash(hash)
      await state.held
      return found
    },
    async revision() {
      state.revisions++
      guard()
      return store.tokens.revision()
    },
  }
  const tokens = createTokens({ store: watched, projects: store.projects, clock, log, defaults: {} })
  const elsewhere = createTokens({ store: store.tokens, projects: store.projects, clock, log, defaults: {} })
  running.push(tokens, elsewhere)
  tokens.start()
  await settle()
  return {
    store,
    clock,
    state,
    tokens,
    elsewhere,
    async advance(ms: number) {
      clock.advance(ms)
      await settle()
    },
    enter: (secret: string | undefined, address = '192.0.2.1') =>
      tokens.authenticate(secret, { address, signal: never }),
    logged() {
      log.flush()
      return logged
    },
  }
}

async function errorOf(work: () => unknown): Promise<GatewayError> {
  try {
    await work()
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error('nothing was refused')
}

describe('a caller is authenticated', () => {
  test('by a valid token: the first time from the store, then from memory, immediately', async () => {
    const { tokens, enter, state } = await setUp()
    const { token, secret } = await tokens.issue({ name: 'a', models: ['acme/*'], families: ['rerank'] })
    const first = await enter(secret)
    expect(first.token_id).toBe(token.token_id)
    expect([first.mayUseModel('acme/x'), first.mayUseModel('other/x')]).toEqual([true, false])
    expect([first.mayUseFamily('rerank'), first.mayUseFamily('chatcompat')]).toEqual([true, false])
    const finds = state.finds
    for (let index = 0; index < 100; index++) expect(enter(secret)).toBe(first)
    expect(state.finds).toBe(finds)
  })

  test('by a token that another process has just created', async () => {
    const { elsewhere, enter } = await setUp()
    const { token, secret } = await elsewhere.issue({ name: 'a' })
    expect((await enter(secret)).token_id).toBe(token.token_id)
  })

  test('by a token that was created just after a failed attempt with it', async () => {
    const { tokens, elsewhere, enter, advance } = await setUp()
    const [here, there] = [newSecret(), newSecret()]
    await errorOf(() => enter(here))
    await tokens.issue({ name: 'a', secret: here })
    await enter(here)
    await errorOf(() => enter(there))
    await elsewhere.issue({ name: 'b', secret: there })
    await advance(500)
    await enter(there)
  })

  test('by one lookup, however many requests arrive at once', async () => {
    const { elsewhere, enter, state } = await setUp()
    const { secret } = await elsewhere.issue({ name: 'a' })
    await Promise.all(Array.from({ length: 50 }, () => enter(secret)))
    expect(state.finds).toBe(1)
  })
})

describe('a caller is rejected', () => {
  test('with the same message whatever the reason, and without the secret in it', async () => {
    const { tokens, enter, advance, clock } = await setUp()
    const revoked = await tokens.issue({ name: 'revoked' })
    await enter(revoked.secret)
    await tokens.revoke('revoked')
    const expired = await tokens.issue({ name: 'expired', expires_at: unixSeconds(clock) + 1 })
    await enter(expired.secret)
    await advance(1_000)
    const reasons = [
      undefined,
      '',
      'short',
      'has a space in it, and some length',
      newSecret(),
      revoked.secret,
      expired.secret,
    ]
    for (const secret of reasons) {
      const error = await errorOf(() => enter(secret))
      expect([error.code, error.message, error.detail]).toEqual(['invalid_api_key', INVALID_KEY, {}])
    }
  })

  test('from the second in which the token expires, not before', async () => {
    const { tokens, enter, advance, clock } = await setUp()
    const { secret } = await tokens.issue({ name: 'a', expires_at: unixSeconds(clock) + 10 })
    for (let use = 0; use < 3; use++) await enter(secret)
    await advance(9_999)
    expect((await enter(secret)).token_id).toStartWith('tok_')
    await advance(1)
    expect((await errorOf(() => enter(secret))).code).toBe('invalid_api_key')
  })

  test('immediately after the token was revoked or rotated here', async () => {
    const { tokens, enter } = await setUp()
    const one = await tokens.issue({ name: 'one' })
    const two = await tokens.issue({ name: 'two' })
    for (let use = 0; use < 3; use++) await Promise.all([enter(one.secret), enter(two.secret)])
    expect(await tokens.revoke('one')).toMatchObject({ token_id: one.token.token_id, disabled: true })
    const rotated = await tokens.rotate('two')
    await errorOf(() => enter(one.secret))
    await errorOf(() => enter(two.secret))
    expect((await enter(rotated.secret)).token_id).toBe(two.token.token_id)
    expect(rotated.token.prefix).toBe(rotated.secret.slice(0, 9))
  })

  test('within a second after another process revoked or rotated the token', async () => {
    const { elsewhere, enter, advance } = await setUp()
    const one = await elsewhere.issue({ name: 'one' })
    const two = await elsewhere.issue({ name: 'two' })
    const three = await elsewhere.issue({ name: 'three' })
    for (let use = 0; use < 3; use++) await Promise.all([enter(one.secret), enter(two.secret), enter(three.secret)])
    await elsewhere.revoke('one')
    const rotated = await elsewhere.rotate('two')
    await advance(500)
    await errorOf(() => enter(one.secret))
    await errorOf(() => enter(two.secret))
    await enter(rotated.secret)
    await enter(three.secret)
  })

  test('even if the lookup began before the token was revoked', async () => {
    const { tokens, enter, state } = await setUp()
    const { secret } = await tokens.issue({ name: 'a' })
    let release = () => {}
    state.held = new Promise((resolve) => {
      release = resolve
    })
    const before = enter(secret)
    await settle()
    await tokens.revoke('a')
    const after = errorOf(() => enter(secret))
    release()
    await before
    expect((await after).code).toBe('invalid_api_key')
    await errorOf(() => enter(secret))
  })

  test('without a lookup in the store for each attempt with the same invalid token', async () => {
    const { enter, state, advance } = await setUp()
    const bad = newSecret()
    for (let index = 0; index < FREE_FAILURES; index++) await errorOf(() => enter(bad))
    expect(state.finds).toBe(1)
    await advance(500)
    await errorOf(() => enter(bad, '198.51.100.1'))
    expect(state.finds).toBe(2)
  })

  test('with 429 if too many different tokens wait for the store', async () => {
    const { enter, state } = await setUp()
    let release = () => {}
    state.held = new Promise((resolve) => {
      release = resolve
    })
    const waiting = Array.from({ length: MAX_LOOK_UPS }, (_, index) => errorOf(() => enter(newSecret(), `a${index}`)))
    const error = await errorOf(() => enter(newSecret(), 'b'))
    expect([error.code, error.detail.retry_after]).toEqual(['rate_limit_exceeded', 1])
    release()
    const codes = new Set((await Promise.all(waiting)).map(({ code }) => code))
    expect([...codes]).toEqual(['invalid_api_key'])
  })
})

describe('failed attempts', () => {
  test('are slowed down by address; a valid token from there is not, and a missing one does not count', async () => {
    const { tokens, enter, advance } = await setUp()
    const { secret } = await tokens.issue({ name: 'good' })
    for (let index = 0; index < 50; index++) await errorOf(() => enter(undefined))
    for (let index = 0; index < FREE_FAILURES; index++) await errorOf(() => enter(newSecret()))
    let answered = false
    const slowed = errorOf(() => enter('malformed')).then((error) => {
      answered = true
      return error
    })
    expect((await enter(secret)).token_id).toStartWith('tok_')
    expect(enter(secret)).not.toBeInstanceOf(Promise)
    await advance(249)
    expect(answered).toBe(false)
    await advance(1)
    expect((await slowed).message).toBe(INVALID_KEY)
    expect((await errorOf(() => enter(newSecret(), '192.0.2.2'))).code).toBe('invalid_api_key')
  })
})

describe('while the store is unavailable', () => {
  test('known tokens remain valid, others get a 503, and the log reports it once', async () => {
    const { tokens, elsewhere, enter, state, advance, logged } = await setUp()
    const { secret } = await tokens.issue({ name: 'known' })
    const other = await elsewhere.issue({ name: 'not yet known' })
    await advance(500)
    await enter(secret)
    state.failing = true
    for (let turn = 0; turn < 10; turn++) await advance(500)
    expect((await enter(secret)).token_id).toStartWith('tok_')
    const error = await errorOf(() => enter(other.secret))
    expect([error.code, error.message]).toEqual([
      'storage_unavailable',
      'API keys cannot be looked up at the moment; try again.',
    ])
    state.failing = false
    await advance(500)
    await enter(other.secret)
    expect(logged().match(/the store is unreachable/g)).toHaveLength(1)
    expect(logged().match(/the store is reachable again/g)).toHaveLength(1)
  })

  test('a known token keeps its last known state, even if it had changed just before', async () => {
    const { tokens, elsewhere, enter, state, advance } = await setUp()
    const { secret } = await tokens.issue({ name: 'known' })
    await enter(secret)
    await elsewhere.revoke('known')
    await advance(500)
    state.failing = true
    await enter(secret)
    state.failing = false
    await errorOf(() => enter(secret))
  })
})

describe('the time of last use', () => {
  const lastUsed = async (store: Store) => (await store.tokens.list()).map(({ last_used_at }) => last_used_at)

  test('is stored half a minute later, for all tokens at once', async () => {
    const { tokens, enter, store, advance, clock } = await setUp()
    const one = await tokens.issue({ name: 'one' })
    const two = await tokens.issue({ name: 'two' })
    await tokens.issue({ name: 'unused' })
    await enter(one.secret)
    await advance(5_000)
    await enter(one.secret)
    await enter(two.secret)
    const used = unixSeconds(clock)
    await advance(24_999)
    expect(await lastUsed(store)).toEqual([null, null, null])
    await advance(1)
    expect(await lastUsed(store)).toEqual([used, used, null])
  })

  test('is stored at the end, and is not a change that other processes react to', async () => {
    const { tokens, enter, store, clock } = await setUp()
    const { token, secret } = await tokens.issue({ name: 'one' })
    await enter(secret)
    clock.advance(1_000)
    tokens.used(token.token_id)
    const revision = await store.tokens.revision()
    await tokens.close()
    expect(await lastUsed(store)).toEqual([unixSeconds(clock)])
    expect(await store.tokens.revision()).toBe(revision)
  })
})

describe('the first token', () => {
  test('is created in an empty store only, for all models and without an end', async () => {
    const { store, clock } = await setUp()
    const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
    const defaults = { models: ['acme/*'], expires_after_days: 1 }
    const tokens = createTokens({ store: store.tokens, projects: store.projects, clock, log, defaults })
    const first = await tokens.issueFirst()
    expect(first?.token).toMatchObject({ name: 'first token', models: ['*'], families: null, expires_at: null })
    expect(await tokens.issueFirst()).toBeUndefined()
    expect(await tokens.list()).toHaveLength(1)
  })

  test('has the given secret; the next start with the same one logs nothing', async () => {
    const { tokens, elsewhere, enter, logged } = await setUp()
    const secret = 'a-secret-of-my-own-choice'
    expect((await tokens.issueFirst({ secret }))?.secret).toBe(secret)
    await enter(secret)
    expect(await elsewhere.issueFirst({ secret })).toBeUndefined()
    expect(logged()).toBe('')
  })

  test('is not created beside others: the log warns that another secret, or a revoked one, has no effect', async () => {
    const { tokens, enter, logged } = await setUp()
    const secret = 'a-secret-of-my-own-choice'
    await tokens.issueFirst({ secret })
    expect(await tokens.issueFirst({ secret: 'another-secret-of-my-own' })).toBeUndefined()
    expect(logged()).toContain('ignored: the store has tokens already')
    await errorOf(() => enter('another-secret-of-my-own'))
    await tokens.revoke('first token')
    expect(await tokens.issueFirst({ secret })).toBeUndefined()
    expect(logged()).toContain('revoked or expired')
    expect(logged()).not.toContain(secret)
  })

  test('is rejected if its secret is too short, even if it would not be used', async () => {
    const { tokens } = await setUp()
    expect((await errorOf(() => tokens.issueFirst({ secret: 'x'.repeat(19) }))).detail.param).toBe('secret')
    expect(await tokens.list()).toEqual([])
    await tokens.issueFirst()
    expect((await errorOf(() => tokens.issueFirst({ secret: 'x'.repeat(19) }))).detail.param).toBe('secret')
  })
})

describe('an operator', () => {
  test('gets all tokens, oldest first, with only the prefix of each secret', async () => {
    const { tokens } = await setUp()
    const one = await tokens.issue({ name: 'one' })
    const two = await tokens.issue({ name: 'two' })
    expect(await tokens.list()).toEqual([one.token, two.token])
    expect(Object.keys(one.token)).not.toContain('hash')
    expect(JSON.stringify(await tokens.list())).not.toContain(one.secret.slice(9))
  })

  test('cannot use one secret for two tokens', async () => {
    const { tokens } = await setUp()
    await tokens.issue({ name: 'one', secret: 'x'.repeat(20) })
    const error = await errorOf(() => tokens.issue({ name: 'two', secret: 'x'.repeat(20) }))
    expect([error.code, error.detail.param]).toEqual(['invalid_value', 'secret'])
    expect(await tokens.list()).toHaveLength(1)
  })

  test('cannot rotate a revoked or expired token, but may revoke one twice', async () => {
    const { tokens, advance, clock } = await setUp()
    await tokens.issue({ name: 'revoked' })
    await tokens.revoke('revoked')
    expect((await tokens.revoke('revoked')).disabled).toBe(true)
    expect((await errorOf(() => tokens.rotate('revoked'))).message).toContain('is revoked; create a new one')
    await tokens.issue({ name: 'expired', expires_at: unixSeconds(clock) + 1 })
    await advance(1_000)
    expect((await errorOf(() => tokens.rotate('expired'))).message).toContain('is expired; create a new one')
  })

  test('gets an error if no token matches', async () => {
    const { tokens } = await setUp()
    expect((await errorOf(() => tokens.revoke('nobody'))).message).toContain('No token has "nobody"')
    expect((await errorOf(() => tokens.rotate('nobody'))).detail.param).toBe('token')
  })
})

test('the log never contains a secret', async () => {
  const { tokens, elsewhere, enter, state, advance, logged } = await setUp()
  const { secret } = await tokens.issue({ name: 'canary' })
  const bad = newSecret()
  await enter(secret)
  const tries: Promise<unknown>[] = []
  for (let index = 0; index < FREE_FAILURES + 3; index++) tries.push(errorOf(() => enter(bad)))
  state.failing = true
  await advance(500)
  tries.push(errorOf(() => enter(newSecret())))
  await elsewhere.rotate('canary')
  for (let turn = 0; turn < 4; turn++) await advance(1_000)
  await Promise.all(tries)
  expect(logged().length).toBeGreaterThan(100)
  for (const canary of [secret, bad]) expect(logged()).not.toContain(canary.slice(3, 20))
})

test('changes are not watched before the start or after the end', async () => {
  const { store, clock } = await setUp()
  const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
  const tokens = createTokens({ store: store.tokens, projects: store.projects, clock, log, defaults: {} })
  const timers = clock.waiting()
  const { secret } = await tokens.issue({ name: 'a' })
  const caller: Caller = await tokens.authenticate(secret, { address: 'a', signal: never })
  expect(caller.token_id).toStartWith('tok_')
  await tokens.close()
  tokens.start()
  tokens.start()
  await settle()
  expect(clock.waiting()).toBe(timers + 1)
  await tokens.close()
  expect(clock.waiting()).toBe(timers)
})
