/** The response cache, as the operator writes it. */
import Type from 'typebox'
import { integer, number, oneOf, optional, section } from '../../spec/fields.ts'

const SCOPES = ['token', 'project', 'all'] as const
const CACHED_REQUESTS = ['deterministic', 'all'] as const
const STORAGES = ['memory', 'database', 'valkey'] as const

/** Also answers requests whose last message means the same. */
const SemanticCache = section(
  {
    embedding_model: Type.String({
      minLength: 1,
      description: 'Full id of the embedding model. Callers need the right to it.',
    }),
    threshold: number(
      { minimum: 0.5, maximum: 1 },
      'The least cosine similarity at which a response is used. Default 0.95.',
    ),
    timeout_ms: integer({ minimum: 1, maximum: 10_000 }, 'How long a request waits for the embedding. Default 500.'),
  },
  'Also serves requests whose last user message is similar, with the same numbers and all else equal. Default: no.',
)

/** Turns the cache on for one model. */
export const ModelCache = section(
  {
    ttl_seconds: number(
      { exclusiveMinimum: 0, maximum: 31_536_000 },
      'How long a response is served from the cache. Default 3600.',
    ),
    scope: oneOf(
      SCOPES,
      'Who receives a cached response, for the same end user: the token that created it, its project, or every token that may use the model. Default token.',
    ),
    max_entry_bytes: integer(
      { minimum: 1, maximum: 64 * 1024 * 1024 },
      'A larger response is not cached. Default 1048576.',
    ),
    requests: oneOf(
      CACHED_REQUESTS,
      'Cached without `x-gatehouse-cache: on`. deterministic: chat with `temperature: 0` or a `seed` and without provider tools; embeddings, rerank, moderations. Default deterministic.',
    ),
    semantic: optional(SemanticCache),
  },
  'Caches responses of this model. Default: only where a request asks for it.',
)
export type ModelCache = Type.Static<typeof ModelCache>

export const CacheConfig = section({
  storage: oneOf(
    STORAGES,
    'memory: in each gateway, until it stops; database, valkey: shared by gateways, also after a restart. Default memory.',
  ),
  max_entries: integer(
    { minimum: 1, maximum: 100_000 },
    'The most cached responses; not with storage valkey. Default 10000.',
  ),
  max_bytes: integer(
    { minimum: 1 },
    'The most bytes of cached responses together; not with storage valkey. Default 67108864.',
  ),
  max_vector_bytes: integer(
    { minimum: 1, maximum: 1_073_741_824 },
    'The most bytes of vectors of semantic caches in each gateway: 6144 for 1536 dimensions. Default 33554432.',
  ),
})
export type CacheConfig = Type.Static<typeof CacheConfig>
