/** The shape of rerank that Jina, vLLM and others share: `POST /rerank`. */

import { isRecord, type JsonRecord } from '../../kit/json.ts'
import type { RerankProvider } from '../provider.ts'
import { isCount, tokensOf } from './embeddings.ts'
import { createPost, type PostParts } from './post.ts'

export function createCompatRerank(parts: PostParts): RerankProvider {
  const post = createPost(parts)
  return {
    async rerank({ model, query, documents, top_n, max_tokens_per_doc, request_id }, signal) {
      // Jina repeats every document unless it is told not to.
      const body = { model, query, documents, top_n, max_tokens_per_doc, return_documents: false }
      const payload = await post.ask({ path: '/rerank', model, body, request_id, signal })
      // Some say `data` as embeddings do; Text Embeddings Inference gives the bare list.
      const list = Array.isArray(payload) ? payload : isRecord(payload) ? (payload.results ?? payload.data) : undefined
      if (!Array.isArray(list)) throw post.notUnderstood('no list of results')
      const results = list.map((item) => {
        const { index, relevance_score: relevance, score = relevance } = isRecord(item) ? item : ({} as JsonRecord)
        if (typeof index !== 'number' || typeof score !== 'number') {
          throw post.notUnderstood('a result without an index and a score')
        }
        return { index, relevance_score: score }
      })
      return { results, ...billedIn(payload) }
    },
  }
}

/** What was counted, wherever vendors of this shape say it. */
export function billedIn(payload: unknown): { prompt_tokens?: number; search_units?: number } {
  const meta = isRecord(payload) && isRecord(payload.meta) ? payload.meta : {}
  const units = isRecord(meta.billed_units) ? meta.billed_units : {}
  const counted = isRecord(meta.tokens) ? meta.tokens : {}
  const tokens = tokensOf(payload) ?? [counted.input_tokens, units.input_tokens].find(isCount)
  const { search_units } = units
  return {
    ...(tokens === undefined ? {} : { prompt_tokens: tokens }),
    ...(isCount(search_units) ? { search_units } : {}),
  }
}
