/** The images family: generates images synchronously or as a stream, and fetches their bytes. */
import type { Call, Meter } from '../../calls/call.ts'
import type { JsonEndpoint } from '../../calls/endpoint.ts'
import type { Family, StreamFamily } from '../../calls/family.ts'
import { textAt } from '../../calls/guards/content.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import { readableBytes, structureFault } from '../../kit/file-structure.ts'
import { SNIFF_BYTES, sniff } from '../../kit/sniff.ts'
import type { CatalogueModel } from '../../models/catalogue.ts'
import { applyImageLimits } from '../../models/image-limits.ts'
import { assertOrder } from '../../providers/allowed/allowed.ts'
import { codeInDoubt } from '../../providers/orders/acceptance.ts'
import type { GeneratedImage, ImageCall, ImageEvent, ImageProvider, Target } from '../../providers/provider.ts'
import { GatewayError } from '../../spec/error.ts'
import type { ImageOperation, ImageOrder, ImageRequest, ImageUsage } from '../../spec/image-request.ts'
import { awaitFirst } from '../shared/await-first.ts'
import { partOf } from '../shared/provider-part.ts'
import { estimateImages } from './estimate.ts'
import { createImageStreamWriter, type ImageFile, type ImageStreamWriter } from './stream-writer.ts'

export type ImageInput = { request: ImageRequest; operation: ImageOperation }

/** A request that fits its model. */
type ImageWork = {
  order: ImageOrder
  response_format: 'url' | 'b64_json'
  partial_images: number
  targets: Target[]
  writer: ImageStreamWriter
}

type GeneratedImages = { files: ImageFile[]; usage: ImageUsage | undefined; target: Target }

export type Images = {
  whole: Family<ImageInput, ImageWork, GeneratedImages, ImageMeter>
  /** With partial images where the provider has them. */
  stream: StreamFamily<ImageInput, ImageWork, ImageMeter>
}

export type ImageEndpoint = JsonEndpoint<ImageInput, ImageWork, GeneratedImages, ImageMeter>

type ImageMeter = Meter<ImageUsage | undefined> & {
  /** The provider has responded with so many images, and with these counts if it reported any. */
  reported(images: number, usage: ImageUsage | undefined): void
}

type ImagesParts = {
  /** The bytes of an image that its provider stores. */
  fetchImage(url: string, target: Target, signal: AbortSignal): Promise<Uint8Array>
  clock: Clock
}

/** The maximum that a request may ask for: further URLs in a provider's response are not fetched. */
const MOST_FILES = 16

