import { afterEach, describe, expect, test } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { unixSeconds } from '../kit/clock.ts'
import { createLog } from '../kit/log.ts'
import { UNSET_SETTINGS } from '../spec/account-settings.ts'
import { GatewayError } from '../spec/error.ts'
import { openStore } from '../store/open-store.ts'
import type { Store } from '../store/store.ts'
import type { TokenStore } from '../store/tokens/account-store.ts'
import { createProjects } from './projects.ts'
import { createTokens } from './tokens.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const settle = () => new Promise<void>((resolve) => setImmediate(resolve))
const never = new AbortController().signal

/** A gateway and the operator's process on one store: the operator changes, the gateway follows. */
async function setUp() {
  const store: Store = await openStore({ url: 'sqlite::memory:' })
  closing.push(store.close)
  const clock = manualClock()
  let logged = ''
  const write = (text: string) => {
    logged += text
  }
  const log = createLog({ clock, level: 'warn', pretty: false, write })
  const state = { isDown: false, reads: 0 }
  const read = <Result>(work: () => Promise<Result>): Promise<Result> => {
    state.reads++
    return state.isDown ? Promise.reject(new Error('store away')) : work()
  }
  const watched: TokenStore = {
    ...store.tokens,
    findByHash: (hash) => read(() => store.tokens.findByHash(hash)),
    revision: () => (state.isDown ? Promise.reject(new Error('store away')) : store.tokens.revision()),
  }
  const find = (project_id: string) => read(() => store.projects.find(project_id))
  const gateway = createTokens({ store: watched, projects: { find }, clock, log, defaults: {} })
  closing.push(gateway.close)
  await gateway.start()
  return {
    clock,
    state,
    store,
    gateway,
    tokens: createTokens({ store: store.tokens, projects: store.projects, clock, log, defaults: {} }),
    projects: createProjects({ store: store.projects, clock }),
    enter: (secret: string, address = '192.0.2.1') => gateway.authenticate(secret, { address, signal: never }),
    logged() {
      log.flush()
      return logged
    },
    async halfSecond() {
      clock.advance(500)
      await settle()
    },
  }
}

async function errorOf(work: () => unknown): Promise<string> {
  try {
    await work()
  } catch (error) {
    if (error instanceof GatewayError) return `${error.status} ${error.code}: ${error.message}`
    throw error
  }
  throw new Error('nothing was refused')
}

describe('a project', () => {
  test('is created with nothing set, or with what is given, and found by its id and its name', async () => {
    const { projects } = await setUp()
    const plain = await projects.create({ name: ' mobile ' })
    expect(plain).toEqual({
      project_id: expect.stringMatching(/^proj_[A-Za-z0-9]{16}$/),
      name: 'mobile',
      labels: {},
      models: ['*'],
      families: null,
      rate_limits: {},
      budgets: [],
      end_users: {},
      allowed_addresses: null,
      guards: [],
      expires_at: null,
      disabled: false,
      log_contents: null,
      created_at: 1_767_225_600,
    })
    const budgets = [{ amount: 50, window: 'month' as const }]
    const full = await projects.create({ name: 'web', rate_limits: { requests_per_minute: 600 }, budgets })
    expect(full).toMatchObject({ name: 'web', rate_limits: { requests_per_minute: 600 }, budgets })
    expect(await projects.list()).toEqual([plain, full])
    expect(await projects.choose('mobile')).toEqual(plain)
    expect(await projects.choose(full.project_id)).toEqual(full)
    expect(await errorOf(() => projects.create({ name: 'web' }))).toBe(
      '400 invalid_value: name: another project has this name.',
    )
    expect(await errorOf(() => projects.update('mobile', { name: 'web' }))).toContain('another project has this name')
    expect(await errorOf(() => projects.choose('mobil'))).toBe(
      `400 invalid_value: No project has "mobil" as its id or name; there are mobile (${plain.project_id}), web (${full.project_id}).`,
    )
  })

  test('is changed, disabled and deleted, and its name can then be used again', async () => {
    const { projects } = await setUp()
    const { project_id } = await projects.create({ name: 'a', labels: { cost: '1' } })
    const add = { labels: { team: 'x' } }
    const changed = await projects.update('a', ({ labels }) => ({ name: 'b', labels: { ...labels, ...add.labels } }))
    expect(changed).toMatchObject({ project_id, name: 'b', labels: { cost: '1', team: 'x' } })
    expect(await projects.update('b', { disabled: true })).toMatchObject({ disabled: true })
    expect(await projects.delete(project_id)).toMatchObject({ project_id })
    expect(await projects.list()).toEqual([])
    for (const work of [() => projects.choose('b'), () => projects.update(project_id, {}), () => projects.delete('b')])
      expect(await errorOf(work)).toContain('No project has')
    expect((await projects.create({ name: 'b' })).project_id).not.toBe(project_id)
  })
})

