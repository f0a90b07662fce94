/** The vendors of rerankers, each against a loopback server that responds in the vendor's format. */
import { describe, expect, test } from 'bun:test'
import { DEFAULT_TIMEOUTS } from '../src/config/config.ts'
import type { ProviderKind } from '../src/config/schema/provider-kinds.ts'
import type { ProviderConfig } from '../src/config/schema/schema.ts'
import { createLog } from '../src/kit/log.ts'
import { createProvider } from '../src/providers/registry.ts'
import type { UpstreamRequest } from '../src/providers/upstream/upstream-request.ts'
import { GatewayError } from '../src/spec/error.ts'
import { manualClock } from './kit/clock.ts'
import { perTest, postJson } from './kit/per-test.ts'
import { type Answer, whole } from './kit/vendor.ts'

const KEY = 'sk-secret-key-of-ours'
const QUERY = 'When does the snow melt?'
const DOCUMENTS = ['Boats leave at noon.', 'The snow melts in April.', 'Snow fell.']

type Json = Record<string, unknown>
type Scored = { index: number; score: number }
type Case = {
  name: string
  kind: ProviderKind
  model: string
  base: string
  path: string
  /** The body for the best two of DOCUMENTS. */
  body: Json
  answer(scored: Scored[]): unknown
  usage?: { tokens: number }
  units?: number
  invalid: Json
  authStatus?: number
  config?: Partial<ProviderConfig>
}

const results = (scored: Scored[]) =>
  scored.map(({ index, score }) => ({ index, relevance_score: score, document: { text: 'not requested' }, unseen: 1 }))
const COMMON = { query: QUERY, documents: DOCUMENTS, top_n: 2, return_documents: false }
const openaiError = { error: { message: 'Unrecognized thing', type: 'invalid_request_error', param: null, code: null } }

const CASES: Case[] = [
  {
    name: 'rerank-compat, in the format of Jina',
    kind: 'rerank-compat',
    model: 'jina-reranker-v3',
    base: '/v1',
    path: '/v1/rerank',
    body: { model: 'jina-reranker-v3', ...COMMON },
    answer: (scored) => ({
      model: 'jina-reranker-v3',
      object: 'list',
      usage: { total_tokens: 15 },
      results: results(scored),
    }),
    usage: { tokens: 15 },
    invalid: { detail: 'Unrecognized thing' },
  },
  {
    name: 'rerank-compat, as vLLM answers',
    kind: 'rerank-compat',
    model: 'BAAI/bge-reranker-v2-m3',
    base: '',
    path: '/rerank',
    body: { model: 'BAAI/bge-reranker-v2-m3', ...COMMON },
    answer: (scored) => ({ id: 'rerank-1', model: 'm', usage: { total_tokens: 56 }, results: results(scored) }),
    usage: { tokens: 56 },
    invalid: { object: 'error', message: 'Unrecognized thing', type: 'BadRequestError', code: 400 },
  },
  {
    name: 'rerank-compat, with scores in a bare list',
    kind: 'rerank-compat',
    model: 'm',
    base: '',
    path: '/rerank',
    body: { model: 'm', ...COMMON },
    answer: (scored) => scored.map(({ index, score }) => ({ index, score, text: null })),
    invalid: { error: 'Unrecognized thing', error_type: 'Validation' },
  },
  {
    name: 'an OpenAI-shaped vendor that reranks too',
    kind: 'chatcompat',
    model: 'm',
    base: '/v1',
    path: '/v1/rerank',
    body: { model: 'm', ...COMMON },
    answer: (scored) => ({ object: 'list', data: results(scored), usage: { prompt_tokens: 5, total_tokens: 5 } }),
    usage: { tokens: 5 },
    invalid: openaiError,
    config: { quirks: { rerank: true } },
  },
  {
    name: 'cohere',
    kind: 'cohere',
    model: 'rerank-v4.0',
    base: '/v2',
    path: '/v2/rerank',
    body: { model: 'rerank-v4.0', query: QUERY, documents: DOCUMENTS, top_n: 2 },
    answer: (scored) => ({
      id: 'x',
      results: results(scored),
      meta: { api_version: { version: '2' }, billed_units: { search_units: 3 } },
    }),
    units: 3,
    invalid: { id: 'x', message: 'Unrecognized thing' },
  },
  {
    name: 'togetherai',
    kind: 'togetherai',
    model: 'Salesforce/Llama-Rank-V1',
    base: '/v1',
    path: '/v1/rerank',
    body: { model: 'Salesforce/Llama-Rank-V1', ...COMMON },
    answer: (scored) => ({
      object: 'rerank',
      id: 'x',
      model: 'Salesforce/Llama-Rank-V1',
      results: results(scored),
      usage: { prompt_tokens: 8, completion_tokens: 0, total_tokens: 8 },
    }),
    usage: { tokens: 8 },
    invalid: openaiError,
  },
  {
    name: 'amazon-bedrock',
    kind: 'amazon-bedrock',
    model: 'cohere.rerank-v3-5:0',
    base: '',
    path: '/rerank',
    body: {
      queries: [{ textQuery: { text: QUERY }, type: 'TEXT' }],
      rerankingConfiguration: {
        bedrockRerankingConfiguration: {
          modelConfiguration: { modelArn: 'arn:aws:bedrock:eu-central-1::foundation-model/cohere.rerank-v3-5:0' },
          numberOfResults: 2,
        },
        type: 'BEDROCK_RERANKING_MODEL',
      },
      sources: DOCUMENTS.map((text) => ({
        type: 'INLINE',
        inlineDocumentSource: { type: 'TEXT', textDocument: { text } },
      })),
    },
    answer: (scored) => ({
      results: scored.map(({ index, score }) => ({ index, relevanceScore: score, unseen: 1 })),
    }),
    invalid: { message: 'Unrecognized thing' },
    authStatus: 403,
    config: { options: { region: 'eu-central-1' } },
  },
  {
    name: 'voyage',
    kind: 'voyage',
    model: 'rerank-2.5',
    base: '/v1',
    path: '/v1/rerank',
    body: { model: 'rerank-2.5', query: QUERY, documents: DOCUMENTS, top_k: 2 },
    answer: (scored) => ({ object: 'list', data: results(scored), model: 'rerank-2.5', usage: { total_tokens: 26 } }),
    usage: { tokens: 26 },
    invalid: { detail: 'Unrecognized thing' },
  },
]

