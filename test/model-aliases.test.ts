/** Aliases and patterns of `models`: which model serves an id that is not in the catalogue. */
import { afterAll, beforeAll, describe, expect, it } from 'bun:test'
import { startGateway, type TestGateway } from './kit/gateway.ts'

let gateway: TestGateway

beforeAll(async () => {
  gateway = await startGateway({
    models: {
      '*': { alias_of: 'sandbox/general' },
      'claude-*': { alias_of: 'sandbox/compact' },
      'claude-*haiku*': { alias_of: 'house/fast' },
      'text-embedding-*': { alias_of: 'sandbox/embedding' },
      fast: { alias_of: 'house/fast' },
      general: { alias_of: 'house/fast' },
      'house/fast': { targets: [{ provider: 'sandbox', model: 'general' }] },
      'house/old': { targets: [{ provider: 'sandbox', model: 'general' }], status: 'deprecated' },
      'old-*': { alias_of: 'house/old' },
    },
  })
})
afterAll(() => gateway[Symbol.asyncDispose]())

async function tokenFor(...models: string[]): Promise<string> {
  return (await gateway.instance.tokens.issue({ name: 'limited', models })).secret
}

async function send(path: string, { token = '', json }: { token?: string; json?: object } = {}) {
  const authorization = `Bearer ${token || (await tokenFor('*'))}`
  const request = new Request(`http://gatehouse.test${path}`, {
    method: json ? 'POST' : 'GET',
    headers: { authorization, 'content-type': 'application/json' },
    ...(json ? { body: JSON.stringify(json) } : {}),
  })
  const response = await gateway.instance.fetch(request)
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>,
  }
}

const chat = (model: string, token?: string) =>
  send('/v1/chat/completions', {
    ...(token === undefined ? {} : { token }),
    json: { model, messages: [{ role: 'user', content: 'hi' }] },
  })

async function servedBy(model: string, token?: string) {
  const { status, headers, body } = await chat(model, token)
  const served = headers.get('x-model-served')
  if (status === 200) expect(served).toBe(body.model as string)
  return served ?? (status === 200 ? (body.model as string) : (body.error as { code: string }).code)
}

describe('a model id with a matching alias', () => {
  it('is served by the model of the most specific pattern', async () => {
    expect(await servedBy('gpt-9-turbo')).toBe('sandbox/general')
    expect(await servedBy('claude-opus-9')).toBe('sandbox/compact')
    expect(await servedBy('claude-9-haiku-20260101')).toBe('house/fast')
    expect(await servedBy('fast')).toBe('house/fast')
  })

  it('names the requested and the serving model in headers and in the response', async () => {
    const { headers, body } = await chat('claude-opus-9')
    expect(headers.get('x-model-requested')).toBe('claude-opus-9')
    expect(headers.get('x-model-served')).toBe('sandbox/compact')
    expect(body.model).toBe('sandbox/compact')
  })

  it('shows the state of the model that serves', async () => {
    const { headers } = await chat('old-one')
    expect(headers.get('deprecation')).toBe('true')
  })

  it('is served in other families', async () => {
    const { status, headers } = await send('/v1/embeddings', { json: { model: 'text-embedding-9', input: 'x' } })
    expect([status, headers.get('x-model-served')]).toEqual([200, 'sandbox/embedding'])
    const json = { model: 'claude-opus-9', max_tokens: 20, messages: [{ role: 'user', content: 'hi' }] }
    const messages = await send('/v1/messages', { json })
    expect([messages.status, messages.headers.get('x-model-served')]).toEqual([200, 'sandbox/compact'])
    const wrong = await send('/v1/embeddings', { json: { model: 'claude-opus-9', input: 'x' } })
    expect(wrong.body).toMatchObject({ error: { code: 'unsupported_endpoint' } })
  })
})

describe('a model of the catalogue', () => {
  it('wins over patterns, by its full id', async () => {
    const { headers, body } = await chat('sandbox/general')
    expect([body.model, headers.get('x-model-served')]).toEqual(['sandbox/general', null])
  })

  it('wins over patterns by its short name, and an alias with that exact id wins over the short name', async () => {
    const compact = await chat('compact')
    expect([compact.body.model, compact.headers.get('x-model-served')]).toEqual(['sandbox/compact', null])
    expect(await servedBy('general')).toBe('house/fast')
  })
})

describe('GET /v1/models', () => {
  it('lists aliases with an exact id, and no patterns', async () => {
    const { body } = await send('/v1/models')
    const ids = (body.data as { id: string }[]).map(({ id }) => id)
    expect(ids).toContain('fast')
    expect(ids.filter((id) => id.includes('*'))).toEqual([])
    expect(ids).toEqual(ids.toSorted())
  })

  it('retrieves an id that matches a pattern', async () => {
    const { status, body } = await send('/v1/models/claude-opus-9')
    expect(status).toBe(200)
    expect(body).toMatchObject({ id: 'claude-opus-9', status: 'active' })
    expect(body.supported_endpoint_types).toContain('messages-compat')
  })

  it('lists an alias for a token that may use it or its model', async () => {
    for (const [pattern, isListed] of Object.entries({ fast: true, 'house/*': true, 'sandbox/*': false })) {
      const { body } = await send('/v1/models', { token: await tokenFor(pattern) })
      expect((body.data as { id: string }[]).some(({ id }) => id === 'fast')).toBe(isListed)
    }
  })
})

describe('a limited token', () => {
  it('may use an alias of a model that it may use', async () => {
    expect(await servedBy('claude-opus-9', await tokenFor('sandbox/compact'))).toBe('sandbox/compact')
  })

  it('may use an alias that it was granted, without the right to use its model', async () => {
    expect(await servedBy('fast', await tokenFor('fast'))).toBe('house/fast')
    expect(await servedBy('claude-opus-9', await tokenFor('claude-*'))).toBe('sandbox/compact')
    expect(await servedBy('house/fast', await tokenFor('fast'))).toBe('model_not_allowed')
  })

  it('cannot reach another model by an id that its patterns match and a broader alias catches', async () => {
    const token = await tokenFor('acme/*', 'claude-opus-9', 'house/old')
    expect(await servedBy('acme/invented', token)).toBe('model_not_allowed')
    expect(await servedBy('claude-opus-9', token)).toBe('model_not_allowed')
    const { body } = await send('/v1/models/acme/invented', { token })
    expect(body).toMatchObject({ error: { code: 'model_not_allowed' } })
    expect(await servedBy('old-one', token)).toBe('house/old')
  })
})

describe('a request without a model', () => {
  it('is served by a model and not by an alias', async () => {
    const { body } = await send('/v1/moderations', { json: { input: 'x' } })
    expect(body.model).toStartWith('sandbox/')
  })
})
