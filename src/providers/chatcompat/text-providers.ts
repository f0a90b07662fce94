/** The text APIs of an OpenAI-compatible provider besides chat, and kind `rerank-compat`, which has only rerank. */
import { isRecord, type JsonRecord } from '../../kit/json.ts'
import type { Provider, RerankProvider } from '../provider.ts'
import type { ProviderSettings } from '../settings.ts'
import { readBilledUnits } from '../text-api.ts'
import { createPost, type PostParts } from '../upstream/post-json.ts'
import { createCompatEmbeddings } from './embeddings.ts'
import { createCompatModerations } from './moderations.ts'

type TextParts = PostParts & { settings: ProviderSettings }

export const textMembers = (parts: TextParts): Pick<Provider, 'embeddings' | 'moderations' | 'rerank'> => ({
  embeddings: createCompatEmbeddings(parts),
  moderations: createCompatModerations(parts),
  ...(parts.settings.quirks.rerank ? { rerank: createCompatRerank(parts) } : {}),
})

export const createRerankCompat = (parts: TextParts): Provider => ({
  id: parts.id,
  kind: 'rerank-compat',
  rerank: createCompatRerank(parts),
})

/** The rerank API that Jina, vLLM and others share: `POST /rerank`. */
function createCompatRerank(parts: PostParts): RerankProvider {
  const post = createPost(parts)
  return {
    async rerank({ model, query, documents, top_n, max_tokens_per_doc, request_id }, signal) {
      // Jina returns every document by default.
      const body = { model, query, documents, top_n, max_tokens_per_doc, return_documents: false }
      const payload = await post.send({ path: '/rerank', model, body, request_id, signal })
      // Some vendors name it `data` as for embeddings; Text Embeddings Inference returns a bare list.
      const list = Array.isArray(payload) ? payload : isRecord(payload) ? (payload.results ?? payload.data) : undefined
      if (!Array.isArray(list)) throw post.notUnderstood('no list of results')
      const results = list.map((item) => {
        const { index, relevance_score: relevance, score = relevance } = isRecord(item) ? item : ({} as JsonRecord)
        if (typeof index !== 'number' || typeof score !== 'number') {
          throw post.notUnderstood('a result without an index and a score')
        }
        return { index, relevance_score: score }
      })
      return { results, ...readBilledUnits(payload) }
    },
  }
}