const { open: openMatrixGateway, vendorWith } = perTest()

async function open(given: Case, ...answers: Answer[]) {
  const vendor = vendorWith(...answers)
  const gateway = await openMatrixGateway({
    sandbox: false,
    providers: { v: { kind: given.kind, base_url: vendor.origin + given.base, key: KEY, ...given.config } },
    models: { 'v/m': { families: ['rerank'], targets: [{ provider: 'v', model: given.model }] } },
  })
  const rank = (more: Json = {}) =>
    postJson(gateway, '/v1/rerank', { model: 'v/m', query: QUERY, documents: DOCUMENTS, top_n: 2, ...more })
  return { vendor, gateway, rank }
}

const BEST: Scored[] = [
  { index: 1, score: 0.98 },
  { index: 2, score: 0.25 },
]

describe.each(CASES.map((given) => [given.name, given] as const))('%s', (_, given) => {
  test('gets a request in its own format, and its response is returned in the common format', async () => {
    const { vendor, rank } = await open(given, whole(given.answer(BEST)))
    const { status, body } = await rank()
    expect([status, body.model]).toEqual([200, 'v/m'])
    expect(body.results).toEqual(BEST.map(({ index, score }) => ({ index, relevance_score: score })))
    if (given.usage) {
      expect(body.usage).toEqual({ prompt_tokens: given.usage.tokens, total_tokens: given.usage.tokens })
    } else expect(body.usage).toMatchObject({ estimated: true })
    expect(body.meta).toEqual({ billed_units: { search_units: given.units ?? 1 } })
    const [request] = vendor.requests
    expect(request?.path).toBe(given.path)
    expect(request?.headers.authorization).toBe(`Bearer ${KEY}`)
    expect(request?.json()).toEqual(given.body)
  })

  test('unsorted results, and more than requested, are sorted and cut', async () => {
    const { rank } = await open(
      given,
      whole(given.answer([{ index: 2, score: 0.25 }, { index: 0, score: 0.01 }, BEST[0] ?? { index: 0, score: 0 }])),
    )
    const { body } = await rank()
    expect((body.results as { index: number }[]).map(({ index }) => index)).toEqual([1, 2])
  })

  test.each([
    [400, 'upstream_invalid_request', 400],
    [429, 'rate_limit_exceeded', 429],
    [500, 'bad_upstream_response', 502],
    [503, 'server_is_overloaded', 503],
  ] as const)('its status %d is returned as %s', async (status, code, ourStatus) => {
    const { rank, gateway } = await open(given, whole(given.invalid, { status, headers: { 'retry-after': '7' } }))
    const answer = await rank()
    expect([answer.status, (answer.body.error as Json).code]).toEqual([ourStatus, code])
    if (status === 400) expect((answer.body.error as Json).message).toBe('Unrecognized thing')
    if (status === 429) expect(answer.headers.get('retry-after')).toBe('7')
    expect(JSON.stringify(answer.body) + gateway.logged()).not.toContain(KEY)
  })

  test('a key that it rejects is upstream_auth', async () => {
    const { rank } = await open(given, whole(given.invalid, { status: given.authStatus ?? 401 }))
    const answer = await rank()
    expect([answer.status, (answer.body.error as Json).code]).toEqual([502, 'upstream_auth'])
  })

  test.each([
    ['too few results', [{ index: 1, score: 0.5 }]],
    ['the same document twice', [BEST[0], BEST[0]]],
    ['a document that was not sent', [BEST[0], { index: 3, score: 0.1 }]],
    ['a document before the first', [BEST[0], { index: -1, score: 0.1 }]],
  ] as [string, Scored[]][])('%s: bad_upstream_response', async (_, scored) => {
    const { rank } = await open(given, whole(given.answer(scored)))
    const answer = await rank()
    expect([answer.status, (answer.body.error as Json).code]).toEqual([502, 'bad_upstream_response'])
  })

  test.each([
    ['text that is not JSON', '<html>'],
    ['an object without results', {}],
  ])('%s: bad_upstream_response', async (_, body) => {
    const { rank } = await open(given, whole(body))
    const answer = await rank()
    expect([answer.status, (answer.body.error as Json).code]).toEqual([502, 'bad_upstream_response'])
  })
})

