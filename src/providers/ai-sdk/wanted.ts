/** An order in the words of the AI SDK's video models, and what may not be lost on the way into them. */
import type { ProviderConfig } from '../../config/schema.ts'
import { isRecord, type JsonRecord } from '../../kit/json.ts'
import { GatewayError } from '../../spec/error.ts'
import type { VideoOrder } from '../../spec/video-request.ts'
import { assertSupportedFields, pixelsOf, ratioOf, toMediaUrl } from '../orders/order-fields.ts'
import { fileOf } from './media.ts'
import type { AiSdkVendor, Meaningful, Unheard, VideoModelOptions, Wanted } from './vendor.ts'

const MEANINGFUL: readonly Meaningful[] = [
  'image',
  'last_image',
  'images',
  'video',
  'negative_prompt',
  'audio_enable',
  'n',
]

/**
 * What a caller may not set by `metadata` once the field itself is set, since limits and prices are judged by the
 * field: in all the forms in which vendors write it, without case and underscores.
 */
const COVERED: Partial<Record<keyof VideoOrder, string[]>> = {
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
/** Decided elsewhere, or by which the package would be told to wait and to call back. */
const NEVER = [
  'model',
  'pollintervalms',
  'polltimeoutms',
  'maxwaittimeinseconds',
  'webhook',
  'webhookurl',
  'callbackurl',
]

type WantedParts = { order: VideoOrder; vendor: AiSdkVendor; model: string; config: ProviderConfig; upstream: string }

/** Throws `unsupported_parameter` for a field that would be lost. */
export function wantedOf({ order: whole, vendor, model, config, upstream }: WantedParts): Wanted {
  const order = without(whole, config.fields?.drop ?? [])
  const renamed: JsonRecord = {}
  for (const [field, name] of Object.entries(config.fields?.rename ?? {})) {
    const value = (order as JsonRecord)[field]
    if (value === undefined) continue
    renamed[name] = mediaAsAddress(field, value)
    delete (order as JsonRecord)[field]
  }
  const lost = vendor.drops ?? []
  assertSupportedFields(
    order,
    upstream,
    MEANINGFUL.filter((field) => !lost.includes(field)),
  )
  const wanted = commonWords(order, vendor)
  const extras = { ...config.request_defaults, ...own(order.metadata, vendor) }
  for (const name of Object.keys(extras)) if (isCovered(name, whole)) delete extras[name]
  wanted.extras = { ...jsonOf(extras), ...jsonOf(renamed) }
  return vendor.write ? vendor.write(wanted, order, model) : wanted
}

function commonWords(order: VideoOrder, { media }: AiSdkVendor): Wanted {
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
    extras: {},
  }
}

const plain = (name: string) => name.replaceAll('_', '').toLowerCase()

function isCovered(name: string, order: VideoOrder): boolean {
  if (NEVER.includes(plain(name))) return true
  return Object.entries(COVERED).some(
    ([field, names]) => order[field as keyof VideoOrder] !== undefined && names.includes(plain(name)),
  )
}

/** The vendor's own fields, under the name of its kind or of its package. */
function own(metadata: VideoOrder['metadata'], { kind, namespace }: AiSdkVendor): JsonRecord {
  const found = metadata?.[kind] ?? metadata?.[namespace]
  return isRecord(found) ? { ...found } : {}
}

function mediaAsAddress(field: string, value: unknown): unknown {
  if (!['image', 'last_image', 'images', 'video'].includes(field)) return value
  const address = (one: unknown) =>
    typeof one === 'string' ? toMediaUrl(one, field === 'video' ? 'video/mp4' : 'image/png') : one
  return Array.isArray(value) ? value.map(address) : address(value)
}

const without = (order: VideoOrder, fields: string[]): VideoOrder =>
  Object.fromEntries(Object.entries(order).filter(([name]) => !fields.includes(name))) as VideoOrder

/** Only what JSON can say is sent, so only that is kept. */
const jsonOf = (values: JsonRecord): Wanted['extras'] => JSON.parse(JSON.stringify(values))

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

/** Throws for what the package says it would ignore, if that changes what is made. */
export function refuseUnheard(unheard: Unheard, order: VideoOrder, vendor: AiSdkVendor, upstream: string): void {
  const { feature, details } = unheard
  if (vendor.tolerates?.(unheard, order)) return
  if (feature === 'seed') return // it only tunes
  if (feature === 'generateAudio' && order.audio_enable !== true) return
  // What is given to be seen has a shape of its own.
  const isShown = [order.image, order.last_image, order.images, order.video].some((media) => media !== undefined)
  if (feature === 'aspectRatio' && isShown) return
  const reference = order.images?.length ? 'images' : 'video'
  const param = feature === 'inputReferences' ? reference : (FIELDS[feature] ?? 'metadata')
  throw new GatewayError(
    ['size', 'aspect_ratio', 'duration'].includes(param) ? 'unsupported_value' : 'unsupported_parameter',
    `The upstream "${upstream}" cannot honour "${param}" as it is asked for${details ? `: ${details}` : '.'}`,
    { param, accepted: 'no' },
  )
}
