/** An image request and its answer, in the OpenAI shape, with the fields that other vendors' models take. */
import Type from 'typebox'

const media = (what: string) =>
  Type.String({ minLength: 1, description: `${what} An http(s) URL, a data URI or base64; in a form, a file.` })

export const ImageRequest = Type.Object(
  {
    model: Type.String({
      minLength: 1,
      description: 'A model whose `supported_endpoint_types` has `image-generation`.',
    }),
    prompt: Type.Optional(Type.String()),
    n: Type.Optional(Type.Integer({ minimum: 1, maximum: 16, description: 'How many images. Default 1.' })),
    size: Type.Optional(Type.String({ description: 'Such as `1024x1024`, or `auto`; the model says which.' })),
    aspect_ratio: Type.Optional(Type.String({ description: 'Such as `16:9`, where a model takes that.' })),
    quality: Type.Optional(Type.String()),
    style: Type.Optional(Type.String()),
    response_format: Type.Optional(
      Type.Enum(['url', 'b64_json'], { description: 'Default `b64_json`; a `url` is a signed link that expires.' }),
    ),
    background: Type.Optional(Type.String()),
    output_format: Type.Optional(Type.Enum(['png', 'jpeg', 'webp'])),
    output_compression: Type.Optional(Type.Integer({ minimum: 0, maximum: 100 })),
    moderation: Type.Optional(Type.String()),
    input_fidelity: Type.Optional(Type.String()),
    negative_prompt: Type.Optional(Type.String()),
    seed: Type.Optional(Type.Integer({ minimum: 0, maximum: 4_294_967_295 })),
    stream: Type.Optional(Type.Boolean()),
    partial_images: Type.Optional(Type.Integer({ minimum: 0, maximum: 3 })),
    user: Type.Optional(Type.String()),
    /** Of edits and variations. */
    image: Type.Optional(Type.Union([media('What to change.'), Type.Array(media('What to change.'), { minItems: 1 })])),
    mask: Type.Optional(media('Where it is transparent, the image is changed.')),
    metadata: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), { description: "The vendor's own further options." }),
    ),
    async: Type.Optional(
      Type.Boolean({ description: 'Answer at once with a task; its state is at `/v1/images/generations/{task_id}`.' }),
    ),
    callback_url: Type.Optional(Type.String({ description: 'Of an asynchronous order; see the manual, Webhooks.' })),
  },
  { title: 'ImageRequest' },
)
export type ImageRequest = Type.Static<typeof ImageRequest>

export const IMAGE_OPERATIONS = ['generate', 'edit', 'variation'] as const
export type ImageOperation = (typeof IMAGE_OPERATIONS)[number]

/** A request as a model takes it: defaults filled in, `images` in place of `image`. */
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
