/** The response cache through a whole gateway. */
import { afterEach, describe, expect, it } from 'bun:test'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ModelCache } from '../src/config/schema/cache-schema.ts'
import { OWNER } from './kit/admin.ts'
import type { CallOptions, TestGateway } from './kit/gateway.ts'
import { configOf, startGateway } from './kit/gateway.ts'
import { chunk, completion, failure, startVendor, stream, type Vendor, whole } from './kit/vendor.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

type Setup = { cache?: ModelCache | undefined; top?: object; store_url?: string }
type Started = { acme: Vendor; gateway: TestGateway }

async function start({ cache, top = {}, store_url }: Setup = {}, vendor?: Vendor): Promise<Started> {
  const acme = vendor ?? startVendor()
  if (!vendor) closing.push(() => acme.stop())
  const targets = [{ provider: 'acme', model: 'fast' }]
  const gateway = await startGateway(
    {
      providers: { acme: { base_url: acme.url, key: 'k' } },
      models: {
        'house/fast': { targets, ...(cache ? { cache } : {}) },
        'house/other': { targets, ...(cache ? { cache } : {}) },
      },
      ...top,
    },
    store_url === undefined ? {} : { store_url },
  )
  closing.push(() => gateway[Symbol.asyncDispose]())
  return { acme, gateway }
}

const MESSAGES = [{ role: 'user', content: 'hi' }]
const QUESTION = { model: 'house/fast', messages: MESSAGES, temperature: 0 }
const ask = (directive: string): CallOptions => ({ headers: { 'x-gatehouse-cache': directive } })
const cacheOf = (response: Response) => response.headers.get('x-gatehouse-cache')
/** What the cache did for each of some equal requests, one after the other. */
async function outcomes(gateway: TestGateway, body: object, ...options: (CallOptions | undefined)[]) {
  const found: (string | null)[] = []
  for (const one of options) {
    const response = await gateway.chat(body, one)
    expect(response.status).toBe(200)
    await response.text()
    found.push(cacheOf(response))
  }
  return found
}
const lines = (gateway: TestGateway) =>
  gateway
    .logged()
    .split('\n')
    .filter((line) => line.includes('"event":"request"'))
    .map((line) => JSON.parse(line) as Record<string, unknown>)

const MISSES = ['miss', 'miss']
const HITS = ['hit', 'hit']

