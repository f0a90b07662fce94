/** The shape of rerank that Jina, vLLM and others share: `POST /rerank`. */

import { isRecord, type JsonRecord } from '../../kit/json.ts'
import type { RerankProvider } from '../provider.ts'
import { billedIn } from '../text-counts.ts'
import { createPost, type PostParts } from '../upstream/post-json.ts'

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
