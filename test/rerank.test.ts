/** Rerank through the whole gateway: requests, the order of results, recorded usage. */
import { describe, expect, test } from 'bun:test'
import type { RerankAnswer } from '../src/spec/rerank-request.ts'
import type { TestGateway } from './kit/gateway.ts'
import { perTest, postJson } from './kit/per-test.ts'
import { failure, whole } from './kit/vendor.ts'

type Json = Record<string, unknown>

const { open, vendorWith } = perTest()

const QUERY = 'When does the snow melt?'
const DOCUMENTS = [
  'Boats leave the harbour at noon.',
  'The snow melts in April, and the river rises.',
  'Snow fell all night.',
]

const rank = (gateway: TestGateway, more: Json = {}, path = '/v1/rerank') =>
  postJson<RerankAnswer & { error: Json }>(gateway, path, {
    model: 'sandbox/rerank',
    query: QUERY,
    documents: DOCUMENTS,
    ...more,
  })
const orderOf = ({ results }: RerankAnswer) => results.map(({ index }) => index)

describe('the response', () => {
  test.each(['/v1/rerank', '/v2/rerank'])(
    '%s: has the best document first, with the counts of both formats',
    async (path) => {
      const { status, body } = await rank(await open(), {}, path)
      expect([status, body.model]).toEqual([200, 'sandbox/rerank'])
      expect(orderOf(body)).toEqual([1, 2, 0])
      const scores = body.results.map(({ relevance_score }) => relevance_score)
      expect(scores).toEqual([...scores].sort((one, other) => other - one))
      for (const score of scores) expect(score >= 0 && score <= 1).toBe(true)
      expect(body.usage.prompt_tokens).toBeGreaterThan(20)
      expect(body.usage.total_tokens).toBe(body.usage.prompt_tokens)
      expect(body.meta.billed_units.search_units).toBe(1)
      expect(body.results[0]).not.toHaveProperty('document')
    },
  )

  test('has the earlier of two equal documents first', async () => {
    const same = Array(20).fill('Snow')
    const { body } = await rank(await open(), { documents: same })
    expect(orderOf(body)).toEqual(same.map((_, index) => index))
  })

  test('is limited to the best top_n, which may exceed the number of documents', async () => {
    const gateway = await open()
    expect(orderOf((await rank(gateway, { top_n: 1 })).body)).toEqual([1])
    expect(orderOf((await rank(gateway, { top_n: 3 })).body)).toEqual([1, 2, 0])
    expect(orderOf((await rank(gateway, { top_n: 100 })).body)).toEqual([1, 2, 0])
    expect(orderOf((await rank(gateway, { top_n: null })).body)).toEqual([1, 2, 0])
  })

  test('repeats the documents if requested: a text as an object with `text`, an object unchanged', async () => {
    const object = { text: 'The snow melts in April.', page: 7 }
    const { body } = await rank(await open(), { documents: ['Boats', object], return_documents: true })
    expect(body.results.map(({ document }) => document)).toEqual([object, { text: 'Boats' }])
  })

  test('counts one search unit for 100 documents and two for 101', async () => {
    const gateway = await open()
    const units = async (count: number) =>
      (await rank(gateway, { documents: Array(count).fill('Snow') })).body.meta.billed_units.search_units
    expect(await units(100)).toBe(1)
    expect(await units(101)).toBe(2)
  })
})

describe('documents that are objects', () => {
  const documents = [
    { title: 'Boats', body: 'They leave at noon.' },
    { title: 'Spring', body: 'The snow melts.', text: 'nothing' },
  ]

  test('are read by the rank_fields, in their order', async () => {
    const gateway = await open()
    expect(orderOf((await rank(gateway, { documents, rank_fields: ['title', 'body'] })).body)).toEqual([1, 0])
    const vendor = vendorWith(whole({ results: [0, 1].map((index) => ({ index, relevance_score: 1 })) }))
    const upstream = await open({
      providers: { v: { kind: 'rerank-compat', base_url: vendor.url, key: 'k' } },
      models: { 'v/rerank': {} },
    })
    await rank(upstream, { model: 'v/rerank', documents, rank_fields: ['body', 'title', 'pages'] })
    expect(vendor.requests[0]?.json().documents).toEqual(['They leave at noon.\nBoats', 'The snow melts.\nSpring'])
  })

  test('have values that are no text read as JSON', async () => {
    const gateway = await open()
    const { body } = await rank(gateway, { documents: [{ text: 5 }, { text: ['snow', 'melts'] }] })
    expect(orderOf(body)).toEqual([1, 0])
  })

  test('without any of the fields are rejected with their position', async () => {
    const gateway = await open()
    const plain = await rank(gateway, { documents: ['x', { title: 'x' }] })
    expect([plain.status, plain.body.error.param]).toEqual([400, 'documents[1].text'])
    const other = await rank(gateway, { documents: [{ text: 'x' }], rank_fields: ['title', 'body'] })
    expect([other.status, other.body.error.param]).toEqual([400, 'documents[0].title'])
  })
})

