/** The settings of video and 3D models, of their tasks, and of files, responses and batches that are stored. */
import Type, { type TSchema } from 'typebox'
import { flag, integer, list, number, oneOf, optional, required, section, text } from '../../spec/fields.ts'
import { mark } from '../../spec/marks.ts'
import { THREE_D_FORMATS } from '../../spec/three-d-request.ts'

const seconds = (description: string, maximum: number) => number({ exclusiveMinimum: 0, maximum }, description)

const choice = <T extends TSchema>(item: T, description: string) =>
  optional(section({ values: Type.Array(item, { minItems: 1 }), default: optional(item) }, description))

const yesOrNo = (description: string) =>
  optional(
    section(
      { values: optional(Type.Array(Type.Boolean(), { minItems: 1 })), default: optional(Type.Boolean()) },
      description,
    ),
  )

const whether = oneOf(['no', 'optional', 'required'], 'Whether it accepts or needs it. Default optional.')

export const VideoLimits = section(
  {
    prompt_characters: integer({ minimum: 1 }, 'Longest prompt in characters. Default 32,000.'),
    prompt_required: flag('Whether a prompt is required. Default true.'),
    aspect_ratio: choice(
      Type.String({ pattern: '^[1-9][0-9]*:[1-9][0-9]*$' }),
      'Default `16:9`, else the first. Absent: forwarded.',
    ),
    duration: optional(
      section(
        {
          values: optional(Type.Array(Type.Number({ exclusiveMinimum: 0 }), { minItems: 1 })),
          minimum: optional(Type.Number({ exclusiveMinimum: 0 })),
          maximum: optional(Type.Number({ exclusiveMinimum: 0 })),
          default: optional(Type.Number({ exclusiveMinimum: 0 })),
        },
        'Seconds. Default: the smallest.',
      ),
    ),
    size: choice(
      Type.String({ pattern: '^([0-9]{3,4}p|[1-9][0-9]*[kK]|[1-9][0-9]*x[1-9][0-9]*)$' }),
      'Such as `720p` or `1280x720`. Default: the first.',
    ),
    audio_enable: yesOrNo('Sound. Default: false where allowed.'),
    image: whether,
    last_image: flag('Accepts it. Default true.'),
    images: integer({ minimum: 0 }, 'Reference images. Default 16.'),
    video: whether,
    negative_prompt: flag('Accepts it. Default true.'),
    seed: flag('Accepts it. Default true.'),
    n: integer({ minimum: 1, maximum: 16 }, 'Videos of one request. Default 1.'),
  },
  'What a video model accepts, and its defaults.',
)
export type VideoLimits = Type.Static<typeof VideoLimits>

export const ThreeDLimits = section(
  {
    prompt: whether,
    prompt_characters: integer({ minimum: 1 }, 'Longest prompt in characters. Default 32,000.'),
    image: whether,
    images: integer({ minimum: 0 }, 'Views of one object. Default 16.'),
    format: choice(
      Type.Enum([...THREE_D_FORMATS]),
      'Formats that it makes. Default: glb, else the first. Absent: glb alone.',
    ),
    texture: yesOrNo('Textures; without a default the provider decides.'),
    pbr: yesOrNo('The same for physically based rendering.'),
    target_polycount: optional(
      Type.Union(
        [
          section({
            minimum: optional(Type.Integer({ minimum: 1 })),
            maximum: optional(Type.Integer({ minimum: 1 })),
            default: optional(Type.Integer({ minimum: 1 })),
          }),
          Type.Literal(false),
        ],
        { description: 'Polygons; false: the field is rejected.' },
      ),
    ),
    negative_prompt: flag('Accepts it. Default true.'),
    seed: flag('Accepts it. Default true.'),
  },
  'What a 3D model accepts, and its defaults.',
)
export type ThreeDLimits = Type.Static<typeof ThreeDLimits>

