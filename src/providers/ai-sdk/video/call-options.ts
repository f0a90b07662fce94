/** Encodes a video order as the call options of AI SDK packages; refuses what would be dropped. */
import type { ProviderConfig } from '../../../config/schema/schema.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { VideoOrder } from '../../../spec/video-request.ts'
import { assertSupportedFields, MEANINGFUL, pixelsOf, ratioOf, toMediaUrl } from '../../orders/order-fields.ts'
import { type CoveredNames, ownOptions, renameFields, withoutNames } from '../order-options.ts'
import type { IgnoredFeature, OrderOptions, VideoModelOptions, VideoVendor } from './video-family.ts'
import { fileOf } from './video-file.ts'

/**
 * What a client may not set by `metadata` once the field itself is set, since limits and prices apply to the field: in
 * all the forms in which vendors write it.
 */
const COVERED: CoveredNames<VideoOrder> = {
  prompt: ['prompt'],
  n: ['n', 'samplecount', 'numvideos', 'numoutputs'],
  aspect_ratio: ['aspectratio', 'ratio'],
  duration: ['duration', 'durationseconds', 'seconds', 'numframes', 'videolength'],
  size: ['size', 'resolution', 'width', 'height', 'quality'],
  seed: ['seed'],
  audio_enable: ['audio', 'generateaudio', 'enableaudio', 'sound'],
  negative_prompt: ['negativeprompt'],
  image: ['image', 'imageurl', 'startimage', 'startimageurl', 'firstframe', 'firstframeurl', 'imgurl'],
  video: ['video', 'videourl'],
}
/** Set elsewhere, or by which the package would wait longer or have the vendor call back. */
const NEVER = [
  'model',
  'pollintervalms',
  'polltimeoutms',
  'maxwaittimeinseconds',
  'webhook',
  'webhookurl',
  'callbackurl',
]

type OptionParts = { order: VideoOrder; vendor: VideoVendor; model: string; config: ProviderConfig; upstream: string }

/** Throws `unsupported_parameter` for a field that would be dropped. */
export function optionsOf({ order: original, vendor, model, config, upstream }: OptionParts): OrderOptions {
  const { order, renamed } = renameFields(original, config.fields, mediaAsUrl)
  const dropped = vendor.drops ?? []
  assertSupportedFields(
    order,
    upstream,
    MEANINGFUL.filter((field) => !dropped.includes(field)),
  )
  const defaults = withoutNames(config.request_defaults ?? {}, NEVER)
  const own = ownOptions(order, { original, vendor, defaults, covered: COVERED, never: NEVER })
  const options = { ...commonOptions(order, vendor), extras: { ...own, ...renamed } }
  return vendor.adaptOptions ? vendor.adaptOptions(options, order, model) : options
}

function commonOptions(order: VideoOrder, { media }: VideoVendor): Omit<OrderOptions, 'extras'> {
  const { image, last_image, images = [], video } = order
  const pixels = pixelsOf(order.size, ratioOf(order))
  const first = image === undefined ? undefined : fileOf(image, 'image', media)
  const references = [
    ...images.map((one) => fileOf(one, 'images', media)),
    ...(video === undefined ? [] : [fileOf(video, 'video', media)]),
  ]
  return {
    prompt: order.prompt || undefined,
    n: order.n,
    aspectRatio: ratioOf(order) as VideoModelOptions['aspectRatio'],
    resolution: pixels && `${pixels.width}x${pixels.height}`,
    duration: order.duration,
    fps: undefined,
    seed: order.seed,
    image: first,
    frameImages:
      last_image === undefined
        ? undefined
        : [
            ...(first ? [{ image: first, frameType: 'first_frame' as const }] : []),
            { image: fileOf(last_image, 'last_image', media), frameType: 'last_frame' as const },
          ],
    inputReferences: references.length > 0 ? references : undefined,
    generateAudio: order.audio_enable,
  }
}

function mediaAsUrl(field: string, value: unknown): unknown {
  if (!['image', 'last_image', 'images', 'video'].includes(field)) return value
  const urlOf = (one: unknown) =>
    typeof one === 'string' ? toMediaUrl(one, field === 'video' ? 'video/mp4' : 'image/png') : one
  return Array.isArray(value) ? value.map(urlOf) : urlOf(value)
}

/** Our field for the package's. */
const FIELDS: Record<string, string> = {
  seed: 'seed',
  n: 'n',
  generateAudio: 'audio_enable',
  resolution: 'size',
  aspectRatio: 'aspect_ratio',
  duration: 'duration',
  image: 'image',
  frameImages: 'last_image',
  'URL-based image input': 'image',
}

/** Throws for what the package warns it would ignore, if that changes what is generated. */
export function assertNotIgnored(
  warning: IgnoredFeature,
  order: VideoOrder,
  vendor: VideoVendor,
  upstream: string,
): void {
  const { feature, details } = warning
  if (vendor.mayIgnore?.(warning, order)) return
  if (feature === 'seed') return // a tuning parameter
  if (feature === 'generateAudio' && order.audio_enable !== true) return
  // Given media have a shape of their own.
  const hasMedia = [order.image, order.last_image, order.images, order.video].some((media) => media !== undefined)
  if (feature === 'aspectRatio' && hasMedia) return
  const reference = order.images?.length ? 'images' : 'video'
  const param = feature === 'inputReferences' ? reference : (FIELDS[feature] ?? 'metadata')
  throw new GatewayError(
    ['size', 'aspect_ratio', 'duration'].includes(param) ? 'unsupported_value' : 'unsupported_parameter',
    `The upstream "${upstream}" does not support this value of "${param}"${details ? `: ${details}` : '.'}`,
    { param, accepted: 'no' },
  )
}
