/** Settings of models in `gatehouse.yaml`: limits and defaults for chat, embeddings, images and speech. */
import Type from 'typebox'
import { SPEECH_FORMATS } from '../../spec/audio-request.ts'
import { flag, integer, list, oneOf, optional, section, text } from '../../spec/fields.ts'
import { IMAGE_OPERATIONS } from '../../spec/image-request.ts'

/** A range may narrow the range that all models share (specification 2.2 and 8), never widen it. */
const rangeWithin = (
  number: typeof Type.Number | typeof Type.Integer,
  bounds: { minimum?: number; maximum?: number },
) =>
  section({
    minimum: optional(number(bounds)),
    maximum: optional(number(bounds)),
    default: optional(number({ ...bounds, description: 'Sent when the request has none.' })),
  })
export type Range = { minimum?: number; maximum?: number; default?: number }

export const RANGED_FIELDS = [
  'max_tokens',
  'temperature',
  'top_p',
  'frequency_penalty',
  'presence_penalty',
  'repetition_penalty',
] as const

export const Limits = section(
  {
    max_tokens: optional(rangeWithin(Type.Integer, { minimum: 1 })),
    temperature: optional(rangeWithin(Type.Number, { minimum: 0, maximum: 2 })),
    top_p: optional(rangeWithin(Type.Number, { minimum: 0, maximum: 1 })),
    frequency_penalty: optional(rangeWithin(Type.Number, { minimum: -2, maximum: 2 })),
    presence_penalty: optional(rangeWithin(Type.Number, { minimum: -2, maximum: 2 })),
    repetition_penalty: optional(rangeWithin(Type.Number, { minimum: 0 })),
  },
  'Ranges and defaults of the numeric request fields.',
)
export type Limits = Type.Static<typeof Limits>

export const Capabilities = section(
  {
    image_input: flag('Accepts such parts.'),
    audio_input: flag('Accepts such parts.'),
    file_input: flag('Accepts such parts.'),
    tools: flag('Accepts `tools` and `functions`.'),
    json_object: flag('Supports it as `response_format`.'),
    json_schema: flag('Supports it as `response_format`.'),
    multiple_choices: flag('Supports `n` above 1.'),
    logprobs: flag('Supports `logprobs` and `top_logprobs`.'),
    audio_output: flag('Supports `audio`, and `modalities` with `audio`.'),
  },
  'What the model supports; a request that needs what is `false` is rejected.',
)
export type Capabilities = Type.Static<typeof Capabilities>

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

const choice = (pattern: string) =>
  optional(
    section(
      {
        values: Type.Array(Type.String({ pattern }), { minItems: 1 }),
        default: text({ pattern }, 'Sent when the request has none.'),
      },
      'Values that it accepts, and the default.',
    ),
  )

export const ImageLimits = section(
  {
    operations: list(
      Type.Enum([...IMAGE_OPERATIONS]),
      { minItems: 1 },
      "Operations that it supports. Default: those of the provider's API.",
    ),
    prompt_characters: integer({ minimum: 1 }, 'Longest prompt in characters. Default 32,000.'),
    n: integer({ minimum: 1, maximum: 16 }, 'Images of one request. Default 10.'),
    size: choice('^(auto|[1-9][0-9]*x[1-9][0-9]*)$'),
    aspect_ratio: choice('^[1-9][0-9]*:[1-9][0-9]*$'),
    quality: choice('^.{1,40}$'),
    style: choice('^.{1,40}$'),
    output_format: choice('^(png|jpeg|webp)$'),
    images: integer({ minimum: 1, maximum: 16 }, 'Images of one edit. Default 16.'),
    mask: flag('Accepts it. Default true.'),
    negative_prompt: flag('Accepts it. Default true.'),
    seed: flag('Accepts it. Default true.'),
    response_format: oneOf(['url', 'b64_json'], 'Without one in the request. Default b64_json.'),
  },
  'What an image model accepts, and its defaults. Without a choice any value is forwarded.',
)
export type ImageLimits = Type.Static<typeof ImageLimits>

export const SpeechLimits = section(
  {
    characters: integer({ minimum: 1 }, 'Longest `input` in characters. Default 100,000.'),
    voices: list(Type.String({ pattern: '^\\S{1,200}$' }), { minItems: 1 }, 'Its voices. Default: any is forwarded.'),
    formats: list(
      Type.Enum([...SPEECH_FORMATS]),
      { minItems: 1 },
      'Values of `response_format`; without mp3, the first is the default. Default: any is forwarded.',
    ),
  },
  'What a model that speaks accepts.',
)
export type SpeechLimits = Type.Static<typeof SpeechLimits>
