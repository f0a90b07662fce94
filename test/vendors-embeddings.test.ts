/** The vendors of embeddings, each against a loopback server that responds in the vendor's format. */
import { describe, expect, test } from 'bun:test'
import type { ProviderKind } from '../src/config/schema/provider-kinds.ts'
import type { ProviderConfig } from '../src/config/schema/schema.ts'
import { base64OfFloats } from '../src/kit/float32.ts'
import { perTest, postJson } from './kit/per-test.ts'
import { type Answer, whole } from './kit/vendor.ts'

const KEY = 'sk-secret-key-of-ours'
const TEXTS = ['A river in spring', 'Snow melts']
const VECTORS = [
  [0.25, -0.5],
  [1, 0.125],
]

type Json = Record<string, unknown>
/** One vendor: the path of its requests, the body for two texts, and its response. */
type Case = {
  name: string
  kind: ProviderKind
  model: string
  /** The path of `base_url`. */
  base: string
  path: string
  /** The header that contains the key. */
  auth: [name: string, value: string]
  /** The body for TEXTS with two dimensions, as queries. */
  body: Json
  /** The vendor's response with these vectors. */
  answer(vectors: number[][]): Json
  headers?: Record<string, string>
  /** The token count in the response; undefined: none, so the gateway estimates it. */
  tokens?: number
  /** The body of its error responses, and the status for an invalid key. Default: 401. */
  invalid: Json
  authStatus?: number
  config?: Partial<ProviderConfig>
}

const bearer: Case['auth'] = ['authorization', `Bearer ${KEY}`]
const openaiAnswer = (vectors: number[][]) => ({
  object: 'list',
  model: 'as-the-vendor-calls-it',
  data: vectors.map((embedding, index) => ({ object: 'embedding', index, embedding, unseen: true })),
  usage: { prompt_tokens: 7, total_tokens: 7, unseen: { more: 1 } },
  unseen: 'yes',
})
const openaiError = { error: { message: 'Unrecognized thing', type: 'invalid_request_error', param: null, code: null } }

function openaiShaped(kind: ProviderKind, model: string, base: string, more: Partial<Case> = {}): Case {
  return {
    name: kind,
    kind,
    model,
    base,
    path: `${base}/embeddings`,
    auth: bearer,
    body: { model, input: TEXTS, dimensions: 2, encoding_format: 'float' },
    answer: openaiAnswer,
    tokens: 7,
    invalid: openaiError,
    ...more,
  }
}

const googleRequest = (model: string) => (text: string) => ({
  model: `models/${model}`,
  content: { role: 'user', parts: [{ text }] },
  outputDimensionality: 2,
  taskType: 'RETRIEVAL_QUERY',
})
const googleError = { error: { code: 400, message: 'Unrecognized thing', status: 'INVALID_ARGUMENT' } }