describe('limits: the last allowed value and the first rejected one', () => {
  const many = (count: number) => Array(count).fill('x')
  test.each([
    ['no documents', { documents: [] }, 'documents'],
    ['a document that is a number', { documents: ['x', 5] }, 'documents[1]'],
    ['a document that is a list', { documents: [['x']] }, 'documents[0]'],
    ['10,000 documents', { documents: many(10_000), top_n: 1 }, 200],
    ['100 fields', { documents: [{ f1: 'a' }], rank_fields: many(100).map((_, index) => `f${index}`) }, 200],
    ['101 fields', { documents: [{ f1: 'a' }], rank_fields: many(101).map((_, index) => `f${index}`) }, 'rank_fields'],
    ['10,001 documents', { documents: many(10_001) }, 'documents'],
    ['an empty query', { query: '' }, 'query'],
    ['no query', { query: null }, 'query'],
    ['top_n 1', { top_n: 1 }, 200],
    ['top_n 0', { top_n: 0 }, 'top_n'],
    ['top_n 1.5', { top_n: 1.5 }, 'top_n'],
    ['max_tokens_per_doc 1', { max_tokens_per_doc: 1 }, 200],
    ['max_tokens_per_doc 0', { max_tokens_per_doc: 0 }, 'max_tokens_per_doc'],
    ['return_documents as a text', { return_documents: 'yes' }, 'return_documents'],
  ] as [string, Json, number | string][])('%s', async (_, fields, expected) => {
    const { status, body } = await rank(await open(), fields)
    if (typeof expected === 'number') expect(status).toBe(expected)
    else expect([status, body.error.param]).toEqual([400, expected])
  })

  test('a document is read up to max_tokens_per_doc', async () => {
    const documents = ['Boats and more boats, then snow melts', 'snow']
    const gateway = await open()
    expect(orderOf((await rank(gateway, { documents, query: 'snow melts' })).body)[0]).toBe(0)
    expect(orderOf((await rank(gateway, { documents, query: 'snow melts', max_tokens_per_doc: 3 })).body)[0]).toBe(1)
  })

  test('a chat model is rejected', async () => {
    const { status, body } = await rank(await open(), { model: 'sandbox/general' })
    expect([status, body.error.code]).toEqual([400, 'unsupported_endpoint'])
  })
})

describe('targets and usage', () => {
  const results = [0, 1, 2].map((index) => ({ index, relevance_score: index / 10 }))

  test('the next target is called when the first fails; missing counts are estimated', async () => {
    const [one, other] = [vendorWith(failure(503)), vendorWith(whole({ results }))]
    const kind = 'rerank-compat' as const
    const gateway = await open({
      providers: { a: { kind, base_url: one.url, key: 'k' }, b: { kind, base_url: other.url, key: 'k' } },
      models: {
        m: {
          families: ['rerank'],
          targets: [
            { provider: 'a', model: 'x' },
            { provider: 'b', model: 'y' },
          ],
        },
      },
    })
    const { body } = await rank(gateway, { model: 'm' })
    expect(orderOf(body)).toEqual([2, 1, 0])
    expect(body.usage.estimated).toBe(true)
    expect(gateway.logged()).toContain('"target":"b/y"')
    await gateway.instance.drain({ deadline_ms: 60_000 })
    gateway.clock.advance(2_000)
    expect(await gateway.instance.usage({ limit: 10 })).toMatchObject([
      { model: 'm', requests: 1, errors: 0, input_tokens: body.usage.prompt_tokens, output_tokens: 0, estimated: 1 },
    ])
  })

  test('an error is recorded as a request without usage', async () => {
    const vendor = vendorWith(failure(400, { message: 'No' }))
    const gateway = await open({
      providers: { v: { kind: 'rerank-compat', base_url: vendor.url, key: 'k' } },
      models: { 'v/reranker': {} },
    })
    expect((await rank(gateway, { model: 'v/reranker' })).status).toBe(400)
    await gateway.instance.drain({ deadline_ms: 60_000 })
    gateway.clock.advance(2_000)
    expect(await gateway.instance.usage({ limit: 10 })).toMatchObject([{ requests: 1, errors: 1, input_tokens: 0 }])
  })
})

describe('sandbox directives', () => {
  test.each([
    ['status=503 retry_after=9', 503, 'server_is_overloaded'],
    ['status=404', 502, 'bad_upstream_response'],
    ['nonsense', 400, 'upstream_invalid_request'],
  ])('@sandbox %s', async (line, status, code) => {
    const { status: got, body, headers } = await rank(await open(), { query: `snow\n@sandbox ${line}` })
    expect([got, body.error.code]).toEqual([status, code])
    if (status === 503) expect(headers.get('retry-after')).toBe('9')
  })

  test('@sandbox usage=none', async () => {
    expect((await rank(await open(), { query: 'snow\n@sandbox usage=none' })).body.usage.estimated).toBe(true)
  })
})