test.each(['cohere', 'rerank-compat'])('%s gets max_tokens_per_doc', async (kind) => {
  const given = CASES.find((item) => item.kind === kind)
  if (!given) throw new Error(`There is no case of ${kind}.`)
  const { vendor, rank } = await open(given, whole(given.answer(BEST)))
  await rank({ max_tokens_per_doc: 512 })
  expect(vendor.requests[0]?.json().max_tokens_per_doc).toBe(512)
})

test('Bedrock’s rerankers have a host of their own, and requests without a key are signed', async () => {
  const clock = manualClock()
  const seen: UpstreamRequest[] = []
  const { rerank } = createProvider({
    id: 'acme',
    config: {
      kind: 'amazon-bedrock',
      options: { region: 'eu-west-1', accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'a secret of ours' },
    },
    timeouts: DEFAULT_TIMEOUTS,
    transport: {
      async send(request) {
        seen.push(request)
        throw new GatewayError('upstream_unreachable', 'No connection.')
      },
    },
    clock,
    log: createLog({ clock, level: 'error', pretty: false, write: () => {} }),
    environment: {},
    manual: async () => [],
  })
  const call = { model: 'amazon.rerank-v1:0', query: QUERY, documents: DOCUMENTS, top_n: 1, request_id: 'req_1' }
  const pending = rerank?.rerank(call, new AbortController().signal)
  await expect(pending).rejects.toMatchObject({ code: 'upstream_unreachable' })
  expect(seen.map(({ url }) => url)).toEqual(['https://bedrock-agent-runtime.eu-west-1.amazonaws.com/rerank'])
  expect(seen[0]?.headers.authorization).toMatch(
    /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/eu-west-1\/bedrock\//,
  )
})
