/** Settings of one target of a model: which requests it takes, its time limits, and its prices. */
import { afterEach, describe, expect, it } from 'bun:test'
import type { ModelConfig, TargetConfig } from '../src/config/schema/schema.ts'
import { configOf, startGateway } from './kit/gateway.ts'
import { chunk, failure, hang, startVendor, stream, whole } from './kit/vendor.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

type Rules = Omit<TargetConfig, 'provider' | 'model'>

/** A gateway with the model `v/m`, whose targets `one`, `two`, ... have these rules, and `v/other` at a vendor of its own. */
async function setUp(rules: Rules[], model: Partial<ModelConfig> = {}) {
  const names = ['one', 'two', 'three'].slice(0, rules.length)
  const vendors = [...names, 'other'].map((id) => ({ id, ...startVendor() }))
  const gateway = await startGateway({
    providers: Object.fromEntries(vendors.map(({ id, url }) => [id, { base_url: url }])),
    models: {
      'v/m': { targets: names.map((provider, index) => ({ provider, model: 'm', ...rules[index] })), ...model },
      'v/other': { targets: [{ provider: 'other', model: 'm' }] },
    },
  })
  closing.push(() => gateway[Symbol.asyncDispose](), ...vendors.map(({ stop }) => stop))
  const ask = (fields: object = {}, headers: Record<string, string> = {}) =>
    gateway.chat({ model: 'v/m', messages: [{ role: 'user', content: 'hi' }], ...fields }, { headers })
  /** The target that serves such a request, or the message of the error. */
  async function served(fields: object = {}, headers: Record<string, string> = {}) {
    const response = await ask(fields, headers)
    const body = (await response.json()) as { error?: { code: string; message: string } }
    return response.ok ? response.headers.get('x-gatehouse-target') : `${body.error?.code}: ${body.error?.message}`
  }
  return { vendors: Object.fromEntries(vendors.map((one) => [one.id, one])), gateway, ask, served }
}

const TOOLS = { tools: [{ type: 'function', function: { name: 'now' } }] }
const image_url = { url: 'data:image/png;base64,iVBORw0KGgo=' }
const IMAGE = { messages: [{ role: 'user', content: [{ type: 'image_url', image_url }] }] }
/** A message of so many estimated tokens, four of which are its separators. */
const sized = (tokens: number) => ({ messages: [{ role: 'user', content: 'word'.repeat(tokens - 4) }] })

describe('`when` of a target', () => {
  it.each([
    ['tools: true', { tools: true }, TOOLS, {}],
    ['tools: false', { tools: false }, {}, TOOLS],
    ['images: true', { images: true }, IMAGE, {}],
    ['images: false', { images: false }, {}, IMAGE],
    ['min_input_tokens', { min_input_tokens: 100 }, sized(100), sized(99)],
    ['max_input_tokens', { max_input_tokens: 100 }, sized(100), sized(101)],
  ])('%s: it takes such requests, and the next target the others', async (_, when, fitting, other) => {
    const { served } = await setUp([{ when }, {}])
    expect(await served(fitting)).toBe('one/m')
    expect(await served(other)).toBe('two/m')
  })

  it('tags: it takes requests that have each of them', async () => {
    const { served } = await setUp([{ when: { tags: ['batch', 'eu'] } }, {}])
    expect(await served({}, { 'x-gatehouse-tags': 'eu,x,batch' })).toBe('one/m')
    expect(await served({}, { 'x-gatehouse-tags': 'eu' })).toBe('two/m')
    expect(await served()).toBe('two/m')
  })

  it('families: it takes requests of these APIs', async () => {
    const { gateway, served } = await setUp([{ when: { families: ['messages-compat'] } }, {}])
    expect(await served()).toBe('two/m')
    const json = { model: 'v/m', max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] }
    const { headers } = await gateway.call('/v1/messages', { json })
    expect(headers.get('x-gatehouse-target')).toBe('one/m')
  })

  it('holds for each key of a provider, and for legacy completions', async () => {
    const acme = startVendor()
    const keys = [{ key: 'first-key-0001' }, { key: 'second-key-0002' }]
    const targets = [
      { provider: 'acme', model: 'large', when: { min_input_tokens: 100 } },
      { provider: 'acme', model: 'small' },
    ]
    const providers = { acme: { base_url: acme.url, keys } }
    const gateway = await startGateway({ providers, models: { 'v/m': { targets } } })
    closing.push(() => gateway[Symbol.asyncDispose](), acme.stop)
    const models: unknown[] = []
    for (const prompt of ['short', 'short', 'word'.repeat(200), 'word'.repeat(200)]) {
      expect((await gateway.call('/v1/completions', { json: { model: 'v/m', prompt } })).status).toBe(200)
      models.push(acme.requests.at(-1)?.json().model)
    }
    expect(models).toEqual(['small', 'small', 'large', 'large'])
  })

  it('is reported where no target takes the request', async () => {
    const { served, vendors } = await setUp([
      { when: { tools: true, max_input_tokens: 50 } },
      { when: { tags: ['batch'], families: ['chatcompat'] } },
    ])
    expect(await served()).toBe(
      'no_available_channel: No provider of this model takes this request: it must have tools; it must have the tag "batch".',
    )
    expect(await served({ ...TOOLS, ...sized(100) })).toMatch(
      /^no_available_channel: .* it must have at most 50 input tokens, not about 1\d\d; it must have the tag "batch"\.$/,
    )
    expect(vendors.one?.requests).toHaveLength(0)
  })

  it('leaves the request to a fallback model where no target takes it', async () => {
    const { served } = await setUp([{ when: { tools: true } }], { fallbacks: ['v/other'] })
    expect(await served()).toBe('other/m')
    expect(await served(TOOLS)).toBe('one/m')
  })
})

