/** The response cache, as the operator writes it. */
import type Type from 'typebox'
import { integer, number, oneOf, optional, required, section } from '../../spec/fields.ts'

const SCOPES = ['token', 'project', 'all'] as const
const CACHED_REQUESTS = ['deterministic', 'all'] as const
const STORAGES = ['memory', 'database', 'valkey'] as const

/** Also answers requests whose last message means the same. */
const SemanticCache = section(
  {
    embedding_model: required({ minLength: 1 }, 'Full id; callers need the right to it.'),
    threshold: number({ minimum: 0.5, maximum: 1 }, 'The least cosine similarity. Default 0.95.'),
    timeout_ms: integer({ minimum: 1, maximum: 10_000 }, 'Wait for the embedding. Default 500.'),
  },
  'Also serves requests whose last user message is similar.',
)

/** Turns the cache on for one model. */
export const ModelCache = section(
  {
    ttl_seconds: number({ exclusiveMinimum: 0, maximum: 31_536_000 }, 'How long a response is served. Default 3600.'),
    scope: oneOf(SCOPES, 'Who receives a cached response. Default token.'),
    max_entry_bytes: integer({ minimum: 1, maximum: 64 * 1024 * 1024 }, 'Of a response. Default 1048576.'),
    requests: oneOf(
      CACHED_REQUESTS,
      'Cached without `x-gatehouse-cache: on`. deterministic: chat with `temperature: 0` or a `seed`, without provider tools; embeddings, rerank, moderations. Default deterministic.',
    ),
    semantic: optional(SemanticCache),
  },
  'Absent: only where a request asks for it.',
)
export type ModelCache = Type.Static<typeof ModelCache>

export const CacheConfig = section({
  storage: oneOf(STORAGES, 'Memory of each gateway, or shared. Default memory.'),
  max_entries: integer({ minimum: 1, maximum: 100_000 }, 'Cached responses; not in Valkey. Default 10000.'),
  max_bytes: integer({ minimum: 1 }, 'Bytes of them; not in Valkey. Default 67108864.'),
  max_vector_bytes: integer(
    { minimum: 1, maximum: 1_073_741_824 },
    'Bytes of vectors of semantic caches in each gateway. Default 33554432.',
  ),
})
export type CacheConfig = Type.Static<typeof CacheConfig>