describe('labels that an import has written', () => {
  const imported = { 'import/spend': '5', 'import/source': 'litellm' }

  test('stay as they are when people change the labels, and when the configuration declares the account', async () => {
    const { projects, tokens } = await setUp()
    const order = { name: 'imported', labels: { team: 'a', ...imported } }
    const { project_id } = await projects.create(order)
    expect((await projects.update(project_id, { labels: { team: 'b' } })).labels).toEqual({ team: 'b', ...imported })
    expect((await projects.update(project_id, () => ({ labels: imported }))).labels).toEqual(imported)
    const { token } = await tokens.issue(order)
    const { token_id } = token
    expect((await tokens.update({ token_id }, { labels: {} })).labels).toEqual(imported)
    for (const labels of [{ 'import/spend': '0' }, { ...imported, 'import/spend-next': '9' }])
      for (const work of [() => projects.update(project_id, { labels }), () => tokens.update({ token_id }, { labels })])
        expect(await errorOf(work)).toContain('is written by `gatehouse import` only: leave it out.')
    const declared = { ...UNSET_SETTINGS, ...order, labels: { team: 'c' }, disabled: false, log_contents: null }
    await projects.declare(declared as Parameters<typeof projects.declare>[0], { actor: 'gateway' })
    expect((await projects.find(project_id))?.labels).toEqual({ team: 'c', ...imported })
  })
})