describe('the time limits of a target', () => {
  it('first_byte_seconds: the next target is called after it', async () => {
    const { vendors, gateway, ask } = await setUp([{ timeouts: { first_byte_seconds: 2 } }, {}], {
      routing: { first_byte_seconds: 40 },
    })
    vendors.one?.answer(hang())
    const call = ask()
    await vendors.one?.request(1)
    gateway.clock.advance(2_000)
    expect((await call).headers.get('x-gatehouse-target')).toBe('two/m')
  })

  it('first_byte_seconds holds for the last target too', async () => {
    const { vendors, gateway, ask } = await setUp([{ timeouts: { first_byte_seconds: 2 } }])
    vendors.one?.answer(hang())
    const call = ask()
    await vendors.one?.request(1)
    gateway.clock.advance(2_000)
    const response = await call
    expect(response.status).toBe(504)
    expect(await response.text()).toContain('sent nothing within 2 s')
  })

  it('total_seconds: ends a try before its first byte, and the next target is called', async () => {
    const { vendors, gateway, ask } = await setUp([{ timeouts: { total_seconds: 3 } }, {}])
    vendors.one?.answer(hang())
    const call = ask()
    await vendors.one?.request(1)
    gateway.clock.advance(3_000)
    expect((await call).headers.get('x-gatehouse-target')).toBe('two/m')
  })

  it('total_seconds: ends a stream with an error, and the connection to the provider', async () => {
    const { vendors, gateway, ask } = await setUp([{ timeouts: { total_seconds: 3 } }])
    vendors.one?.answer(stream([chunk({ role: 'assistant', content: 'Hel' })], { hangAfter: 1 }))
    const response = await ask({ stream: true })
    gateway.clock.advance(3_000)
    expect(await response.text()).toContain('took longer than 3 s')
    await vendors.one?.aborted
  })

  it('total_seconds: leaves no timer behind when the response has ended', async () => {
    const timersAfterCalls = async (timeouts: NonNullable<TargetConfig['timeouts']>) => {
      const { gateway, ask, vendors } = await setUp([{ timeouts }])
      expect(await (await ask({ stream: true })).text()).toContain('[DONE]')
      vendors.one?.answer(failure(500))
      expect((await ask()).status).toBe(502)
      expect((await ask()).status).toBe(200)
      return gateway.clock.waiting()
    }
    expect(await timersAfterCalls({ total_seconds: 3 })).toBe(await timersAfterCalls({}))
  })
})

describe('strategy cheapest', () => {
  const routing = { strategy: 'cheapest' as const }

  it('calls the target where the request costs least: long inputs and long outputs differ', async () => {
    // 100 tokens of input, and 500 expected of output: 2600 and 1500. 10000 and 10: 10050 and 50000.
    const { served } = await setUp([{ prices: { input: 1, output: 5 } }, { prices: { input: 5, output: 2 } }], {
      routing,
    })
    expect(await served(sized(100))).toBe('two/m')
    expect(await served({ ...sized(10_000), max_tokens: 10 })).toBe('one/m')
  })

  it('calls the next cheapest one when that fails', async () => {
    const { vendors, served } = await setUp(
      [{ prices: { input: 3 } }, { prices: { input: 1 } }, { prices: { input: 2 } }],
      { routing },
    )
    vendors.two?.answer(failure(500))
    expect(await served()).toBe('three/m')
  })

  it('takes the prices of the model where a target has none', async () => {
    const { served } = await setUp([{ prices: { input: 3, output: 3 } }, {}], {
      routing,
      prices: { input: 2, output: 2 },
    })
    expect(await served()).toBe('two/m')
  })

  it('calls a target of unknown price last', async () => {
    const { vendors, served } = await setUp([{}, { prices: { input: 9, output: 9 } }], { routing })
    expect(await served()).toBe('two/m')
    vendors.two?.answer(failure(500))
    expect(await served()).toBe('one/m')
  })

  it('shares the calls of targets with the same price by weight', async () => {
    const { vendors, served } = await setUp([{ weight: 3 }, { weight: 1 }], { routing, prices: { input: 1 } })
    for (let i = 0; i < 8; i++) await served()
    expect([vendors.one, vendors.two].map((vendor) => vendor?.requests.length)).toEqual([6, 2])
  })

  it('compares the prices of input where a family has no size', async () => {
    const { gateway, vendors } = await setUp([{ prices: { input: 2 } }, { prices: { input: 1 } }], {
      routing,
      families: ['embeddings'],
    })
    vendors.two?.answer(whole({ data: [{ index: 0, embedding: [1, 2] }] }))
    const { headers } = await gateway.call('/v1/embeddings', { json: { model: 'v/m', input: 'hi' } })
    expect(headers.get('x-gatehouse-target')).toBe('two/m')
  })
})

describe('`when.projects` of a target', () => {
  it('takes the calls of these projects alone', async () => {
    const { gateway, served } = await setUp([{}])
    const { projects, tokens } = gateway.instance
    const { project_id } = await projects.create({ name: 'one' })
    await gateway.instance.reload({
      ...configOf({
        providers: Object.fromEntries(['one', 'other'].map((id) => [id, { base_url: 'http://127.0.0.1:1/v1' }])),
        models: { 'v/m': { targets: [{ provider: 'one', model: 'm', when: { projects: [project_id] } }] } },
      }),
    })
    const bearer = async (project_id: string | null) => ({
      authorization: `Bearer ${(await tokens.issue({ name: String(project_id), project_id })).secret}`,
    })
    const message = 'No provider of this model takes this request: it must be of another project.'
    expect(await served({}, await bearer(null))).toBe(`no_available_channel: ${message}`)
    expect(await served({}, await bearer(project_id))).toContain('"one"')
  })
})
