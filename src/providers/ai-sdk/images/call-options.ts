/** Encodes an image order as the call options of AI SDK packages; refuses what would be dropped. */
import type { ImageModelV4CallOptions, ImageModelV4File } from '@ai-sdk/provider'
import type { ProviderConfig } from '../../../config/schema/schema.ts'
import type { JsonRecord } from '../../../kit/json.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { ImageOrder } from '../../../spec/image-request.ts'
import type { Media } from '../../media.ts'
import { throwNeverSent } from '../../orders/order-error.ts'
import { type CoveredNames, jsonOf, ownOptions, renameFields } from '../order-options.ts'
import { dimensionsOf } from './dimensions.ts'
import { type ImageVendor, OPTION_FIELDS, type OptionField } from './image-family.ts'
import { maskIn } from './mask.ts'

/** All but the number of images, which depends on the calls, and what belongs to one call. */
export type ImageOptions = Omit<ImageModelV4CallOptions, 'n' | 'abortSignal' | 'headers'>

/** Those without which another image would be generated. */
const MEANINGFUL: readonly OptionField[] = ['negative_prompt', 'output_format']

/** What a client may not set by `metadata` once the field itself is set. */
const COVERED: CoveredNames<ImageOrder> = {
  size: ['size', 'width', 'height', 'imagesize', 'resolution'],
  aspect_ratio: ['aspectratio', 'imagesize'],
  seed: ['seed'],
  quality: ['quality'],
  images: ['image', 'images', 'imageurl', 'inputimage', 'modifyimage'],
  mask: ['mask', 'maskurl', 'maskimage'],
}
/** Set elsewhere, or by which the package would wait longer or have the vendor call back. */
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

type OptionParts = {
  order: ImageOrder
  vendor: ImageVendor
  model: string
  config: ProviderConfig
  upstream: string
  media: Pick<Media, 'read'>
  signal: AbortSignal
}

/** Throws for a field that would be dropped, and for images that cannot be read; nothing was sent by then. */
export async function optionsOf(parts: OptionParts): Promise<ImageOptions> {
  const { order: original, vendor, model, config, upstream } = parts
  const { order, renamed } = renameFields(original, config.fields)
  assertSupported(order, vendor, { model, upstream })
  const defaults = config.request_defaults
  const own = ownOptions(order, { original, vendor, defaults, covered: COVERED, never: NEVER })
  const named = `The model "${model}" of "${upstream}"`
  const { size, aspectRatio, options } = dimensionsOf(order, vendor.shape(model), named)
  const [files, mask] = await filesOf(order, parts)
  return {
    prompt: order.prompt === '' ? undefined : order.prompt,
    size,
    aspectRatio,
    seed: vendor.hasSeed ? order.seed : undefined,
    files,
    mask,
    providerOptions: {
      [vendor.namespace]: {
        ...own,
        ...jsonOf({ ...optionsIn(order, vendor), ...options, ...vendor.moreOptions?.(order, model) }),
        ...renamed,
      },
    },
  }
}

function assertSupported(
  order: ImageOrder,
  vendor: ImageVendor,
  { model, upstream }: { model: string; upstream: string },
) {
  const refuse = (param: string, why: string) => {
    const message = `The model "${model}" of "${upstream}" ${why}.`
    return new GatewayError('unsupported_parameter', message, { param, accepted: 'no' })
  }
  const { only } = vendor
  if (only && !only.models.test(model)) {
    throw refuse('model', `does not generate images by this API: the names of models that do ${only.named}`)
  }
  for (const field of MEANINGFUL) {
    if (order[field] === undefined || order[field] === '' || vendor.options?.[field]) continue
    throw refuse(field, `does not support "${field}". Leave it out, or choose another model`)
  }
  if (order.background === 'transparent' && !vendor.options?.background) {
    throw refuse('background', 'does not generate transparent images')
  }
  const { max, mask } = vendor.edits(model)
  const count = order.images?.length ?? 0
  if (count > max) {
    throw refuse('image', max === 0 ? 'does not edit images' : `edits at most ${max} images at a time, not ${count}`)
  }
  if (order.mask !== undefined && !mask)
    throw refuse('mask', 'does not support masks: describe the change in the prompt')
}

const optionsIn = (order: ImageOrder, { options = {} }: ImageVendor): JsonRecord =>
  Object.fromEntries(
    OPTION_FIELDS.flatMap((field) => {
      const name = options[field]
      return name === undefined || order[field] === undefined ? [] : [[name, order[field]]]
    }),
  )

async function filesOf({ images, mask }: ImageOrder, parts: OptionParts) {
  const all = await Promise.all(images?.map((image) => fileOf('image', image, parts)) ?? [])
  return [all.length > 0 ? all : undefined, mask === undefined ? undefined : await fileOf('mask', mask, parts)] as const
}

type Field = 'image' | 'mask'

async function fileOf(field: Field, value: string, parts: OptionParts): Promise<ImageModelV4File> {
  const { vendor, model, media, signal, upstream } = parts
  const isUrl = /^https?:/i.test(value)
  const colour = field === 'mask' ? vendor.edits(model).mask : undefined
  if (isUrl && vendor.media !== 'bytes' && !colour) return { type: 'url', url: value }
  if (vendor.media === 'url') {
    const message = `The upstream "${upstream}" accepts an image only by its https URL, not as data.`
    throw new GatewayError('unsupported_value', message, { param: field, accepted: 'no' })
  }
  const { bytes, content_type } = await media.read(value, signal, field).catch(throwNeverSent)
  const file = colour ? await maskIn(colour, bytes) : { bytes, content_type }
  return { type: 'file', mediaType: file.content_type, data: Buffer.from(file.bytes).toString('base64') }
}
