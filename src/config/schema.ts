/** What an operator may write in `gatehouse.yaml`: one TypeBox text for the type, the check and the editor's schema. */
import Type, { type TSchema } from 'typebox'
import { EndpointFamily } from '../spec/endpoint-family.ts'
import { MODEL_STATUSES } from '../spec/model.ts'
import { EmbeddingLimits } from './embedding-schema.ts'
import { ImageLimits } from './image-schema.ts'
import { Quirks } from './quirks.ts'
import { ServerConfig } from './server-schema.ts'
import { OutputsConfig, ResponsesConfig, TasksConfig, ThreeDLimits, VideoLimits } from './task-schema.ts'

const closed = { additionalProperties: false } as const
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema)
const seconds = (description: string, maximum = 86_400) =>
  optional(Type.Number({ exclusiveMinimum: 0, maximum, description }))
const unixTime = (description: string) => optional(Type.Integer({ minimum: 0, description }))

export const Timeouts = Type.Object(
  {
    connect_seconds: seconds('Until the connection stands. Default 10.'),
    first_byte_seconds: seconds('From the request sent to the first byte of the answer. Default 300.'),
    idle_seconds: seconds('Silence within a stream. Default 300.'),
    total_seconds: seconds('A whole (not streamed) answer from start to end. Default 600.'),
  },
  closed,
)
export type Timeouts = Type.Static<typeof Timeouts>

export const PROVIDER_KINDS = [
  'chatcompat',
  'sandbox',
  'chatcompat-video',
  'alibaba',
  'amazon-bedrock',
  'ark',
  'azure',
  'black-forest-labs',
  'cohere',
  'contentgen-compat',
  'deepinfra',
  'deepseek',
  'fal',
  'fireworks',
  'google',
  'google-vertex',
  'groq',
  'huggingface',
  'kling',
  'luma',
  'meshy',
  'messages-compat',
  'minimax',
  'mistral',
  'moonshotai',
  'perplexity',
  'replicate',
  'rerank-compat',
  'responses-compat',
  'runway',
  'togetherai',
  'tripo',
  'voyage',
  'xai',
] as const
export type ProviderKind = (typeof PROVIDER_KINDS)[number]

export const OUTPUT_MODES = ['copy', 'passthrough'] as const

export const Passthrough = Type.Object(
  {
    applies_to: optional(
      Type.Enum(['limited_tokens', 'all_tokens'], {
        description: 'Whose requests may hold only what is known to reach no other model. Default limited_tokens.',
      }),
    ),
    allow: optional(
      Type.Array(Type.String({ minLength: 1 }), {
        description: 'Fields, tool types and header values to let through besides, e.g. tools.image_generation',
      }),
    ),
  },
  { ...closed, description: 'What tokens that are limited to some models or families may send on to the vendor.' },
)

export const ProviderConfig = Type.Object(
  {
    kind: optional(Type.Enum([...PROVIDER_KINDS], { description: 'How it is spoken to. Default chatcompat.' })),
    preset: optional(Type.String({ description: 'A known vendor, e.g. openai, groq, ollama: fills in the rest.' })),
    base_url: optional(Type.String({ description: 'Up to and with the version, e.g. https://api.example.com/v1' })),
    key: optional(
      Type.String({ minLength: 1, description: 'The upstream key; write ${NAME} to take it from the environment.' }),
    ),
    headers: optional(Type.Record(Type.String(), Type.String(), { description: 'Sent with every request.' })),
    request_defaults: optional(
      Type.Record(Type.String(), Type.Unknown(), { description: 'Body fields to send when the caller gave none.' }),
    ),
    fields: optional(
      Type.Object(
        {
          allow: optional(Type.Array(Type.String(), { description: 'Further body fields to forward.' })),
          drop: optional(Type.Array(Type.String(), { description: 'Body fields that the vendor would refuse.' })),
          rename: optional(
            Type.Record(Type.String(), Type.String(), {
              description: "Our name to the vendor's, e.g. max_tokens: max_completion_tokens",
            }),
          ),
        },
        closed,
      ),
    ),
    quirks: optional(Quirks),
    timeouts: optional(Timeouts),
    options: optional(
      Type.Record(Type.String(), Type.Unknown(), { description: 'Settings that only this kind has; see the manual.' }),
    ),
    concurrency: optional(
      Type.Integer({ minimum: 1, maximum: 1024, description: 'Tasks stepped at a time. Default: tasks.concurrency.' }),
    ),
    outputs: optional(
      Type.Enum([...OUTPUT_MODES], {
        description: "copy finished files, or pass the vendor's links through. Default copy.",
      }),
    ),
    passthrough: optional(Passthrough),
    private_addresses: optional(
      Type.Boolean({ description: 'Files may be fetched from private and loopback addresses. Default false.' }),
    ),
    discover: optional(
      Type.Boolean({ description: 'Ask the vendor for its model list at start and add what is not in `models`.' }),
    ),
  },
  closed,
)
export type ProviderConfig = Type.Static<typeof ProviderConfig>

/** A range may narrow what all models share (specification 2.2 and 8), never widen it. */
const rangeWithin = (
  number: typeof Type.Number | typeof Type.Integer,
  bounds: { minimum?: number; maximum?: number },
) =>
  Type.Object(
    {
      minimum: optional(number(bounds)),
      maximum: optional(number(bounds)),
      default: optional(number({ ...bounds, description: 'Sent when the caller gives none.' })),
    },
    closed,
  )
export type Range = { minimum?: number; maximum?: number; default?: number }

export const RANGED_FIELDS = [
  'max_tokens',
  'temperature',
  'top_p',
  'frequency_penalty',
  'presence_penalty',
  'repetition_penalty',
] as const

