/** An image order in the words of the AI SDK's image models, and what may not be lost on the way into them. */
import type { ImageModelV4CallOptions, ImageModelV4File, JSONObject } from '@ai-sdk/provider'
import type { ProviderConfig } from '../../../config/schema.ts'
import { isRecord, type JsonRecord } from '../../../kit/json.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { ImageOrder } from '../../../spec/image-request.ts'
import type { Media } from '../../media.ts'
import { neverSent } from '../../upstream/transport-failure.ts'
import { maskIn } from './mask.ts'
import { shapeOf } from './shape.ts'
import type { ImageVendor, OptionField } from './vendor.ts'

/** All but the number of images, which is a matter of calls, and what belongs to one call. */
export type WantedImages = Omit<ImageModelV4CallOptions, 'n' | 'abortSignal' | 'headers'>

const OPTIONS: readonly OptionField[] = [
  'quality',
  'style',
  'background',
  'output_format',
  'output_compression',
  'moderation',
  'negative_prompt',
  'user',
]
/** Those without which something else would be made. */
const MEANINGFUL: readonly OptionField[] = ['negative_prompt', 'output_format']

/** What a caller may not set by `metadata` once the field itself is set, without case and underscores. */
const COVERED: { [field in keyof ImageOrder]?: string[] } = {
  size: ['size', 'width', 'height', 'imagesize', 'resolution'],
  aspect_ratio: ['aspectratio', 'imagesize'],
  seed: ['seed'],
  quality: ['quality'],
  images: ['image', 'images', 'imageurl', 'inputimage', 'modifyimage'],
  mask: ['mask', 'maskurl', 'maskimage'],
}
/** Not the caller's: decided elsewhere, or by which the package would be told to wait and to call back. */
const NEVER = [
  'model',
  'n',
  'numimages',
  'numoutputs',
  'numberofimages',
  'samples',
  'pollintervalmillis',
  'polltimeoutmillis',
  'maxpollattempts',
  'maxwaittimeinseconds',
  'webhook',
  'webhookurl',
  'callbackurl',
]

type WantedParts = {
  order: ImageOrder
  vendor: ImageVendor
  model: string
  config: ProviderConfig
  upstream: string
  media: Pick<Media, 'read'>
  signal: AbortSignal
}

/** Throws for a field that would be lost, and for pictures that cannot be read; nothing was sent by then. */
export async function wantedImages(parts: WantedParts): Promise<WantedImages> {
  const { order: whole, vendor, model, config, upstream } = parts
  const order = without(whole, config.fields?.drop ?? [])
  const renamed: JsonRecord = {}
  for (const [field, name] of Object.entries(config.fields?.rename ?? {})) {
    const value = (order as JsonRecord)[field]
    if (value === undefined) continue
    renamed[name] = value
    delete (order as JsonRecord)[field]
  }
  refuseLost(order, vendor, { model, upstream })
  const asked = Object.entries(own(order.metadata, vendor)).filter(([name]) => !NEVER.includes(plain(name)))
  const extras: JsonRecord = { ...config.request_defaults, ...Object.fromEntries(asked) }
  for (const name of Object.keys(extras)) if (isCovered(name, whole)) delete extras[name]
  const named = `The model "${model}" of "${upstream}"`
  const { size, aspectRatio, options } = shapeOf(order, vendor.shape(model), named)
  const [files, mask] = await filesOf(order, parts)
  return {
    prompt: order.prompt === '' ? undefined : order.prompt,
    size,
    aspectRatio,
    seed: vendor.hasSeed ? order.seed : undefined,
    files,
    mask,
    providerOptions: {
      [vendor.namespace]: jsonOf({
        ...extras,
        ...optionsIn(order, vendor),
        ...options,
        ...vendor.write?.(order, model),
        ...renamed,
      }),
    },
  }
}

function refuseLost(order: ImageOrder, vendor: ImageVendor, { model, upstream }: { model: string; upstream: string }) {
  const refuse = (param: string, why: string) =>
    new GatewayError('unsupported_parameter', `The model "${model}" of "${upstream}" ${why}.`, {
      param,
      accepted: 'no',
    })
  const { only } = vendor
  if (only && !only.models.test(model)) {
    throw refuse('model', `makes no images by this interface: names of models that do ${only.named}`)
  }
  for (const field of MEANINGFUL) {
    if (order[field] === undefined || order[field] === '' || vendor.options?.[field]) continue
    throw refuse(field, `cannot honour "${field}". Leave it out, or choose another model`)
  }
  if (order.background === 'transparent' && !vendor.options?.background) {
    throw refuse('background', 'makes no transparent images')
  }
  const { most, mask } = vendor.edits(model)
  const given = order.images?.length ?? 0
  if (given > most) {
    throw refuse('image', most === 0 ? 'changes no images' : `changes ${most} at a time, not ${given}`)
  }
  if (order.mask !== undefined && !mask) throw refuse('mask', 'takes no mask: say in the prompt what to change')
}

const optionsIn = (order: ImageOrder, { options = {} }: ImageVendor): JsonRecord =>
  Object.fromEntries(
    OPTIONS.flatMap((field) => {
      const name = options[field]
      return name === undefined || order[field] === undefined ? [] : [[name, order[field]]]
    }),
  )

async function filesOf({ images, mask }: ImageOrder, parts: WantedParts) {
  const all = await Promise.all(images?.map((image) => fileOf('image', image, parts)) ?? [])
  return [all.length > 0 ? all : undefined, mask === undefined ? undefined : await fileOf('mask', mask, parts)] as const
}

type Field = 'image' | 'mask'

async function fileOf(field: Field, value: string, parts: WantedParts): Promise<ImageModelV4File> {
  const { vendor, model, media, signal, upstream } = parts
  const isAddress = /^https?:/i.test(value)
  const colour = field === 'mask' ? vendor.edits(model).mask : undefined
  if (isAddress && vendor.media !== 'bytes' && !colour) return { type: 'url', url: value }
  if (vendor.media === 'address') {
    const message = `The upstream "${upstream}" takes an image only by its https address, not as data.`
    throw new GatewayError('unsupported_value', message, { param: field, accepted: 'no' })
  }
  const { bytes, content_type } = await media.read(value, signal, field).catch((thrown: unknown) => {
    throw thrown instanceof GatewayError ? neverSent(thrown) : thrown
  })
  const drawn = colour ? await maskIn(colour, bytes) : { bytes, content_type }
  return { type: 'file', mediaType: drawn.content_type, data: Buffer.from(drawn.bytes).toString('base64') }
}

const plain = (name: string) => name.replaceAll('_', '').toLowerCase()

function isCovered(name: string, order: ImageOrder): boolean {
  return Object.entries(COVERED).some(
    ([field, names]) => order[field as keyof ImageOrder] !== undefined && names.includes(plain(name)),
  )
}

/** The vendor's own fields, under the name of its kind or of its package. */
function own(metadata: ImageOrder['metadata'], { kind, namespace }: ImageVendor): JsonRecord {
  const found = metadata?.[kind] ?? metadata?.[namespace]
  return isRecord(found) ? { ...found } : {}
}

const without = (order: ImageOrder, fields: string[]): ImageOrder =>
  Object.fromEntries(Object.entries(order).filter(([name]) => !fields.includes(name))) as ImageOrder

/** Only what JSON can say is sent, so only that is kept. */
const jsonOf = (values: JsonRecord): JSONObject => JSON.parse(JSON.stringify(values))
