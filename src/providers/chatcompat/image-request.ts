/** Encodes an image order for an OpenAI-shaped provider: which fields a model knows, as rows of data; JSON or a form. */
import type { Quirks } from '../../config/schema/quirks.ts'
import { matchesGlob } from '../../kit/glob.ts'
import type { JsonRecord } from '../../kit/json.ts'
import type { ImageOrder } from '../../spec/image-request.ts'
import type { Bytes } from '../orders/order-client.ts'
import { withExtras } from '../orders/order-fields.ts'
import { unsupportedField } from '../orders/order-messages.ts'
import { withFieldRules } from '../settings.ts'
import { formOf } from './form.ts'

type ImageFormat = NonNullable<Quirks['image_response_format']>

type ImageModelRules = {
  /** The value of the field that requests bytes rather than a URL; `none`: there is no such field. */
  response_format: ImageFormat
  /** Events with partial images. */
  streams: boolean
  /** `auto` is a valid size; elsewhere leaving the size out means the same. */
  has_auto_size: boolean
  /** Fields that only tune the result, and that it rejects: they are dropped. */
  drops: readonly (keyof ImageOrder)[]
  /** Fields that change the result, and that it does not support: the order is rejected. */
  lacks: readonly (keyof ImageOrder)[]
}

type Row = { models: readonly string[]; rules: Partial<ImageModelRules> }

/** Globs over names in lower case; the first matching row overrides the provider's quirks. */
const ROWS: readonly Row[] = [
  {
    // They always return base64, and reject unknown fields by name.
    models: ['gpt-image*', '*/gpt-image*', 'chatgpt-image*', '*/chatgpt-image*'],
    rules: {
      response_format: 'none',
      streams: true,
      has_auto_size: true,
      drops: ['style'],
      lacks: ['aspect_ratio', 'negative_prompt', 'seed'],
    },
  },
  {
    models: ['dall-e*', '*/dall-e*'],
    rules: {
      response_format: 'b64_json',
      drops: ['background', 'moderation', 'output_compression', 'input_fidelity'],
      lacks: ['aspect_ratio', 'negative_prompt', 'seed', 'output_format'],
    },
  },
]

type ImageQuirks = Required<Pick<Quirks, 'image_stream' | 'image_response_format'>>

export function imageModelRules(model: string, { image_stream, image_response_format }: ImageQuirks): ImageModelRules {
  const name = model.toLowerCase()
  const row = ROWS.find(({ models }) => models.some((glob) => matchesGlob(glob, name)))
  return {
    response_format: image_response_format,
    streams: image_stream,
    has_auto_size: image_stream,
    drops: [],
    lacks: [],
    ...row?.rules,
  }
}

/** Set by the gateway's own fields: no extra may replace one. */
const DECIDED = ['n', 'size', 'width', 'height', 'stream', 'partial_images', 'image', 'mask', 'response_format']

type ImageBody = {
  model: string
  request: ImageOrder
  rules: ImageModelRules
  /** How many partial images are streamed; absent: no stream. */
  partial_images?: number | undefined
  fields: { drop: string[]; rename: Record<string, string> }
  upstream: string
}

/** Everything but the images. Throws `unsupported_parameter` for a field that would be ignored. */
export function imageBody({ model, request, rules, partial_images, fields, upstream }: ImageBody): JsonRecord {
  const {
    operation: _,
    model: __,
    images: ___,
    mask: ____,
    n,
    size,
    partial_images: _____,
    metadata,
    ...order
  } = request
  for (const field of rules.lacks) {
    if (request[field] === undefined || request[field] === '') continue
    throw unsupportedField(upstream, field)
  }
  const body = withExtras(
    {
      model,
      ...order,
      prompt: order.prompt === '' ? undefined : order.prompt,
      n: n > 1 ? n : undefined,
      size: size === 'auto' && !rules.has_auto_size ? undefined : size,
      ...formatOf(rules),
      ...(partial_images === undefined ? {} : { stream: true }),
      ...(partial_images ? { partial_images } : {}),
    },
    metadata,
    'chatcompat',
    DECIDED,
  )
  return withFieldRules(body, { drop: [...fields.drop, ...rules.drops], rename: fields.rename })
}

const formatOf = ({ response_format }: ImageModelRules) => (response_format === 'none' ? {} : { response_format })

export type Picture = { field: 'image' | 'mask'; bytes: Uint8Array; content_type: string }

/** Several images are a list, as the official clients encode one. */
export function imageForm(body: JsonRecord, pictures: Picture[], boundary: string): Bytes {
  const isList = pictures.filter(({ field }) => field === 'image').length > 1
  const files = pictures.map(({ field, ...file }, index) => ({
    ...file,
    name: field === 'image' && isList ? 'image[]' : field,
    filename: `${field}-${index}.${file.content_type.replace('image/', '')}`, // some read only its extension
  }))
  return formOf(body, files, boundary)
}
