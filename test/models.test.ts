/** The model catalogue over HTTP: specification 2.1, 3.1 and 4. */
import { afterAll, describe, expect, test } from 'bun:test'
import { Compile } from 'typebox/compile'
import { Model, ModelList } from '../src/spec/model.ts'
import { startGateway } from './kit/gateway.ts'

const provider = { kind: 'chatcompat' as const, base_url: 'http://127.0.0.1:9/v1' }
const gateway = await startGateway({
  providers: { a: provider, b: provider },
  models: {
    'a/one': {},
    'a/same': {},
    'b/same': {},
    'b/deep/name': { created: 1_700_000_000 },
    'a/spaced name': {},
    'a/old': { status: 'deprecated', deprecated_at: 1_700_000_000, replaced_by: 'a/one' },
  },
})
afterAll(() => gateway[Symbol.asyncDispose]())
const get = async (path: string) => {
  const response = await gateway.call(path)
  return { status: response.status, body: await response.json(), headers: response.headers }
}

describe('the list', () => {
  test('is an envelope of models in the form of section 2.1, sorted by id', async () => {
    const { status, body } = await get('/v1/models')
    expect(status).toBe(200)
    expect(Compile(ModelList).Check(body)).toBe(true)
    expect(Object.keys(body).sort()).toEqual(['data', 'object', 'success'])
    const ids = body.data.map((model: Model) => model.id)
    expect(ids).toEqual([...ids].sort())
    expect(ids).toContain('sandbox/general')
    for (const model of body.data) expect(model.owned_by).toBe(model.id.split('/')[0])
  })

  test('omits empty fields and never contains null', async () => {
    const { body } = await get('/v1/models')
    for (const model of body.data) expect(Object.values(model)).not.toContain(null)
    const one = body.data.find((model: Model) => model.id === 'a/one')
    expect(Object.keys(one).sort()).toEqual([
      'created',
      'id',
      'object',
      'owned_by',
      'status',
      'supported_endpoint_types',
    ])
  })

  test('contains only models that the token may use', async () => {
    const { secret } = await gateway.instance.tokens.issue({ name: 'narrow', models: ['b/*'] })
    const response = await gateway.call('/v1/models', { headers: { authorization: `Bearer ${secret}` } })
    const { data } = (await response.json()) as ModelList
    expect(data.map((model) => model.id)).toEqual(['b/deep/name', 'b/same'])
    const foreign = await gateway.call('/v1/models/a/one', { headers: { authorization: `Bearer ${secret}` } })
    expect(foreign.status).toBe(403)
  })

  test('contains only families that the token may use, in the format of each API', async () => {
    const own = await startGateway({
      sandbox: false,
      providers: { a: provider },
      models: {
        'a/chat': {},
        'a/embed': { families: ['embeddings'] },
        'a/both': { families: ['chatcompat', 'embeddings'] },
      },
    })
    const issue = async (families: ('embeddings' | 'rerank')[]) =>
      (await own.instance.tokens.issue({ name: families.join(), families })).secret
    const embeds = await issue(['embeddings'])
    const reranks = await issue(['rerank'])
    const list = async (path: string, headers: Record<string, string>) =>
      await (await own.call(path, { headers })).json()
    for (const [secret, ids] of [
      [embeds, ['a/both', 'a/embed']],
      [reranks, []],
    ] as const) {
      const headers = { authorization: `Bearer ${secret}` }
      const { data } = await list('/v1/models', headers)
      expect(data.map((one: Model) => one.id)).toEqual(ids)
      expect(data.flatMap((one: Model) => one.supported_endpoint_types)).toEqual(ids.map(() => 'embeddings'))
      const messages = await list('/v1/models', { ...headers, 'anthropic-version': '2023-06-01' })
      expect(messages.data.map((one: { id: string }) => one.id)).toEqual(ids)
      const contents = await list('/v1beta/models', { authorization: '', 'x-goog-api-key': secret })
      expect(contents.models.map((one: { name: string }) => one.name)).toEqual(ids.map((id) => `models/${id}`))
      for (const of of [{}, { 'anthropic-version': '2023-06-01' }, { authorization: '', 'x-goog-api-key': secret }]) {
        const { status } = await own.call('/v1/models/a/chat', { headers: { ...headers, ...of } })
        expect(status).toBe(403)
      }
      expect((await own.call('/v1/models/a/both', { headers })).status).toBe(ids.length > 0 ? 200 : 403)
    }
    await own[Symbol.asyncDispose]()
  })

  test.each([
    ['all', ['embeddings', 'moderations'], ['moderations']],
    ['specified', ['embeddings'], []],
  ] as const)('names the families of the setting server.families: %s', async (families, both, added) => {
    await using own = await startGateway({
      sandbox: false,
      server: { families },
      providers: { a: provider },
      models: { 'a/both': { families: ['embeddings', 'moderations'] }, 'a/added': { families: ['moderations'] } },
    })
    const { data } = (await (await own.call('/v1/models')).json()) as ModelList
    expect(data.map(({ id, supported_endpoint_types }) => [id, supported_endpoint_types])).toEqual([
      ['a/added', [...added]],
      ['a/both', [...both]],
    ])
    const model = (await (await own.call('/v1/models/a/both')).json()) as Model
    expect(model.supported_endpoint_types).toEqual([...both])
  })

  test('answers HEAD with the headers only, and accepts a trailing slash', async () => {
    const head = await gateway.call('/v1/models', { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([200, ''])
    expect(head.headers.get('content-type')).toContain('application/json')
    expect((await gateway.call('/v1/models/')).status).toBe(200)
  })
})

describe('one model', () => {
  const names = {
    'a raw slash': 'a/one',
    'an encoded slash': 'a%2Fone',
    'a small encoded slash': 'a%2fone',
    'the short name': 'one',
    'a short name with a slash': 'deep/name',
    'a name with a space': 'a/spaced%20name',
  }
  for (const [what, name] of Object.entries(names)) {
    test(`is found by ${what}, and returned without an envelope`, async () => {
      const { status, body } = await get(`/v1/models/${name}`)
      expect(status).toBe(200)
      expect(Compile(Model).Check(body)).toBe(true)
      expect(body.id).toEndWith(decodeURIComponent(name))
      expect(body.id).toMatch(/^[ab]\//)
    })
  }

  test('that is unknown returns 404 in the common error format', async () => {
    const { status, body } = await get('/v1/models/a/nothing')
    expect(status).toBe(404)
    expect(body.error).toMatchObject({ code: 'model_not_found', type: 'invalid_request_error', param: 'model' })
  })

  test('whose short name matches several returns 400 and names them', async () => {
    const { status, body } = await get('/v1/models/same')
    expect([status, body.error.code]).toEqual([400, 'ambiguous_model'])
    expect(body.error.message).toContain('a/same, b/same')
  })

  test('with an invalid percent-encoding returns 400', async () => {
    expect((await get('/v1/models/a%2')).status).toBeOneOf([400, 404])
    expect((await get('/v1/models/%E0%A4%A')).status).toBeOneOf([400, 404])
  })

  test('shows its lifecycle', async () => {
    expect((await get('/v1/models/a/old')).body).toMatchObject({
      status: 'deprecated',
      deprecated_at: 1_700_000_000,
      replaced_by: 'a/one',
    })
    expect((await get('/v1/models/sandbox/retired')).body.status).toBe('retired')
  })

  test('has the configured created time, or else the time when it entered the catalogue', async () => {
    expect((await get('/v1/models/b/deep/name')).body.created).toBe(1_700_000_000)
    expect((await get('/v1/models/a/one')).body.created).toBe(Math.floor(gateway.clock.now() / 1000))
  })
})
