/** The settings of an embedding model. */
import Type from 'typebox'
import { flag, integer, optional, section } from '../../spec/fields.ts'

const count = (description: string) => integer({ minimum: 1 }, description)

/** The same limit as for a request. */
const dimension = (more: { description?: string } = {}) => Type.Integer({ minimum: 1, maximum: 65_536, ...more })

export const EmbeddingLimits = section(
  {
    dimensions: optional(
      section(
        {
          values: optional(Type.Array(dimension(), { minItems: 1 })),
          minimum: optional(dimension()),
          maximum: optional(dimension()),
          default: optional(dimension({ description: 'Sent when the request has none.' })),
        },
        'Lengths of a vector. Absent: forwarded.',
      ),
    ),
    most_inputs: count('Inputs of one call to the provider. Default: that of the provider.'),
    input_tokens: count('Tokens of one input; checked for token numbers only.'),
    tokens: flag("Accepts inputs as token numbers. Default: as the provider's API does."),
  },
  'What an embedding model accepts, and its defaults.',
)
export type EmbeddingLimits = Type.Static<typeof EmbeddingLimits>
