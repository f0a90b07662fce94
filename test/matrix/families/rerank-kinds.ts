/** The kinds of rerank providers, each with its own protocol. All compute the same scores. */
import { unknownFieldIn } from '../vendors/wire-vendor.ts'
import { cohereFailure } from './embedding-kinds.ts'
import type { FamilyKind } from './family.ts'
import { BEARER, type IncomingRequest, openaiFailure, startWire, type Wire } from './vendor.ts'

/** The usage of one query at a provider that reports it. */
export const UNITS = 3

type Body = { query: string; documents: string[]; top_n?: number; top_k?: number }

const termsOf = (text: string) => text.toLowerCase().match(/\w{3,}/g) ?? []

/** A deterministic score: the fraction of the query's words that occur in the text. */
export function scoreOf(query: string, text: string): number {
  const terms = termsOf(text)
  const params = termsOf(query)
  return params.filter((word) => terms.some((one) => one.startsWith(word))).length / Math.max(1, params.length)
}

/** The best results, worst first: the gateway must sort them. */
const bestOf = ({ query, documents, top_n, top_k }: Body) =>
  documents
    .map((text, index) => ({ index, relevance_score: scoreOf(query, text) }))
    .sort((one, other) => other.relevance_score - one.relevance_score)
    .slice(0, top_n ?? top_k)
    .reverse()

type Shape = { path: string; fields: string[]; failure: Wire['failure']; answer(body: Body): object }

const wireOf = ({ path, fields, failure, answer }: Shape): Wire => ({
  auth: BEARER,
  failure,
  answer(incoming: IncomingRequest) {
    if (incoming.path !== path) return undefined
    const unknownField = unknownFieldIn(incoming.body, ['model', 'query', 'documents', ...fields])
    if (unknownField) return `${unknownField}: Extra inputs are not permitted`
    const body = incoming.body as Body
    return body.documents.every((text) => typeof text === 'string') ? answer(body) : 'documents must be texts'
  },
})

const JINA: Shape = {
  path: '/v1/rerank',
  fields: ['top_n', 'return_documents'],
  failure: (_, detail) => ({ detail }),
  answer: (body) => ({
    model: 'jina-reranker-v3',
    object: 'list',
    usage: { total_tokens: 15 },
    results: bestOf(body).map((one) => ({ ...one, document: { text: body.documents[one.index] } })),
  }),
}

/** An OpenAI-shaped provider that also reranks. */
const BESIDE: Shape = {
  path: '/v1/rerank',
  fields: ['top_n', 'return_documents'],
  failure: openaiFailure,
  answer: (body) => ({ object: 'list', data: bestOf(body), usage: { prompt_tokens: 5, total_tokens: 5 } }),
}

const COHERE: Shape = {
  path: '/v2/rerank',
  fields: ['top_n', 'max_tokens_per_doc'],
  failure: cohereFailure,
  answer: (body) => ({
    id: 'x',
    results: bestOf(body),
    meta: { api_version: { version: '2' }, billed_units: { search_units: UNITS } },
  }),
}

const VOYAGE: Shape = {
  path: '/v1/rerank',
  fields: ['top_k', 'truncation', 'return_documents'],
  failure: (_, detail) => ({ detail }),
  answer: (body) => ({ object: 'list', data: bestOf(body), model: 'rerank-2.5', usage: { total_tokens: 26 } }),
}

const kindOf = (shape: Shape, more: Omit<FamilyKind, 'start' | 'path'> & { path?: string }): FamilyKind => ({
  start: () => startWire(wireOf(shape)),
  path: shape.path.replace(/\/rerank$/, ''),
  ...more,
})

export const RERANK_KINDS: FamilyKind[] = [
  kindOf(JINA, { name: 'rerank-compat', provider: { kind: 'rerank-compat' }, model: 'jina-reranker-v3' }),
  kindOf(BESIDE, { name: 'chatcompat', provider: { kind: 'chatcompat', quirks: { rerank: true } }, model: 'm' }),
  kindOf(COHERE, { name: 'cohere', provider: { kind: 'cohere' }, model: 'rerank-v4.0' }),
  kindOf(VOYAGE, { name: 'voyage', provider: { kind: 'voyage' }, model: 'rerank-2.5' }),
]
