/** Images of any OpenAI-shaped provider: `/images/generations` as JSON, `/images/edits` and `/images/variations` as forms. */
import type { Quirks } from '../../config/schema/quirks.ts'
import { parseJson } from '../../kit/json.ts'
import { randomAlphanumerics } from '../../kit/secret.ts'
import { errorFromResponse } from '../../protocols/shared/provider-error.ts'
import type { Faults } from '../../protocols/shared/upstream.ts'
import { GatewayError } from '../../spec/error.ts'
import type { ImageOperation } from '../../spec/image-request.ts'
import type { Media } from '../media.ts'
import { acceptanceDetail } from '../orders/acceptance.ts'
import { throwNeverSent } from '../orders/order-error.ts'
import type { ImageCall, ImageEvent, ImageProvider } from '../provider.ts'
import type { PostParts } from '../upstream/post-json.ts'
import { createUpstream } from '../upstream/upstream.ts'
import type { UpstreamResponse } from '../upstream/upstream-request.ts'
import { imageBody, imageForm, imageModelRules, type Picture } from './image-request.ts'
import { readImageEvents, readImages } from './image-response.ts'

type ImageParts = PostParts & {
  settings: PostParts['settings'] & { quirks: Required<Quirks> }
  media?: Pick<Media, 'read'>
}

const PATHS: Record<ImageOperation, string> = {
  generate: '/images/generations',
  edit: '/images/edits',
  variation: '/images/variations',
}
/** Ten images of 4K in base64. */
const MAX_RESPONSE_BYTES = 256 * 1024 * 1024

export function createCompatImages(parts: ImageParts): ImageProvider {
  const { id, media } = parts
  const { base_url, headers, fields, quirks } = parts.settings
  const upstream = createUpstream(parts, {
    errorFromResponse(refusal) {
      const { code, message, detail } = errorFromResponse(refusal)
      return new GatewayError(code, message, { ...detail, ...acceptanceDetail({ kind: 'chatcompat', ...refusal }) })
    },
  })
  const origin = new URL(base_url).origin

  function faultsOf(model: string, response: UpstreamResponse): Faults {
    const faults = upstream.faultsOf(model, response)
    return {
      inAnswer: (payload) => faults.inAnswer(payload),
      notUnderstood: (what, status) => faults.notUnderstood(what, status),
      cut: () =>
        new GatewayError('upstream_cut', `The upstream "${id}" ended its response before the image was complete.`),
    }
  }

  /** Reads the images of an order; nothing was sent yet, whatever fails here. */
  async function picturesOf({ request }: ImageCall, signal: AbortSignal): Promise<Picture[]> {
    const { images = [], mask } = request
    const read = async (field: Picture['field'], value: string): Promise<Picture> => {
      if (!media)
        throw new GatewayError('internal_error', `The provider "${id}" was created without a reader of media.`)
      return { field, ...(await media.read(value, signal, field)) }
    }
    const all = [...images.map((image) => read('image', image)), ...(mask === undefined ? [] : [read('mask', mask)])]
    return Promise.all(all).catch(throwNeverSent)
  }

  /** Sends an order and returns a response with status 2xx; throws for any other. */
  async function order(call: ImageCall, signal: AbortSignal, partial_images?: number): Promise<UpstreamResponse> {
    const { model, request } = call
    const isStream = partial_images !== undefined
    const rules = imageModelRules(model, quirks)
    const body = imageBody({ model, request, rules, partial_images, fields, upstream: id })
    const pictures = await picturesOf(call, signal)
    // Random, so that no prompt can contain it: it would end its own field and add others.
    const boundary = `gatehouse-${randomAlphanumerics(32)}`
    const form = pictures.length > 0 ? imageForm(body, pictures, boundary) : undefined
    const path = PATHS[request.operation]
    return upstream.request({ path, body: form ?? JSON.stringify(body), call, stream: isStream, order: true }, signal)
  }

  const readAll = async (response: UpstreamResponse, model: string) =>
    readImages(parseJson(await response.text(MAX_RESPONSE_BYTES)), faultsOf(model, response))

  return {
    operations: ['generate', 'edit', 'variation'],
    generate: async (call, signal) => readAll(await order(call, signal), call.model),
    async *stream(call, partial_images, signal) {
      if (!imageModelRules(call.model, quirks).streams || call.request.operation === 'variation') {
        yield { type: 'done', ...(await readAll(await order(call, signal), call.model)) }
        return
      }
      const response = await order(call, signal, partial_images)
      yield* upstream.readStreamOrWhole<ImageEvent>(response, {
        events: () => readImageEvents(response, call.request.n, faultsOf(call.model, response)),
        whole: async () => ({ type: 'done', ...(await readAll(response, call.model)) }),
      })
    },
    // Another Gatehouse, and local runtimes, require the same key for their images.
    outputHeaders: (url) => (URL.parse(url)?.origin === origin ? headers : {}),
  }
}
