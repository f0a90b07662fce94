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
    n: integer({ minimum: 1, maximum: 16 }, 'How many images one request may ask for. Default 10.'),
    size: choice(
      '^(auto|[1-9][0-9]*x[1-9][0-9]*)$',
      'Values that it accepts, such as `1024x1024` or `auto`. Without this setting any value is forwarded.',
    ),
    aspect_ratio: choice(
      '^[1-9][0-9]*:[1-9][0-9]*$',
      'Values that it accepts, such as `16:9`. Without this setting any value is forwarded.',
    ),
    quality: choice(
      '^.{1,40}$',
      'Values that it accepts, such as `high`. Without this setting any value is forwarded.',
    ),
    style: choice('^.{1,40}$', 'Values that it accepts, such as `vivid`. Without this setting any value is forwarded.'),
    output_format: choice('^(png|jpeg|webp)$', 'Formats that it makes. Without this setting any value is forwarded.'),
    images: integer({ minimum: 1, maximum: 16 }, 'How many images one edit accepts. Default 16.'),
    mask: flag('Accepts a mask. Default true.'),
    negative_prompt: flag('Accepts a negative prompt. Default true.'),
    seed: flag('Accepts a seed. Default true.'),
    response_format: oneOf(
      ['url', 'b64_json'],
      'How images are returned when the request does not say. Default b64_json.',
    ),
  },
  'What an image model accepts, and its defaults.',
)
export type ImageLimits = Type.Static<typeof ImageLimits>
