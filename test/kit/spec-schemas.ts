/** Tables 2.1 and 2.4 of the specification as JSON Schema, written from the document and not from our code. */

type Schema = { [name: string]: unknown }

const object = (required: Record<string, Schema>, optional: Record<string, Schema> = {}): Schema => ({
  type: 'object',
  properties: { ...required, ...optional },
  required: Object.keys(required),
})
const list = (items: Schema): Schema => ({ type: 'array', items })
const orNull = (schema: Schema): Schema => ({ anyOf: [schema, { type: 'null' }] })

const STRING = { type: 'string' }
const INTEGER = { type: 'integer' }
const ANY = {}

const FAMILIES = [
  'chatcompat',
  'chatcompat-response',
  'messages-compat',
  'contentgen-compat',
  'rerank',
  'embeddings',
  'image-generation',
  'video-generation',
  '3d-generation',
  'chatcompat-video',
  // Beyond the specification.
  'moderations',
  'audio-speech',
  'audio-transcription',
  'realtime',
]

export const SPEC_MODEL = object(
  {
    id: STRING,
    object: { const: 'model' },
    created: INTEGER,
    owned_by: STRING,
    supported_endpoint_types: list({ enum: FAMILIES }),
    status: { enum: ['active', 'deprecated', 'retired'] },
  },
  { deprecated_at: INTEGER, retired_at: INTEGER, replaced_by: { ...STRING, minLength: 1 } },
)

export const SPEC_MODEL_LIST = object({
  success: { type: 'boolean' },
  object: { const: 'list' },
  data: list(SPEC_MODEL),
})

const INPUT_DETAILS = object(
  { cached_tokens: INTEGER, text_tokens: INTEGER, audio_tokens: INTEGER, image_tokens: INTEGER },
  { cache_write_tokens: INTEGER },
)
const OUTPUT_DETAILS = object({ text_tokens: INTEGER, audio_tokens: INTEGER, reasoning_tokens: INTEGER })

const USAGE = object(
  {
    prompt_tokens: INTEGER,
    completion_tokens: INTEGER,
    total_tokens: INTEGER,
    prompt_tokens_details: INPUT_DETAILS,
    completion_tokens_details: OUTPUT_DETAILS,
    input_tokens: INTEGER,
    output_tokens: INTEGER,
  },
  { input_tokens_details: orNull(INPUT_DETAILS), prompt_cache_hit_tokens: INTEGER },
)

const TOOL_CALL = object(
  { function: object({ arguments: STRING }, { name: STRING, description: STRING, parameters: ANY }) },
  { id: STRING, index: INTEGER, type: ANY },
)

const DELTA = object(
  {},
  {
    content: STRING,
    reasoning: STRING,
    reasoning_content: STRING,
    role: { enum: ['system', 'user', 'assistant', 'tool'] },
    tool_calls: list(TOOL_CALL),
  },
)

const CHOICE = object(
  { index: INTEGER },
  {
    delta: DELTA,
    finish_reason: { enum: ['stop', 'length', 'tool_calls', 'content_filter', null] },
    logprobs: ANY,
  },
)

/** Whole answers and chunks alike. */
export const SPEC_COMPLETION = object(
  { id: STRING, object: STRING, created: INTEGER, model: STRING, choices: list(CHOICE) },
  // `null` is how clients of this shape know it when there is none.
  { system_fingerprint: orNull(STRING), usage: orNull(USAGE) },
)

export type SpecSchema = Schema
