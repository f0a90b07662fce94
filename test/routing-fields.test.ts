/** `models` and `provider` in the body of a request, as the clients of OpenRouter send them. */
import { afterEach, describe, expect, it } from 'bun:test'
import OpenAI from 'openai'
import type { ProviderConfig, TargetConfig } from '../src/config/schema/schema.ts'
import { configOf, startGateway } from './kit/gateway.ts'
import { completion, failure, hang, startVendor, whole } from './kit/vendor.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

type Options = {
  server?: Parameters<typeof configOf>[0] extends infer S ? (S extends { server?: infer T } ? T : never) : never
  targets?: Record<string, Omit<TargetConfig, 'provider' | 'model'>>
  routing?: object
  fallbacks?: string[]
  providers?: Record<string, Partial<ProviderConfig>>
}

/** `v/m` at the vendors `one`, `two` and `three`, and `v/other` at `four`. */
async function setUp({ server = {}, targets = {}, routing = {}, fallbacks, providers = {} }: Options = {}) {
  const names = ['one', 'two', 'three']
  const vendors = [...names, 'four'].map((id) => ({ id, ...startVendor() }))
  const settings = {
    server: { ...server },
    providers: Object.fromEntries(vendors.map(({ id, url }) => [id, { base_url: url, ...providers[id] }])),
    models: {
      'v/m': {
        targets: names.map((provider) => ({ provider, model: 'm', ...targets[provider] })),
        routing,
        ...(fallbacks ? { fallbacks } : {}),
      },
      'v/other': { targets: [{ provider: 'four', model: 'other' }] },
      'v/alone': { targets: [{ provider: 'one', model: 'alone' }] },
    },
  }
  const gateway = { ...(await startGateway(settings)), settings }
  closing.push(() => gateway[Symbol.asyncDispose](), ...vendors.map(({ stop }) => stop))
  const client = new OpenAI({
    apiKey: gateway.token,
    baseURL: 'http://gatehouse.test/v1',
    maxRetries: 0,
    fetch: (url, init) => gateway.instance.fetch(new Request(url as string, init as RequestInit)),
  })
  /** As the library sends fields that it does not know: they are members of the same object. */
  async function served(extra: object, model: string | undefined = 'v/m') {
    const body = { ...(model === '' ? {} : { model }), messages: [{ role: 'user', content: 'hi' }], ...extra }
    const { response } = await client.chat.completions.create(body as never).withResponse()
    return response.headers.get('x-gatehouse-target')
  }
  async function refused(extra: object, model?: string) {
    const thrown = await served(extra, model).then(
      () => undefined,
      (error) => error,
    )
    if (!(thrown instanceof OpenAI.APIError)) throw new Error('The request was not refused.')
    return { status: thrown.status, code: thrown.code, param: thrown.param, message: thrown.message }
  }
  const byName = Object.fromEntries(vendors.map((one) => [one.id, one])) as Record<
    'one' | 'two' | 'three' | 'four',
    (typeof vendors)[number]
  >
  return { ...byName, gateway, client, served, refused }
}

