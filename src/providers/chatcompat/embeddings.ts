/** Embeddings of any OpenAI-compatible vendor: `POST /embeddings`, vectors as numbers or as base64. */
import { floatsOfBase64 } from '../../kit/float32.ts'
import { isRecord, memberOf } from '../../kit/json.ts'
import type { EmbeddingProvider } from '../provider.ts'
import type { ProviderSettings } from '../settings.ts'
import { readTokenCount, toVendorInputType } from '../text-api.ts'
import { createPost, type PostParts } from '../upstream/post-json.ts'

type CompatParts = PostParts & { settings: Pick<ProviderSettings, 'quirks' | 'input_types'> }

export function createCompatEmbeddings(parts: CompatParts): EmbeddingProvider {
  const { embedding_base64, embedding_inputs, embedding_call_tokens, embedding_tokens } = parts.settings.quirks
  const { input_types, fields } = parts.settings
  const post = createPost(parts)

  /** OpenAI rejects unknown fields. */
  function inputTypeField(input_type: string | undefined): { input_type?: string } {
    if (input_type === undefined) return {}
    if (input_types) return { input_type: toVendorInputType(input_type, input_types) }
    const isAllowed = fields.allow.includes('input_type') || fields.rename.input_type !== undefined
    return isAllowed ? { input_type } : {}
  }

  return {
    max_inputs: () => embedding_inputs,
    max_tokens: () => embedding_call_tokens,
    accepts_tokens: embedding_tokens,
    async embed({ model, inputs, request, request_id }, signal) {
      // Omitted where base64 is not known to work: some vendors reject the field, and all return numbers without it.
      const format = embedding_base64 ? { encoding_format: 'base64' } : {}
      const { input_type, ...rest } = request
      const body = { model, input: inputs, ...format, ...rest, ...inputTypeField(input_type) }
      const payload = await post.send({ path: '/embeddings', model, body, request_id, signal })
      const list = Array.isArray(payload) ? payload : memberOf(payload, 'data')
      if (!Array.isArray(list)) throw post.notUnderstood('no list of embeddings')
      const embeddings = inOrder(list).map(vectorOf)
      const vectors = embeddings.filter((vector) => vector !== undefined)
      if (vectors.length < embeddings.length) throw post.notUnderstood('an embedding that is not a vector')
      const tokens = readTokenCount(payload)
      return { embeddings: vectors, ...(tokens === undefined ? {} : { prompt_tokens: tokens }) }
    },
  }
}

/** Sorted by index if every item has a distinct one; otherwise in the received order. */
function inOrder(items: unknown[]): unknown[] {
  const placed: unknown[] = new Array(items.length)
  const seen = new Set<number>()
  for (const item of items) {
    const index = isRecord(item) ? Number(item.index) : Number.NaN
    if (!Number.isInteger(index) || index < 0 || index >= items.length || seen.has(index)) return items
    seen.add(index)
    placed[index] = item
  }
  return placed
}

function vectorOf(item: unknown): number[] | undefined {
  const embedding = isRecord(item) ? item.embedding : item
  if (typeof embedding === 'string') return floatsOfBase64(embedding)
  return Array.isArray(embedding) && embedding.every((value) => typeof value === 'number') ? embedding : undefined
}