const CASES: Case[] = [
  openaiShaped('chatcompat', 'text-embedding-3-small', '/v1', {
    name: 'any OpenAI-shaped vendor',
    body: { model: 'text-embedding-3-small', input: TEXTS, dimensions: 2 },
  }),
  openaiShaped('chatcompat', 'text-embedding-3-large', '/v1', {
    name: 'an OpenAI-shaped vendor that knows base64, and answers out of order',
    body: { model: 'text-embedding-3-large', input: TEXTS, dimensions: 2, encoding_format: 'base64' },
    config: { quirks: { embedding_base64: true } },
    answer: (vectors) => ({
      ...openaiAnswer([]),
      data: vectors.map((vector, index) => ({ index, embedding: base64OfFloats(vector) })).reverse(),
    }),
  }),
  openaiShaped('chatcompat', 'jina-embeddings-v4', '/v1', {
    name: 'Jina',
    body: { model: 'jina-embeddings-v4', input: TEXTS, dimensions: 2, task: 'retrieval.query' },
    config: { preset: 'jina' },
    answer: (vectors) => ({ ...openaiAnswer(vectors), usage: { total_tokens: 9 } }),
    tokens: 9,
    invalid: { detail: 'Unrecognized thing' },
  }),
  openaiShaped('mistral', 'mistral-embed', '/v1', {
    body: { model: 'mistral-embed', input: TEXTS, output_dimension: 2, encoding_format: 'float' },
    invalid: { object: 'error', message: 'Unrecognized thing', type: 'invalid_request_error', code: '3051' },
  }),
  openaiShaped('togetherai', 'BAAI/bge-large-en-v1.5', '/v1'),
  openaiShaped('fireworks', 'nomic-ai/nomic-embed-text-v1.5', '/inference/v1'),
  openaiShaped('azure', 'my-deployment', '/openai', {
    path: '/openai/v1/embeddings?api-version=v1',
    auth: ['api-key', KEY],
  }),
  {
    name: 'contentgen-compat',
    kind: 'contentgen-compat',
    model: 'gemini-embedding-001',
    base: '/v1beta',
    path: '/v1beta/models/gemini-embedding-001:batchEmbedContents',
    auth: ['x-goog-api-key', KEY],
    body: {
      requests: TEXTS.map((text) => ({
        ...googleRequest('gemini-embedding-001')(text),
        content: { parts: [{ text }] },
      })),
    },
    answer: (vectors) => ({ embeddings: vectors.map((values) => ({ values, unseen: 1 })), unseen: 1 }),
    invalid: googleError,
    authStatus: 403,
  },
  {
    name: 'google',
    kind: 'google',
    model: 'gemini-embedding-001',
    base: '/v1beta',
    path: '/v1beta/models/gemini-embedding-001:batchEmbedContents',
    auth: ['x-goog-api-key', KEY],
    body: { requests: TEXTS.map(googleRequest('gemini-embedding-001')) },
    answer: (vectors) => ({
      embeddings: vectors.map((values) => ({ values, unseen: 1 })),
      usageMetadata: { promptTokenCount: 5 },
    }),
    tokens: 5,
    invalid: googleError,
    authStatus: 403,
  },
  {
    name: 'google-vertex',
    kind: 'google-vertex',
    model: 'text-embedding-005',
    base: '/v1/publishers/google',
    path: '/v1/publishers/google/models/text-embedding-005:predict',
    auth: ['x-goog-api-key', KEY],
    body: {
      instances: TEXTS.map((content) => ({ content, task_type: 'RETRIEVAL_QUERY' })),
      parameters: { outputDimensionality: 2 },
    },
    answer: (vectors) => ({
      predictions: vectors.map((values) => ({
        embeddings: { values, statistics: { token_count: 3, truncated: false } },
      })),
      metadata: { billableCharacterCount: 20 },
    }),
    tokens: 6,
    invalid: googleError,
    authStatus: 403,
  },
  {
    name: 'amazon-bedrock',
    kind: 'amazon-bedrock',
    model: 'eu.cohere.embed-v4:0',
    base: '',
    path: `/model/${encodeURIComponent('eu.cohere.embed-v4:0')}/invoke`,
    auth: bearer,
    // The smallest supported number of dimensions.
    body: { texts: TEXTS, input_type: 'search_query', output_dimension: 256 },
    answer: (vectors) => ({ embeddings: { float: vectors }, id: 'x', response_type: 'embeddings_by_type' }),
    headers: { 'x-amzn-bedrock-input-token-count': '8' },
    tokens: 8,
    invalid: { message: 'Unrecognized thing' },
    authStatus: 403,
  },
  {
    name: 'cohere',
    kind: 'cohere',
    model: 'embed-v4.0',
    base: '/v2',
    path: '/v2/embed',
    auth: bearer,
    body: {
      model: 'embed-v4.0',
      texts: TEXTS,
      input_type: 'search_query',
      embedding_types: ['float'],
      output_dimension: 256,
    },
    answer: (vectors) => ({
      id: 'x',
      texts: TEXTS,
      embeddings: { float: vectors },
      meta: { api_version: { version: '2' }, billed_units: { input_tokens: 4 } },
      response_type: 'embeddings_by_type',
    }),
    tokens: 4,
    invalid: { id: 'x', message: 'Unrecognized thing' },
  },
  {
    name: 'alibaba',
    kind: 'alibaba',
    model: 'text-embedding-v4',
    base: '/compatible-mode/v1',
    path: '/api/v1/services/embeddings/text-embedding/text-embedding',
    auth: bearer,
    body: { model: 'text-embedding-v4', input: { texts: TEXTS }, parameters: { text_type: 'query', dimension: 2 } },
    answer: (vectors) => ({
      output: {
        embeddings: vectors.map((embedding, text_index) => ({ embedding, text_index, unseen: 1 })).reverse(),
      },
      usage: { total_tokens: 12 },
      request_id: 'x',
    }),
    tokens: 12,
    invalid: { code: 'InvalidParameter', message: 'Unrecognized thing', request_id: 'x' },
  },
  {
    name: 'voyage',
    kind: 'voyage',
    model: 'voyage-3.5',
    base: '/v1',
    path: '/v1/embeddings',
    auth: bearer,
    body: { model: 'voyage-3.5', input: TEXTS, input_type: 'query', output_dimension: 2 },
    answer: (vectors) => ({ ...openaiAnswer(vectors), usage: { total_tokens: 11 } }),
    tokens: 11,
    invalid: { detail: 'Unrecognized thing' },
  },
]

