/** The settings of an image model. */
import Type from 'typebox'
import { flag, integer, list, oneOf, optional, section, text } from '../../spec/fields.ts'
import { IMAGE_OPERATIONS } from '../../spec/image-request.ts'

const choice = (pattern: string, description: string) =>
  optional(
    section(
      {
        values: Type.Array(Type.String({ pattern }), { minItems: 1 }),
        default: text({ pattern }, 'Sent when the request has none.'),
      },
      description,
    ),
  )

export const ImageLimits = section(
  {
    operations: list(
      Type.Enum([...IMAGE_OPERATIONS]),
      { minItems: 1 },
      "Operations that it supports. Default: those of the provider's API.",
    ),
    prompt_characters: integer({ minimum: 1 }, 'The longest prompt. Default 32,000.'),
    n: integer({ minimum: 1, maximum: 16 }, 'Images of one request. Default 10.'),
    size: choice('^(auto|[1-9][0-9]*x[1-9][0-9]*)$', 'Such as `1024x1024` or `auto`.'),
    aspect_ratio: choice('^[1-9][0-9]*:[1-9][0-9]*$', 'Such as `16:9`.'),
    quality: choice('^.{1,40}$', 'Such as `high`.'),
    style: choice('^.{1,40}$', 'Such as `vivid`.'),
    output_format: choice('^(png|jpeg|webp)$', 'Such as `png`.'),
    images: integer({ minimum: 1, maximum: 16 }, 'Images of one edit. Default 16.'),
    mask: flag('Accepts a mask. Default true.'),
    negative_prompt: flag('Accepts a negative prompt. Default true.'),
    seed: flag('Accepts a seed. Default true.'),
    response_format: oneOf(['url', 'b64_json'], 'Where the request has none. Default b64_json.'),
  },
  'What an image model accepts, and its defaults. Without a choice any value is forwarded.',
)
export type ImageLimits = Type.Static<typeof ImageLimits>