export const TasksConfig = section({
  deadline_minutes: number({ exclusiveMinimum: 0, maximum: 1440 }, 'When an unfinished task fails. Default 60.'),
  copy_deadline_minutes: number(
    { exclusiveMinimum: 0, maximum: 43_200 },
    'How long copying a finished file is retried, while the provider keeps it. Default 1440.',
  ),
  poll_seconds: seconds('Time between two polls of a new task. Default 4.', 300),
  slow_poll_seconds: seconds('Time between two polls of an old task. Default 15.', 3600),
  concurrency: integer({ minimum: 1, maximum: 1024 }, 'Tasks of a provider that run at a time. Default 32.'),
  callback_origins: list(
    Type.String({ pattern: '^https?://[^/?#@\\s]+$' }),
    { ...mark.origin, ...mark.variable },
    'Private addresses for webhooks, such as `http://10.0.0.5:9000`. Default: none.',
  ),
})
export type TasksConfig = Type.Static<typeof TasksConfig>

export const OutputsConfig = section({
  directory: text(
    { ...mark.shown, ...mark.variable, ...mark.restart },
    'Directory of finished files. Default: outputs in the data directory.',
  ),
  s3: optional(
    section(
      {
        bucket: required({ ...mark.shown, ...mark.variable, minLength: 1 }, 'Name of the bucket. Required.'),
        region: text({ ...mark.shown, ...mark.variable }, 'Region of the bucket. Default us-east-1.'),
        endpoint: text(
          { ...mark.origin, ...mark.variable, ...mark.sent_to },
          'Address of another S3-compatible service. Default: Amazon S3.',
        ),
        access_key_id: text(mark.secret, 'Access key. Default: AWS_ACCESS_KEY_ID.'),
        secret_access_key: text(mark.secret, 'Secret key. Default: AWS_SECRET_ACCESS_KEY.'),
        prefix: text({ ...mark.shown, ...mark.variable }, 'Prefix of every object key. Default: none.'),
      },
      mark.restart,
      'A bucket in place of the directory.',
    ),
  ),
  link_hours: number({ exclusiveMinimum: 0, maximum: 168 }, 'Of signed links. Default 24.'),
  keep_days: number({ exclusiveMinimum: 0 }, 'Of finished files. Default 30.'),
  max_bytes: integer({ minimum: 1 }, 'Largest finished file. Default 2 GiB.'),
})
export type OutputsConfig = Type.Static<typeof OutputsConfig>

export const BatchesConfig = section({
  concurrency: integer({ minimum: 1, maximum: 1024 }, 'Lines of batches that a process executes at a time. Default 8.'),
  max_unfinished: integer({ minimum: 0, maximum: 10_000 }, 'Batches of a token that have not ended. Default 50.'),
  keep_days: number({ exclusiveMinimum: 0, maximum: 3650 }, 'Of ended batches. Default 29.'),
})
export type BatchesConfig = Type.Static<typeof BatchesConfig>

export const ResponsesConfig = section({
  keep_days: number({ minimum: 0, maximum: 3650 }, 'Of responses and conversations; 0: none. Default 30.'),
  store_default: flag('Store responses whose request has no `store`. Default true.'),
})
export type ResponsesConfig = Type.Static<typeof ResponsesConfig>

const days = (description: string) => number({ minimum: 0, maximum: 3_650 }, description)

export const FilesConfig = section({
  max_bytes: integer({ minimum: 1 }, 'Largest file of /v1/files. Default 536870912 (512 MiB).'),
  batch_max_bytes: integer({ minimum: 1 }, 'Largest file with the purpose batch. Default 209715200 (200 MiB).'),
  keep_days: days('Of files whose request does not say; 0: for ever. Default 0.'),
  batch_keep_days: days('The same for the input and output of batches. Default 30.'),
  project_files: integer({ minimum: 1 }, 'Files of all tokens of a project. Default 100,000.'),
  project_bytes: integer({ minimum: 1 }, 'Bytes of these files. Default 107374182400 (100 GiB).'),
})
export type FilesConfig = Type.Static<typeof FilesConfig>
