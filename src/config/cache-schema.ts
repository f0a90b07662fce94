/** The response cache, as the operator writes it. */
import Type, { type TSchema } from 'typebox'

const closed = { additionalProperties: false } as const
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema)

const SCOPES = ['token', 'project', 'all'] as const
const CACHED_REQUESTS = ['deterministic', 'all'] as const
const STORAGES = ['memory', 'database', 'valkey'] as const

/** Also answers requests whose last message means the same. */
const SemanticCache = Type.Object(
  {
    embedding_model: Type.String({
      minLength: 1,
      description: 'Full id of the embedding model. Callers need the right to it.',
    }),
    threshold: optional(
      Type.Number({
        minimum: 0.5,
        maximum: 1,
        description: 'The least cosine similarity at which a response is used. Default 0.95.',
      }),
    ),
    timeout_ms: optional(
      Type.Integer({
        minimum: 1,
        maximum: 10_000,
        description: 'How long a request waits for the embedding. Default 500.',
      }),
    ),
  },
  {
    ...closed,
    description:
      'Also serves requests whose last user message is similar, with the same numbers and all else equal. Default: no.',
  },
)

/** Turns the cache on for one model. */
export const ModelCache = Type.Object(
  {
    ttl_seconds: optional(
      Type.Number({
        exclusiveMinimum: 0,
        maximum: 31_536_000,
        description: 'How long a response is served from the cache. Default 3600.',
      }),
    ),
    scope: optional(
      Type.Enum([...SCOPES], {
        description:
          'Who receives a cached response, for the same end user: the token that created it, its project, or every token that may use the model. Default token.',
      }),
    ),
    max_entry_bytes: optional(
      Type.Integer({
        minimum: 1,
        maximum: 64 * 1024 * 1024,
        description: 'A larger response is not cached. Default 1048576.',
      }),
    ),
    requests: optional(
      Type.Enum([...CACHED_REQUESTS], {
        description:
          'Cached without `x-gatehouse-cache: on`. deterministic: chat with `temperature: 0` or a `seed` and without provider tools; embeddings, rerank, moderations. Default deterministic.',
      }),
    ),
    semantic: optional(SemanticCache),
  },
  { ...closed, description: 'Caches responses of this model. Default: only where a request asks for it.' },
)
export type ModelCache = Type.Static<typeof ModelCache>

export const CacheConfig = Type.Object(
  {
    storage: optional(
      Type.Enum([...STORAGES], {
        description:
          'memory: in each gateway, until it stops; database, valkey: shared by gateways, also after a restart. Default memory.',
      }),
    ),
    max_entries: optional(
      Type.Integer({
        minimum: 1,
        maximum: 100_000,
        description: 'The most cached responses; not with storage valkey. Default 10000.',
      }),
    ),
    max_bytes: optional(
      Type.Integer({
        minimum: 1,
        description: 'The most bytes of cached responses together; not with storage valkey. Default 67108864.',
      }),
    ),
    max_vector_bytes: optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_073_741_824,
        description:
          'The most bytes of vectors of semantic caches in each gateway: 6144 for 1536 dimensions. Default 33554432.',
      }),
    ),
  },
  closed,
)
export type CacheConfig = Type.Static<typeof CacheConfig>