export function createImages({ fetchImage, clock }: ImagesParts): Images {
  async function fileOf(image: GeneratedImage, target: Target, signal: AbortSignal): Promise<ImageFile> {
    const bytes =
      'url' in image ? await fetchImage(image.url, target, signal) : new Uint8Array(Buffer.from(image.base64, 'base64'))
    const content_type = sniff(bytes.subarray(0, SNIFF_BYTES))
    if (content_type === undefined || !content_type.startsWith('image/')) {
      throw new GatewayError('bad_upstream_response', `The upstream "${target.provider.id}" returned no image.`)
    }
    const fault = await structureFault(readableBytes(bytes))
    if (fault !== undefined) {
      const message = `The image of the upstream "${target.provider.id}" is broken: ${fault}.`
      throw new GatewayError('bad_upstream_response', message)
    }
    const { revised_prompt } = image
    return { bytes, content_type, ...(revised_prompt === undefined ? {} : { revised_prompt }) }
  }

  async function filesOf(
    { images, usage }: { images: GeneratedImage[]; usage?: ImageUsage },
    target: Target,
    signal: AbortSignal,
  ): Promise<GeneratedImages> {
    if (images.length === 0) {
      throw new GatewayError('bad_upstream_response', `The upstream "${target.provider.id}" returned no image.`)
    }
    const files = await Promise.all(images.slice(0, MOST_FILES).map((image) => fileOf(image, target, signal)))
    return { files, usage, target }
  }

  /** The events of a stream, encoded; the files of the last one are fetched. */
  async function* encode(
    events: AsyncIterable<ImageEvent>,
    { writer, target, meter, signal }: Encoding,
  ): AsyncGenerator<string> {
    let isDone = false
    for await (const event of events) {
      if (event.type === 'partial') {
        yield writer.partial(event.base64, event.index)
        continue
      }
      isDone = true
      meter.reported(event.images.length, event.usage)
      const { files, usage } = await filesOf(event, target, signal)
      yield writer.completed(files, usage)
    }
    if (!isDone) throw new GatewayError('upstream_cut', 'The upstream ended before the image was complete.')
  }

  const shared = {
    endpoint: () => 'image-generation' as const,
    modelOf: ({ request }: ImageInput) => request.model,
    fit(model: CatalogueModel, { request, operation }: ImageInput, { caller }: Call): ImageWork {
      for (const { provider } of model.targets) assertOrder(request, provider, caller)
      const order = applyImageLimits(model, request, operation)
      return {
        order,
        response_format: request.response_format ?? model.images.response_format ?? 'b64_json',
        partial_images: request.partial_images ?? 0,
        targets: model.targets,
        writer: createImageStreamWriter({ operation, order, created: unixSeconds(clock) }),
      }
    },
    meter: ({ order }: ImageWork) => createImageMeter(order),
    estimate: ({ order, partial_images }: ImageWork) => estimateImages(order, partial_images),
    guarded: {
      input(work: ImageWork) {
        const order = { ...work.order }
        work.order = order
        return [...textAt(order, 'prompt'), ...textAt(order, 'negative_prompt')]
      },
    },
    texts: ({ order }: ImageWork) => [order.prompt, order.negative_prompt ?? ''].filter((text) => text !== ''),
    policy: 'until_accepted' as const,
  }

  return {
    whole: {
      ...shared,
      async execute({ order, targets }, { call, attempt }) {
        const { target, answer } = await attempt(targets, async (target, { signal, meter }) => {
          const answer = await imagesOf(target)
            .generate(callOf(target, order, call), signal)
            .catch(mayBeCharged)
          meter.reported(answer.images.length, answer.usage)
          return { target, answer }
        })
        return await filesOf(answer, target, call.signal).catch(mayBeCharged)
      },
    },
    stream: {
      ...shared,
      targets: ({ targets }) => targets,
      async send(target, { order, partial_images, writer }, { call, signal, meter }) {
        const provider = imagesOf(target)
        const imageCall = callOf(target, order, call)
        const events = provider.stream?.(imageCall, partial_images, signal) ?? whole(provider, imageCall, signal)
        const parts = await awaitFirst(encode(events, { writer, target, meter, signal })).catch(mayBeCharged)
        return { parts, includesUsage: false, end: () => '' }
      },
      encodeError: (error, { writer }) => writer.fail(error),
    },
  }
}

type Encoding = { writer: ImageStreamWriter; target: Target; meter: ImageMeter; signal: AbortSignal }

const callOf = ({ model }: Target, request: ImageOrder, { request_id }: Call): ImageCall => ({
  model,
  request,
  request_id,
})

function createImageMeter({ size, quality }: Pick<ImageOrder, 'size' | 'quality'>): ImageMeter {
  let reported: { images: number; usage: ImageUsage | undefined } | undefined
  return {
    reported(images, usage) {
      reported = { images, usage }
    },
    usage: async () => reported?.usage,
    units: (usage) => ({
      input_tokens: usage?.input_tokens ?? 0,
      output_tokens: usage?.output_tokens ?? 0,
      images: reported?.images,
      image_size: size,
      image_quality: quality,
      requests: 1,
    }),
    hasCounted: () => reported !== undefined,
  }
}

/** Official clients retry automatically after a 429 or 5xx; after these errors the provider may charge for both requests. */
function mayBeCharged(thrown: unknown): never {
  if (!(thrown instanceof GatewayError)) throw thrown
  const code = codeInDoubt(thrown)
  if (thrown.status < 500 && code === thrown.code) throw thrown
  const { message, detail } = thrown
  // Certainly not accepted, or the provider has ended without an image.
  if (detail.accepted === 'no' || detail.fail_code !== undefined) throw thrown
  throw new GatewayError(code, `${message} The request may have been charged.`, { ...detail, retry: false })
}

/** The stream of a provider without partial images: its response. */
async function* whole(provider: ImageProvider, call: ImageCall, signal: AbortSignal): AsyncIterable<ImageEvent> {
  yield { type: 'done', ...(await provider.generate(call, signal)) }
}

const imagesOf = (target: Target): ImageProvider => partOf(target, 'images', 'has no image models')
