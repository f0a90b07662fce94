/** The settings of video and 3D models, and of their tasks. */
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
    prompt_characters: optional(
      Type.Integer({ minimum: 1, description: 'Longest prompt in characters. Default 32,000.' }),
    ),
    prompt_required: optional(Type.Boolean({ description: 'Whether a prompt is required. Default true.' })),
    aspect_ratio: choice(
      Type.String({ pattern: '^[1-9][0-9]*:[1-9][0-9]*$' }),
      'Values that it accepts, such as `16:9`, and the default: 16:9, else the first. Without this setting the field is forwarded unchanged.',
    ),
    duration: optional(
      Type.Object(
        {
          values: optional(Type.Array(Type.Number({ exclusiveMinimum: 0 }), { minItems: 1 })),
          minimum: optional(Type.Number({ exclusiveMinimum: 0 })),
          maximum: optional(Type.Number({ exclusiveMinimum: 0 })),
          default: optional(Type.Number({ exclusiveMinimum: 0 })),
        },
        { ...closed, description: 'Seconds: a set or a range. The default is the smallest.' },
      ),
    ),
    size: choice(
      Type.String({ pattern: '^([0-9]{3,4}p|[1-9][0-9]*[kK]|[1-9][0-9]*x[1-9][0-9]*)$' }),
      'Values that it accepts, such as `720p` or `1280x720`. The default is the first.',
    ),
    audio_enable: optional(
      Type.Object(
        { values: optional(Type.Array(Type.Boolean(), { minItems: 1 })), default: optional(Type.Boolean()) },
        { ...closed, description: 'Whether the video may have sound. The default is false where that is allowed.' },
      ),
    ),
    image: optional(
      Type.Enum(['no', 'optional', 'required'], {
        description: 'Whether it accepts or needs a first frame. Default optional.',
      }),
    ),
    last_image: optional(Type.Boolean({ description: 'Accepts a last frame. Default true.' })),
    images: optional(Type.Integer({ minimum: 0, description: 'How many reference images it accepts. Default 16.' })),
    video: optional(
      Type.Enum(['no', 'optional', 'required'], {
        description: 'Whether it accepts or needs a video. Default optional.',
      }),
    ),
    negative_prompt: optional(Type.Boolean({ description: 'Accepts a negative prompt. Default true.' })),
    seed: optional(Type.Boolean({ description: 'Accepts a seed. Default true.' })),
    n: optional(
      Type.Integer({ minimum: 1, maximum: 16, description: 'How many videos one request may ask for. Default 1.' }),
    ),
  },
  { ...closed, description: 'What a video model accepts, and its defaults.' },
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
    prompt: howMuch('Whether it accepts or needs a prompt.'),
    prompt_characters: optional(
      Type.Integer({ minimum: 1, description: 'Longest prompt in characters. Default 32,000.' }),
    ),
    image: howMuch('Whether it accepts or needs an image.'),
    images: optional(Type.Integer({ minimum: 0, description: 'How many views of one object it accepts. Default 16.' })),
    format: choice(
      Type.Enum([...THREE_D_FORMATS]),
      'Formats that it makes, and the default: glb, else the first. Without this setting it makes glb alone.',
    ),
    texture: yesOrNo('Whether textures may be asked for, and the default; without a default the provider decides.'),
    pbr: yesOrNo('The same for maps for physically based rendering.'),
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
        { description: 'Range of the number of polygons; false: the field is rejected.' },
      ),
    ),
    negative_prompt: optional(Type.Boolean({ description: 'Accepts a negative prompt. Default true.' })),
    seed: optional(Type.Boolean({ description: 'Accepts a seed. Default true.' })),
  },
  { ...closed, description: 'What a 3D model accepts, and its defaults.' },
)
export type ThreeDLimits = Type.Static<typeof ThreeDLimits>

export const TasksConfig = Type.Object(
  {
    deadline_minutes: optional(
      Type.Number({
        exclusiveMinimum: 0,
        maximum: 1440,
        description: 'Time after which an unfinished task fails. Default 60.',
      }),
    ),
    copy_deadline_minutes: optional(
      Type.Number({
        exclusiveMinimum: 0,
        maximum: 43_200,
        description:
          'Time for which copying a finished file is retried, at most as long as the provider keeps it. Default 1440.',
      }),
    ),
    poll_seconds: seconds('Time between two polls of a new task. Default 4.', 300),
    slow_poll_seconds: seconds('Time between two polls of an old task. Default 15.', 3600),
    concurrency: optional(
      Type.Integer({
        minimum: 1,
        maximum: 1024,
        description: 'How many tasks of a provider run at a time. Default 32.',
      }),
    ),
    callback_origins: optional(
      Type.Array(Type.String({ pattern: '^https?://[^/?#@\\s]+$' }), {
        description:
          'Private addresses that webhooks may be delivered to, such as `http://10.0.0.5:9000`. Default: none.',
      }),
    ),
  },
  closed,
)
export type TasksConfig = Type.Static<typeof TasksConfig>

export const OutputsConfig = Type.Object(
  {
    directory: optional(
      Type.String({ description: 'Directory of finished files. Default: outputs in the data directory.' }),
    ),
    s3: optional(
      Type.Object(
        {
          bucket: Type.String({ minLength: 1, description: 'Name of the bucket. Required.' }),
          region: optional(Type.String({ description: 'Region of the bucket. Default us-east-1.' })),
          endpoint: optional(
            Type.String({
              description: 'Address of another S3-compatible service, with http(s)://. Default: Amazon S3.',
            }),
          ),
          access_key_id: optional(Type.String({ description: 'Access key. Default: AWS_ACCESS_KEY_ID.' })),
          secret_access_key: optional(Type.String({ description: 'Secret key. Default: AWS_SECRET_ACCESS_KEY.' })),
          prefix: optional(Type.String({ description: 'Prefix of every object key. Default: none.' })),
        },
        { ...closed, description: 'A bucket in place of the directory.' },
      ),
    ),
    link_hours: optional(
      Type.Number({
        exclusiveMinimum: 0,
        maximum: 168,
        description: 'Time for which a signed link is valid. Default 24.',
      }),
    ),
    keep_days: optional(
      Type.Number({ exclusiveMinimum: 0, description: 'Days for which finished files are kept. Default 30.' }),
    ),
    max_bytes: optional(Type.Integer({ minimum: 1, description: 'Largest finished file. Default 2 GiB.' })),
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
        description:
          'Days for which responses of /v1/responses and conversations are stored; 0 stores none. Default 30.',
      }),
    ),
    store_default: optional(
      Type.Boolean({
        description:
          'Whether a response is stored if its request has no `store` and continues nothing that is stored. Default true.',
      }),
    ),
  },
  closed,
)
export type ResponsesConfig = Type.Static<typeof ResponsesConfig>
