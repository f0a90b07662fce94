/** A moderation request and its response, in the OpenAI format. */
import Type from 'typebox'
import { orNull, text, titled } from './fields.ts'
import { TextUsage } from './usage.ts'

export const MAX_MODERATION_TEXTS = 1_000
export const MAX_MODERATION_PARTS = 100

export const ModerationPart = Type.Union([
  titled('ModerationTextPart', { type: Type.Literal('text'), text: Type.String() }),
  titled('ModerationImagePart', {
    type: Type.Literal('image_url'),
    image_url: Type.Object({ url: Type.String({ description: 'An http(s) address or a data URI of an image.' }) }),
  }),
])
export type ModerationPart = Type.Static<typeof ModerationPart>

/** The forms of `input`, separately, so that an error names the one that the client used. */
export const MODERATION_INPUTS = {
  text: Type.String(),
  texts: Type.Array(Type.String(), { minItems: 1, maxItems: MAX_MODERATION_TEXTS }),
  parts: Type.Array(ModerationPart, { minItems: 1, maxItems: MAX_MODERATION_PARTS }),
}

export const ModerationRequest = titled('ModerationRequest', {
  input: Type.Union([MODERATION_INPUTS.text, MODERATION_INPUTS.texts, MODERATION_INPUTS.parts], {
    description: 'A text; 1 to 1,000 texts, with a result for each; or 1 to 100 parts of one input.',
  }),
  model: text(
    { minLength: 1 },
    'A model whose `supported_endpoint_types` has `moderations`. Default: the first one of `GET /v1/models` that the token may use and that is not retired.',
  ),
})
export type ModerationRequest = Type.Static<typeof ModerationRequest>

/** One input with one result: a text, or parts of which at least one is an image. */
export type ModerationInput = string | ModerationPart[]

const byCategory = <T extends Type.TSchema>(value: T, description: string) =>
  Type.Record(Type.String(), value, { description })

export const ModerationResult = titled('ModerationResult', {
  flagged: Type.Boolean({ description: 'Whether any category applies.' }),
  // OpenAI's older models return `null` for categories that they do not support.
  categories: byCategory(orNull(Type.Boolean()), 'Whether each category applies; the names are those of the provider.'),
  category_scores: byCategory(Type.Number(), 'How likely each category applies, from 0 to 1.'),
  category_applied_input_types: Type.Optional(
    byCategory(Type.Array(Type.String()), 'Which kinds of input each score is about: `text`, `image`.'),
  ),
})
export type ModerationResult = Type.Static<typeof ModerationResult>

export const ModerationAnswer = titled('ModerationAnswer', {
  id: Type.String(),
  model: Type.String(),
  results: Type.Array(ModerationResult, { description: 'One for each input, in order.' }),
  usage: TextUsage,
})
export type ModerationAnswer = Type.Static<typeof ModerationAnswer>