describe('`models`', () => {
  it('serve the request, in order, where the model is unavailable, instead of its own fallbacks', async () => {
    const { one, two, three, client } = await setUp({ fallbacks: ['v/alone'] })
    for (const vendor of [one, two, three]) vendor.otherwise(failure(500))
    const { data, response } = await client.chat.completions
      .create({ model: 'v/m', models: ['v/other', 'v/alone'], messages: [{ role: 'user', content: 'hi' }] } as never)
      .withResponse()
    expect((data as { model: string }).model).toBe('v/other')
    expect(response.headers.get('x-model-requested')).toBe('v/m')
    expect([one, two, three].map(({ requests }) => requests.length)).toEqual([1, 1, 1])
  })

  it('name the first model where `model` is absent, and may repeat it', async () => {
    const { one, two, three, four, served } = await setUp()
    expect(await served({ models: ['v/m', 'v/other'], route: 'fallback' }, '')).toBe('one/m')
    expect(one.requests[0]?.json()).toEqual({ model: 'm', messages: [{ role: 'user', content: 'hi' }] })
    for (const vendor of [one, two, three]) vendor.otherwise(failure(503))
    expect(await served({ models: ['v/m', 'other'] }, '')).toBe('four/other')
    expect(four.requests[0]?.json().models).toBeUndefined()
  })

  it('alone turn the fallbacks of the model off', async () => {
    const { one, two, three, four, refused } = await setUp({ fallbacks: ['v/other'] })
    for (const vendor of [one, two, three]) vendor.otherwise(failure(503))
    expect(await refused({ models: ['v/m'] })).toMatchObject({ status: 503 })
    expect(four.requests).toHaveLength(0)
  })

  it('are not used with `x-gatehouse-no-fallback`, and share one total of tries', async () => {
    const { one, two, three, four, gateway } = await setUp({ routing: { tries: 2 } })
    for (const vendor of [one, two, three]) vendor.otherwise(failure(500))
    const body = { model: 'v/m', models: ['v/other'], messages: [{ role: 'user', content: 'hi' }] }
    await gateway.chat(body, { headers: { 'x-gatehouse-no-fallback': '1' } })
    await gateway.chat(body)
    expect(one.requests.length + two.requests.length + three.requests.length + four.requests.length).toBe(3)
    expect(four.requests).toHaveLength(0)
  })

  it.each([
    ['an empty list', [], 'invalid_value', 'models'],
    ['eleven', Array(11).fill('v/other'), 'invalid_value', 'models'],
    ['text', 'v/other', 'invalid_type', 'models'],
    ['numbers', [1], 'invalid_type', 'models[0]'],
    ['an unknown model', ['v/other', 'v/othr'], 'model_not_found', 'models[1]'],
  ])('may not be %s', async (_, models, code, param) => {
    const { refused, one } = await setUp()
    expect(await refused({ models })).toMatchObject({ code, param })
    expect(one.requests).toHaveLength(0)
  })

  it('may be ten', async () => {
    const { served } = await setUp()
    expect(await served({ models: Array(10).fill('v/other') })).toBe('one/m')
  })

  it('may each be used by the token, or the request is refused', async () => {
    const { gateway, one } = await setUp()
    const secret = await limited(gateway, ['v/m', 'v/alone'])
    const ask = async (models: string[]) => {
      const body = { model: 'v/m', models, messages: [{ role: 'user', content: 'hi' }] }
      const response = await gateway.chat(body, { headers: { authorization: `Bearer ${secret}` } })
      return [response.status, ((await response.json()) as { error?: { code: string; param: string } }).error]
    }
    expect(await ask(['v/alone', 'v/other'])).toMatchObject([403, { code: 'model_not_allowed', param: 'models[1]' }])
    expect(one.requests).toHaveLength(0)
    expect((await ask(['v/alone']))[0]).toBe(200)
  })

  it('serve a response and a text completion too', async () => {
    const { one, two, three, client } = await setUp()
    for (const vendor of [one, two, three]) vendor.otherwise(failure(500))
    const response = await client.responses.create({ model: 'v/m', input: 'hi', models: ['v/other'] } as never)
    expect((response as { model: string }).model).toBe('v/other')
    const text = await client.completions.create({ model: 'v/m', prompt: 'hi', models: ['v/other'] } as never)
    expect((text as { model: string }).model).toBe('v/other')
  })
})

async function limited({ instance }: Awaited<ReturnType<typeof setUp>>['gateway'], models: string[]): Promise<string> {
  const { secret } = await instance.tokens.issue({ name: 'limited', models })
  return secret
}

