/** The settings of an embedding model. */
import Type, { type TSchema } from 'typebox'

const closed = { additionalProperties: false } as const
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema)
const count = (description: string) => optional(Type.Integer({ minimum: 1, description }))

/** The same limit as for a request. */
const dimension = (more: { description?: string } = {}) => Type.Integer({ minimum: 1, maximum: 65_536, ...more })

export const EmbeddingLimits = Type.Object(
  {
    dimensions: optional(
      Type.Object(
        {
          values: optional(Type.Array(dimension(), { minItems: 1 })),
          minimum: optional(dimension()),
          maximum: optional(dimension()),
          default: optional(dimension({ description: 'Sent when the request has none.' })),
        },
        {
          ...closed,
          description: 'Lengths of a vector: a set or a range. Without this setting the field is forwarded unchanged.',
        },
      ),
    ),
    most_inputs: count(
      'How many inputs one call to the provider has; longer lists are split. Default: the limit of the provider.',
    ),
    input_tokens: count('Tokens of one input; checked for token numbers only.'),
    tokens: optional(
      Type.Boolean({ description: "Accepts inputs as token numbers. Default: as the provider's API does." }),
    ),
  },
  { ...closed, description: 'What an embedding model accepts, and its defaults.' },
)
export type EmbeddingLimits = Type.Static<typeof EmbeddingLimits>
