/** The catalogue in the list formats of other clients: Messages and contentgen. */
import { afterAll, describe, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OldAnthropic from 'anthropic-sdk-0'
import { GoogleGenAI as OldGoogleGenAI } from 'google-genai-2'
import { openPort } from './kit/served.ts'

const provider = { kind: 'chatcompat' as const, base_url: 'http://127.0.0.1:9/v1' }
const port = await openPort({
  sandbox: false,
  providers: { a: provider },
  models: {
    'a/gone': { status: 'retired', deprecated_at: 1_600_000_000, retired_at: 1_650_000_000, created: 1_500_000_000 },
    'a/old': { status: 'deprecated', deprecated_at: 1_700_000_000, replaced_by: 'a/one', created: 1_500_000_000 },
    'a/one': { created: 1_700_000_000, context_tokens: 200_000, limits: { max_tokens: { maximum: 8192 } } },
    'a/two': { created: 1_700_000_001 },
  },
})
afterAll(() => port.close())
const base = port.url.replace(/\/v1$/, '')

const get = async (path: string, headers: Record<string, string> = {}) => {
  const response = await port.gateway.call(path, { headers })
  return { status: response.status, body: await response.json() }
}
const MESSAGES = { 'anthropic-version': '2023-06-01' }
const CONTENTGEN = () => ({ 'x-goog-api-key': port.token })
const idsOf = async (models: AsyncIterable<{ id: string }>) => {
  const ids: string[] = []
  for await (const model of models) ids.push(model.id)
  return ids
}

describe('a client of the Messages API', () => {
  for (const [name, Client] of [
    ['@anthropic-ai/sdk 1', Anthropic],
    ['@anthropic-ai/sdk 0', OldAnthropic],
  ] as const) {
    test(`${name} lists all callable models, over several pages`, async () => {
      const client = new Client({ apiKey: port.token, baseURL: base, maxRetries: 0 })
      expect(await idsOf(client.models.list())).toEqual(['a/old', 'a/one', 'a/two'])
      expect(await idsOf(client.models.list({ limit: 1 }))).toEqual(['a/old', 'a/one', 'a/two'])
      const model = await client.models.retrieve('a/one')
      expect(model).toMatchObject({ type: 'model', id: 'a/one', created_at: '2023-11-14T22:13:20Z' })
    })
  }

  test('gets the lifecycle and the limits of a model', async () => {
    const { body } = await get('/v1/models', MESSAGES)
    expect(Object.keys(body)).toEqual(['data', 'has_more', 'first_id', 'last_id'])
    expect(body).toMatchObject({ has_more: false, first_id: 'a/old', last_id: 'a/two' })
    const [old, one, two] = body.data
    expect(old).toMatchObject({ lifecycle: 'deprecated', deprecated_at: '2023-11-14T22:13:20Z', retires_at: null })
    expect(one).toMatchObject({ lifecycle: 'active', max_input_tokens: 200_000, max_tokens: 8192, deprecated_at: null })
    expect(two).toMatchObject({ max_input_tokens: null, max_tokens: null })
  })

  test('gets retired models if requested', async () => {
    const { body } = await get('/v1/models?lifecycle=retired', MESSAGES)
    expect(body.data).toHaveLength(1)
    expect(body.data[0]).toMatchObject({ id: 'a/gone', retires_at: '2022-04-15T05:20:00Z' })
  })

  test('pages forwards and backwards', async () => {
    const page = async (query: string) => {
      const { body } = await get(`/v1/models?${query}`, MESSAGES)
      return [body.data.map(({ id }: { id: string }) => id), body.has_more]
    }
    expect(await page('limit=2')).toEqual([['a/old', 'a/one'], true])
    expect(await page('limit=2&after_id=a/one')).toEqual([['a/two'], false])
    expect(await page('limit=1&before_id=a/two')).toEqual([['a/one'], true])
    expect(await page('limit=2&before_id=a/two')).toEqual([['a/old', 'a/one'], false])
    expect(await page('after_id=a/two')).toEqual([[], false])
  })

  test('gets an error in its own format for an invalid request', async () => {
    for (const limit of ['0', '1001', 'x', '1.5']) {
      const { status, body } = await get(`/v1/models?limit=${limit}`, MESSAGES)
      expect([status, body.type, body.error.type]).toEqual([400, 'error', 'invalid_request_error'])
      expect(body.error.message).toContain('"limit" must be an integer from 1 to 1000')
    }
    expect((await get('/v1/models?limit=1000', MESSAGES)).status).toBe(200)
    expect((await get('/v1/models?after_id=nowhere', MESSAGES)).status).toBe(400)
    const missing = await get('/v1/models/nowhere', MESSAGES)
    expect([missing.status, missing.body.error.type]).toEqual([404, 'not_found_error'])
    const unknown = await get('/v1/models', { ...MESSAGES, authorization: 'Bearer sk-wrong' })
    expect([unknown.status, unknown.body.error.type]).toEqual([401, 'authentication_error'])
  })
})

describe('a client of the contentgen API', () => {
  for (const [name, Client] of [
    ['@google/genai 3', GoogleGenAI],
    ['@google/genai 2', OldGoogleGenAI],
  ] as const) {
    test(`${name} lists the models over its pages, and gets one`, async () => {
      const client = new Client({ apiKey: port.token, httpOptions: { baseUrl: base } })
      const names: (string | undefined)[] = []
      for await (const model of await client.models.list({ config: { pageSize: 3 } })) names.push(model.name)
      expect(names).toEqual(['models/a/gone', 'models/a/old', 'models/a/one', 'models/a/two'])
      const model = await client.models.get({ model: 'a/one' })
      expect(model).toMatchObject({ name: 'models/a/one', inputTokenLimit: 200_000, outputTokenLimit: 8192 })
    })
  }

  test('is recognized by its key in the header or the query, and by the version in the path', async () => {
    const requests = [
      get('/v1/models', CONTENTGEN()),
      get(`/v1/models?key=${port.token}`, { authorization: '' }),
      get('/v1beta/models'),
      get('/v1alpha/models/'),
    ]
    for (const { status, body } of await Promise.all(requests)) {
      expect([status, body.models.length, body.nextPageToken]).toEqual([200, 4, undefined])
    }
    expect((await get('/v1beta/models/a%2Fone')).body.name).toBe('models/a/one')
    expect((await get('/v1/models', { 'x-api-key': port.token })).body.object).toBe('list')
  })

  test('gets errors in its own format', async () => {
    const missing = await get('/v1beta/models/nowhere')
    expect([missing.status, missing.body.error.code, missing.body.error.status]).toEqual([404, 404, 'NOT_FOUND'])
    const unknown = await get('/v1/models', { authorization: '', 'x-goog-api-key': 'sk-wrong' })
    expect([unknown.status, unknown.body.error.status]).toEqual([401, 'UNAUTHENTICATED'])
    expect((await get('/v1beta/models?pageSize=0')).status).toBe(400)
    expect((await get('/v1beta/models?pageSize=1000')).status).toBe(200)
    expect((await get('/v1beta/models?pageSize=1001')).status).toBe(400)
    expect((await get('/v1beta/models?pageToken=nowhere')).status).toBe(400)
  })
})
