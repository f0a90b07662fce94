/** The client libraries for embeddings and rerank: openai 7 and 6, LangChain, the AI SDK, Cohere, Google. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { createCohere } from '@ai-sdk/cohere'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { GoogleGenAI } from '@google/genai'
import { OpenAIEmbeddings } from '@langchain/openai'
import { embed, embedMany, rerank } from 'ai'
import { CohereClient, CohereClientV2, CohereError } from 'cohere-ai'
import { GoogleGenAI as OldGoogleGenAI } from 'google-genai-2'
import OpenAI from 'openai'
import OldOpenAI from 'openai-6'
import { openPort, type Port, watchUnhandled } from './kit/served.ts'

/** The gateway, and another one behind it, whose sandbox it serves as an OpenAI-shaped vendor (`far/...`). */
let near: Port
let far: Port
let unhandled: ReturnType<typeof watchUnhandled>
beforeAll(async () => {
  Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false })
  unhandled = watchUnhandled()
  far = await openPort()
  near = await openPort({
    providers: { far: { preset: 'gatehouse', base_url: far.url, key: far.token } },
    models: {
      'far/embedding': { targets: [{ provider: 'far', model: 'sandbox/embedding' }] },
      'far/rerank': { targets: [{ provider: 'far', model: 'sandbox/rerank' }] },
    },
  })
})
beforeEach(() => {
  near.requests.length = 0
  far.requests.length = 0
})
afterAll(async () => {
  await near.close()
  await far.close()
  expect(unhandled.stop()).toEqual([])
})

const origin = () => near.url.replace(/\/v1$/, '')
const TEXTS = ['Snow melts in spring', 'In spring the snow is melting', 'Ships need deep harbours']
const QUERY = 'When does the snow melt?'
const DOCUMENTS = ['Boats leave at noon.', 'The snow melts in April.', 'Snow fell all night.']

const cosine = (one: number[], other: number[]) => one.reduce((sum, value, at) => sum + value * (other[at] ?? 0), 0)
/** Expects three vectors for TEXTS, of unit length, the first two near each other. */
function expectVectors(vectors: number[][], length = 1024): void {
  const [one = [], near_one = [], far_one = []] = vectors
  expect(vectors.map((vector) => vector.length)).toEqual([length, length, length])
  for (const vector of vectors) expect(cosine(vector, vector)).toBeCloseTo(1, 4)
  expect(cosine(one, near_one)).toBeGreaterThan(cosine(one, far_one) + 0.1)
}

const MODELS = ['sandbox/embedding', 'far/embedding']

describe.each(MODELS)('%s', (model) => {
  describe.each([
    ['openai 7', OpenAI],
    ['openai 6', OldOpenAI as unknown as typeof OpenAI],
  ])('%s', (_, Client) => {
    const client = () => new Client({ apiKey: near.token, baseURL: near.url, maxRetries: 0 })

    test('embeds as base64, its own default, and as numbers', async () => {
      const packed = await client().embeddings.create({ model, input: TEXTS })
      expectVectors(packed.data.map(({ embedding }) => embedding))
      const plain = await client().embeddings.create({ model, input: TEXTS, encoding_format: 'float' })
      expectVectors(plain.data.map(({ embedding }) => embedding))
      for (const [at, { embedding }] of packed.data.entries()) {
        expect(cosine(embedding, plain.data[at]?.embedding ?? [])).toBeCloseTo(1, 4)
      }
      expect(packed.usage.prompt_tokens).toBeGreaterThan(10)
      expect(packed.model).toBe(model)
    })

    test('requests fewer dimensions, and gets the error for a wrong number', async () => {
      const { data } = await client().embeddings.create({ model, input: TEXTS, dimensions: 256 })
      expectVectors(
        data.map(({ embedding }) => embedding),
        256,
      )
      const request = { model: 'sandbox/embedding', input: 'x', dimensions: 5000 }
      const refused = await client()
        .embeddings.create(request)
        .catch((error) => error)
      expect(refused).toBeInstanceOf(Client.BadRequestError)
      expect(refused).toMatchObject({ status: 400, code: 'invalid_value', param: 'dimensions' })
    })

    test('sends token numbers', async () => {
      const { data } = await client().embeddings.create({ model, input: [[1, 2, 3], [4]], dimensions: 8 })
      expect(data.map(({ embedding }) => embedding.length)).toEqual([8, 8])
    })
  })

  test('LangChain embeds documents and a query', async () => {
    const embeddings = new OpenAIEmbeddings({
      model,
      apiKey: near.token,
      configuration: { baseURL: near.url },
      batchSize: 2,
      maxRetries: 0,
    })
    expectVectors(await embeddings.embedDocuments(TEXTS))
    expect(near.requests).toHaveLength(2)
    const [first = []] = await embeddings.embedDocuments(TEXTS.slice(0, 1))
    expect(cosine(await embeddings.embedQuery(TEXTS[0] ?? ''), first)).toBeCloseTo(1, 4)
  })

  test('the AI SDK embeds one value and many', async () => {
    const provider = createOpenAICompatible({ name: 'gatehouse', baseURL: near.url, apiKey: near.token })
    const many = await embedMany({ model: provider.embeddingModel(model), values: TEXTS, maxRetries: 0 })
    expectVectors(many.embeddings)
    expect(many.usage.tokens).toBeGreaterThan(10)
    const one = await embed({ model: provider.embeddingModel(model), value: TEXTS[0] ?? '', maxRetries: 0 })
    expect(cosine(one.embedding, many.embeddings[0] ?? [])).toBeCloseTo(1, 4)
  })

  describe.each([
    ['@google/genai 3', GoogleGenAI],
    ['@google/genai 2', OldGoogleGenAI as unknown as typeof GoogleGenAI],
  ])('%s', (_, Client) => {
    const client = (options: { apiVersion?: string } = {}) =>
      new Client({ apiKey: near.token, httpOptions: { baseUrl: origin() }, ...options })

    test.each([undefined, 'v1', 'v1alpha'])('embeds contents under the version %p', async (apiVersion) => {
      const { embeddings = [] } = await client(apiVersion ? { apiVersion } : {}).models.embedContent({
        model,
        contents: TEXTS,
        config: { outputDimensionality: 512, taskType: 'RETRIEVAL_DOCUMENT' },
      })
      expectVectors(
        embeddings.map(({ values = [] }) => values),
        512,
      )
    })

    test('gets errors with their message', async () => {
      const refused = client().models.embedContent({ model: 'nobody', contents: 'x' })
      await expect(refused).rejects.toMatchObject({ status: 404 })
    })
  })
})

