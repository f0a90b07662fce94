/** Embeddings through the whole gateway: requests, how lists are split and joined, recorded usage. */
import { describe, expect, test } from 'bun:test'
import { floatsOfBase64 } from '../src/kit/float32.ts'
import type { EmbeddingList } from '../src/spec/embedding-request.ts'
import type { TestGateway } from './kit/gateway.ts'
import { perTest, postJson } from './kit/per-test.ts'
import { type Answer, failure, hang, whole } from './kit/vendor.ts'

type Json = Record<string, unknown>

const { open, vendorWith } = perTest()

const embed = (gateway: TestGateway, json: unknown, path = '/v1/embeddings') =>
  postJson<EmbeddingList & { error: Json }>(gateway, path, json)

const vectors = ({ data }: EmbeddingList) => data.map(({ embedding }) => embedding as number[])

/** Returns a vector with the number of each text, in the OpenAI format. */
const numbered: Answer = (wire) => {
  const { input } = wire.request.json() as { input: string[] }
  return whole({
    data: input.map((text, index) => ({ index, embedding: [Number(text), 1] })),
    usage: { prompt_tokens: input.length },
  })(wire)
}
const texts = (count: number) => Array.from({ length: count }, (_, at) => String(at))

describe('the response', () => {
  test('has a vector for each input, in order, and the token counts', async () => {
    const gateway = await open()
    const { body, status } = await embed(gateway, { model: 'embedding', input: ['one two', 'three'] })
    expect(status).toBe(200)
    expect(body).toMatchObject({ object: 'list', model: 'sandbox/embedding' })
    expect(body.data.map(({ object, index }) => [object, index])).toEqual([
      ['embedding', 0],
      ['embedding', 1],
    ])
    expect(vectors(body).map((vector) => vector.length)).toEqual([1024, 1024])
    expect(body.usage).toEqual({ prompt_tokens: 3, total_tokens: 3 })
  })

  test('is the same for a text, a list of one text, and `null` for optional fields', async () => {
    const gateway = await open()
    const [one, list, nulls] = await Promise.all(
      [{ input: 'A river' }, { input: ['A river'] }, { input: 'A river', dimensions: null, encoding_format: null }].map(
        (fields) => embed(gateway, { model: 'sandbox/embedding', user: null, ...fields }),
      ),
    )
    expect(list?.body).toEqual(one?.body as EmbeddingList & { error: Json })
    expect(nulls?.body).toEqual(one?.body as EmbeddingList & { error: Json })
  })

  test('has the same vector, in 32-bit floats, with base64', async () => {
    const gateway = await open()
    const fields = { model: 'sandbox/embedding', input: 'A river', dimensions: 64 }
    const plain = await embed(gateway, fields)
    const packed = await embed(gateway, { ...fields, encoding_format: 'base64' })
    const [text] = packed.body.data.map(({ embedding }) => String(embedding))
    const [numbers = []] = vectors(plain.body)
    expect(floatsOfBase64(text ?? '')).toEqual(numbers.map(Math.fround))
  })

  test('accepts token ids as one input or a list of inputs', async () => {
    const gateway = await open()
    const one = await embed(gateway, { model: 'sandbox/embedding', input: [5, 6, 7], dimensions: 8 })
    const list = await embed(gateway, { model: 'sandbox/embedding', input: [[5, 6, 7], [8]], dimensions: 8 })
    expect(vectors(one.body)).toHaveLength(1)
    expect(vectors(list.body)[0]).toEqual(vectors(one.body)[0] as number[])
    expect(list.body.usage.prompt_tokens).toBe(4)
  })
})

