/** An embeddings request and its response, in the OpenAI format. */
import Type from 'typebox'
import { integer, oneOf, text, titled } from './fields.ts'
import { TextUsage } from './usage.ts'

const TokenList = Type.Array(Type.Integer({ minimum: 0 }), { minItems: 1 })

export const EmbeddingRequest = titled('EmbeddingRequest', {
  model: Type.String({ minLength: 1, description: 'A model whose `supported_endpoint_types` has `embeddings`.' }),
  input: Type.Union(
    [
      Type.String({ minLength: 1 }),
      Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: 100_000 }),
      TokenList,
      Type.Array(TokenList, { minItems: 1, maxItems: 100_000 }),
    ],
    {
      description:
        'A text, a list of texts, a list of token numbers, or a list of such lists; no empty item; at most 100,000.',
    },
  ),
  dimensions: integer(
    { minimum: 1, maximum: 65_536 },
    "Length of each vector, within the model's range. Default: the model's.",
  ),
  encoding_format: oneOf(
    ['float', 'base64'],
    '`base64` is little-endian 32-bit floats, which OpenAI clients request by default. Default `float`.',
  ),
  input_type: text("`query`, `document`, or a value of the provider's own. Default: the provider's."),
  user: text('Forwarded if the provider accepts it.'),
})
export type EmbeddingRequest = Type.Static<typeof EmbeddingRequest>

/** One input: a text, or the numbers of its tokens. */
export type EmbeddingInput = string | number[]

export const EmbeddingList = titled('EmbeddingList', {
  object: Type.Literal('list'),
  data: Type.Array(
    Type.Object({
      object: Type.Literal('embedding'),
      index: Type.Integer({ minimum: 0 }),
      embedding: Type.Union([Type.Array(Type.Number()), Type.String()]),
    }),
  ),
  model: Type.String(),
  usage: TextUsage,
})
export type EmbeddingList = Type.Static<typeof EmbeddingList>
