/** What an operator may write of a model that makes images. */
import Type, { type TSchema } from 'typebox'
import { IMAGE_OPERATIONS } from '../spec/image-request.ts'

const closed = { additionalProperties: false } as const
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema)

const choice = (pattern: string, description: string) =>
  optional(
    Type.Object(
      {
        values: Type.Array(Type.String({ pattern }), { minItems: 1 }),
        default: optional(Type.String({ pattern, description: 'Sent when the caller gives none.' })),
      },
      { ...closed, description },
    ),
  )

export const ImageLimits = Type.Object(
  {
    operations: optional(
      Type.Array(Type.Enum([...IMAGE_OPERATIONS]), {
        minItems: 1,
        description: "What it does: generate, edit, variation. Default: what its vendor's API has.",
      }),
    ),
    prompt_characters: optional(Type.Integer({ minimum: 1, description: 'The longest prompt. Default 32,000.' })),
    n: optional(Type.Integer({ minimum: 1, maximum: 16, description: 'How many images at a time. Default 10.' })),
    size: choice(
      '^(auto|[1-9][0-9]*x[1-9][0-9]*)$',
      'What it takes, as `1024x1024` or `auto`. Absent: any is sent on.',
    ),
    aspect_ratio: choice('^[1-9][0-9]*:[1-9][0-9]*$', 'What it takes, as `16:9`. Absent: any is sent on.'),
    quality: choice('^.{1,40}$', 'What it takes, as `high`. Absent: any is sent on.'),
    style: choice('^.{1,40}$', 'What it takes, as `vivid`. Absent: any is sent on.'),
    output_format: choice('^(png|jpeg|webp)$', 'What it makes. Absent: any is sent on.'),
    images: optional(
      Type.Integer({ minimum: 1, maximum: 16, description: 'How many it edits at a time. Default 16.' }),
    ),
    mask: optional(Type.Boolean({ description: 'Takes one. Default true.' })),
    negative_prompt: optional(Type.Boolean({ description: 'Takes one. Default true.' })),
    seed: optional(Type.Boolean({ description: 'Takes one. Default true.' })),
    response_format: optional(
      Type.Enum(['url', 'b64_json'], { description: 'How its images are given when nobody asks. Default b64_json.' }),
    ),
  },
  { ...closed, description: 'What an image model takes, and its defaults.' },
)
export type ImageLimits = Type.Static<typeof ImageLimits>
