/** An image request and its response, in the OpenAI format, with fields of other vendors' models. */
import Type from 'typebox'
import { flag, integer, oneOf, text, titled } from './fields.ts'

const media = (what: string) =>
  Type.String({ minLength: 1, description: `${what} An http(s) URL, a data URI or base64; in a form, a file.` })

const FORWARDED = 'Forwarded if the provider accepts it.'

export const ImageRequest = titled('ImageRequest', {
  model: Type.String({
    minLength: 1,
    description: 'A model whose `supported_endpoint_types` has `image-generation`.',
  }),
  prompt: text('What the image shows. Required, except for variations.'),
  n: integer({ minimum: 1, maximum: 16 }, "Number of images, up to the model's maximum. Default 1."),
  size: text("Width x height, such as `1536x1024`, or `auto`. Default: the model's, else the provider's."),
  aspect_ratio: text("Such as `16:9`, for providers that take a ratio. Default: the model's, else the provider's."),
  quality: text("One of the model's values. Default: the model's, else the provider's."),
  style: text("One of the model's values. Default: the model's, else the provider's."),
  response_format: oneOf(
    ['url', 'b64_json'],
    "`url` is a signed link that expires. Default: the model's, else `b64_json`.",
  ),
  background: text("`transparent`, `opaque` or `auto`. Default: the provider's."),
  output_format: oneOf(['png', 'jpeg', 'webp'], "Default: the provider's."),
  output_compression: integer({ minimum: 0, maximum: 100 }, "Of `jpeg` and `webp`. Default: the provider's."),
  moderation: text(FORWARDED),
  input_fidelity: text(FORWARDED),
  negative_prompt: text('What to avoid.'),
  seed: integer({ minimum: 0, maximum: 4_294_967_295 }, "Default: the provider's."),
  stream: flag('Whether the response is an event stream. Default false.'),
  partial_images: integer({ minimum: 0, maximum: 3 }, 'Partial images of a stream. Default 0.'),
  user: text(FORWARDED),
  /** Fields of edits and variations. */
  image: Type.Optional(
    Type.Union([media('What to change.'), Type.Array(media('What to change.'), { minItems: 1 })], {
      description:
        'What an edit or a variation changes. In place of it JSON may have `images`: a list of `{ "file_id" }` or `{ "image_url" }`.',
    }),
  ),
  mask: Type.Optional(media('Of edits: where it is transparent, the image changes.')),
  metadata: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: 'Options of the provider, under the name of its kind.',
    }),
  ),
  async: flag('Return a task at once; its state is at `/v1/images/generations/{task_id}`. Default false.'),
  callback_url: text('Of a task: receives a webhook, a signed POST, when it ends.'),
})
export type ImageRequest = Type.Static<typeof ImageRequest>

export const IMAGE_OPERATIONS = ['generate', 'edit', 'variation'] as const
export type ImageOperation = (typeof IMAGE_OPERATIONS)[number]

/** A request for a model: with defaults, and with `images` in place of `image`. */
export type ImageOrder = Omit<ImageRequest, 'image' | 'stream' | 'async' | 'callback_url' | 'response_format'> & {
  operation: ImageOperation
  prompt: string
  n: number
  images?: string[]
}

export const ImageUsage = Type.Object({
  input_tokens: Type.Integer(),
  output_tokens: Type.Integer(),
  total_tokens: Type.Integer(),
  input_tokens_details: Type.Optional(Type.Object({ text_tokens: Type.Integer(), image_tokens: Type.Integer() })),
})
export type ImageUsage = Type.Static<typeof ImageUsage>

export const ImageAnswer = titled('ImageAnswer', {
  created: Type.Integer(),
  data: Type.Array(
    Type.Object({
      url: Type.Optional(Type.String()),
      b64_json: Type.Optional(Type.String()),
      revised_prompt: Type.Optional(Type.String()),
    }),
  ),
  background: Type.Optional(Type.String()),
  output_format: Type.Optional(Type.String()),
  quality: Type.Optional(Type.String()),
  size: Type.Optional(Type.String()),
  usage: Type.Optional(ImageUsage),
})
export type ImageAnswer = Type.Static<typeof ImageAnswer>
