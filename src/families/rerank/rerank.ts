/** The rerank family: documents as texts, results validated and sorted. */
import type { Call } from '../../calls/call.ts'
import type { JsonEndpoint } from '../../calls/endpoint.ts'
import { type Family, jsonCodec } from '../../calls/family.ts'
import { textAt } from '../../calls/guards/content.ts'
import { createTextMeter, estimateTexts, type TextMeter } from '../../calls/text-meter.ts'
import type { Tokenizer } from '../../kit/tokenizer.ts'
import type { Target } from '../../providers/provider.ts'
import { GatewayError } from '../../spec/error.ts'
import type { RerankRequest } from '../../spec/rerank-request.ts'
import type { Estimate } from '../../spec/usage.ts'
import { partOf } from '../shared/provider-part.ts'
import { textsOf } from './documents.ts'

type Scored = { index: number; relevance_score: number }
type RerankWork = { request: RerankRequest; documents: string[]; top_n: number; targets: Target[] }
type Ranked = { results: Scored[]; search_units: number }
export type RerankFamily = Family<RerankRequest, RerankWork, Ranked, TextMeter>
export type RerankEndpoint = JsonEndpoint<RerankRequest, RerankWork, Ranked, TextMeter>

/** Cohere's search unit: one query over up to so many documents. */
const UNIT_DOCUMENTS = 100
const searchesFor = (documents: readonly string[]): number => Math.ceil(documents.length / UNIT_DOCUMENTS)

/** Cohere splits longer documents, the query included, and counts each piece: https://docs.cohere.com/docs/rerank-overview */
const PIECE_BYTES = 250

/** Voyage and Jina count the query with each document. */
function estimateRerank(query: string, documents: readonly string[]): Estimate {
  const { expected, most } = estimateTexts(documents, searchesFor(documents))
  const bytes = Buffer.byteLength(query) * documents.length
  const pieces = documents.reduce((sum, one) => sum + Math.max(1, Math.ceil(Buffer.byteLength(one) / PIECE_BYTES)), 0)
  return {
    expected: { ...expected, input_tokens: expected.input_tokens + Math.ceil(bytes / 4) },
    most: { ...most, input_tokens: most.input_tokens + bytes, searches: Math.ceil(pieces / UNIT_DOCUMENTS) },
  }
}

export const createRerank = ({ tokenizer }: { tokenizer: Tokenizer }): RerankFamily => ({
  endpoint: () => 'rerank',
  modelOf: ({ model }) => model,
  fit({ targets }, request) {
    const documents = textsOf(request)
    return { request, documents, top_n: Math.min(request.top_n ?? documents.length, documents.length), targets }
  },
  meter: ({ request, documents }) =>
    createTextMeter({ inputs: [request.query, ...documents], tokenizer, searches: searchesFor(documents) }),
  estimate: ({ request, documents }) => estimateRerank(request.query, documents),
  guarded: {
    input(work) {
      work.request = { ...work.request }
      work.documents = [...work.documents]
      return [...textAt(work.request, 'query'), ...work.documents.flatMap((_, at) => textAt(work.documents, at))]
    },
  },
  texts: ({ request, documents }) => [request.query, ...documents],
  policy: 'until_answered',
  targets: ({ targets }) => targets,
  async send(target, work, { call, signal, meter }) {
    const answer = await rankAt(target, { work, call, signal })
    meter.reported(answer.prompt_tokens, answer.search_units)
    const search_units = answer.search_units ?? searchesFor(work.documents)
    return { results: answer.results, search_units }
  },
  cacheable: ({ request: { query, max_tokens_per_doc }, documents, top_n }) => ({
    request: [query, documents, top_n, max_tokens_per_doc],
    is_deterministic: true,
  }),
  codec: jsonCodec(),
})

type Ranking = { work: RerankWork; call: Call; signal: AbortSignal }

async function rankAt(target: Target, { work, call, signal }: Ranking) {
  const { model, provider } = target
  const { request, documents, top_n } = work
  const { query, max_tokens_per_doc } = request
  const answer = await partOf(target, 'rerank', 'serves no rerankers').rerank(
    {
      model,
      query,
      documents,
      top_n,
      ...(max_tokens_per_doc === undefined ? {} : { max_tokens_per_doc }),
      request_id: call.request_id,
    },
    signal,
  )
  return {
    ...answer,
    results: sortedResults(answer.results, { provider: provider.id, count: documents.length, top_n }),
  }
}

type Expected = { provider: string; count: number; top_n: number }

/** Sorted by score, then by index; at most `top_n`, each document once. Throws for invalid results. */
function sortedResults(results: Scored[], { provider, count, top_n }: Expected): Scored[] {
  const wrong = (what: string) =>
    new GatewayError('bad_upstream_response', `The upstream "${provider}" returned ${what}.`)
  const seen = new Set<number>()
  for (const { index, relevance_score } of results) {
    if (!Number.isInteger(index) || index < 0 || index >= count)
      throw wrong('the index of a document that was not sent')
    if (seen.has(index)) throw wrong('one document twice')
    if (!Number.isFinite(relevance_score)) throw wrong('a score that is not a number')
    seen.add(index)
  }
  if (results.length < top_n) throw wrong(`${results.length} results where ${top_n} were requested`)
  return results
    .map(({ index, relevance_score }) => ({ index, relevance_score }))
    .sort((one, other) => other.relevance_score - one.relevance_score || one.index - other.index)
    .slice(0, top_n)
}
