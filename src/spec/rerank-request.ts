/** A rerank request and its response, in the format that the clients of Cohere and Jina share. */
import Type from 'typebox'
import { flag, integer, list, titled } from './fields.ts'
import { TextUsage } from './usage.ts'

const RerankDocument = Type.Union([Type.String(), Type.Record(Type.String(), Type.Unknown())])

export const RerankRequest = titled('RerankRequest', {
  model: Type.String({ minLength: 1, description: 'A model whose `supported_endpoint_types` has `rerank`.' }),
  query: Type.String({ minLength: 1, description: 'A text that is not empty.' }),
  documents: Type.Array(RerankDocument, {
    minItems: 1,
    maxItems: 10_000,
    description: '1 to 10,000 texts or objects.',
  }),
  top_n: integer({ minimum: 1 }, 'Number of results to return. Default: all.'),
  return_documents: flag(
    'Include documents in results: texts as an object with `text`, objects unchanged. Default false.',
  ),
  max_tokens_per_doc: integer(
    { minimum: 1 },
    "How much of each document is read, if the provider supports it. Default: the provider's.",
  ),
  rank_fields: list(
    Type.String(),
    { maxItems: 100 },
    'Fields of objects to read, in this order, one per line: at most 100. Default `text`.',
  ),
})
export type RerankRequest = Type.Static<typeof RerankRequest>

export const RerankAnswer = titled('RerankAnswer', {
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
})
export type RerankAnswer = Type.Static<typeof RerankAnswer>
