/** The settings of an image model. */
import Type, { type TSchema } from 'typebox'
import { IMAGE_OPERATIONS } from '../spec/image-request.ts'

const closed = { additionalProperties: false } as const
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema)

const choice = (pattern: string, description: string) =>
  optional(
    Type.Object(
      {
        values: Type.Array(Type.String({ pattern }), { minItems: 1 }),
        default: optional(Type.String({ pattern, description: 'Sent when the request has none.' })),
      },
      { ...closed, description },
    ),
  )

export const ImageLimits = Type.Object(
  {
    operations: optional(
      Type.Array(Type.Enum([...IMAGE_OPERATIONS]), {
        minItems: 1,
        description: "Operations that it supports. Default: those of the provider's API.",
      }),
    ),
    prompt_characters: optional(Type.Integer({ minimum: 1, description: 'The longest prompt. Default 32,000.' })),
    n: optional(
      Type.Integer({ minimum: 1, maximum: 16, description: 'How many images one request may ask for. Default 10.' }),
    ),
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
    images: optional(
      Type.Integer({ minimum: 1, maximum: 16, description: 'How many images one edit accepts. Default 16.' }),
    ),
    mask: optional(Type.Boolean({ description: 'Accepts a mask. Default true.' })),
    negative_prompt: optional(Type.Boolean({ description: 'Accepts a negative prompt. Default true.' })),
    seed: optional(Type.Boolean({ description: 'Accepts a seed. Default true.' })),
    response_format: optional(
      Type.Enum(['url', 'b64_json'], {
        description: 'How images are returned when the request does not say. Default b64_json.',
      }),
    ),
  },
  { ...closed, description: 'What an image model accepts, and its defaults.' },
)
export type ImageLimits = Type.Static<typeof ImageLimits>
