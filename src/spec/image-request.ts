/** An image request and its response, in the OpenAI format, with fields of other vendors' models. */
import Type from 'typebox'

const media = (what: string) =>
  Type.String({ minLength: 1, description: `${what} An http(s) URL, a data URI or base64; in a form, a file.` })

const FORWARDED = 'Forwarded if the provider accepts it.'

export const ImageRequest = Type.Object(
  {
    model: Type.String({
      minLength: 1,
      description: 'A model whose `supported_endpoint_types` has `image-generation`.',
    }),
    prompt: Type.Optional(Type.String({ description: 'What the image shows. Required, except for variations.' })),
    n: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 16, description: "Number of images, up to the model's maximum. Default 1." }),
    ),
    size: Type.Optional(
      Type.String({
        description: "Width x height, such as `1536x1024`, or `auto`. Default: the model's, else the provider's.",
      }),
    ),
    aspect_ratio: Type.Optional(
      Type.String({
        description: "Such as `16:9`, for providers that take a ratio. Default: the model's, else the provider's.",
      }),
    ),
    quality: Type.Optional(
      Type.String({ description: "One of the model's values. Default: the model's, else the provider's." }),
    ),
    style: Type.Optional(
      Type.String({ description: "One of the model's values. Default: the model's, else the provider's." }),
    ),
    response_format: Type.Optional(
      Type.Enum(['url', 'b64_json'], {
        description: "`url` is a signed link that expires. Default: the model's, else `b64_json`.",
      }),
    ),
    background: Type.Optional(
      Type.String({ description: "`transparent`, `opaque` or `auto`. Default: the provider's." }),
    ),
    output_format: Type.Optional(Type.Enum(['png', 'jpeg', 'webp'], { description: "Default: the provider's." })),
    output_compression: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 100, description: "Of `jpeg` and `webp`. Default: the provider's." }),
    ),
    moderation: Type.Optional(Type.String({ description: FORWARDED })),
    input_fidelity: Type.Optional(Type.String({ description: FORWARDED })),
    negative_prompt: Type.Optional(Type.String({ description: 'What to avoid.' })),
    seed: Type.Optional(Type.Integer({ minimum: 0, maximum: 4_294_967_295, description: "Default: the provider's." })),
    stream: Type.Optional(Type.Boolean({ description: 'Whether the response is an event stream. Default false.' })),
    partial_images: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 3, description: 'Partial images of a stream. Default 0.' }),
    ),
    user: Type.Optional(Type.String({ description: FORWARDED })),
    /** Fields of edits and variations. */
    image: Type.Optional(
      Type.Union([media('What to change.'), Type.Array(media('What to change.'), { minItems: 1 })], {
        description: 'What an edit or a variation changes.',
      }),
    ),
    mask: Type.Optional(media('Of edits: where it is transparent, the image changes.')),
    metadata: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: 'Options of the provider, under the name of its kind.',
      }),
    ),
    async: Type.Optional(
      Type.Boolean({
        description: 'Return a task at once; its state is at `/v1/images/generations/{task_id}`. Default false.',
      }),
    ),
    callback_url: Type.Optional(
      Type.String({ description: 'Of a task: receives a webhook, a signed POST, when it ends.' }),
    ),
  },
  { title: 'ImageRequest' },
)
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

export const ImageAnswer = Type.Object(
  {
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
  },
  { title: 'ImageAnswer' },
)
export type ImageAnswer = Type.Static<typeof ImageAnswer>