describe('a purge', () => {
  const OTHER = { ...QUESTION, model: 'house/other' }
  const as_owner = (json: object) => ({ json, headers: { authorization: `Bearer ${OWNER}` } })
  const TOP = {
    admin_token: OWNER,
    cache: { storage: 'memory', max_entries: 100, max_bytes: 1_000_000, max_vector_bytes: 1 },
  }

  for (const storage of ['memory', 'database']) {
    it(`of the ${storage} concerns one model or all, and is in the audit log`, async () => {
      const { gateway } = await start({ cache: {}, top: { ...TOP, cache: { ...TOP.cache, storage } } })
      const ask = async (body: object) => (await outcomes(gateway, body, undefined))[0]
      const purge = async (json: object) => (await gateway.call('/admin/v1/cache/purge', as_owner(json))).json()
      expect([await ask(QUESTION), await ask(OTHER)]).toEqual(['miss', 'miss'])
      expect([await ask(QUESTION), await ask(OTHER)]).toEqual(['hit', 'hit'])
      expect(await purge({ model: 'house/fast' })).toEqual({ model: 'house/fast', project_id: null, entries: 1 })
      expect([await ask(QUESTION), await ask(OTHER)]).toEqual(['miss', 'hit'])
      expect(await ask(QUESTION)).toBe('hit')
      expect(await purge({})).toEqual({ model: null, project_id: null, entries: 2 })
      expect([await ask(QUESTION), await ask(OTHER)]).toEqual(['miss', 'miss'])
      expect((await purge({ model: 'house/none' })).error.code).toBe('object_not_found')
      const { data } = await (await gateway.call('/admin/v1/audit', { ...as_owner({}), json: undefined })).json()
      expect(data.map(({ action, object_id }: Record<string, string>) => [action, object_id]).slice(0, 2)).toEqual([
        ['cache.purge', ''],
        ['cache.purge', 'house/fast'],
      ])
    })
  }

  for (const storage of ['memory', 'database']) {
    it(`of a project concerns only the ${storage}'s answers to it, of every model`, async () => {
      const { gateway } = await start({ cache: {}, top: { ...TOP, cache: { ...TOP.cache, storage } } })
      const admin = async (path: string, json: object) =>
        (await gateway.call(`/admin/v1${path}`, as_owner(json))).json()
      const callerOf = async (name: string) => {
        const { project_id } = await admin('/projects', { name })
        const { secret } = await admin('/tokens', { name, project_id })
        const headers = { authorization: `Bearer ${secret}` }
        const ask = async () =>
          Promise.all([QUESTION, OTHER].map(async (body) => cacheOf(await gateway.chat(body, { headers }))))
        return { project_id, ask }
      }
      const [one, other] = [await callerOf('one'), await callerOf('other')]
      for (const { ask } of [one, other]) expect([await ask(), await ask()]).toEqual([MISSES, HITS])
      const { project_id } = one
      expect(await admin('/cache/purge', { project_id })).toEqual({ model: null, project_id, entries: 2 })
      expect([await one.ask(), await other.ask()]).toEqual([MISSES, HITS])
      expect(await one.ask()).toEqual(HITS)
      const both = await admin('/cache/purge', { project_id, model: 'house/fast' })
      expect([both.error.code, both.error.param]).toEqual(['invalid_value', 'project_id'])
    })
  }

  it('of a project that does not exist is refused, and purges nothing', async () => {
    const { gateway } = await start({ cache: {}, top: TOP })
    const response = await gateway.call('/admin/v1/cache/purge', as_owner({ project_id: 'proj_none' }))
    const { error } = await response.json()
    expect([response.status, error.code, error.message]).toEqual([
      404,
      'object_not_found',
      'There is no project "proj_none".',
    ])
    const events = await gateway.call('/admin/v1/audit?action=cache.purge', { ...as_owner({}), json: undefined })
    expect((await events.json()).data).toEqual([])
  })

  it('also concerns a response that is just being made', async () => {
    const gate = Promise.withResolvers<void>()
    const { gateway, acme } = await start({ cache: {}, top: TOP })
    acme.answer(async (wire) => {
      await gate.promise
      return whole(completion('late'))(wire)
    })
    const open = gateway.chat(QUESTION)
    await acme.request(1)
    await gateway.call('/admin/v1/cache/purge', as_owner({}))
    gate.resolve()
    expect(cacheOf(await open)).toBe('miss')
    expect(await outcomes(gateway, QUESTION, undefined, undefined)).toEqual(['miss', 'hit'])
  })
})

