/** What an operator may write of videos and 3D models, and of the tasks that make them. */
import Type, { type TSchema } from 'typebox'
import { THREE_D_FORMATS } from '../spec/three-d-request.ts'

const closed = { additionalProperties: false } as const
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema)
const seconds = (description: string, maximum: number) =>
  optional(Type.Number({ exclusiveMinimum: 0, maximum, description }))

const choice = <T extends TSchema>(item: T, description: string) =>
  optional(
    Type.Object({ values: Type.Array(item, { minItems: 1 }), default: optional(item) }, { ...closed, description }),
  )

export const VideoLimits = Type.Object(
  {
    prompt_characters: optional(Type.Integer({ minimum: 1, description: 'The longest prompt. Default 32,000.' })),
    prompt_required: optional(Type.Boolean({ description: 'Default true.' })),
    aspect_ratio: choice(
      Type.String({ pattern: '^[1-9][0-9]*:[1-9][0-9]*$' }),
      'What it takes, as `16:9`; default: 16:9, else the first. Absent: the field is sent on as it is.',
    ),
    duration: optional(
      Type.Object(
        {
          values: optional(Type.Array(Type.Number({ exclusiveMinimum: 0 }), { minItems: 1 })),
          minimum: optional(Type.Number({ exclusiveMinimum: 0 })),
          maximum: optional(Type.Number({ exclusiveMinimum: 0 })),
          default: optional(Type.Number({ exclusiveMinimum: 0 })),
        },
        { ...closed, description: 'Seconds: a set, or a range. Default: the smallest.' },
      ),
    ),
    size: choice(
      Type.String({ pattern: '^([0-9]{3,4}p|[1-9][0-9]*[kK]|[1-9][0-9]*x[1-9][0-9]*)$' }),
      'What it takes, as `720p` or `1280x720`. Default: the first.',
    ),
    audio_enable: optional(
      Type.Object(
        { values: optional(Type.Array(Type.Boolean(), { minItems: 1 })), default: optional(Type.Boolean()) },
        { ...closed, description: 'Default false, where it may be.' },
      ),
    ),
    image: optional(Type.Enum(['no', 'optional', 'required'], { description: 'The first frame. Default optional.' })),
    last_image: optional(Type.Boolean({ description: 'Takes a last frame. Default true.' })),
    images: optional(Type.Integer({ minimum: 0, description: 'How many reference images it takes. Default 16.' })),
    video: optional(Type.Enum(['no', 'optional', 'required'], { description: 'Default optional.' })),
    negative_prompt: optional(Type.Boolean({ description: 'Takes one. Default true.' })),
    seed: optional(Type.Boolean({ description: 'Takes one. Default true.' })),
    n: optional(Type.Integer({ minimum: 1, maximum: 16, description: 'How many videos at a time. Default 1.' })),
  },
  { ...closed, description: 'What a video model takes (specification 2.5), and its defaults.' },
)
export type VideoLimits = Type.Static<typeof VideoLimits>

const yesOrNo = (description: string) =>
  optional(
    Type.Object(
      { values: optional(Type.Array(Type.Boolean(), { minItems: 1 })), default: optional(Type.Boolean()) },
      { ...closed, description },
    ),
  )
const howMuch = (description: string) =>
  optional(Type.Enum(['no', 'optional', 'required'], { description: `${description} Default optional.` }))

export const ThreeDLimits = Type.Object(
  {
    prompt: howMuch('Whether it takes a prompt.'),
    prompt_characters: optional(Type.Integer({ minimum: 1, description: 'The longest prompt. Default 32,000.' })),
    image: howMuch('Whether it takes an image.'),
    images: optional(Type.Integer({ minimum: 0, description: 'How many views of one thing it takes. Default 16.' })),
    format: choice(Type.Enum([...THREE_D_FORMATS]), 'What it makes; default: glb, else the first. Absent: only glb.'),
    texture: yesOrNo('Which it takes, and the default; without a default the vendor decides.'),
    pbr: yesOrNo('The same of maps for physically based rendering.'),
    target_polycount: optional(
      Type.Union(
        [
          Type.Object(
            {
              minimum: optional(Type.Integer({ minimum: 1 })),
              maximum: optional(Type.Integer({ minimum: 1 })),
              default: optional(Type.Integer({ minimum: 1 })),
            },
            closed,
          ),
          Type.Literal(false),
        ],
        { description: 'Between which numbers; false: it takes none.' },
      ),
    ),
    negative_prompt: optional(Type.Boolean({ description: 'Takes one. Default true.' })),
    seed: optional(Type.Boolean({ description: 'Takes one. Default true.' })),
  },
  { ...closed, description: 'What a model of 3D takes, and its defaults.' },
)
export type ThreeDLimits = Type.Static<typeof ThreeDLimits>

export const TasksConfig = Type.Object(
  {
    deadline_minutes: optional(
      Type.Number({ exclusiveMinimum: 0, maximum: 1440, description: 'A task that takes longer fails. Default 60.' }),
    ),
    copy_deadline_minutes: optional(
      Type.Number({
        exclusiveMinimum: 0,
        maximum: 43_200,
        description:
          'How long copying a finished file is retried, from when the upstream has made it; not longer than the upstream keeps it. Default 1440.',
      }),
    ),
    poll_seconds: seconds('Between two questions to a vendor about a young task. Default 4.', 300),
    slow_poll_seconds: seconds('The same of an old one. Default 15.', 3600),
    concurrency: optional(
      Type.Integer({ minimum: 1, maximum: 1024, description: 'Steps at a time per provider. Default 32.' }),
    ),
    callback_origins: optional(
      Type.Array(Type.String({ pattern: '^https?://[^/?#@\\s]+$' }), {
        description: 'Private addresses that callbacks may go to, as `http://10.0.0.5:9000`. Default: none.',
      }),
    ),
  },
  closed,
)
export type TasksConfig = Type.Static<typeof TasksConfig>

export const OutputsConfig = Type.Object(
  {
    directory: optional(Type.String({ description: 'Where files are kept. Default: outputs in the data directory.' })),
    s3: optional(
      Type.Object(
        {
          bucket: Type.String({ minLength: 1 }),
          region: optional(Type.String({ description: 'Default us-east-1.' })),
          endpoint: optional(Type.String({ description: 'Of another service than Amazon, with http(s)://.' })),
          access_key_id: optional(Type.String({ description: 'Default: AWS_ACCESS_KEY_ID.' })),
          secret_access_key: optional(Type.String({ description: 'Default: AWS_SECRET_ACCESS_KEY.' })),
          prefix: optional(Type.String({ description: 'Before every key. Default: none.' })),
        },
        { ...closed, description: 'A bucket in place of the directory.' },
      ),
    ),
    link_hours: optional(
      Type.Number({ exclusiveMinimum: 0, maximum: 168, description: 'How long a link works. Default 24.' }),
    ),
    keep_days: optional(
      Type.Number({ exclusiveMinimum: 0, description: 'How long finished files are kept. Default 30.' }),
    ),
    max_bytes: optional(Type.Integer({ minimum: 1, description: 'Of one file. Default 2 GiB.' })),
  },
  closed,
)
export type OutputsConfig = Type.Static<typeof OutputsConfig>

export const ResponsesConfig = Type.Object(
  {
    keep_days: optional(
      Type.Number({
        minimum: 0,
        maximum: 3650,
        description: 'How long answers of /v1/responses are kept, with their input; 0: none is. Default 30.',
      }),
    ),
  },
  closed,
)
export type ResponsesConfig = Type.Static<typeof ResponsesConfig>
