/**
 * The kinds of image providers, each with its own protocol. Every image records the request that it was generated
 * for.
 */
import { PIXEL } from '../inputs.ts'
import { sse, unknownFieldIn } from '../vendors/wire-vendor.ts'
import type { FamilyKind } from './family.ts'
import { BEARER, type IncomingRequest, openaiFailure, startWire, type Wire } from './vendor.ts'

/** The request that a provider received, as its image records it. */
export type Ordered = {
  operation: 'generate' | 'edit' | 'variation'
  prompt: string
  size?: string
  /** Lengths in bytes. */
  images: number[]
  mask?: number
  /** The index among several images, or among partial ones. */
  index: number
}

const PNG = Buffer.from(PIXEL.data, 'base64')

/** The smallest image, with text after its end, where image decoders do not look. */
const drawn = (ordered: Ordered): string =>
  Buffer.concat([PNG, Buffer.from(JSON.stringify(ordered))]).toString('base64')

/** The text after the end of an image. */
export function orderedIn(bytes: Uint8Array): Ordered {
  const picture = Buffer.from(bytes)
  if (!picture.subarray(0, PNG.length).equals(PNG)) throw new Error('It is another picture.')
  return JSON.parse(picture.subarray(PNG.length).toString()) as Ordered
}

/** The total usage that the providers report. */
export const TOTAL = { chatcompat: 107, google: 1295 } as const

const USAGE = {
  total_tokens: TOTAL.chatcompat,
  input_tokens: 7,
  output_tokens: 100,
  input_tokens_details: { text_tokens: 7, image_tokens: 0 },
}

const OPERATIONS: Record<string, Ordered['operation']> = {
  '/v1/images/generations': 'generate',
  '/v1/images/edits': 'edit',
  '/v1/images/variations': 'variation',
}
const GPT_FIELDS = ['model', 'prompt', 'n', 'size', 'quality', 'background', 'output_format', 'output_compression']
const GPT_FORM = ['image', 'image[]', 'mask', 'input_fidelity']

type ReceivedRequest = { order: Ordered; n: number; partials: number | undefined; fields: string[] }

/** Decodes JSON and forms; undefined for an unknown path. */
function orderIn({ path, body, form }: IncomingRequest): ReceivedRequest | undefined {
  const operation = OPERATIONS[path]
  if (!operation || (operation === 'generate') !== (form === undefined)) return undefined
  const value = (name: string) => form?.get(name) ?? body[name]
  const files = [...(form?.getAll('image') ?? []), ...(form?.getAll('image[]') ?? [])]
  const [size, mask] = [value('size'), value('mask')]
  return {
    order: {
      operation,
      prompt: String(value('prompt') ?? ''),
      images: files.map((file) => (file as File).size),
      index: 0,
      ...(size == null ? {} : { size: String(size) }),
      ...(mask instanceof File ? { mask: mask.size } : {}),
    },
    n: Number(value('n') ?? 1),
    partials: String(value('stream')) === 'true' ? Number(value('partial_images') ?? 0) : undefined,
    fields: form ? [...form.keys()] : Object.keys(body),
  }
}

/** The API of api.openai.com for a GPT image model. */
const GPT: Wire = {
  auth: BEARER,
  failure: openaiFailure,
  answer(incoming) {
    const received = orderIn(incoming)
    if (!received) return undefined
    const known = [...GPT_FIELDS, 'stream', 'partial_images', ...(incoming.form ? GPT_FORM : ['moderation']), 'user']
    const unknownField = unknownFieldIn(Object.fromEntries(received.fields.map((name) => [name, true])), known)
    if (unknownField) return `Unknown parameter: '${unknownField}'.`
    const { order, n, partials } = received
    const images = Array.from({ length: n }, (_, index) => drawn({ ...order, index }))
    if (partials !== undefined) return streamed({ order, images, partials })
    const data = images.map((b64_json) => ({ b64_json }))
    return { created: 1_780_000_000, background: 'opaque', data, output_format: 'png', quality: 'high', usage: USAGE }
  },
}

function streamed({ order, images, partials }: { order: Ordered; images: string[]; partials: number }): Response {
  const name = order.operation === 'edit' ? 'image_edit' : 'image_generation'
  const event = (end: string, more: object) => sse(`${name}.${end}`, { type: `${name}.${end}`, ...more })
  const partialEvents = Array.from({ length: partials }, (_, index) =>
    event('partial_image', { b64_json: drawn({ ...order, index }), partial_image_index: index }),
  )
  const done = images.map((b64_json) => event('completed', { b64_json, usage: USAGE }))
  return new Response([...partialEvents, ...done].join(''), { headers: { 'content-type': 'text/event-stream' } })
}

/** A provider that returns URLs of images behind the same key, and reports no usage. */
const KEEPER: Wire = {
  auth: BEARER,
  failure: openaiFailure,
  answer(incoming) {
    const [, stored] = /^\/v1\/files\/(.+)\.png$/.exec(incoming.path) ?? []
    if (stored) {
      const bytes = Buffer.from(stored, 'base64url')
      return new Response(bytes, { headers: { 'content-type': 'image/png' } })
    }
    const received = orderIn(incoming)
    if (!received) return undefined
    const data = Array.from({ length: received.n }, (_, index) => {
      const name = Buffer.from(drawn({ ...received.order, index }), 'base64').toString('base64url')
      return { url: `${incoming.origin}/v1/files/${name}.png` }
    })
    return { created: 1_780_000_000, data }
  },
}

type Part = { text?: string; inlineData?: { mimeType: string; data: string } }
type GeminiBody = { contents: { parts: Part[] }[]; generationConfig?: { imageConfig?: { aspectRatio?: string } } }

const GEMINI: Wire = {
  auth: { header: 'x-goog-api-key', prefix: '' },
  failure: (code, message) => ({ error: { code, message, status: 'INVALID_ARGUMENT' } }),
  answer({ path, body }) {
    if (path !== '/v1beta/models/gemini-2.5-flash-image:generateContent') return undefined
    const { contents, generationConfig } = body as GeminiBody
    const parts = contents.flatMap((content) => content.parts)
    const images = parts.flatMap(({ inlineData }) => (inlineData ? [atob(inlineData.data).length] : []))
    const size = generationConfig?.imageConfig?.aspectRatio
    const data = drawn({
      operation: images.length > 0 ? 'edit' : 'generate',
      prompt: parts.flatMap(({ text }) => text ?? []).join(''),
      images,
      index: 0,
      ...(size === undefined ? {} : { size }),
    })
    const content = { role: 'model', parts: [{ text: 'Here it is' }, { inlineData: { mimeType: 'image/png', data } }] }
    const usageMetadata = { promptTokenCount: 5, candidatesTokenCount: 1290, totalTokenCount: TOTAL.google }
    return { candidates: [{ content, finishReason: 'STOP', index: 0 }], usageMetadata }
  },
}

export const IMAGE_KINDS: FamilyKind[] = [
  {
    name: 'chatcompat',
    start: () => startWire(GPT),
    path: '/v1',
    provider: { kind: 'chatcompat' },
    model: 'gpt-image-2',
  },
  {
    name: 'chatcompat that answers with links',
    start: () => startWire(KEEPER),
    path: '/v1',
    provider: { kind: 'chatcompat' },
    model: 'flux-1',
    unsupported: ['partials', 'usage'],
  },
  {
    name: 'google',
    start: () => startWire(GEMINI),
    path: '/v1beta',
    provider: { kind: 'google' },
    model: 'gemini-2.5-flash-image',
    unsupported: ['partials', 'mask', 'variation', 'sizes'],
  },
]