const Limits = Type.Object(
  {
    max_tokens: optional(rangeWithin(Type.Integer, { minimum: 1 })),
    temperature: optional(rangeWithin(Type.Number, { minimum: 0, maximum: 2 })),
    top_p: optional(rangeWithin(Type.Number, { minimum: 0, maximum: 1 })),
    frequency_penalty: optional(rangeWithin(Type.Number, { minimum: -2, maximum: 2 })),
    presence_penalty: optional(rangeWithin(Type.Number, { minimum: -2, maximum: 2 })),
    repetition_penalty: optional(rangeWithin(Type.Number, { minimum: 0 })),
  },
  { ...closed, description: 'Ranges and defaults of the numeric request fields.' },
)
export type Limits = Type.Static<typeof Limits>

export const EXTRA_FIELDS = ['repetition_penalty', 'thinking_enabled', 'web_search'] as const

const Capabilities = Type.Object(
  {
    image_input: optional(Type.Boolean()),
    audio_input: optional(Type.Boolean()),
    file_input: optional(Type.Boolean()),
    tools: optional(Type.Boolean()),
    json_object: optional(Type.Boolean()),
    json_schema: optional(Type.Boolean()),
    multiple_choices: optional(Type.Boolean({ description: 'n above 1.' })),
    logprobs: optional(Type.Boolean()),
    audio_output: optional(Type.Boolean()),
  },
  { ...closed, description: 'What the model can. Default: all; a request for what is `false` is refused by name.' },
)
export type Capabilities = Type.Static<typeof Capabilities>

const Target = Type.Object(
  {
    provider: Type.String({ description: 'A key of `providers`.' }),
    model: Type.String({ description: "The vendor's own name of the model." }),
  },
  closed,
)

export const RETIRED_POLICIES = ['refuse', 'serve', 'redirect'] as const

export const ModelConfig = Type.Object(
  {
    families: optional(
      Type.Array(EndpointFamily, {
        description: 'Default: by its name embeddings or rerank, else every family of chat.',
      }),
    ),
    targets: optional(
      Type.Array(Target, {
        minItems: 1,
        description: 'Who serves it, in order. Default: <provider>/<model> of the id.',
      }),
    ),
    created: unixTime('Unix time. Default: when the model first entered the catalogue.'),
    status: optional(Type.Enum([...MODEL_STATUSES], { description: 'Default: by the dates below, else active.' })),
    deprecated_at: unixTime('Unix time; the model is deprecated from then on.'),
    retired_at: unixTime('Unix time; the model is retired from then on.'),
    replaced_by: optional(Type.String({ description: 'Model id of the successor.' })),
    when_retired: optional(
      Type.Enum([...RETIRED_POLICIES], { description: 'refuse (410), serve, or redirect to `replaced_by`.' }),
    ),
    limits: optional(Limits),
    context_tokens: optional(
      Type.Integer({ minimum: 1, description: 'How many tokens fit, of input and output together. Only shown.' }),
    ),
    fields: optional(
      Type.Array(Type.Enum([...EXTRA_FIELDS]), { description: 'Extra request fields of this model. Default: none.' }),
    ),
    capabilities: optional(Capabilities),
    embeddings: optional(EmbeddingLimits),
    video: optional(VideoLimits),
    three_d: optional(ThreeDLimits),
    images: optional(ImageLimits),
    keep_days: optional(
      Type.Number({
        exclusiveMinimum: 0,
        description: 'How long finished files are kept. Default: outputs.keep_days.',
      }),
    ),
    prices: optional(
      Type.Object(
        {
          currency: optional(Type.String({ pattern: '^[A-Z]{3}$', description: 'ISO 4217. Default USD.' })),
          input: optional(Type.Number({ minimum: 0, description: 'Per million input tokens.' })),
          cached_input: optional(Type.Number({ minimum: 0 })),
          output: optional(Type.Number({ minimum: 0, description: 'Per million output tokens.' })),
          source: optional(Type.String({ description: 'Where the figures come from.' })),
          as_of: optional(Type.String({ description: 'Their date.' })),
        },
        closed,
      ),
    ),
  },
  closed,
)
export type ModelConfig = Type.Static<typeof ModelConfig>

export const TokenDefaults = Type.Object(
  {
    models: optional(Type.Array(Type.String(), { description: 'Glob patterns for new tokens. Default: ["*"].' })),
    families: optional(Type.Array(EndpointFamily, { description: 'For new tokens. Default: all.' })),
    expires_after_days: optional(Type.Number({ exclusiveMinimum: 0, description: 'For new tokens. Default: never.' })),
  },
  closed,
)
export type TokenDefaults = Type.Static<typeof TokenDefaults>

export const FileConfig = Type.Object(
  {
    $schema: optional(Type.String()),
    server: optional(ServerConfig),
    sandbox: optional(Type.Boolean({ description: 'The built-in simulated vendor. Default true.' })),
    discover: optional(
      Type.Boolean({
        description: 'Find providers by environment keys and on loopback. Default: only without a file.',
      }),
    ),
    when_retired: optional(Type.Enum([...RETIRED_POLICIES], { description: 'For every model. Default refuse.' })),
    tokens: optional(TokenDefaults),
    timeouts: optional(Timeouts),
    tasks: optional(TasksConfig),
    outputs: optional(OutputsConfig),
    responses: optional(ResponsesConfig),
    providers: optional(Type.Record(Type.String(), ProviderConfig)),
    models: optional(Type.Record(Type.String(), ModelConfig)),
  },
  { ...closed, title: 'gatehouse.yaml' },
)
export type FileConfig = Type.Static<typeof FileConfig>
