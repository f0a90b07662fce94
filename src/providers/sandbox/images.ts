/** The sandbox as a vendor of images: drawn in the asked size and format, showing the prompt, and wrong when told so. */
import { type Clock, pause } from '../../kit/clock.ts'
import { GatewayError } from '../../spec/error.ts'
import type { ImageOrder, ImageUsage } from '../../spec/image-request.ts'
import type { Media } from '../media.ts'
import type { ImageCall, ImageEvent, ImageProvider, MadeImage } from '../provider.ts'
import { drawImage, type ImagePlan } from './render/draw-image.ts'
import { obey, takeTextDirectives } from './text-directives.ts'
import { countTokens } from './tokens.ts'

type SandboxImagesParts = { id: string; clock: Clock; media: Pick<Media, 'read'> }

/** What `auto` is, and the sizes that its catalogue row lists. */
const AUTO = '1024x1024'
export const IMAGE_SIZES = [
  'auto',
  '256x256',
  '512x512',
  '1024x1024',
  '1536x1024',
  '1024x1536',
  '1792x1024',
  '1024x1792',
] as const
/** An image costs a token for each 32 x 32 pixels, here. */
const PIXELS_A_TOKEN = 1024
const JPEG_QUALITY = 90
const MOST_SHOWN = 400
/** So long a half-made image is looked at before the next comes. */
const PARTIAL_MILLISECONDS = 20

export function createSandboxImages({ id, clock, media }: SandboxImagesParts): ImageProvider {
  /** Obeys the directives of the prompt; what is left of it is shown. */
  async function begin(call: ImageCall, signal: AbortSignal): Promise<ImagePlan[]> {
    signal.throwIfAborted()
    const { request } = call
    const { text, source, mask } = await readOrRefuse(() => read(call, signal))
    return Array.from({ length: request.n }, (_, index) => ({
      ...frameOf(request),
      seed: `${request.seed ?? ''}:${text}:${index}`,
      text: shownOf(text),
      note: request.n === 1 ? '' : `${index + 1} / ${request.n}`,
      ...(source ? { source: source.bytes } : {}),
      ...(mask ? { mask: mask.bytes } : {}),
    }))
  }

  async function read({ model, request }: ImageCall, signal: AbortSignal) {
    const { rest, directives } = takeTextDirectives([request.prompt], 'prompt')
    await obey(directives, { id, model, clock, signal })
    const [source, mask] = await Promise.all([
      request.images?.[0] === undefined ? undefined : media.read(request.images[0], signal, 'image'),
      request.mask === undefined ? undefined : media.read(request.mask, signal, 'mask'),
    ])
    return { text: rest[0] ?? '', source, mask }
  }

  async function made(plans: ImagePlan[], request: ImageOrder, signal: AbortSignal) {
    const images: MadeImage[] = []
    for (const plan of plans) {
      signal.throwIfAborted()
      images.push({ base64: base64Of(await drawn(plan)) })
    }
    return { images, usage: usageOf(plans, request) }
  }

  return {
    operations: ['generate', 'edit', 'variation'],
    async make(call, signal) {
      return made(await begin(call, signal), call.request, signal)
    },
    async *stream(call, partial_images, signal): AsyncIterable<ImageEvent> {
      const plans = await begin(call, signal)
      const [first] = plans
      for (let index = 0; first && index < partial_images; index++) {
        const share = index / partial_images
        yield { type: 'partial', index, base64: base64Of(await drawn({ ...first, share })) }
        await pause(clock, PARTIAL_MILLISECONDS, signal)
      }
      yield { type: 'done', ...(await made(plans, call.request, signal)) }
    },
  }
}

/** What is refused while it is read was certainly not taken. */
async function readOrRefuse<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown
    throw new GatewayError(thrown.code, thrown.message, { ...thrown.detail, taken: 'no' })
  }
}

/** The beginning says what it is; setting thousands of words to see that they do not fit would only take time. */
function shownOf(text: string): string {
  if (text === '') return 'A variation'
  const signs = [...text.slice(0, 2 * MOST_SHOWN)]
  return signs.length <= MOST_SHOWN ? text : `${signs.slice(0, MOST_SHOWN).join('')}…`
}

async function drawn(plan: ImagePlan): Promise<Uint8Array> {
  try {
    return await drawImage(plan)
  } catch (cause) {
    if (plan.source === undefined) throw cause
    const message = 'The sandbox could not read "image" or "mask": they must be PNG, JPEG, WebP or GIF files.'
    throw new GatewayError('upstream_invalid_request', message, { param: 'image', upstream_status: 400, cause })
  }
}

function frameOf({ size = 'auto', output_format = 'png', output_compression, background }: ImageOrder) {
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
  const image_tokens = plans[0]?.source ? Math.ceil((plans[0].source.length * 8) / PIXELS_A_TOKEN) : 0
  const input_tokens = text_tokens + image_tokens
  const output_tokens = Math.ceil(pixels / PIXELS_A_TOKEN)
  const input_tokens_details = { text_tokens, image_tokens }
  return { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens, input_tokens_details }
}

const base64Of = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
