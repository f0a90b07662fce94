/** What an operator may write of a model that embeds texts. */
import Type, { type TSchema } from 'typebox'

const closed = { additionalProperties: false } as const
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema)
const count = (description: string) => optional(Type.Integer({ minimum: 1, description }))

/** The same bound as a request has. */
const dimension = (more: { description?: string } = {}) => Type.Integer({ minimum: 1, maximum: 65_536, ...more })

export const EmbeddingLimits = Type.Object(
  {
    dimensions: optional(
      Type.Object(
        {
          values: optional(Type.Array(dimension(), { minItems: 1 })),
          minimum: optional(dimension()),
          maximum: optional(dimension()),
          default: optional(dimension({ description: 'Asked of the vendor when the caller asks for none.' })),
        },
        { ...closed, description: 'Lengths of a vector: a set, or a range. Absent: the field is sent on as it is.' },
      ),
    ),
    most_inputs: count("How many inputs one call to the vendor has; longer lists are split. Default: the vendor's."),
    input_tokens: count(
      'How many tokens one input may have. Checked of token numbers; of texts only the vendor knows.',
    ),
    tokens: optional(
      Type.Boolean({ description: "Takes inputs as token numbers of its own. Default: what the vendor's API takes." }),
    ),
  },
  { ...closed, description: 'What an embedding model takes, and its defaults.' },
)
export type EmbeddingLimits = Type.Static<typeof EmbeddingLimits>