describe('the response cache', () => {
  it('is off by default', async () => {
    const { gateway, acme } = await start()
    expect(await outcomes(gateway, QUESTION, undefined, undefined, ask('off'))).toEqual([null, null, null])
    expect(acme.requests).toHaveLength(3)
    expect(lines(gateway)[0]).not.toHaveProperty('cache')
  })

  it('keeps the form of clients made for OpenRouter apart from that of others', async () => {
    const { gateway, acme } = await start({ cache: {} })
    const message = { role: 'assistant', content: 'hi', reasoning_content: 'Hm.' }
    acme.otherwise(whole({ ...completion('hi'), choices: [{ index: 0, message, finish_reason: 'stop' }] }))
    const openrouter = { headers: { 'user-agent': 'ai-sdk/openrouter/3.1.0' } }
    const received: [string | null, string | undefined][] = []
    for (const options of [undefined, openrouter, undefined, openrouter]) {
      const response = await gateway.chat(QUESTION, options)
      received.push([cacheOf(response), (await response.json()).choices[0].message.reasoning])
    }
    expect(received).toEqual([
      ['miss', undefined],
      ['miss', 'Hm.'],
      ['hit', undefined],
      ['hit', 'Hm.'],
    ])
  })

  it('answers an equal request with the same response under an id of its own', async () => {
    const { gateway, acme } = await start({ cache: {} })
    const first = await gateway.chat(QUESTION)
    const asked = await first.json()
    gateway.clock.advance(61_500)
    const { messages, temperature } = QUESTION
    const second = await gateway.chat({ temperature, messages, model: 'fast' })
    const answered = await second.json()
    expect([cacheOf(first), cacheOf(second)]).toEqual(['miss', 'hit'])
    expect([first.headers.get('age'), second.headers.get('age')]).toEqual([null, '61'])
    expect(second.headers.get('x-gatehouse-target')).toBe('acme/fast')
    expect(answered.id).not.toBe(asked.id)
    expect(answered.id).toStartWith('chatcmpl-')
    expect({ ...answered, id: '' }).toEqual({ ...asked, id: '' })
    expect(answered.usage.total_tokens).toBe(12)
    expect(acme.requests).toHaveLength(1)
    expect(
      lines(gateway).map(({ cache, input_tokens, output_tokens }) => [cache, input_tokens, output_tokens]),
    ).toEqual([
      ['miss', 9, 3],
      ['hit', 0, 0],
    ])
  })

  it.each([
    ['another message', { messages: [{ role: 'user', content: 'hi!' }] }],
    ['another model', { model: 'house/other' }],
    ['another parameter', { max_tokens: 5 }],
    ['a stream', { stream: true }],
  ])('distinguishes a request with %s', async (_, change) => {
    const { gateway } = await start({ cache: {} })
    expect(await outcomes(gateway, QUESTION, undefined)).toEqual(['miss'])
    expect(await outcomes(gateway, { ...QUESTION, ...change }, undefined, undefined)).toEqual(['miss', 'hit'])
  })

  it('caches without a header only what is deterministic', async () => {
    const { gateway } = await start({ cache: {} })
    const { temperature: _, ...open } = QUESTION
    const twice = [undefined, undefined]
    expect(await outcomes(gateway, open, ...twice)).toEqual(['bypass', 'bypass'])
    expect(await outcomes(gateway, { ...open, temperature: 0.1 }, ...twice)).toEqual(['bypass', 'bypass'])
    expect(await outcomes(gateway, { ...open, seed: 0 }, ...twice)).toEqual(['miss', 'hit'])
    expect(await outcomes(gateway, open, ask('on'), ask('on'))).toEqual(['miss', 'hit'])
    const all = await start({ cache: { requests: 'all' } })
    expect(await outcomes(all.gateway, open, ...twice)).toEqual(['miss', 'hit'])
  })

  it('follows the request header, also where no model is configured', async () => {
    const { gateway, acme } = await start()
    const headers = [ask('on'), ask('on'), undefined, ask('refresh'), ask('on')]
    expect(await outcomes(gateway, QUESTION, ...headers)).toEqual(['miss', 'hit', null, 'miss', 'hit'])
    expect(acme.requests).toHaveLength(3)
    const configured = await start({ cache: {} })
    expect(await outcomes(configured.gateway, QUESTION, undefined, ask('off'), undefined)).toEqual([
      'miss',
      'bypass',
      'hit',
    ])
  })

  it('returns the response that a refresh has replaced', async () => {
    const { gateway, acme } = await start({ cache: {} })
    acme.answer(whole(completion('old')), whole(completion('new')))
    const contentOf = async (options?: CallOptions) =>
      (await (await gateway.chat(QUESTION, options)).json()).choices[0].message.content
    expect([await contentOf(), await contentOf(), await contentOf(ask('refresh')), await contentOf()]).toEqual([
      'old',
      'old',
      'new',
      'new',
    ])
  })

  it('returns 400 for any other value of the header', async () => {
    const { gateway, acme } = await start()
    const response = await gateway.chat(QUESTION, ask('yes'))
    expect(response.status).toBe(400)
    expect((await response.json()).error.message).toContain('x-gatehouse-cache must be on, off or refresh')
    expect(acme.requests).toHaveLength(0)
  })

  it('forgets a response when its time has passed, and not before', async () => {
    const { gateway } = await start({ cache: { ttl_seconds: 10 } })
    expect(await outcomes(gateway, QUESTION, undefined)).toEqual(['miss'])
    gateway.clock.advance(9_999)
    expect(await outcomes(gateway, QUESTION, undefined)).toEqual(['hit'])
    gateway.clock.advance(1)
    expect(await outcomes(gateway, QUESTION, undefined)).toEqual(['miss'])
  })

  it.each([
    ['token', 'miss'],
    ['all', 'hit'],
  ] as const)('with scope %s gives another token a %s', async (scope, outcome) => {
    const { gateway } = await start({ cache: { scope } })
    const { secret } = await gateway.instance.tokens.issue({ name: 'other' })
    const other = { headers: { authorization: `Bearer ${secret}` } }
    expect(await outcomes(gateway, QUESTION, undefined, other, other)).toEqual(['miss', outcome, 'hit'])
  })

  it('answers without an upstream call, and says so', async () => {
    const { gateway } = await start({ cache: {} })
    const headersOf = async () => {
      const { headers } = await gateway.chat(QUESTION)
      return [headers.get('x-gatehouse-attempts'), headers.get('x-gatehouse-target')]
    }
    expect([await headersOf(), await headersOf()]).toEqual([
      ['1', 'acme/fast'],
      ['0', 'acme/fast'],
    ])
  })

  it('of a stream names the target that it came from', async () => {
    const { gateway } = await start({ cache: {} })
    const headersOf = async () => {
      const response = await gateway.chat({ ...QUESTION, stream: true })
      await response.text()
      return [response.headers.get('x-gatehouse-cache'), response.headers.get('x-gatehouse-target')]
    }
    expect([await headersOf(), await headersOf()]).toEqual([
      ['miss', 'acme/fast'],
      ['hit', 'acme/fast'],
    ])
  })

  it('answers nothing from another base URL or with other fields, under the same names', async () => {
    const { acme, gateway } = await start({ cache: {} })
    const other = startVendor()
    closing.push(() => other.stop())
    const models = { 'house/fast': { targets: [{ provider: 'acme', model: 'fast' }], cache: {} } }
    const reload = (acme: object) => gateway.instance.reload(configOf({ providers: { acme: acme as never }, models }))
    const same = { base_url: acme.url, key: 'k' }
    expect(await outcomes(gateway, QUESTION, undefined, undefined)).toEqual(['miss', 'hit'])
    await reload({ ...same, base_url: other.url })
    expect(await outcomes(gateway, QUESTION, undefined)).toEqual(['miss'])
    expect(other.requests).toHaveLength(1)
    await reload({ ...same, headers: { 'x-version': '2' } })
    expect(await outcomes(gateway, QUESTION, undefined)).toEqual(['miss'])
    await reload({ ...same, key: 'rotated' })
    expect(await outcomes(gateway, QUESTION, undefined)).toEqual(['hit'])
  })

  it('with scope project gives a hit to the tokens of one project, and to no other', async () => {
    const { gateway } = await start({ cache: { scope: 'project' } })
    const { projects, tokens } = gateway.instance
    const tokenOf = async (name: string, project_id: string | null) => {
      const { secret } = await tokens.issue({ name, project_id })
      return { headers: { authorization: `Bearer ${secret}` } }
    }
    const [one, two] = [await projects.create({ name: 'one' }), await projects.create({ name: 'two' })]
    const callers = [
      await tokenOf('a', one.project_id),
      await tokenOf('b', one.project_id),
      await tokenOf('c', two.project_id),
      await tokenOf('d', null),
      await tokenOf('e', null),
    ]
    expect(await outcomes(gateway, QUESTION, ...callers)).toEqual(['miss', 'hit', 'miss', 'miss', 'miss'])
  })

  it('with scope all gives nothing to a token that may not use the model', async () => {
    const { gateway } = await start({ cache: { scope: 'all' } })
    expect(await outcomes(gateway, QUESTION, undefined)).toEqual(['miss'])
    const { secret } = await gateway.instance.tokens.issue({ name: 'narrow', models: ['house/other'] })
    const response = await gateway.chat(QUESTION, { headers: { authorization: `Bearer ${secret}` } })
    expect(response.status).toBe(403)
  })

  it.each(['token', 'project', 'all'] as const)(
    'with scope %s gives an end user what the same one has asked, and nothing of another',
    async (scope) => {
      const { gateway } = await start({ cache: { scope } })
      const as = (user: string): CallOptions => ({ headers: { 'x-gatehouse-user': user } })
      expect(await outcomes(gateway, QUESTION, as('ann'), as('bob'), undefined)).toEqual(['miss', 'miss', 'miss'])
      expect(await outcomes(gateway, QUESTION, as('ann'), as('bob'), undefined)).toEqual(['hit', 'hit', 'hit'])
      // The header takes precedence over the field.
      expect(await outcomes(gateway, { ...QUESTION, user: 'ann' }, undefined, as('bob'))).toEqual(['miss', 'miss'])
    },
  )

  it('does not cache an error', async () => {
    const { gateway, acme } = await start({ cache: {} })
    acme.answer(failure(400, { message: 'no' }))
    const refused = await gateway.chat(QUESTION)
    expect([refused.status, cacheOf(refused)]).toEqual([400, 'miss'])
    expect(await outcomes(gateway, QUESTION, undefined, undefined)).toEqual(['miss', 'hit'])
  })

  it('does not cache a response above the bound of an entry, whole or streamed', async () => {
    const large = await start({ cache: { max_entry_bytes: 200 } })
    for (const body of [QUESTION, { ...QUESTION, stream: true }])
      expect(await outcomes(large.gateway, body, undefined, undefined)).toEqual(['miss', 'miss'])
    const fitting = await start({ cache: { max_entry_bytes: 2_000 } })
    for (const body of [QUESTION, { ...QUESTION, stream: true }])
      expect(await outcomes(fitting.gateway, body, undefined, undefined)).toEqual(['miss', 'hit'])
  })

  it('keeps at most so many responses', async () => {
    const cache = { storage: 'memory' as const, max_entries: 2, max_bytes: 1_000_000 }
    const { gateway } = await start({ cache: {}, top: { cache } })
    const of = (max_tokens: number) => ({ ...QUESTION, max_tokens })
    for (const n of [1, 2]) expect(await outcomes(gateway, of(n), undefined, undefined)).toEqual(['miss', 'hit'])
    expect(await outcomes(gateway, of(1), undefined)).toEqual(['hit'])
    expect(await outcomes(gateway, of(3), undefined)).toEqual(['miss'])
    expect(await outcomes(gateway, of(1), undefined)).toEqual(['hit'])
    expect(await outcomes(gateway, of(2), undefined)).toEqual(['miss'])
  })

  it('in the database answers after a restart', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'gatehouse-cache-'))
    closing.push(() => rm(directory, { recursive: true, force: true }))
    const setup = {
      cache: { scope: 'all' as const },
      top: { bootstrap_token: undefined, cache: { storage: 'database', max_entries: 9, max_bytes: 1_000_000 } },
      store_url: `sqlite:${join(directory, 'gatehouse.db')}`,
    }
    const before = await start(setup)
    expect(await outcomes(before.gateway, QUESTION, undefined, undefined)).toEqual(['miss', 'hit'])
    const { secret } = await before.gateway.instance.tokens.issue({ name: 'after' })
    await before.gateway[Symbol.asyncDispose]()
    const after = await start(setup, before.acme)
    const token = { headers: { authorization: `Bearer ${secret}` } }
    expect(await outcomes(after.gateway, QUESTION, token)).toEqual(['hit'])
    expect(before.acme.requests).toHaveLength(1)
  })
})