describe('limits: the last allowed value and the first rejected one', () => {
  const many = (count: number) => Array(count).fill('x')
  const numbers = (count: number) => Array(count).fill(7)
  test.each([
    ['dimensions: 1', { dimensions: 1 }, 200],
    ['dimensions: 4096', { dimensions: 4096 }, 200],
    ['dimensions: 0', { dimensions: 0 }, 'dimensions'],
    ['dimensions: 4097', { dimensions: 4097 }, 'dimensions'],
    ['dimensions: 1.5', { dimensions: 1.5 }, 'dimensions'],
    ['dimensions: ’8’', { dimensions: '8' }, 'dimensions'],
    ['encoding_format: ’float’', { encoding_format: 'float' }, 200],
    ['encoding_format: ’hex’', { encoding_format: 'hex' }, 'encoding_format'],
    ['input: ’x’', { input: 'x' }, 200],
    ['input: ’’', { input: '' }, 'input'],
    ['input: []', { input: [] }, 'input'],
    ['input: [’x’, ’’]', { input: ['x', ''] }, 'input[1]'],
    ['input: [’x’, 5]', { input: ['x', 5] }, 'input[1]'],
    ['input: [[1], ’x’]', { input: [[1], 'x'] }, 'input[1]'],
    ['input: [[1], []]', { input: [[1], []] }, 'input[1]'],
    ['input: [1, -1]', { input: [1, -1] }, 'input[1]'],
    ['input: [[0], [1, 0.5]]', { input: [[0], [1, 0.5]] }, 'input[1][1]'],
    ['input: [null]', { input: [null] }, 'input[0]'],
    ['input: 5', { input: 5 }, 'input'],
    ['input: null', { input: null }, 'input'],
    ['model: 5', { model: 5 }, 'model'],
    ['input: numbers(8_192)', { input: numbers(8_192) }, 200],
    ['input: numbers(8_193)', { input: numbers(8_193) }, 'input'],
    ['input: [[1], numbers(8_193)]', { input: [[1], numbers(8_193)] }, 'input[1]'],
    ['input: ’a ’.repeat(8_191)', { input: 'a '.repeat(8_191) }, 200],
    ['input: ’a ’.repeat(8_193)', { input: 'a '.repeat(8_193) }, 'input'],
    ['input: many(100_001)', { input: many(100_001) }, 'input'],
    ['input: many(2_500), dimensions: 4_000', { input: many(2_500), dimensions: 4_000 }, 200],
    ['input: many(2_501), dimensions: 4_000', { input: many(2_501), dimensions: 4_000 }, 'input'],
    ['input: a text that is too long, in the second part', { input: [...many(300), 'a '.repeat(8_193)] }, 'input[300]'],
  ] as [string, Json, number | string][])('%s', async (_, fields, expected) => {
    const gateway = await open()
    const { status, body } = await embed(gateway, { model: 'sandbox/embedding', input: 'x', ...fields })
    if (typeof expected === 'number') expect(status).toBe(expected)
    else expect([status, body.error.param]).toEqual([400, expected])
  })

  test('a model may accept certain dimensions only, and may have a default', async () => {
    const vendor = vendorWith()
    vendor.otherwise((wire) => {
      const { dimensions } = wire.request.json() as { dimensions: number }
      return whole({ data: [{ index: 0, embedding: Array(dimensions).fill(1) }] })(wire)
    })
    const gateway = await open({
      providers: { v: { base_url: vendor.url, key: 'k' } },
      models: { 'v/m': { families: ['embeddings'], embeddings: { dimensions: { values: [2, 4], default: 4 } } } },
    })
    const lengthOf = async (more: Json) =>
      vectors((await embed(gateway, { model: 'v/m', input: 'x', ...more })).body)[0]
    expect(await lengthOf({})).toHaveLength(4)
    expect(await lengthOf({ dimensions: 2 })).toHaveLength(2)
    const { status, body } = await embed(gateway, { model: 'v/m', input: 'x', dimensions: 3 })
    expect([status, body.error.message]).toEqual([400, '"dimensions" must be one of 2, 4 for the model "v/m", not 3.'])
  })

  test('a chat model is rejected for embeddings, and an embedding model for chat', async () => {
    const gateway = await open()
    const { status, body } = await embed(gateway, { model: 'sandbox/general', input: 'x' })
    expect([status, body.error.code]).toEqual([400, 'unsupported_endpoint'])
    const chat = await gateway.chat({ model: 'sandbox/embedding', messages: [{ role: 'user', content: 'x' }] })
    expect(((await chat.json()) as { error: Json }).error.code).toBe('unsupported_endpoint')
  })

  test('an embedding model has its own family, also when only its name shows it', async () => {
    const vendor = vendorWith()
    const gateway = await open({
      providers: { v: { base_url: vendor.url, key: 'k' } },
      models: { 'v/text-embedding-x': {}, 'v/bge-reranker': {}, 'v/chatty': {} },
    })
    const families = async (id: string) =>
      ((await (await gateway.call(`/v1/models/${id}`)).json()) as Json).supported_endpoint_types
    expect(await families('sandbox/embedding')).toEqual(['embeddings'])
    expect(await families('sandbox/rerank')).toEqual(['rerank'])
    expect(await families('v/text-embedding-x')).toEqual(['embeddings'])
    expect(await families('v/bge-reranker')).toEqual([]) // this provider has no path for it
    expect(await families('v/chatty')).toContain('chatcompat')
  })
})

