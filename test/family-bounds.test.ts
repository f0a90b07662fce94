/** Bounds of embeddings, rerank and images that no other test reaches: the last allowed value and the first rejected one. */
import { describe, expect, test } from 'bun:test'
import { createImageFetch } from '../src/families/images/fetch-image.ts'
import type { Target } from '../src/providers/provider.ts'
import type { RerankAnswer } from '../src/spec/rerank-request.ts'
import { perTest, postJson } from './kit/per-test.ts'
import { failure, whole } from './kit/vendor.ts'

type Json = Record<string, unknown>
type ErrorBody = { error: { message: string; param: string | null } }

const { open, vendorWith } = perTest()

describe('embeddings', () => {
  const embed = async (json: Json) =>
    postJson<ErrorBody>(await open(), '/v1/embeddings', { model: 'sandbox/embedding', ...json })

  test('accept at most 100,000 inputs', async () => {
    const input = Array<string>(100_000).fill('x')
    expect((await embed({ input, dimensions: 1 })).status).toBe(200)
    const { body } = await embed({ input: [...input, 'x'], dimensions: 1 })
    expect(body.error.message).toBe('"input" must be an array of at most 100000 items, not 100001.')
  })

  test('return at most ten million numbers', async () => {
    const vendor = vendorWith(failure(400))
    const gateway = await open({
      providers: { v: { base_url: vendor.url, key: 'k' } },
      models: { 'v/m': { families: ['embeddings'] } },
    })
    const ask = (count: number, dimensions: number) =>
      postJson<ErrorBody>(gateway, '/v1/embeddings', { model: 'v/m', input: Array(count).fill('x'), dimensions })
    expect((await ask(1_001, 9_999)).body.error.message).toContain('may have at most 1000 items')
    expect(vendor.requests).toHaveLength(0)
    await ask(1_000, 10_000)
    expect(vendor.requests.length).toBeGreaterThan(0)
  })

  test('accept at most 65,536 dimensions in the contentgen format', async () => {
    const ask = async (outputDimensionality: number) => {
      const json = { content: { parts: [{ text: 'x' }] }, outputDimensionality }
      return (await postJson<ErrorBody>(await open(), '/v1beta/models/embedding:embedContent', json)).body.error.message
    }
    expect(await ask(65_536)).toContain('from 1 to 4096')
    expect(await ask(65_537)).toContain('from 1 to 65536')
  })
})

describe('rerank by a provider that reports no usage', () => {
  const rankWith = async (count: number, results: { index: number; relevance_score: number }[]) => {
    const gateway = await open({
      providers: { v: { kind: 'rerank-compat', base_url: vendorWith(whole({ results })).url, key: 'k' } },
      models: { 'v/rerank': {} },
    })
    const json = { model: 'v/rerank', query: 'q', documents: Array(count).fill('x'), top_n: results.length }
    return (await postJson<RerankAnswer>(gateway, '/v1/rerank', json)).body
  }

  test('counts one search unit for 100 documents and two for 101', async () => {
    const results = [{ index: 0, relevance_score: 1 }]
    expect((await rankWith(100, results)).meta.billed_units.search_units).toBe(1)
    expect((await rankWith(101, results)).meta.billed_units.search_units).toBe(2)
  })

  test('ranks the earlier of two equal documents first, whatever order the provider returns', async () => {
    const { results } = await rankWith(
      3,
      [2, 0, 1].map((index) => ({ index, relevance_score: 0.5 })),
    )
    expect(results.map(({ index }) => index)).toEqual([0, 1, 2])
  })
})

describe('images', () => {
  const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
  const within: [string, Json, Json][] = [
    ['a side', { size: '16384x16384' }, { size: '16385x16384' }],
    ['the other side', { size: '1x16384' }, { size: '1x16385' }],
    ['the count', { n: 16 }, { n: 17 }],
    ['a seed', { seed: 4_294_967_295 }, { seed: 4_294_967_296 }],
    ['compression', { output_compression: 100 }, { output_compression: 101 }],
    ['the number of input images', { image: Array(16).fill(PNG) }, { image: Array(17).fill(PNG) }],
  ]
  test.each(within)('%s has a bound', async (_, good, bad) => {
    const vendor = vendorWith()
    vendor.otherwise(whole({ created: 1, data: [{ b64_json: PNG }] }))
    const gateway = await open({
      providers: { v: { base_url: vendor.url, key: 'k' } },
      models: { 'v/m': { families: ['image-generation'], images: { n: 16 } } },
    })
    const ask = (json: Json) =>
      postJson<ErrorBody>(gateway, `/v1/images/${json.image ? 'edits' : 'generations'}`, {
        model: 'v/m',
        prompt: 'x',
        ...json,
      })
    expect((await ask(good)).status).toBe(200)
    const { status, body } = await ask(bad)
    expect([status, body.error.param]).toEqual([400, Object.keys(bad)[0] ?? ''])
  })

  test('from a provider are accepted up to the byte limit and rejected one byte above it', async () => {
    const fetchOf = (length: number) =>
      createImageFetch({
        guardedFetch: async ({ url }) => ({
          status: 200,
          headers: new Headers(),
          url,
          body: new Blob([new Uint8Array(length)]).stream(),
        }),
        providerSettings: () => undefined,
        max_bytes: 10,
      })('https://vendor.example/a.png', { provider: { id: 'v' }, model: 'm' } as Target, new AbortController().signal)
    expect(await fetchOf(10)).toHaveLength(10)
    await expect(fetchOf(11)).rejects.toThrow('larger than the 10 bytes allowed')
  })

  test('from a provider are rejected if they are compressed', async () => {
    const fetchAs = (coding: string) =>
      createImageFetch({
        guardedFetch: async ({ url }) => ({
          status: 200,
          headers: new Headers({ 'content-encoding': coding }),
          url,
          body: new Blob([new Uint8Array(5)]).stream(),
        }),
        providerSettings: () => undefined,
      })('https://vendor.example/a.png', { provider: { id: 'v' }, model: 'm' } as Target, new AbortController().signal)
    expect(await fetchAs('identity')).toHaveLength(5)
    await expect(fetchAs('gzip')).rejects.toThrow('was compressed (gzip), although the request did not accept that')
  })
})
