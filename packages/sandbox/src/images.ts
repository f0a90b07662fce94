/** The sandbox as an image provider: draws the prompt in the requested size and format, and fails when a directive requests it. */
import { type Clock, pause } from '../../../src/kit/clock.ts'
import type {
  GeneratedImage,
  ImageCall,
  ImageEvent,
  ImageProvider,
  MediaReader,
  SimulatedErrors,
} from '../../../src/providers/provider.ts'
import { GatewayError } from '../../../src/spec/error.ts'
import type { ImageOrder, ImageUsage } from '../../../src/spec/image-request.ts'
import { base64Of, createImageRenderer, type ImageRenderer } from './draw-images.ts'
import { headerOf } from './image-header.ts'
import { invalidRequest } from './invalid-request.ts'
import type { ImagePlan } from './render/draw-image.ts'
import { applyDirectives, withAcceptance } from './text-directives.ts'
import { countTokens } from './tokens.ts'

type SandboxImagesParts = { clock: Clock; errors: SimulatedErrors; media: MediaReader; renderer?: ImageRenderer }

/** The size that `auto` stands for. */
const AUTO = '1024x1024'
/** The sandbox counts one token for each 32 x 32 pixels. */
const PIXELS_A_TOKEN = 1024
const JPEG_QUALITY = 90
const MAX_CAPTION_CHARACTERS = 400
/** Of all input images of one request: each pixel takes four bytes while it is drawn. Photographs have 12 to 24 million. */
const MAX_PIXELS = 36_000_000
/** The pause between two partial images. */
const PARTIAL_MILLISECONDS = 20

export function createSandboxImages({
  clock,
  errors,
  media,
  renderer = createImageRenderer(),
}: SandboxImagesParts): ImageProvider & { close(): Promise<void> } {
  /** Applies the directives of the prompt; the images show the rest of it. */
  async function planImages(call: ImageCall, signal: AbortSignal): Promise<ImagePlan[]> {
    signal.throwIfAborted()
    const { request } = call
    const { text, sources, mask } = await withAcceptance(() => readInputs(call, signal), errors)
    return Array.from({ length: request.n }, (_, index) => ({
      ...formatOf(request),
      seed: `${request.seed ?? ''}:${text}:${index}`,
      text: captionOf(text),
      note: request.n === 1 ? '' : `${index + 1} / ${request.n}`,
      sources,
      ...(mask ? { mask } : {}),
    }))
  }

  async function readInputs({ model, request }: ImageCall, signal: AbortSignal) {
    const simulated = { texts: [request.prompt], param: 'prompt', model, signal }
    const { rest } = await applyDirectives(simulated, { clock, errors })
    const inputs = (request.images ?? []).map((value, at) => ({ value, param: at === 0 ? 'image' : `image[${at}]` }))
    if (request.mask !== undefined) inputs.push({ value: request.mask, param: 'mask' })
    const files: Uint8Array[] = []
    let pixels = 0
    for (const { value, param } of inputs) {
      const { bytes } = await media.read(value, signal, param)
      pixels += pixelsOf(bytes, param)
      if (pixels > MAX_PIXELS) throw tooLarge(param)
      files.push(bytes)
    }
    const count = request.images?.length ?? 0
    return { text: rest[0] ?? '', sources: files.slice(0, count), mask: files[count] }
  }

  async function drawAll(plans: ImagePlan[], request: ImageOrder, signal: AbortSignal) {
    const images: GeneratedImage[] = []
    for (const plan of plans) {
      signal.throwIfAborted()
      images.push({ base64: base64Of(await draw(plan, signal)) })
    }
    return { images, usage: usageOf(plans, request) }
  }

  async function draw(plan: ImagePlan, signal: AbortSignal): Promise<Uint8Array> {
    try {
      return await renderer.draw(plan, signal)
    } catch (cause) {
      signal.throwIfAborted()
      if (plan.sources.length === 0) throw cause
      throw unreadable('"image" or "mask"', { param: 'image', cause })
    }
  }

  return {
    close: renderer.close,
    operations: ['generate', 'edit', 'variation'],
    async generate(call, signal) {
      return drawAll(await planImages(call, signal), call.request, signal)
    },
    async *stream(call, partial_images, signal): AsyncIterable<ImageEvent> {
      const plans = await planImages(call, signal)
      const [first] = plans
      for (let index = 0; first && index < partial_images; index++) {
        const share = index / partial_images
        yield { type: 'partial', index, base64: base64Of(await draw({ ...first, share }, signal)) }
        await pause(clock, PARTIAL_MILLISECONDS, signal)
      }
      yield { type: 'done', ...(await drawAll(plans, call.request, signal)) }
    },
  }
}

/** The beginning of the prompt is enough: fitting thousands of words into an image would only take time. */
function captionOf(text: string): string {
  if (text === '') return 'A variation'
  const characters = [...text.slice(0, 2 * MAX_CAPTION_CHARACTERS)]
  return characters.length <= MAX_CAPTION_CHARACTERS ? text : `${characters.slice(0, MAX_CAPTION_CHARACTERS).join('')}…`
}

/** Checks the size before decoding: a small file can hold billions of pixels. */
function pixelsOf(bytes: Uint8Array, param: string): number {
  const { width = 0, height = 0 } = headerOf(bytes) ?? {}
  if (width * height > 0) return width * height
  throw unreadable(`"${param}"`, { param })
}

const unreadable = (what: string, detail: { param: string; cause?: unknown }) =>
  new GatewayError(
    'upstream_invalid_request',
    `The sandbox could not read ${what}: it supports PNG, JPEG, WebP and GIF files.`,
    { ...detail, upstream_status: 400 },
  )

const tooLarge = (param: string) =>
  invalidRequest(
    `"${param}" is too large: the sandbox draws over at most ${MAX_PIXELS} pixels, of all images and the mask together.`,
    param,
  )

function formatOf({ size = 'auto', output_format = 'png', output_compression, background }: ImageOrder) {
  const [width = 0, height = 0] = (size === 'auto' ? AUTO : size).split('x').map(Number)
  return {
    width,
    height,
    format: output_format,
    quality: output_compression ?? JPEG_QUALITY,
    is_transparent: background === 'transparent' && output_format !== 'jpeg',
  }
}

function usageOf(plans: ImagePlan[], { prompt }: ImageOrder): ImageUsage {
  const pixels = plans.reduce((sum, { width, height }) => sum + width * height, 0)
  const text_tokens = countTokens(prompt)
  const bytes = plans[0]?.sources.reduce((sum, source) => sum + source.length, 0) ?? 0
  const image_tokens = Math.ceil((bytes * 8) / PIXELS_A_TOKEN)
  const input_tokens = text_tokens + image_tokens
  const output_tokens = Math.ceil(pixels / PIXELS_A_TOKEN)
  const input_tokens_details = { text_tokens, image_tokens }
  return { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens, input_tokens_details }
}