describe('`provider`', () => {
  it.each([
    ['order', { order: ['three', 'two'] }, 'three/m'],
    ['only', { only: ['two'] }, 'two/m'],
    ['ignore', { ignore: ['one'] }, 'two/m'],
    ['order within only', { only: ['two', 'three'], order: ['three'] }, 'three/m'],
    ['a provider of another model to ignore', { ignore: ['four'] }, 'one/m'],
    [
      'values that ask for nothing',
      { zdr: false, data_collection: 'allow', require_parameters: false, order: null },
      'one/m',
    ],
    ['nothing', {}, 'one/m'],
  ])('%s', async (_, provider, target) => {
    const { served, one, two, three } = await setUp()
    expect(await served({ provider })).toBe(target)
    const [request] = [one, two, three].flatMap(({ requests }) => requests)
    expect(request?.json().provider).toBeUndefined()
  })

  it('falls back to the others after `order`, unless `allow_fallbacks` is false', async () => {
    const { two, one, served, refused } = await setUp({ fallbacks: ['v/other'] })
    two.otherwise(failure(500))
    expect(await served({ provider: { order: ['two'] } })).toBe('one/m')
    expect(await refused({ provider: { order: ['two'], allow_fallbacks: false } })).toMatchObject({ status: 502 })
    expect(one.requests).toHaveLength(1)
    expect(
      await served({ models: ['v/m', 'v/other'], provider: { order: ['two', 'four'], allow_fallbacks: false } }),
    ).toBe('four/other')
  })

  it('without `order`, `allow_fallbacks: false` keeps to the provider of the first try, with all its keys', async () => {
    const keys = [{ key: 'first-key-0001' }, { key: 'second-key-0002' }]
    const { one, two, refused } = await setUp({ providers: { one: { keys } }, routing: { tries: 3 } })
    one.otherwise(failure(401))
    expect(await refused({ provider: { allow_fallbacks: false } })).toMatchObject({ status: 502 })
    expect([one.requests.length, two.requests.length]).toEqual([2, 0])
  })

  it('sort: price takes the cheapest first, whatever the priorities of the model are', async () => {
    const targets = { one: { prices: { input: 3 } }, two: { prices: { input: 1 } } }
    const { two, served } = await setUp({ targets })
    for (const sort of ['price', { by: 'price' }, { by: 'price', partition: 'model' }]) {
      expect(await served({ provider: { sort } })).toBe('two/m')
    }
    two.otherwise(failure(500))
    expect(await served({ provider: { sort: 'price' } })).toBe('one/m')
    expect(await served({ provider: { sort: 'price', order: ['three'] } })).toBe('three/m')
  })

  it('sort: latency takes the faster one', async () => {
    const { one, gateway, served } = await setUp({ targets: { three: { weight: 0 } } })
    one.otherwise((wire) => {
      gateway.clock.advance(2_000)
      return whole(completion('hi'))(wire)
    })
    expect(await served({ provider: { only: ['one'] } })).toBe('one/m')
    expect(await served({ provider: { only: ['two'] } })).toBe('two/m')
    for (let call = 0; call < 5; call++) expect(await served({ provider: { sort: 'latency' } })).toBe('two/m')
  })

  it('max_price leaves out what costs more, and what has no known price', async () => {
    const targets = { one: { prices: { input: 2, output: 8 } }, two: { prices: { input: 1, output: 9 } } }
    const { served, refused } = await setUp({ targets })
    expect(await served({ provider: { max_price: { prompt: 2, completion: 8 } } })).toBe('one/m')
    expect(await served({ provider: { max_price: { prompt: '1.5' } } })).toBe('two/m')
    expect(await refused({ provider: { max_price: { prompt: 2, completion: 7.99 } } })).toMatchObject({
      status: 503,
      code: 'no_available_channel',
      message: expect.stringContaining('above "provider.max_price.completion"; its price is not known'),
    })
  })

  it.each([
    [{ order: [] }, 'invalid_value', 'provider.order'],
    [{ only: Array(21).fill('one') }, 'invalid_value', 'provider.only'],
    [{ only: ['one', 'nobody'] }, 'invalid_value', 'provider.only'],
    [{ ignore: [7] }, 'invalid_type', 'provider.ignore[0]'],
    [{ sort: 'random' }, 'invalid_value', 'provider.sort'],
    [{ sort: 'throughput' }, 'unsupported_parameter', 'provider.sort'],
    [{ sort: { by: 'price', partition: 'none' } }, 'unsupported_parameter', 'provider.sort.partition'],
    [{ zdr: true }, 'unsupported_parameter', 'provider.zdr'],
    [{ data_collection: 'deny' }, 'unsupported_parameter', 'provider.data_collection'],
    [{ require_parameters: true }, 'unsupported_parameter', 'provider.require_parameters'],
    [{ quantizations: ['fp8'] }, 'unsupported_parameter', 'provider.quantizations'],
    [{ max_price: { image: 1 } }, 'unsupported_parameter', 'provider.max_price.image'],
    [{ max_price: { prompt: -1 } }, 'invalid_value', 'provider.max_price.prompt'],
    [{ max_price: { prompt: 'cheap' } }, 'invalid_type', 'provider.max_price.prompt'],
    [{ allow_fallbacks: 'no' }, 'invalid_type', 'provider.allow_fallbacks'],
    ['one', 'invalid_type', 'provider'],
  ])('may not be %j', async (provider, code, param) => {
    const { refused, one } = await setUp()
    expect(await refused({ provider })).toMatchObject({ status: 400, code, param })
    expect(one.requests).toHaveLength(0)
  })

  it.each([
    ['1e309', 'provider.max_price'],
    ['{"prompt":1e309}', 'provider.max_price.prompt'],
    ['{"completion":-1e309}', 'provider.max_price.completion'],
  ])('may not have the max_price %s, which is no finite number', async (max_price, param) => {
    const { gateway } = await setUp()
    const json = `{"model":"v/m","messages":[{"role":"user","content":"hi"}],"provider":{"max_price":${max_price}}}`
    const response = await gateway.call('/v1/chat/completions', { json })
    expect(response.status).toBe(400)
    expect(((await response.json()) as { error: object }).error).toMatchObject({ param })
  })

  it('may list twenty providers', async () => {
    const { served } = await setUp()
    expect(await served({ provider: { only: Array(20).fill('two') } })).toBe('two/m')
  })

  it('does not tell of providers that serve no model of the token', async () => {
    const { gateway } = await setUp()
    const secret = await limited(gateway, ['v/m'])
    const messages = await Promise.all(
      ['four', 'nobody'].map(async (name) => {
        const body = { model: 'v/m', provider: { ignore: [name] }, messages: [{ role: 'user', content: 'hi' }] }
        const response = await gateway.chat(body, { headers: { authorization: `Bearer ${secret}` } })
        return [response.status, (await response.text()).replaceAll(name, '')]
      }),
    )
    expect(messages[0]?.[0]).toBe(400)
    expect(messages[0]).toEqual(messages[1])
  })

  it('may name no provider where `server.show_target` is off, and its errors name none', async () => {
    const { refused, served } = await setUp({ server: { show_target: false } })
    const [known, unknown] = [
      await refused({ provider: { only: ['one'] } }),
      await refused({ provider: { only: ['x'] } }),
    ]
    expect(known).toMatchObject({ status: 400, code: 'unsupported_parameter', param: 'provider.only' })
    expect(known).toEqual(unknown)
    const priced = await refused({ provider: { max_price: { prompt: 1 } } })
    expect(priced.message).not.toMatch(/one|two|three/)
    expect(await served({ provider: { allow_fallbacks: true } })).toBeNull()
  })

  it('belongs to the key of the response cache', async () => {
    const { gateway, one, two } = await setUp()
    const ask = async (provider: object) => {
      const body = { model: 'v/m', provider, messages: [{ role: 'user', content: 'hi' }] }
      const response = await gateway.chat(body, { headers: { 'x-gatehouse-cache': 'on' } })
      return response.headers.get('x-gatehouse-cache')
    }
    expect(await ask({ only: ['one'] })).toBe('miss')
    expect(await ask({ only: ['two'] })).toBe('miss')
    expect(await ask({ only: ['two'] })).toBe('hit')
    expect([one.requests.length, two.requests.length]).toEqual([1, 1])
  })
})