describe('long lists', () => {
  const models = { 'v/m': { families: ['embeddings' as const], embeddings: { most_inputs: 3 } } }

  test('are split at the limit of the model, and joined in order, whichever part finishes first', async () => {
    const vendor = vendorWith()
    const gates = new Map<string, () => void>()
    // The parts get their responses from the last to the first.
    vendor.otherwise(async (wire) => {
      const { input } = wire.request.json() as { input: string[] }
      if (input[0] !== '6') await new Promise<void>((resolve) => gates.set(input[0] ?? '', resolve))
      await numbered(wire)
      gates.get(input[0] === '6' ? '3' : '0')?.()
    })
    const gateway = await open({ providers: { v: { base_url: vendor.url, key: 'k' } }, models })
    const pending = embed(gateway, { model: 'v/m', input: texts(7) })
    const { body } = await pending
    expect(vectors(body).map(([number]) => number)).toEqual([0, 1, 2, 3, 4, 5, 6])
    expect(body.usage).toEqual({ prompt_tokens: 7, total_tokens: 7 })
    expect(vendor.requests.map((request) => (request.json().input as string[]).length).sort()).toEqual([1, 3, 3])
  })

  test.each([
    [3, 1],
    [4, 2],
  ])('%d inputs need %d calls of at most three inputs', async (count, calls) => {
    const vendor = vendorWith()
    vendor.otherwise(numbered)
    const gateway = await open({ providers: { v: { base_url: vendor.url, key: 'k' } }, models })
    expect((await embed(gateway, { model: 'v/m', input: texts(count) })).status).toBe(200)
    expect(vendor.requests).toHaveLength(calls)
  })

  test('are split by their tokens too; a text has at most one token for each byte', async () => {
    const vendor = vendorWith()
    vendor.otherwise((wire) => {
      const { input } = wire.request.json() as { input: string[] }
      return whole({ data: input.map((text, index) => ({ index, embedding: [text.length] })) })(wire)
    })
    const gateway = await open({
      providers: { v: { base_url: vendor.url, key: 'k', quirks: { embedding_call_tokens: 10 } } },
      models: { 'v/m': { families: ['embeddings'] } },
    })
    const input = ['aaaaa', 'bbbbb', 'c', 'x'.repeat(30), 'ü', 'ddddddddd']
    const { body } = await embed(gateway, { model: 'v/m', input })
    expect(vectors(body).map(([length]) => length)).toEqual([5, 5, 1, 30, 1, 9])
    const parts = vendor.requests.map((request) => (request.json().input as string[]).length)
    expect(parts.sort()).toEqual([1, 1, 1, 1, 2]) // two of five make ten; a text that is too long is sent alone; ü has two bytes
  })

  test('have at most four calls open at a time', async () => {
    const vendor = vendorWith()
    let open_now = 0
    let most = 0
    const held: (() => void)[] = []
    vendor.otherwise(async (wire) => {
      most = Math.max(most, ++open_now)
      if (held.length < 4) {
        await new Promise<void>((resolve) => {
          held.push(resolve)
          if (held.length === 4) for (const release of held) release()
        })
      }
      open_now--
      await numbered(wire)
    })
    const gateway = await open({ providers: { v: { base_url: vendor.url, key: 'k' } }, models })
    expect((await embed(gateway, { model: 'v/m', input: texts(30) })).status).toBe(200)
    expect(vendor.requests).toHaveLength(10)
    expect(most).toBe(4)
  })

  test('end at the first failure: open calls are cancelled and no new ones start', async () => {
    const vendor = vendorWith()
    vendor.otherwise((wire) => {
      const { input } = wire.request.json() as { input: string[] }
      return (input[0] === '3' ? failure(400, { message: 'Bad text' }) : hang())(wire)
    })
    const gateway = await open({ providers: { v: { base_url: vendor.url, key: 'k' } }, models })
    const { status, body } = await embed(gateway, { model: 'v/m', input: texts(30) })
    expect([status, body.error.message]).toEqual([400, 'Bad text'])
    expect(vendor.requests.length).toBeLessThanOrEqual(4)
    await vendor.aborted
  })

  test('are split for the sandbox too', async () => {
    const gateway = await open()
    const { body } = await embed(gateway, { model: 'sandbox/embedding', input: texts(600), dimensions: 4 })
    expect(vectors(body)).toHaveLength(600)
    expect(body.data.map(({ index }) => index)).toEqual(texts(600).map(Number))
  })
})