describe('a token of a project', () => {
  test('may do only what its project may do too, within a second of a change', async () => {
    const { projects, tokens, enter, halfSecond } = await setUp()
    const { project_id } = await projects.create({ name: 'a', models: ['acme/*'] })
    const { secret } = await tokens.issue({ name: 't', project_id, families: ['chatcompat'] })
    const before = await enter(secret)
    expect(before).toMatchObject({ project_id, project: { project_id, name: 'a' }, is_limited: true })
    expect([before.mayUseModel('acme/x'), before.mayUseModel('b/x')]).toEqual([true, false])
    await projects.update('a', { models: ['*'], families: ['rerank'], rate_limits: { requests_per_day: 1 } })
    await halfSecond()
    const after = await enter(secret)
    expect([after.mayUseModel('b/x'), after.mayUseFamily('chatcompat'), after.mayUseFamily('rerank')]).toEqual([
      true,
      false,
      false,
    ])
    expect(after.project?.rate_limits).toEqual({ requests_per_day: 1 })
  })

  test('is refused while the project is disabled, and after it was deleted or has expired', async () => {
    const { projects, tokens, enter, halfSecond, gateway, clock } = await setUp()
    const one = await projects.create({ name: 'a' })
    const { secret } = await tokens.issue({ name: 't', project_id: one.project_id })
    const caller = await enter(secret)
    expect(await gateway.isValid(caller)).toBe(true)
    await projects.update('a', { disabled: true })
    await halfSecond()
    const refused = `403 project_disabled: The project ${one.project_id} of this token`
    expect(await errorOf(() => enter(secret))).toBe(`${refused} is disabled.`)
    expect(await gateway.isValid(caller)).toBe(false)
    expect(await gateway.callerOf(caller.token_id)).toBeUndefined()
    await projects.update('a', { disabled: false, expires_at: unixSeconds(clock) + 10 })
    await halfSecond()
    const again = await enter(secret)
    clock.advance(9_500)
    expect(await errorOf(() => enter(secret))).toBe(`${refused} has expired.`)
    expect(await gateway.isValid(again)).toBe(false)
    await projects.update('a', { expires_at: null })
    await halfSecond()
    await enter(secret)
    await projects.delete('a')
    await halfSecond()
    expect(await errorOf(() => enter(secret))).toBe(`${refused} was deleted.`)
  })

  test('is refused like a bad secret once it is revoked, whatever its project', async () => {
    const { projects, tokens, enter } = await setUp()
    const { project_id } = await projects.create({ name: 'a' })
    await projects.update('a', { disabled: true })
    const { secret } = await tokens.issue({ name: 't', project_id })
    await tokens.revoke('t')
    expect(await errorOf(() => enter(secret))).toStartWith('401 invalid_api_key: Missing or invalid API key')
  })

  test('moves to another project, and out of any', async () => {
    const { projects, tokens, enter, halfSecond } = await setUp()
    const [a, b] = [await projects.create({ name: 'a' }), await projects.create({ name: 'b' })]
    const { secret } = await tokens.issue({ name: 't', project_id: a.project_id })
    const ids = []
    for (const project_id of [a.project_id, b.project_id, null]) {
      expect(await tokens.update('t', { project_id })).toMatchObject({ project_id })
      await halfSecond()
      ids.push((await enter(secret)).project_id)
    }
    expect(ids).toEqual([a.project_id, b.project_id, undefined])
    const unknown = '400 invalid_value: project_id: there is no project "proj_x".'
    expect(await errorOf(() => tokens.update('t', { project_id: 'proj_x' }))).toBe(unknown)
    expect(await errorOf(() => tokens.issue({ name: 'u', project_id: 'proj_x' }))).toBe(unknown)
    expect(await tokens.list({ project_id: a.project_id })).toEqual([])
  })

  test('costs one read of the project for all its tokens, and none while they are cached', async () => {
    const { projects, tokens, enter, state } = await setUp()
    const { project_id } = await projects.create({ name: 'a' })
    const secrets: string[] = []
    for (const name of ['x', 'y', 'z']) secrets.push((await tokens.issue({ name, project_id })).secret)
    for (let round = 0; round < 3; round++) await Promise.all(secrets.map((secret) => enter(secret)))
    expect(state.reads).toBe(4)
  })

  test('stays valid while the store is away, with what was known of its project', async () => {
    const { projects, tokens, enter, halfSecond, state } = await setUp()
    const { project_id } = await projects.create({ name: 'a' })
    const [{ secret }, other] = [
      await tokens.issue({ name: 't', project_id }),
      await tokens.issue({ name: 'u', project_id }),
    ]
    await enter(secret)
    await projects.update('a', { rate_limits: { images_per_day: 1 } })
    await halfSecond()
    state.isDown = true
    expect((await enter(secret)).project_id).toBe(project_id)
    expect(await errorOf(() => enter(other.secret))).toStartWith('503 storage_unavailable')
    state.isDown = false
    expect((await enter(other.secret)).project?.rate_limits).toEqual({ images_per_day: 1 })
  })
})

