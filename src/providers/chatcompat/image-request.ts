/** An image order in the words of an OpenAI-shaped vendor: which fields its model knows, as rows of data; JSON or a form. */
import type { Quirks } from '../../config/quirks.ts'
import { formName } from '../../kit/form-name.ts'
import { matchesGlob } from '../../kit/glob.ts'
import type { JsonRecord } from '../../kit/json.ts'
import { GatewayError } from '../../spec/error.ts'
import type { ImageOrder } from '../../spec/image-request.ts'
import type { Bytes } from '../orders/order-client.ts'
import { withExtras, withoutEmpty } from '../orders/order-fields.ts'

type ImageFormat = NonNullable<Quirks['image_response_format']>

/** What one model's vendor understands. */
type ImageModelRules = {
  /** How it is told to send bytes rather than an address; `none`: it has no such field. */
  response_format: ImageFormat
  /** Events with partial images. */
  streams: boolean
  /** `auto` is a size of its own; elsewhere no size says the same. */
  has_auto_size: boolean
  /** Fields that only tune, and that it refuses. */
  drops: readonly (keyof ImageOrder)[]
  /** Fields that change what is made, and that it does not have. */
  lacks: readonly (keyof ImageOrder)[]
}

type Row = { models: readonly string[]; rules: Partial<ImageModelRules> }

/** Globs over names in lower case; the first row that fits wins over what is said of the provider. */
const ROWS: readonly Row[] = [
  {
    // They answer in base64 always, and refuse whatever they do not know by its name.
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

/** What the house decides by its own fields: no extra may stand in for one. */
const DECIDED = ['n', 'size', 'width', 'height', 'stream', 'partial_images', 'image', 'mask', 'response_format']

type Writing = {
  model: string
  request: ImageOrder
  rules: ImageModelRules
  /** With so many partial images on the way; absent: no stream. */
  partial_images?: number | undefined
  fields: { drop: string[]; rename: Record<string, string> }
  upstream: string
}

/** Everything but the pictures. Throws `unsupported_parameter` for what would be lost. */
export function imageBody({ model, request, rules: words, partial_images, fields, upstream }: Writing): JsonRecord {
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
  for (const field of words.lacks) {
    if (request[field] === undefined || request[field] === '') continue
    const message = `The model "${model}" of "${upstream}" takes no "${field}". Leave it out, or choose another model.`
    throw new GatewayError('unsupported_parameter', message, { param: field, accepted: 'no' })
  }
  const body = withExtras(
    {
      model,
      ...order,
      prompt: order.prompt === '' ? undefined : order.prompt,
      n: n > 1 ? n : undefined,
      size: size === 'auto' && !words.has_auto_size ? undefined : size,
      ...formatOf(words),
      ...(partial_images === undefined ? {} : { stream: true }),
      ...(partial_images ? { partial_images } : {}),
    },
    metadata,
    'chatcompat',
    DECIDED,
  )
  const left = [...fields.drop, ...words.drops]
  const kept = Object.entries(body).filter(([name]) => !left.includes(name))
  return Object.fromEntries(kept.map(([name, value]) => [fields.rename[name] ?? name, value]))
}

const formatOf = ({ response_format }: ImageModelRules) => (response_format === 'none' ? {} : { response_format })

export type Picture = { field: 'image' | 'mask'; bytes: Uint8Array; content_type: string }

/** A form (RFC 7578): several images are a list, as the official clients write one. */
export function imageForm(body: JsonRecord, pictures: Picture[], boundary: string): Bytes {
  const head = (name: string, more = '') =>
    `--${boundary}\r\ncontent-disposition: form-data; name="${formName(name)}"${more}\r\n`
  const parts = Object.entries(withoutEmpty(body)).map(([name, value]) =>
    Buffer.from(`${head(name)}\r\n${typeof value === 'string' ? value : JSON.stringify(value)}\r\n`),
  )
  const isList = pictures.filter(({ field }) => field === 'image').length > 1
  for (const [index, { field, bytes, content_type }] of pictures.entries()) {
    const name = field === 'image' && isList ? 'image[]' : field
    const kind = content_type.replace('image/', '') // some look at the name's ending only
    const more = `; filename="${field}-${index}.${kind}"`
    parts.push(Buffer.from(`${head(name, more)}content-type: ${content_type}\r\n\r\n`))
    parts.push(Buffer.from(bytes), Buffer.from('\r\n'))
  }
  const bytes = new Uint8Array(Buffer.concat([...parts, Buffer.from(`--${boundary}--\r\n`)]))
  return { bytes, content_type: `multipart/form-data; boundary=${boundary}` }
}