test('an embedding model that a provider lists is discovered with its family, and can be called', async () => {
  const vendor = vendorWith()
  vendor.otherwise((wire) => {
    const data = ['gpt-x', 'text-embedding-x', 'bge-reranker'].map((id) => ({ id, object: 'model', created: 7 }))
    return wire.request.path.endsWith('/models') ? whole({ object: 'list', data })(wire) : numbered(wire)
  })
  const gateway = await open({ sandbox: false, providers: { v: { base_url: vendor.url, key: 'k', discover: true } } })
  await gateway.instance.discovery
  const { data } = (await (await gateway.call('/v1/models')).json()) as { data: Json[] }
  expect(data.map(({ id, created }) => [id, created])).toEqual([
    ['v/gpt-x', 7],
    ['v/text-embedding-x', 7],
  ])
  expect(data[1]?.supported_endpoint_types).toEqual(['embeddings'])
  expect(vectors((await embed(gateway, { model: 'text-embedding-x', input: ['4', '2'] })).body)).toEqual([
    [4, 1],
    [2, 1],
  ])
})

describe('targets', () => {
  const two = async (first: Answer, second: Answer) => {
    const [one, other] = [vendorWith(), vendorWith()]
    one.otherwise(first)
    other.otherwise(second)
    const gateway = await open({
      providers: { a: { base_url: one.url, key: 'k' }, b: { base_url: other.url, key: 'k' } },
      models: {
        m: {
          families: ['embeddings'],
          targets: [
            { provider: 'a', model: 'x' },
            { provider: 'b', model: 'y' },
          ],
          embeddings: { most_inputs: 2 },
        },
      },
    })
    return { gateway, one, other }
  }

  test('the next one embeds the whole list when the first fails, and the log reports it', async () => {
    let requests = 0
    const { gateway, other } = await two((wire) => (++requests === 2 ? failure(503) : numbered)(wire), numbered)
    const { body } = await embed(gateway, { model: 'm', input: texts(5) })
    expect(vectors(body).map(([number]) => number)).toEqual([0, 1, 2, 3, 4])
    expect(other.requests).toHaveLength(3)
    expect(gateway.logged()).toContain('"target":"b/y"')
  })

  test('a missing vector is a failed target too; an error of the client is not', async () => {
    const short: Answer = whole({ data: [{ index: 0, embedding: [1] }] })
    const { gateway } = await two(short, numbered)
    expect((await embed(gateway, { model: 'm', input: texts(2) })).status).toBe(200)
    const wrong = await two(failure(400, { message: 'No' }), numbered)
    expect((await embed(wrong.gateway, { model: 'm', input: texts(2) })).status).toBe(400)
    expect(wrong.other.requests).toHaveLength(0)
  })
})

