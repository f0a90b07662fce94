/** A rerank request and its answer, in the shape that Cohere's and Jina's clients share. */
import Type from 'typebox'
import { TextUsage } from './usage.ts'

const RerankDocument = Type.Union([Type.String(), Type.Record(Type.String(), Type.Unknown())])

export const RerankRequest = Type.Object(
  {
    model: Type.String({ minLength: 1, description: 'A model whose `supported_endpoint_types` has `rerank`.' }),
    query: Type.String({ minLength: 1 }),
    documents: Type.Array(RerankDocument, {
      minItems: 1,
      maxItems: 10_000,
      description: 'Texts, or objects with `text`.',
    }),
    top_n: Type.Optional(Type.Integer({ minimum: 1, description: 'How many of the best. Default: all.' })),
    return_documents: Type.Optional(
      Type.Boolean({ description: 'Repeat each document in its result. Default false.' }),
    ),
    max_tokens_per_doc: Type.Optional(Type.Integer({ minimum: 1 })),
    rank_fields: Type.Optional(
      Type.Array(Type.String(), {
        maxItems: 100,
        description: 'Which fields of the objects are read, in order. Default `text`.',
      }),
    ),
  },
  { title: 'RerankRequest' },
)
export type RerankRequest = Type.Static<typeof RerankRequest>

export const RerankAnswer = Type.Object(
  {
    id: Type.String(),
    model: Type.String(),
    results: Type.Array(
      Type.Object({
        index: Type.Integer({ minimum: 0 }),
        relevance_score: Type.Number(),
        document: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
      }),
      { description: 'The best first.' },
    ),
    usage: TextUsage,
    meta: Type.Object({ billed_units: Type.Object({ search_units: Type.Number() }) }),
  },
  { title: 'RerankAnswer' },
)
export type RerankAnswer = Type.Static<typeof RerankAnswer>