describe('allowed addresses', () => {
  test('refuse a valid token from elsewhere, by the address that was seen', async () => {
    const { tokens, enter, logged } = await setUp()
    const { token, secret } = await tokens.issue({ name: 't', allowed_addresses: ['203.0.113.0/24', '2001:db8::/32'] })
    for (const address of ['203.0.113.7', '::ffff:203.0.113.7', '2001:db8::7']) await enter(secret, address)
    expect(await errorOf(() => enter(secret, '203.0.114.1'))).toBe(
      `403 address_not_allowed: The token ${token.token_id} may not be used from the address 203.0.114.1.`,
    )
    expect(logged()).toContain(`"token_id":"${token.token_id}","address":"203.0.114.1"`)
    expect(logged()).not.toContain(secret)
    for (const address of ['', 'not an address', '203.0.113.7\nx', `203.0.113.7${' '.repeat(54)}`]) {
      expect(await errorOf(() => enter(secret, address))).toEndWith('may not be used from the address of this request.')
    }
  })

  test('must allow the address in the token and in its project', async () => {
    const { projects, tokens, enter, halfSecond } = await setUp()
    const { project_id } = await projects.create({ name: 'a', allowed_addresses: ['203.0.113.0/25'] })
    const { secret } = await tokens.issue({
      name: 't',
      project_id,
      allowed_addresses: ['203.0.113.64/26', '10.0.0.0/8'],
    })
    await enter(secret, '203.0.113.100')
    for (const address of ['203.0.113.10', '10.0.0.1', '203.0.113.130'])
      expect(await errorOf(() => enter(secret, address))).toStartWith('403 address_not_allowed')
    await tokens.update('t', { allowed_addresses: null })
    await halfSecond()
    await enter(secret, '203.0.113.10')
  })

  test('say nothing of a bad, revoked or expired secret', async () => {
    const { tokens, enter, clock } = await setUp()
    const allowed_addresses = ['203.0.113.0/24']
    const revoked = await tokens.issue({ name: 'r', allowed_addresses })
    await tokens.revoke('r')
    const expired = await tokens.issue({ name: 'e', allowed_addresses, expires_at: unixSeconds(clock) + 1 })
    clock.advance(1_000)
    for (const secret of [revoked.secret, expired.secret, `${revoked.secret.slice(0, -1)}!`])
      expect(await errorOf(() => enter(secret))).toStartWith('401 invalid_api_key')
  })

  test('cost nothing for a token without them: its address is not read', async () => {
    const { tokens, gateway } = await setUp()
    const { secret } = await tokens.issue({ name: 't' })
    const from = {
      signal: never,
      get address(): string {
        throw new Error('the address was read')
      },
    }
    for (let round = 0; round < 2; round++) await gateway.authenticate(secret, from)
  })
})

describe('a token is changed without a new secret', () => {
  test('within a second, in every field', async () => {
    const { tokens, enter, halfSecond } = await setUp()
    const { token, secret } = await tokens.issue({ name: 't' })
    await enter(secret)
    const change = {
      name: 'renamed',
      labels: { team: 'x' },
      models: ['acme/*'],
      families: ['chatcompat' as const],
      rate_limits: { requests_per_minute: 2 },
      budgets: [{ amount: 5, window: 'day' as const }],
      end_users: { rate_limits: { requests_per_day: 3 } },
      allowed_addresses: ['192.0.2.0/24'],
      expires_at: 4_000_000_000,
    }
    expect(await tokens.update('t', change)).toEqual({ ...token, ...change })
    await halfSecond()
    expect(await enter(secret)).toMatchObject({
      token_id: token.token_id,
      name: 'renamed',
      rate_limits: change.rate_limits,
      budgets: change.budgets,
      end_users: change.end_users,
      is_limited: true,
    })
  })

  test('except a revoked one, and nothing is changed by a bad value', async () => {
    const { tokens } = await setUp()
    const { token } = await tokens.issue({ name: 't' })
    expect(await errorOf(() => tokens.update('t', { name: '' }))).toContain('name: must not be empty')
    expect(await tokens.list()).toEqual([token])
    await tokens.revoke('t')
    expect(await errorOf(() => tokens.update('t', { name: 'u' }))).toContain('is revoked; create a new one instead')
  })

  test('an expired one is valid again with a later end', async () => {
    const { tokens, enter, halfSecond, clock } = await setUp()
    const { secret } = await tokens.issue({ name: 't', expires_at: unixSeconds(clock) + 1 })
    clock.advance(1_000)
    expect(await errorOf(() => enter(secret))).toStartWith('401')
    await tokens.update('t', { expires_at: null })
    await halfSecond()
    await enter(secret)
  })
})

