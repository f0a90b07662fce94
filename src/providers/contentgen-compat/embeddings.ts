/** Embeddings of the Gemini API: `embedContent` for one text, `batchEmbedContents` for several. */
import { asRecord, memberOf } from '../../kit/json.ts'
import type { EmbeddingProvider } from '../provider.ts'
import { readTokenCount, toVendorInputType } from '../text-api.ts'
import { createPost, type PostParts } from '../upstream/post-json.ts'

/** The vendor's limit for one batch. */
const MAX_INPUTS = 100
const TYPES = { query: 'RETRIEVAL_QUERY', document: 'RETRIEVAL_DOCUMENT' }

export function createContentgenEmbeddings(parts: PostParts): EmbeddingProvider {
  const post = createPost(parts)
  return {
    max_inputs: () => MAX_INPUTS,
    accepts_tokens: false,
    async embed({ model, inputs, request, request_id }, signal) {
      const { dimensions, input_type } = request
      const toRequest = (input: string | number[]) => ({
        model: `models/${model}`,
        content: { parts: [{ text: input }] },
        ...(dimensions === undefined ? {} : { outputDimensionality: dimensions }),
        ...(input_type === undefined ? {} : { taskType: toVendorInputType(input_type, TYPES) }),
      })
      const [first] = inputs
      const isSingle = first !== undefined && inputs.length === 1
      const path = `/models/${encodeURIComponent(model)}:${isSingle ? 'embedContent' : 'batchEmbedContents'}`
      const body = isSingle ? toRequest(first) : { requests: inputs.map(toRequest) }
      const payload = await post.send({ path, model, body, request_id, signal })
      const response = asRecord(payload)
      const list = isSingle ? [response.embedding] : response.embeddings
      if (!Array.isArray(list)) throw post.notUnderstood('no list of embeddings')
      const embeddings = list.flatMap((item) => {
        const values = memberOf(item, 'values')
        return Array.isArray(values) && values.every((value) => typeof value === 'number') ? [values] : []
      })
      if (embeddings.length < list.length) throw post.notUnderstood('an embedding that is not a vector')
      const tokens = readTokenCount(payload)
      return { embeddings, ...(tokens === undefined ? {} : { prompt_tokens: tokens }) }
    },
  }
}