const { open: openMatrixGateway, vendorWith } = perTest()

async function open(given: Case, ...answers: Answer[]) {
  const vendor = vendorWith(...answers)
  const gateway = await openMatrixGateway({
    sandbox: false,
    providers: { v: { kind: given.kind, base_url: vendor.origin + given.base, key: KEY, ...given.config } },
    models: { 'v/m': { families: ['embeddings'], targets: [{ provider: 'v', model: given.model }] } },
  })
  const embed = (more: Json = {}) => postJson(gateway, '/v1/embeddings', { model: 'v/m', input: TEXTS, ...more })
  return { vendor, gateway, embed }
}

/** The smallest number of dimensions where a package supports only some, with vectors to match. */
const dimensionsOf = ({ kind }: Case): number => (kind === 'cohere' || kind === 'amazon-bedrock' ? 256 : 2)
const vectorsFor = (given: Case): number[][] =>
  VECTORS.map((vector) => Array.from({ length: dimensionsOf(given) }, (_, at) => vector[at % 2] ?? 0))

describe.each(CASES.map((given) => [given.name, given] as const))('%s', (_, given) => {
  test('gets a request in its own format, and its response is returned in the OpenAI format', async () => {
    const vectors = vectorsFor(given)
    const { vendor, embed } = await open(given, whole(given.answer(vectors), { headers: given.headers ?? {} }))
    const { status, body } = await embed({ dimensions: dimensionsOf(given), input_type: 'query' })
    expect([status, body.object, body.model]).toEqual([200, 'list', 'v/m'])
    expect(body.data).toEqual(vectors.map((embedding, index) => ({ object: 'embedding', index, embedding })))
    if (given.tokens === undefined) expect(body.usage).toMatchObject({ estimated: true })
    else expect(body.usage).toEqual({ prompt_tokens: given.tokens, total_tokens: given.tokens })
    const [request] = vendor.requests
    expect(request?.path).toBe(given.path)
    expect(request?.headers[given.auth[0]]).toBe(given.auth[1])
    expect(request?.json()).toEqual(given.body)
  })

  test.each([
    [400, 'upstream_invalid_request', 400],
    [429, 'rate_limit_exceeded', 429],
    [500, 'bad_upstream_response', 502],
    [503, 'server_is_overloaded', 503],
  ] as const)('its status %d is returned as %s', async (status, code, ourStatus) => {
    const { embed, gateway } = await open(given, whole(given.invalid, { status, headers: { 'retry-after': '7' } }))
    const answer = await embed()
    expect([answer.status, (answer.body.error as Json).code]).toEqual([ourStatus, code])
    if (status === 400) expect((answer.body.error as Json).message).toBe('Unrecognized thing')
    if (status === 429) expect(answer.headers.get('retry-after')).toBe('7')
    expect(JSON.stringify(answer.body) + gateway.logged()).not.toContain(KEY)
  })

  test('a key that it rejects is upstream_auth, without a retry', async () => {
    const { embed } = await open(given, whole(given.invalid, { status: given.authStatus ?? 401 }))
    const answer = await embed()
    expect([answer.status, (answer.body.error as Json).code]).toEqual([502, 'upstream_auth'])
    expect(answer.headers.get('x-should-retry')).toBe('false')
  })

  test.each([
    ['too few vectors', (vectors: number[][]) => vectors.slice(1)],
    ['too many vectors', (vectors: number[][]) => [...vectors, ...vectors]],
    ['vectors of different lengths', ([first = [], second = []]: number[][]) => [first, [...second, 1]]],
    ['an empty vector', ([first = []]: number[][]) => [first, []]],
  ])('%s are a bad_upstream_response', async (_, corrupt) => {
    const { embed } = await open(given, whole(given.answer(corrupt(vectorsFor(given)))))
    const answer = await embed()
    expect([answer.status, (answer.body.error as Json).code]).toEqual([502, 'bad_upstream_response'])
  })

  test.each([
    ['text that is not JSON', '<html>'],
    ['an object without vectors', {}],
  ])('%s is a bad_upstream_response', async (_, body) => {
    const { embed } = await open(given, whole(body))
    const answer = await embed()
    expect([answer.status, (answer.body.error as Json).code]).toEqual([502, 'bad_upstream_response'])
  })

  test('vectors with other dimensions than requested are a bad_upstream_response', async () => {
    const { embed } = await open(given, whole(given.answer([VECTORS[0] ?? [], VECTORS[1] ?? []].map((v) => [...v, 0]))))
    const answer = await embed({ dimensions: dimensionsOf(given) })
    expect([answer.status, (answer.body.error as Json).code]).toEqual([502, 'bad_upstream_response'])
  })
})