describe('server.caller_routing: false', () => {
  it.each([
    [{ models: ['v/other'] }, {}, 'models'],
    [{ provider: { only: ['one'] } }, {}, 'provider'],
    [{}, { 'x-gatehouse-timeout': '5' }, null],
    [{}, { 'x-gatehouse-no-fallback': '1' }, null],
  ])('refuses %j and %j', async (fields, headers, param) => {
    const { gateway, one } = await setUp({ server: { caller_routing: false } })
    const body = { model: 'v/m', messages: [{ role: 'user', content: 'hi' }], ...fields }
    const response = await gateway.chat(body, { headers: headers as Record<string, string> })
    const { error } = (await response.json()) as { error: unknown }
    expect([response.status, error]).toMatchObject([400, { code: 'unsupported_parameter', param }])
    expect(one.requests).toHaveLength(0)
  })

  it('leaves tags and the cache to the caller', async () => {
    const { gateway } = await setUp({ server: { caller_routing: false } })
    const body = { model: 'v/m', messages: [{ role: 'user', content: 'hi' }] }
    const headers = { 'x-gatehouse-tags': 'a', 'x-gatehouse-cache': 'on' }
    expect((await gateway.chat(body, { headers })).status).toBe(200)
  })
})

describe('server.caller_routing with ids', () => {
  async function statuses(ids: (known: { token_id: string; project_id: string }) => string[]) {
    const { gateway } = await setUp()
    const { tokens, projects, reload } = gateway.instance
    const { project_id } = await projects.create({ name: 'p' })
    const named = await tokens.issue({ name: 'named' })
    const owned = await tokens.issue({ name: 'owned', project_id })
    const server = { caller_routing: ids({ token_id: named.token.token_id, project_id }) }
    await reload(configOf({ ...gateway.settings, server }))
    const body = { model: 'v/m', messages: [{ role: 'user', content: 'hi' }] }
    const asked: number[] = []
    for (const secret of [named.secret, owned.secret, gateway.token]) {
      const authorization = `Bearer ${secret}`
      const byField = await gateway.chat({ ...body, models: ['v/other'] }, { headers: { authorization } })
      const byHeader = await gateway.chat(body, { headers: { authorization, 'x-gatehouse-timeout': '5' } })
      expect(byHeader.status).toBe(byField.status)
      expect((await gateway.chat(body, { headers: { authorization } })).status).toBe(200)
      asked.push(byField.status)
    }
    return asked
  }

  it('lets a token that is named choose, and no other', async () => {
    expect(await statuses(({ token_id }) => [token_id])).toEqual([200, 400, 400])
  })

  it('lets the tokens of a project that is named choose, and no others', async () => {
    expect(await statuses(({ project_id }) => [project_id])).toEqual([400, 200, 400])
  })

  it('lets none choose where it is empty', async () => {
    expect(await statuses(() => [])).toEqual([400, 400, 400])
  })
})