describe('a rotation with an overlap', () => {
  test('keeps the old secret valid until its end, and not a second longer', async () => {
    const { tokens, enter, halfSecond, clock, gateway } = await setUp()
    const old = await tokens.issue({ name: 't' })
    await enter(old.secret)
    const rotated = await tokens.rotate('t', { overlap_seconds: 10 })
    expect(rotated.token).toMatchObject({
      token_id: old.token.token_id,
      previous_expires_at: unixSeconds(clock) + 10,
      prefix: rotated.secret.slice(0, 9),
    })
    await halfSecond()
    const caller = await enter(old.secret)
    expect([caller.token_id, (await enter(rotated.secret)).token_id]).toEqual([old.token.token_id, old.token.token_id])
    clock.advance(9_499)
    await enter(old.secret)
    expect(await gateway.isValid(caller)).toBe(true)
    clock.advance(1)
    expect(await errorOf(() => enter(old.secret))).toStartWith('401')
    expect(await gateway.isValid(caller)).toBe(false)
    await enter(rotated.secret)
  })

  test('ends for both secrets when the token is revoked, and for the oldest with the next rotation', async () => {
    const { tokens, enter, halfSecond } = await setUp()
    const { secret: first } = await tokens.issue({ name: 't' })
    const { secret: second } = await tokens.rotate('t', { overlap_seconds: 1_000 })
    const { secret: third } = await tokens.rotate(first, { overlap_seconds: 1_000 })
    await halfSecond()
    expect(await errorOf(() => enter(first))).toStartWith('401')
    for (const secret of [second, third]) await enter(secret)
    await tokens.revoke('t')
    await halfSecond()
    for (const secret of [second, third]) expect(await errorOf(() => enter(secret))).toStartWith('401')
  })

  test('without one the old secret ends at once, and that of an earlier overlap with it', async () => {
    const { tokens, enter } = await setUp()
    const { secret: first } = await tokens.issue({ name: 't' })
    const { secret: second } = await tokens.rotate('t', { overlap_seconds: 1_000 })
    const { secret: third, token } = await tokens.rotate('t')
    expect(token.previous_expires_at).toBeNull()
    for (const secret of [first, second]) expect(await errorOf(() => enter(secret))).toStartWith('401')
    await enter(third)
    for (const overlap_seconds of [-1, 0.5, 7_776_001, Number.NaN])
      expect(await errorOf(() => tokens.rotate('t', { overlap_seconds }))).toContain('overlap_seconds: must be')
  })

  test('does not make a secret valid for longer than its token', async () => {
    const { tokens, enter, clock } = await setUp()
    const { secret } = await tokens.issue({ name: 't', expires_at: unixSeconds(clock) + 5 })
    await tokens.rotate('t', { overlap_seconds: 1_000 })
    await enter(secret)
    clock.advance(5_000)
    expect(await errorOf(() => enter(secret))).toStartWith('401')
  })
})

test('a token that a program names by its id is read once for a change, in its transaction', async () => {
  const { store, clock } = await setUp()
  const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
  const read = () => Promise.reject(new Error('a token was read before the change'))
  const parts = { projects: store.projects, clock, log, defaults: {} }
  const tokens = createTokens({ ...parts, store: { ...store.tokens, list: read, find: read } })
  const { token } = await tokens.issue({ name: 'a' })
  const which = { token_id: token.token_id }
  expect(await tokens.update(which, { name: 'b' })).toMatchObject({ name: 'b' })
  expect((await tokens.rotate(which)).token).toMatchObject({ name: 'b' })
  expect(await tokens.revoke(which)).toMatchObject({ name: 'b', disabled: true })
  for (const work of [() => tokens.update({ token_id: 'b' }, {}), () => tokens.revoke({ token_id: 'tok_none' })])
    await expect(work()).rejects.toMatchObject({ code: 'object_not_found' })
})

test('a token is changed by its id without reading the others', async () => {
  const { store, clock } = await setUp()
  const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
  const list = () => Promise.reject(new Error('all tokens were read'))
  const parts = { projects: store.projects, clock, log, defaults: {} }
  const tokens = createTokens({ ...parts, store: { ...store.tokens, list } })
  const { token } = await tokens.issue({ name: 'a' })
  expect(await tokens.update(` ${token.token_id} `, { name: 'b' })).toMatchObject({ name: 'b' })
  expect(await tokens.revoke(token.token_id)).toMatchObject({ name: 'b', disabled: true })
  await expect(tokens.choose('b')).rejects.toThrow('all tokens were read')
})
