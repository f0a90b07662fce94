/** One image request: the model chosen, the images made, their bytes brought here. */
import type { Context } from '../http/context.ts'
import { SNIFF_BYTES, sniff } from '../kit/sniff.ts'
import type { Catalogue, CatalogueModel, Chosen, Target } from '../models/catalogue.ts'
import { applyImageLimits } from '../models/image-limits.ts'
import { firstToMake } from '../models/targets.ts'
import { assertOrder } from '../providers/allowed/allowed.ts'
import type { ImageCall, ImageEvent, ImageProvider, MadeImage } from '../providers/provider.ts'
import { GatewayError } from '../spec/error.ts'
import type { ImageOperation, ImageOrder, ImageRequest, ImageUsage } from '../spec/image-request.ts'
import type { Caller } from '../spec/token.ts'

/** An image as its bytes. */
export type ImageFile = { bytes: Uint8Array; content_type: string; revised_prompt?: string }

/** A request on its way. */
export type AskedImages = Chosen & { order: ImageOrder; given: 'url' | 'b64_json' }

export type Done = { files: ImageFile[]; usage: ImageUsage | undefined; target: Target }

/** What of a stream there is to tell; the last one is `done`. */
export type ImageNews = { type: 'partial'; index: number; base64: string } | ({ type: 'done' } & Done)

export type Images = {
  /** Chooses the model and fits the request to it; throws what stands in the way, before anything is sent. */
  ask(request: ImageRequest, operation: ImageOperation, context: Context): AskedImages
  /** Throws GatewayError; at the end of it the request is in the ledger, however it ended. */
  make(asked: AskedImages, context: Context): Promise<Done>
  /** The same, with partial images on the way where the vendor has them. Rejects with a refusal before the first. */
  stream(asked: AskedImages, partial_images: number, context: Context): Promise<AsyncIterable<ImageNews>>
}

type ImagesParts = {
  catalogue: Catalogue
  /** The bytes of an image that lies at its vendor. */
  fetchImage(url: string, target: Target, signal: AbortSignal): Promise<Uint8Array>
  record(caller: Caller, model: CatalogueModel, use: ImageUse): void
}

export type ImageUse = { input_tokens: number; output_tokens: number; error: boolean; estimated: boolean }

/** As many as a request may ask for: a vendor that answers with thousands of addresses is not followed to them all. */
const MOST_FILES = 16