const caseOf = (kind: ProviderKind, more: Partial<Case> = {}): Case => {
  const found = CASES.find((first) => first.kind === kind)
  if (!found) throw new Error(`There is no case of ${kind}.`)
  return { ...found, ...more }
}

describe('a vendor with several models or input types', () => {
  test('Titan gets one text per call, and the vectors are joined in order', async () => {
    const given = caseOf('amazon-bedrock', { model: 'amazon.titan-embed-text-v2:0' })
    const { vendor, embed } = await open(given)
    vendor.otherwise((wire) => {
      const { inputText } = wire.request.json()
      return whole({ embedding: [String(inputText).length, 1], inputTextTokenCount: 3, unseen: 1 })(wire)
    })
    const { body } = await embed({ input: ['a', 'bb', 'ccc'] })
    expect((body.data as { embedding: number[] }[]).map(({ embedding }) => embedding[0])).toEqual([1, 2, 3])
    expect(body.usage).toEqual({ prompt_tokens: 9, total_tokens: 9 })
  })

  test('Nova gets the purpose and the dimensions', async () => {
    const given = caseOf('amazon-bedrock', { model: 'amazon.nova-2-multimodal-embeddings-v1:0' })
    const { vendor, embed } = await open(
      given,
      whole({ embeddings: [{ embeddingType: 'TEXT', embedding: Array(384).fill(0.1) }] }),
    )
    expect((await embed({ input: 'a', dimensions: 384, input_type: 'document' })).status).toBe(200)
    expect(vendor.requests[0]?.json().singleEmbeddingParams).toMatchObject({
      embeddingDimension: 384,
      embeddingPurpose: 'GENERIC_INDEX',
      text: { value: 'a' },
    })
  })

  test('unsupported dimensions are rejected before a request is sent', async () => {
    const { vendor, embed } = await open(caseOf('cohere'))
    const { status, body } = await embed({ dimensions: 300 })
    expect([status, body.error]).toMatchObject([400, { code: 'invalid_value', param: 'dimensions' }])
    expect(vendor.requests).toHaveLength(0)
  })

  test('an unsupported input type is rejected before a request is sent', async () => {
    const { vendor, embed } = await open(caseOf('google'))
    const { status, body } = await embed({ input_type: 'poem' })
    expect([status, body.error]).toMatchObject([400, { code: 'invalid_value', param: 'input_type' }])
    expect(vendor.requests).toHaveLength(0)
  })

  test.each([
    ['cohere', 'input_type', 'search_document'],
    ['amazon-bedrock', 'input_type', 'search_document'],
    ['voyage', 'input_type', undefined],
  ] as const)('without input_type %s gets %s %s', async (kind, field, value) => {
    const given = caseOf(kind)
    const { vendor, embed } = await open(given, whole(given.answer(VECTORS)))
    await embed()
    expect(vendor.requests[0]?.json()[field]).toBe(value as string)
  })

  test('a vendor without input types gets none', async () => {
    const { vendor, embed } = await open(caseOf('chatcompat'), whole(openaiAnswer(VECTORS)))
    await embed({ input_type: 'query' })
    expect(vendor.requests[0]?.json()).toEqual({ model: 'text-embedding-3-small', input: TEXTS })
  })

  test('Azure accepts token ids, Cohere does not', async () => {
    const tokens = [
      [1, 2],
      [3, 4],
    ]
    const azure = await open(caseOf('azure'), whole(openaiAnswer(VECTORS)))
    expect((await azure.embed({ input: tokens })).status).toBe(200)
    expect(azure.vendor.requests[0]?.json().input).toEqual(tokens)
    const cohere = await open(caseOf('cohere'))
    expect(await cohere.embed({ input: tokens })).toMatchObject({
      status: 400,
      body: { error: { code: 'unsupported_value', param: 'input' } },
    })
    expect(cohere.vendor.requests).toHaveLength(0)
  })
})