describe('a cached stream', () => {
  const STREAMED = { ...QUESTION, stream: true, stream_options: { include_usage: true } }
  const idsIn = (text: string) => new Set([...text.matchAll(/"id":"([^"]+)"/g)].map(([, id]) => id))
  const withoutIds = (text: string) => text.replaceAll(/"id":"[^"]+"/g, '"id":""')

  it('is replayed as the same stream under another id', async () => {
    const { gateway, acme } = await start({ cache: {} })
    acme.answer(stream([chunk({ role: 'assistant', content: 'Grüße ' }), chunk({ content: '🌊' }), chunk({}, 'stop')]))
    const first = await gateway.chat(STREAMED)
    const text = await first.text()
    const second = await gateway.chat(STREAMED)
    const replayed = await second.text()
    expect([cacheOf(first), cacheOf(second)]).toEqual(['miss', 'hit'])
    expect(second.headers.get('content-type')).toBe(first.headers.get('content-type'))
    expect(replayed).toContain('🌊')
    expect(withoutIds(replayed)).toBe(withoutIds(text))
    expect(idsIn(replayed).size).toBe(1)
    expect(idsIn(replayed)).not.toEqual(idsIn(text))
    expect(acme.requests).toHaveLength(1)
    expect(lines(gateway).at(-1)).toMatchObject({ cache: 'hit', stream: true, input_tokens: 0, output_tokens: 0 })
  })

  it.each(['cutAfter', 'resetAfter'] as const)('is not cached when it was broken off (%s)', async (how) => {
    const { gateway, acme } = await start({ cache: {} })
    const part = chunk({ role: 'assistant', content: 'Hel' })
    acme.answer(stream([part, part], { [how]: 1 }))
    const broken = await gateway.chat(STREAMED)
    expect(await broken.text()).toContain('"error"')
    expect(await outcomes(gateway, STREAMED, undefined, undefined)).toEqual(['miss', 'hit'])
  })

  it('is not cached when its client leaves', async () => {
    const { gateway, acme } = await start({ cache: {} })
    acme.answer(stream([chunk({ role: 'assistant', content: 'Hel' })], { hangAfter: 1 }))
    const left = await gateway.chat(STREAMED)
    const reader = left.body?.getReader()
    await reader?.read()
    await reader?.cancel()
    await acme.aborted
    expect(await outcomes(gateway, STREAMED, undefined, undefined)).toEqual(['miss', 'hit'])
  })
})

describe('equal requests at the same time', () => {
  /** Lets requests that were sent get as far as they can. */
  const arrived = async () => {
    for (let turn = 0; turn < 50; turn++) await new Promise((next) => setImmediate(next))
  }
  const gate = () => Promise.withResolvers<void>()
  const held =
    (opened: Promise<void>, content = 'Hello') =>
    async (wire: Parameters<ReturnType<typeof whole>>[0]) => {
      await opened
      await whole(completion(content))(wire)
    }

  it('cause one call, whole or streamed', async () => {
    for (const is_stream of [false, true]) {
      const { gateway, acme } = await start({ cache: {} })
      const { promise, resolve } = gate()
      acme.answer(is_stream ? stream([promise, chunk({ content: 'Hello' }), chunk({}, 'stop')]) : held(promise))
      const calls = Array.from({ length: 3 }, () => gateway.chat({ ...QUESTION, stream: is_stream }))
      await acme.request(1)
      resolve()
      const texts = await Promise.all(calls.map(async (call) => (await call).text()))
      for (const text of texts) expect(text).toContain('Hello')
      const responses = await Promise.all(calls)
      expect(responses.map(cacheOf).sort()).toEqual(['hit', 'hit', 'miss'])
      expect(acme.requests).toHaveLength(1)
    }
  })

  it('do not end with the client of the first one: another one calls the provider for the rest', async () => {
    const { gateway, acme } = await start({ cache: {} })
    const control = new AbortController()
    acme.answer((wire) => wire.aborted)
    const left = gateway.chat(QUESTION, { signal: control.signal }).catch(() => undefined)
    await acme.request(1)
    const others = [gateway.chat(QUESTION), gateway.chat(QUESTION)]
    await arrived()
    control.abort()
    const responses = await Promise.all(others)
    expect(responses.map(({ status }) => status)).toEqual([200, 200])
    expect(responses.map(cacheOf).sort()).toEqual(['hit', 'miss'])
    await left
    expect(acme.requests).toHaveLength(2)
  })

  it('end for a client that leaves while it waits, and only for that one', async () => {
    const { gateway, acme } = await start({ cache: {} })
    const { promise, resolve } = gate()
    acme.answer(held(promise))
    const first = gateway.chat(QUESTION)
    await acme.request(1)
    const control = new AbortController()
    const leaving = gateway.chat(QUESTION, { signal: control.signal })
    const waiting = gateway.chat(QUESTION)
    await arrived()
    control.abort()
    expect((await leaving.catch(() => undefined))?.status).not.toBe(200)
    resolve()
    expect([cacheOf(await first), cacheOf(await waiting)]).toEqual(['miss', 'hit'])
    expect(acme.requests).toHaveLength(1)
  })

  it('do not fail with the first one: each calls the provider itself', async () => {
    const { gateway, acme } = await start({ cache: {} })
    const { promise, resolve } = gate()
    acme.answer(async (wire) => {
      await promise
      await failure(400, { message: 'no' })(wire)
    })
    const first = gateway.chat(QUESTION)
    await acme.request(1)
    const others = [gateway.chat(QUESTION), gateway.chat(QUESTION)]
    await arrived()
    resolve()
    expect((await first).status).toBe(400)
    expect((await Promise.all(others)).map(({ status }) => status)).toEqual([200, 200])
    expect(acme.requests).toHaveLength(3)
  })
})

type Api = { path: string; body: Record<string, unknown>; stream?: { path?: string; body?: object } }
const INPUT = { contents: [{ role: 'user', parts: [{ text: 'hi' }] }], generationConfig: { temperature: 0 } }
const APIS: Record<string, Api> = {
  'chat completions': { path: '/v1/chat/completions', body: QUESTION, stream: { body: { stream: true } } },
  Messages: { path: '/v1/messages', body: { ...QUESTION, max_tokens: 9 }, stream: { body: { stream: true } } },
  Responses: {
    path: '/v1/responses',
    body: { model: 'house/fast', input: 'hi', temperature: 0, store: false },
    stream: { body: { stream: true } },
  },
  contentgen: {
    path: '/v1beta/models/house/fast:generateContent',
    body: INPUT,
    stream: { path: '/v1beta/models/house/fast:streamGenerateContent' },
  },
  'contentgen as events': {
    path: '/v1beta/models/house/fast:generateContent',
    body: INPUT,
    stream: { path: '/v1beta/models/house/fast:streamGenerateContent?alt=sse' },
  },
}

describe.each(Object.entries(APIS))('%s', (_, { path, body, stream: streamed }) => {
  const ID = /"(id|responseId)":"([^"]+)"/
  const withoutId = (text: string) => text.replaceAll(ID.exec(text)?.[2] ?? '-', '')
  it.each([
    ['whole', path, body],
    ['streamed', streamed?.path ?? path, { ...body, ...streamed?.body }],
  ])('answers from the cache, %s', async (__, to, json) => {
    const { gateway, acme } = await start({ cache: {} })
    const first = await gateway.call(to, { json })
    const text = await first.text()
    const second = await gateway.call(to, { json })
    const replayed = await second.text()
    expect([first.status, cacheOf(first), cacheOf(second)]).toEqual([200, 'miss', 'hit'])
    expect(second.headers.get('content-type')).toBe(first.headers.get('content-type'))
    expect(ID.exec(replayed)?.[2]).not.toBe(ID.exec(text)?.[2])
    const name = (ID.exec(text)?.[2] ?? '').replace('resp_', '')
    // The items of a response contain its id.
    expect(withoutId(replayed).replaceAll(name, '')).toBe(withoutId(text).replaceAll(name, ''))
    expect(acme.requests).toHaveLength(1)
  })
})

