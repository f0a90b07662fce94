/** The limits and capabilities of a chat model, as `gatehouse.yaml` has them. */
import Type from 'typebox'
import { flag, optional, section } from '../../spec/fields.ts'

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