describe('recorded usage', () => {
  test('covers a response, an error and a response without counts', async () => {
    const vendor = vendorWith(numbered, failure(400), whole({ data: [{ index: 0, embedding: [1, 2] }] }))
    const gateway = await open({
      providers: { v: { base_url: vendor.url, key: 'k' } },
      models: { 'v/m': { families: ['embeddings'] } },
    })
    await embed(gateway, { model: 'v/m', input: ['1', '2'] })
    await embed(gateway, { model: 'v/m', input: 'refused' })
    const { body } = await embed(gateway, { model: 'v/m', input: 'A river in spring' })
    expect(body.usage).toEqual({ prompt_tokens: 5, total_tokens: 5, estimated: true })
    await gateway.instance.drain({ deadline_ms: 60_000 })
    gateway.clock.advance(2_000)
    const [row] = await gateway.instance.usage({ limit: 10 })
    expect(row).toMatchObject({ model: 'v/m', requests: 3, errors: 1, input_tokens: 7, output_tokens: 0, estimated: 1 })
    expect(gateway.logged()).toContain('"input_tokens":5,"output_tokens":0,"estimated":true')
  })

  test.each(['chatcompat', 'cohere'] as const)(
    'a client that disconnects (%s): its calls are cancelled and its inputs are counted at the most',
    async (kind) => {
      const vendor = vendorWith()
      vendor.otherwise(hang())
      const gateway = await open({
        providers: { v: { kind, base_url: vendor.url, key: 'k' } },
        models: { 'v/m': { families: ['embeddings'], embeddings: { most_inputs: 1 } } },
      })
      const leaving = new AbortController()
      const json = { model: 'v/m', input: ['A river in spring', 'Snow melts'] }
      const pending = gateway.call('/v1/embeddings', { json, signal: leaving.signal }).catch(() => undefined)
      await vendor.request(2)
      leaving.abort()
      await pending
      await vendor.idle()
      await gateway.instance.drain({ deadline_ms: 60_000 })
      gateway.clock.advance(2_000)
      expect(await gateway.instance.usage({ limit: 10 })).toMatchObject([
        { model: 'v/m', requests: 1, errors: 0, input_tokens: 31, estimated: 1 },
      ])
      expect(gateway.logged()).toContain('"outcome":"client_gone"')
    },
  )

  test('the sandbox returns no counts with usage=none', async () => {
    const gateway = await open()
    const { body } = await embed(gateway, { model: 'sandbox/embedding', input: 'river\n@sandbox usage=none' })
    expect(body.usage.estimated).toBe(true)
  })
})

describe('sandbox directives', () => {
  test.each([
    ['status=429 retry_after=3', 429, 'rate_limit_exceeded'],
    ['status=500', 502, 'bad_upstream_response'],
    ['status=400', 400, 'upstream_invalid_request'],
    ['tokens=3', 400, 'upstream_invalid_request'],
    ['retry_after=3', 400, 'upstream_invalid_request'],
  ])('@sandbox %s', async (line, status, code) => {
    const gateway = await open()
    const answer = await embed(gateway, { model: 'sandbox/embedding', input: ['x', `@sandbox ${line}`] })
    expect([answer.status, answer.body.error.code]).toEqual([status, code])
    if (status === 429) expect(answer.headers.get('retry-after')).toBe('3')
  })

  test('are not part of the text', async () => {
    const gateway = await open()
    const plain = await embed(gateway, { model: 'sandbox/embedding', input: 'A river' })
    const directed = await embed(gateway, { model: 'sandbox/embedding', input: 'A river\n@sandbox first_ms=0' })
    expect(vectors(directed.body)).toEqual(vectors(plain.body))
  })

  test('delay the response', async () => {
    const gateway = await open()
    let is_done = false
    const pending = embed(gateway, { model: 'sandbox/embedding', input: '@sandbox first_ms=5000' }).then(() => {
      is_done = true
    })
    while (gateway.clock.waiting() < 1) await new Promise((resolve) => setImmediate(resolve))
    await new Promise((resolve) => setImmediate(resolve))
    expect(is_done).toBe(false)
    gateway.clock.advance(5_000)
    await pending
    expect(is_done).toBe(true)
  })
})

