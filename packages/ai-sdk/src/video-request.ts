/** Encodes the AI SDK's options for a video as a request of the gateway. */
import type {
  Experimental_VideoModelV4CallOptions as CallOptions,
  Experimental_VideoModelV4File as File,
  JSONObject,
  SharedV4Warning,
} from '@ai-sdk/provider'
import { convertUint8ArrayToBase64 } from '@ai-sdk/provider-utils'
import { ownFields } from './http.ts'

type VideoOptions = { modelId: string; options: CallOptions & { webhookUrl?: string } }

/** The body of the order. `providerOptions.gatehouse` takes precedence over the other options. */
export function videoRequest({ modelId, options }: VideoOptions): { body: JSONObject; warnings: SharedV4Warning[] } {
  const warnings: SharedV4Warning[] = []
  const { prompt, aspectRatio, resolution, duration, seed, generateAudio, n, webhookUrl } = options
  const body: JSONObject = {
    prompt,
    aspect_ratio: aspectRatio,
    size: resolution,
    duration,
    seed,
    audio_enable: generateAudio,
    n: n > 1 ? n : undefined,
    callback_url: webhookUrl,
    ...framesOf(options, warnings),
    ...referencesOf(options, warnings),
    ...ownFields(options.providerOptions),
    model: modelId,
  }
  if (options.fps !== undefined && body.fps === undefined) {
    warnings.push({
      type: 'unsupported',
      feature: 'fps',
      details:
        'The gateway has no such field; set it as an option of the provider in providerOptions.gatehouse.metadata.',
    })
  }
  return { body, warnings }
}

/** The first frame is the start image; with both given the frame takes precedence, as in the AI SDK itself. */
function framesOf({ image, frameImages = [] }: CallOptions, warnings: SharedV4Warning[]): JSONObject {
  const frameOf = (name: 'first_frame' | 'last_frame') => {
    const [found, ...others] = frameImages.filter(({ frameType }) => frameType === name)
    if (others.length > 0) warnings.push(onlyFirst(`frameImages with ${name}`))
    return found?.image
  }
  const start = frameOf('first_frame') ?? image
  const end = frameOf('last_frame')
  return { image: start && toUrl(start), last_image: end && toUrl(end) }
}

/** Images are references; a video is the one to continue or edit. */
function referencesOf({ inputReferences = [] }: CallOptions, warnings: SharedV4Warning[]): JSONObject {
  const videos = inputReferences.filter(isVideo)
  const images = inputReferences.filter((file) => !isVideo(file))
  if (videos.length > 1) warnings.push(onlyFirst('videos among inputReferences'))
  const [video] = videos
  return { images: images.length > 0 ? images.map(toUrl) : undefined, video: video && toUrl(video) }
}

const onlyFirst = (feature: string): SharedV4Warning => ({
  type: 'unsupported',
  feature,
  details: 'A request has one of them: the first is sent, the others are not.',
})

const VIDEO_PATH = /\.(mp4|m4v|mov|webm|mkv|avi)$/i

function isVideo(file: File): boolean {
  if (file.mediaType !== undefined) return file.mediaType.startsWith('video/')
  return file.type === 'url' && VIDEO_PATH.test(URL.canParse(file.url) ? new URL(file.url).pathname : '')
}

/** A URL, or a data URI. */
export function toUrl(file: File): string {
  if (file.type === 'url') return file.url
  const { data, mediaType } = file
  return `data:${mediaType};base64,${typeof data === 'string' ? data : convertUint8ArrayToBase64(data)}`
}
