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
      description: 'The full id of the model that embeds the texts. Callers need the right to use it.',
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
        description: 'How long a request waits for the embedding, before it goes to the provider. Default 500.',
      }),
    ),
  },
  {
    ...closed,
    description:
      'Also serves the response to a request whose last user message is similar, with the same numbers, and everything else equal. Default: no.',
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
          'Who receives a cached response. token: only the token whose request created it; project: the tokens of its project, and without one the token alone; all: every token that may use the model; in each case only for the same end user. Default token.',
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
          'Which requests are cached without the header `x-gatehouse-cache: on`. deterministic: chat with `temperature: 0` or a `seed` and no tools that the provider runs, and every embedding, rerank and moderation; all: every request. Default deterministic.',
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
          'Where cached responses are. memory: in each gateway, until it stops; database: shared by all gateways on it, also after a restart; valkey: the same, on the server of `valkey`. Default memory.',
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
          'The most bytes of vectors of semantic caches, in the memory of each gateway: 6144 for a vector of 1536 dimensions. Default 33554432.',
      }),
    ),
  },
  closed,
)
export type CacheConfig = Type.Static<typeof CacheConfig>