describe('a model whose only provider gets the fields, as the operator has set', () => {
  const fields = { allow: ['models', 'provider', 'route'] }
  const router = { providers: { one: { preset: 'openrouter', key: 'sk-or-0001', fields } } }

  it('gets `models` and `provider` that name nothing known here, as they are', async () => {
    const { one, served } = await setUp(router)
    const extra = {
      models: ['alone', 'gryphe/mythomax-l2-13b'],
      provider: { order: ['Together'], sort: 'throughput', zdr: true },
      route: 'fallback',
    }
    expect(await served(extra, 'v/alone')).toBe('one/alone')
    expect(one.requests[0]?.json()).toMatchObject(extra)
    await served({ provider: { sort: 'price' } }, 'v/alone')
    expect(one.requests[1]?.json().provider).toEqual({ sort: 'price' })
  })

  it('gets what passes through to its Responses API', async () => {
    const { one, client } = await setUp({
      providers: { one: { preset: 'openrouter', key: 'sk-or-0001', apis: ['responses-compat'] } },
    })
    one.otherwise(failure(400))
    const extra = { provider: { zdr: true } }
    await client.responses.create({ model: 'v/alone', input: 'hi', ...extra } as never).catch(() => {})
    expect(one.requests[0]?.path).toEndWith('/responses')
    expect(one.requests[0]?.json()).toMatchObject(extra)
  })

  it('is left for models and providers that are known here', async () => {
    const { one, served } = await setUp(router)
    one.otherwise(failure(500))
    expect(await served({ models: ['v/other'] }, 'v/alone')).toBe('four/other')
    expect(one.requests[0]?.json().models).toBeUndefined()
  })

  it('does not get the name of a model that the token may not use', async () => {
    const { one, gateway } = await setUp(router)
    const secret = await limited(gateway, ['v/alone'])
    const body = { model: 'v/alone', models: ['x/unknown', 'v/other'], messages: [{ role: 'user', content: 'hi' }] }
    const response = await gateway.chat(body, { headers: { authorization: `Bearer ${secret}` } })
    expect(response.status).toBe(403)
    expect(one.requests).toHaveLength(0)
  })

  it('gets the fields unchanged with `server.caller_routing: false`', async () => {
    const { one, served } = await setUp({ ...router, server: { caller_routing: false } })
    await served({ provider: { order: ['Together'] }, models: ['v/other'] }, 'v/alone')
    expect(one.requests[0]?.json()).toMatchObject({ provider: { order: ['Together'] }, models: ['v/other'] })
  })
})

