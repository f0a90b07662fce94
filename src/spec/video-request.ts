/** A video generation request (specification 2.5, with further fields that other gateways have). */
import Type from 'typebox'
import { flag, integer, list, number, text, titled } from './fields.ts'

const media = (what: string) =>
  Type.String({ minLength: 1, description: `${what} An http(s) URL, a data URI or base64.` })

export const VideoRequest = titled('VideoRequest', {
  model: Type.String({
    minLength: 1,
    description: 'A model whose `supported_endpoint_types` has `video-generation`.',
  }),
  prompt: text('What the video shows. Most models require it.'),
  aspect_ratio: text('Such as `16:9`, `9:16`, `1:1`, `4:3` or `3:4`. Default 16:9, where the model states its values.'),
  duration: number("Length in seconds. Default: the model's shortest."),
  seconds: Type.Optional(Type.Union([Type.Number(), Type.String()], { description: 'The same as `duration`.' })),
  size: text("Such as `720p` or `1080p`; `1280x720` sets size and ratio. Default: the model's first."),
  audio_enable: flag('Whether the video has sound. Default: false where the model has a choice.'),
  image: Type.Optional(media('The first frame.')),
  last_image: Type.Optional(media('The last frame.')),
  images: list(media('A reference image.'), 'Reference images, each in one of these forms.'),
  video: Type.Optional(media('The video to start from.')),
  negative_prompt: text('What to avoid.'),
  seed: integer({ minimum: 0, maximum: 4_294_967_295 }, "Default: the provider's own."),
  n: integer({ minimum: 1 }, 'Number of videos. Default 1.'),
  metadata: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: 'Options of the provider, under the name of its kind.',
    }),
  ),
  callback_url: text('Receives a webhook, a signed POST, when the task ends.'),
})
export type VideoRequest = Type.Static<typeof VideoRequest>

/** The fields that hold media. They are stored separately because they may be large. */
export const MEDIA_FIELDS = ['image', 'last_image', 'images', 'video'] as const

/** A request for a model: with defaults, without aliases, and with `size` and `aspect_ratio` in their own fields. */
export type VideoOrder = Omit<VideoRequest, 'seconds' | 'callback_url'> & { prompt: string; n: number }
