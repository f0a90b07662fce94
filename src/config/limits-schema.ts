/** The limits and capabilities of a chat model, as `gatehouse.yaml` has them. */
import Type, { type TSchema } from 'typebox'

const closed = { additionalProperties: false } as const
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema)

/** A range may narrow the range that all models share (specification 2.2 and 8), never widen it. */
const rangeWithin = (
  number: typeof Type.Number | typeof Type.Integer,
  bounds: { minimum?: number; maximum?: number },
) =>
  Type.Object(
    {
      minimum: optional(number(bounds)),
      maximum: optional(number(bounds)),
      default: optional(number({ ...bounds, description: 'Sent when the request has none.' })),
    },
    closed,
  )
export type Range = { minimum?: number; maximum?: number; default?: number }

export const RANGED_FIELDS = [
  'max_tokens',
  'temperature',
  'top_p',
  'frequency_penalty',
  'presence_penalty',
  'repetition_penalty',
] as const

export const Limits = Type.Object(
  {
    max_tokens: optional(rangeWithin(Type.Integer, { minimum: 1 })),
    temperature: optional(rangeWithin(Type.Number, { minimum: 0, maximum: 2 })),
    top_p: optional(rangeWithin(Type.Number, { minimum: 0, maximum: 1 })),
    frequency_penalty: optional(rangeWithin(Type.Number, { minimum: -2, maximum: 2 })),
    presence_penalty: optional(rangeWithin(Type.Number, { minimum: -2, maximum: 2 })),
    repetition_penalty: optional(rangeWithin(Type.Number, { minimum: 0 })),
  },
  { ...closed, description: 'Ranges and defaults of the numeric request fields.' },
)
export type Limits = Type.Static<typeof Limits>

export const Capabilities = Type.Object(
  {
    image_input: optional(Type.Boolean({ description: 'Accepts image parts. Default true.' })),
    audio_input: optional(Type.Boolean({ description: 'Accepts audio parts. Default true.' })),
    file_input: optional(Type.Boolean({ description: 'Accepts file parts. Default true.' })),
    tools: optional(Type.Boolean({ description: 'Accepts `tools` and `functions`. Default true.' })),
    json_object: optional(Type.Boolean({ description: 'Supports `response_format` `json_object`. Default true.' })),
    json_schema: optional(Type.Boolean({ description: 'Supports `response_format` `json_schema`. Default true.' })),
    multiple_choices: optional(Type.Boolean({ description: 'Supports `n` above 1. Default true.' })),
    logprobs: optional(Type.Boolean({ description: 'Supports `logprobs` and `top_logprobs`. Default true.' })),
    audio_output: optional(
      Type.Boolean({ description: 'Supports `audio`, and `modalities` with `audio`. Default true.' }),
    ),
  },
  {
    ...closed,
    description:
      'What the model supports. All are true by default; a request that needs one that is `false` is rejected.',
  },
)
export type Capabilities = Type.Static<typeof Capabilities>