describe('the contentgen API', () => {
  const content = (text: string) => ({ content: { parts: [{ text }] } })
  type Embedded = { embedding: { values: number[] }; embeddings: { values: number[] }[]; usageMetadata: Json }
  const ask = (gateway: TestGateway, path: string, json: unknown) =>
    postJson<Embedded & { error: Json }>(gateway, path, json)

  test.each([
    '/v1beta/models/sandbox/embedding',
    '/v1beta/models/sandbox%2Fembedding',
    '/v1beta/models/embedding',
    '/v1beta/sandbox/embedding',
    '/v1/models/sandbox/embedding',
    '/v1/sandbox%2Fembedding',
    '/v1alpha/models/embedding',
  ])('%s: both methods return the vectors of /v1/embeddings', async (path) => {
    const gateway = await open()
    const plain = await embed(gateway, { model: 'embedding', input: ['one', 'two'], dimensions: 16 })
    const [one, two] = vectors(plain.body)
    const single = await ask(gateway, `${path}:embedContent`, { ...content('one'), outputDimensionality: 16 })
    expect(single.body.embedding.values).toEqual(one as number[])
    expect(single.body.usageMetadata).toEqual({ promptTokenCount: 1, totalTokenCount: 1 })
    const requests = [content('one'), content('two')].map((one) => ({ ...one, output_dimensionality: 16, title: null }))
    const batch = await ask(gateway, `${path}:batchEmbedContents`, { requests })
    expect(batch.body.embeddings).toEqual([{ values: one as number[] }, { values: two as number[] }])
  })

  test.each([
    [{}, 'content'],
    [{ content: { parts: [] } }, 'content.parts'],
    [{ content: { parts: [{ text: '' }] } }, 'content.parts'],
    [{ content: { parts: [{ inlineData: { data: 'AAAA' } }] } }, 'content.parts[0].inlineData'],
    [{ ...content('x'), outputDimensionality: 0 }, 'outputDimensionality'],
    [{ ...content('x'), outputDimensionality: 5000 }, 'outputDimensionality'],
    [content('a '.repeat(8_193)), 'content'],
  ])('invalid request %# returns an error in the contentgen format', async (json, field) => {
    const gateway = await open()
    const { status, body } = await ask(gateway, '/v1beta/models/embedding:embedContent', json)
    expect([status, body.error.code, body.error.status]).toEqual([400, 400, 'INVALID_ARGUMENT'])
    expect(JSON.stringify(body.error.details)).toContain(`"field":"${field}"`)
  })

  test('an error in the middle of a batch names its position', async () => {
    const gateway = await open()
    const requests = [content('x'), content('a '.repeat(8_193))]
    const { body } = await ask(gateway, '/v1beta/models/embedding:batchEmbedContents', { requests })
    expect(JSON.stringify(body.error.details)).toContain('"field":"requests[1].content"')
  })

  test('a batch with different dimensions is rejected', async () => {
    const gateway = await open()
    const requests = [8, 16].map((outputDimensionality) => ({ ...content('x'), outputDimensionality }))
    const { status, body } = await ask(gateway, '/v1beta/models/embedding:batchEmbedContents', { requests })
    expect(status).toBe(400)
    expect(body.error.message).toContain('requests[1].outputDimensionality')
  })

  test('an unknown model returns an error in the contentgen format', async () => {
    const gateway = await open()
    const { body } = await ask(gateway, '/v1beta/models/nobody:embedContent', content('x'))
    expect(body.error).toMatchObject({ code: 404, status: 'NOT_FOUND' })
  })
})

test('a deprecated model is announced in headers', async () => {
  const vendor = vendorWith(numbered)
  const gateway = await open({
    providers: { v: { base_url: vendor.url, key: 'k' } },
    models: { 'v/old': { families: ['embeddings'], status: 'deprecated', replaced_by: 'sandbox/embedding' } },
  })
  const { headers } = await embed(gateway, { model: 'v/old', input: '1' })
  expect(headers.get('deprecation')).toBe('true')
  expect(headers.get('x-model-replaced-by')).toBe('sandbox/embedding')
})
