/** The settings of an image model. */
import Type from 'typebox'
import { flag, integer, list, oneOf, optional, section, text } from '../../spec/fields.ts'
import { IMAGE_OPERATIONS } from '../../spec/image-request.ts'

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