describe.each(['sandbox/rerank', 'far/rerank'])('%s', (model) => {
  test('Cohere’s client reranks with API version 2', async () => {
    const client = new CohereClientV2({ token: near.token, environment: origin(), maxRetries: 0 })
    const answer = await client.rerank({ model, query: QUERY, documents: DOCUMENTS, topN: 2 })
    expect(answer.results.map(({ index }) => index)).toEqual([1, 2])
    expect(answer.results[0]?.relevanceScore).toBeGreaterThan(answer.results[1]?.relevanceScore ?? 1)
    expect(answer.meta?.billedUnits?.searchUnits).toBe(1)
    expect(near.requests.map(({ path }) => path)).toEqual(['/v2/rerank'])
  })

  test('Cohere’s client reranks with API version 1, with objects and their texts returned', async () => {
    const client = new CohereClient({ token: near.token, environment: origin(), maxRetries: 0 })
    const documents = DOCUMENTS.map((text) => ({ text }))
    const answer = await client.rerank({ model, query: QUERY, documents, topN: 1, returnDocuments: true })
    expect(answer.results).toMatchObject([{ index: 1, document: { text: DOCUMENTS[1] } }])
    expect(near.requests.map(({ path }) => path)).toEqual(['/v1/rerank'])
  })

  test('Cohere’s client gets errors with their message', async () => {
    const client = new CohereClientV2({ token: near.token, environment: origin(), maxRetries: 0 })
    const refused = await client.rerank({ model: 'nobody', query: QUERY, documents: DOCUMENTS }).catch((error) => error)
    expect(refused).toBeInstanceOf(CohereError)
    expect(refused).toMatchObject({ statusCode: 404, body: { error: { code: 'model_not_found' } } })
  })

  test('the AI SDK reranks with its package for Cohere', async () => {
    const cohere = createCohere({ apiKey: near.token, baseURL: `${origin()}/v2` })
    const { ranking, rerankedDocuments } = await rerank({
      model: cohere.reranking(model),
      query: QUERY,
      documents: DOCUMENTS,
      topN: 2,
      maxRetries: 0,
    })
    expect(ranking.map(({ originalIndex }) => originalIndex)).toEqual([1, 2])
    expect(rerankedDocuments[0]).toBe(DOCUMENTS[1] ?? '')
  })

  test('the AI SDK’s package ranks objects too', async () => {
    const cohere = createCohere({ apiKey: near.token, baseURL: `${origin()}/v1` })
    const documents = DOCUMENTS.map((text, page) => ({ text, page }))
    const { ranking } = await rerank({ model: cohere.reranking(model), query: QUERY, documents, maxRetries: 0 })
    expect(ranking.map(({ originalIndex }) => originalIndex)).toEqual([1, 2, 0])
  })
})