describe('requests with a side effect', () => {
  it.each([
    ['a stored response', '/v1/responses', { model: 'house/fast', input: 'hi', temperature: 0 }],
    ['a completion that the provider stores', '/v1/chat/completions', { ...QUESTION, store: true }],
  ])('are never cached: %s', async (_, path, json) => {
    const { gateway } = await start({ cache: { requests: 'all' } })
    for (let n = 0; n < 2; n++) {
      const response = await gateway.call(path, { json, ...ask('on') })
      expect([response.status, cacheOf(response)]).toEqual([200, 'bypass'])
    }
  })

  it('are never cached: a response that continues another one', async () => {
    const { gateway } = await start({ cache: {} })
    const stored = await gateway.call('/v1/responses', { json: { model: 'house/fast', input: 'hi' } })
    const previous_response_id = (await stored.json()).id
    const json = { model: 'house/fast', input: 'and?', temperature: 0, store: false, previous_response_id }
    for (let n = 0; n < 2; n++) expect(cacheOf(await gateway.call('/v1/responses', { json }))).toBe('bypass')
  })
})

describe('families without a stream', () => {
  it.each([
    ['/v1/embeddings', { model: 'sandbox/embedding', input: 'a' }],
    ['/v1/rerank', { model: 'sandbox/rerank', query: 'a', documents: ['b'] }],
    ['/v1/moderations', { model: 'sandbox/moderation', input: 'a' }],
  ])('%s gives an end user nothing of another', async (path, json) => {
    const { gateway } = await start()
    const found: (string | null)[] = []
    for (const user of ['ann', 'bob', 'ann']) {
      const headers = { 'x-gatehouse-cache': 'on', 'x-gatehouse-user': user }
      const response = await gateway.call(path, { json, headers })
      expect(response.status).toBe(200)
      found.push(cacheOf(response))
    }
    expect(found).toEqual(['miss', 'miss', 'hit'])
  })

  it.each([
    ['/v1/embeddings', { model: 'sandbox/embedding', input: ['a', 'b'] }],
    ['/v1/moderations', { model: 'sandbox/moderation', input: 'a' }],
    ['/v1/rerank', { model: 'sandbox/rerank', query: 'a', documents: ['a', 'b'] }],
  ])('%s answers from the cache', async (path, json) => {
    const { gateway } = await start()
    const first = await gateway.call(path, { json, ...ask('on') })
    const second = await gateway.call(path, { json, ...ask('on') })
    const { id: _, ...asked } = await first.json()
    const { id: __, ...answered } = await second.json()
    expect([first.status, cacheOf(first), cacheOf(second)]).toEqual([200, 'miss', 'hit'])
    expect(answered).toEqual(asked)
    expect(second.headers.get('age')).toBe('0')
  })
})