describe('a response in the background', () => {
  const BACKGROUND = { model: 'v/m', input: 'hi', background: true }

  /** Asks for it, and waits for its end. */
  async function ended({ client }: Awaited<ReturnType<typeof setUp>>, fields: object, headers = {}) {
    const { id } = await client.responses.create({ ...BACKGROUND, ...fields } as never, { headers })
    for (;;) {
      const response = await client.responses.retrieve(id)
      if (response.status !== 'queued' && response.status !== 'in_progress') return response
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }

  it('is generated by the providers and models that its request names', async () => {
    const gateway = await setUp()
    const { one, two, three, four } = gateway
    expect(await ended(gateway, { provider: { only: ['two'] } })).toMatchObject({ status: 'completed' })
    expect([one, two, three].map(({ requests }) => requests.length)).toEqual([0, 1, 0])
    two.otherwise(failure(500))
    const fields = { models: ['v/other'], provider: { only: ['two', 'four'] } }
    expect(await ended(gateway, fields)).toMatchObject({ status: 'completed' })
    expect([one, two, three, four].map(({ requests }) => requests.length)).toEqual([0, 2, 0, 1])
  })

  it('obeys the headers of its request: one target, its tags, its timeout', async () => {
    const gateway = await setUp({ targets: { one: { when: { tags: ['batch'] } } } })
    const { one, two } = gateway
    for (const vendor of [one, two]) vendor.otherwise(failure(500))
    const headers = { 'x-gatehouse-no-fallback': '1', 'x-gatehouse-tags': 'batch' }
    expect(await ended(gateway, {}, headers)).toMatchObject({ status: 'failed' })
    expect(await ended(gateway, {}, { 'x-gatehouse-no-fallback': '1' })).toMatchObject({ status: 'failed' })
    expect([one.requests.length, two.requests.length]).toEqual([1, 1])
    two.otherwise(hang())
    const timed = ended(gateway, { provider: { only: ['two'] } }, { 'x-gatehouse-timeout': '2' })
    await two.request(2)
    gateway.gateway.clock.advance(2_000)
    expect(await timed).toMatchObject({ status: 'failed', error: { message: expect.stringContaining('within 2 s') } })
  })

  it('is refused at once where a model may not be used, and takes no options from its body', async () => {
    const gateway = await setUp()
    await expect(ended(gateway, { models: ['v/nothing'] })).rejects.toMatchObject({ status: 404, param: 'models[0]' })
    const forged = { 'x-gatehouse-options': { provider: { only: ['two'] } } }
    expect(await ended(gateway, forged)).toMatchObject({ status: 'completed' })
    expect([gateway.one.requests.length, gateway.two.requests.length]).toEqual([1, 0])
  })
})
