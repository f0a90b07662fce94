/** A video generation request (specification 2.5; the fields that it does not show, as other gateways have them). */
import Type from 'typebox'

const media = (what: string) =>
  Type.String({ minLength: 1, description: `${what} An http(s) URL, a data URI or base64.` })

export const VideoRequest = Type.Object(
  {
    model: Type.String({
      minLength: 1,
      description: 'A model whose `supported_endpoint_types` has `video-generation`.',
    }),
    prompt: Type.Optional(Type.String({ description: 'Text prompt.' })),
    aspect_ratio: Type.Optional(Type.String({ description: 'Such as `16:9`; the model says which.' })),
    duration: Type.Optional(Type.Number({ description: 'Seconds; the model says which.' })),
    seconds: Type.Optional(Type.Union([Type.Number(), Type.String()], { description: 'The same as `duration`.' })),
    size: Type.Optional(Type.String({ description: 'Such as `720p`, or `1280x720`, which names the ratio too.' })),
    audio_enable: Type.Optional(Type.Boolean({ description: 'Whether audio is generated along with the video.' })),
    image: Type.Optional(media('The first frame.')),
    last_image: Type.Optional(media('The last frame.')),
    images: Type.Optional(Type.Array(media('A reference.'), { description: 'Reference images.' })),
    video: Type.Optional(media('The video to start from.')),
    negative_prompt: Type.Optional(Type.String({ description: 'What should not be seen.' })),
    seed: Type.Optional(Type.Integer({ minimum: 0, maximum: 4_294_967_295 })),
    n: Type.Optional(Type.Integer({ minimum: 1, description: 'How many videos. Default 1.' })),
    metadata: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), { description: "The vendor's own further options." }),
    ),
    callback_url: Type.Optional(
      Type.String({ description: 'Told once when the task has ended, by a signed POST; see the manual, Webhooks.' }),
    ),
  },
  { title: 'VideoRequest' },
)
export type VideoRequest = Type.Static<typeof VideoRequest>

/** The fields that hold media: kept apart from the rest, since they may be large. */
export const MEDIA_FIELDS = ['image', 'last_image', 'images', 'video'] as const

/** A request as a model takes it: defaults filled in, aliases folded, `size` and `aspect_ratio` each in their own field. */
export type VideoOrder = Omit<VideoRequest, 'seconds' | 'callback_url'> & { prompt: string; n: number }