export function createImages({ catalogue, fetchImage, record }: ImagesParts): Images {
  const callOf = ({ model }: Target, { order }: AskedImages, { request_id }: Context): ImageCall => ({
    model,
    request: order,
    request_id,
  })

  async function fileOf(image: MadeImage, target: Target, signal: AbortSignal): Promise<ImageFile> {
    const bytes =
      'url' in image ? await fetchImage(image.url, target, signal) : new Uint8Array(Buffer.from(image.base64, 'base64'))
    const content_type = sniff(bytes.subarray(0, SNIFF_BYTES))
    if (content_type === undefined || !content_type.startsWith('image/')) {
      throw new GatewayError('bad_upstream_response', `The upstream "${target.provider.id}" answered with no image.`)
    }
    const { revised_prompt } = image
    return { bytes, content_type, ...(revised_prompt === undefined ? {} : { revised_prompt }) }
  }

  async function finished(
    { images, usage }: { images: MadeImage[]; usage?: ImageUsage },
    target: Target,
    signal: AbortSignal,
  ): Promise<Done> {
    if (images.length === 0) {
      throw new GatewayError('bad_upstream_response', `The upstream "${target.provider.id}" answered with no image.`)
    }
    const files = await Promise.all(images.slice(0, MOST_FILES).map((image) => fileOf(image, target, signal)))
    return { files, usage, target }
  }

  /** Counts a request, once. */
  function accountOf({ model }: AskedImages, { caller, note }: Context) {
    let is_counted = false
    return (usage: ImageUsage | undefined, error: boolean) => {
      if (is_counted) return
      is_counted = true
      const { input_tokens = 0, output_tokens = 0 } = usage ?? {}
      Object.assign(note, { input_tokens, output_tokens })
      record(caller, model, { input_tokens, output_tokens, error, estimated: false })
    }
  }

  async function* news(events: AsyncIterable<ImageEvent>, target: Target, signal: AbortSignal) {
    for await (const event of events) {
      if (event.type === 'partial') yield event
      else yield { type: 'done' as const, ...(await finished(event, target, signal)) }
    }
  }

  async function* counted(items: AsyncIterable<ImageNews>, count: ReturnType<typeof accountOf>) {
    let is_done = false
    try {
      for await (const item of items) {
        if (item.type === 'done') {
          is_done = true
          count(item.usage, false)
        }
        yield item
      }
      if (!is_done) throw new GatewayError('upstream_cut', 'The upstream ended before the image was complete.')
    } finally {
      count(undefined, !is_done)
    }
  }

  return {
    ask(request, operation, context) {
      const { model, requested } = catalogue.require(request.model, 'image-generation', context.caller)
      context.note.model = model.id
      for (const { provider } of model.targets) assertOrder(request, provider, context.caller)
      const order = applyImageLimits(model, request, operation)
      return { model, requested, order, given: request.response_format ?? model.images.response_format ?? 'b64_json' }
    },

    async make(asked, context) {
      const count = accountOf(asked, context)
      const { signal } = context
      try {
        const { target, answer } = await firstToMake(asked.model.targets, signal, (one) =>
          imagesOf(one)
            .make(callOf(one, asked, context), signal)
            .catch(mayBePaid),
        )
        context.note.target = nameOf(target)
        count(answer.usage, false)
        return await finished(answer, target, signal).catch(mayBePaid)
      } catch (thrown) {
        count(undefined, !signal.aborted)
        throw thrown
      }
    },

    async stream(asked, partial_images, context) {
      const count = accountOf(asked, context)
      const { signal } = context
      try {
        const { target, answer } = await firstToMake(asked.model.targets, signal, async (one) => {
          const provider = imagesOf(one)
          const call = callOf(one, asked, context)
          return peek(
            news(provider.stream?.(call, partial_images, signal) ?? whole(provider, call, signal), one, signal),
          ).catch(mayBePaid)
        })
        context.note.target = nameOf(target)
        return counted(answer, count)
      } catch (thrown) {
        count(undefined, !signal.aborted)
        throw thrown
      }
    },
  }
}

/** Official clients repeat a request by themselves after a 429 or 5xx; after these the vendor may charge for both. */
function mayBePaid(thrown: unknown): never {
  if (!(thrown instanceof GatewayError) || (thrown.status < 500 && thrown.status !== 429)) throw thrown
  const { code, message, detail } = thrown
  // Certainly not accepted, or the vendor has ended its work without an image.
  if (detail.taken === 'no' || detail.fail_code !== undefined) throw thrown
  throw new GatewayError(code, `${message} The request may have been charged.`, { ...detail, retry: false })
}

/** A vendor without partial images: its stream is its answer. */
async function* whole(provider: ImageProvider, call: ImageCall, signal: AbortSignal): AsyncIterable<ImageEvent> {
  yield { type: 'done', ...(await provider.make(call, signal)) }
}

/** Waits for the first item, so that a refusal still is one: nothing has been promised to the client yet. */
async function peek<T>(items: AsyncIterable<T>): Promise<AsyncIterable<T>> {
  const iterator = items[Symbol.asyncIterator]()
  const first = await iterator.next()
  return (async function* () {
    try {
      for (let item = first; !item.done; item = await iterator.next()) yield item.value
    } finally {
      await iterator.return?.()
    }
  })()
}

const nameOf = ({ provider, model }: Target) => `${provider.id}/${model}`

function imagesOf({ provider }: Target): ImageProvider {
  if (provider.images) return provider.images
  throw new GatewayError('no_available_channel', `The provider "${provider.id}" makes no images.`)
}
