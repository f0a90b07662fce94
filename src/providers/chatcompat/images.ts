/** Images of any OpenAI-shaped vendor: `/images/generations` as JSON, `/images/edits` and `/images/variations` as forms. */

import type { Quirks } from '../../config/quirks.ts'
import { parseJson } from '../../kit/json.ts'
import { randomAlphanumerics } from '../../kit/secret.ts'
import { errorFromResponse } from '../../protocols/provider-error.ts'
import type { Faults } from '../../protocols/upstream.ts'
import { GatewayError } from '../../spec/error.ts'
import type { ImageOperation } from '../../spec/image-request.ts'
import type { Media } from '../media.ts'
import { acceptanceDetail } from '../orders/acceptance.ts'
import type { ImageCall, ImageEvent, ImageProvider } from '../provider.ts'
import type { PostParts } from '../upstream/post-json.ts'
import { neverSent } from '../upstream/transport-failure.ts'
import type { UpstreamResponse } from '../upstream/transport-response.ts'
import { createUpstream } from '../upstream/upstream.ts'
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
const MAX_ANSWER_BYTES = 256 * 1024 * 1024

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

  const faultsOf = (model: string, answer: UpstreamResponse): Faults => ({
    ...upstream.faultsOf(model, answer),
    cut: () => new GatewayError('upstream_cut', `The upstream "${id}" ended its answer before the image was complete.`),
  })

  /** The pictures of an order; nothing was sent yet, whatever fails here. */
  async function picturesOf({ request }: ImageCall, signal: AbortSignal): Promise<Picture[]> {
    const { images = [], mask } = request
    const read = async (field: Picture['field'], value: string): Promise<Picture> => {
      if (!media) throw new GatewayError('internal_error', `The provider "${id}" was made without a reader of media.`)
      return { field, ...(await media.read(value, signal, field)) }
    }
    const all = [...images.map((image) => read('image', image)), ...(mask === undefined ? [] : [read('mask', mask)])]
    return Promise.all(all).catch((thrown: unknown) => {
      throw thrown instanceof GatewayError ? neverSent(thrown) : thrown
    })
  }

  /** Sends an order and hands back an answer of status 2xx; everything else is thrown. */
  async function order(call: ImageCall, signal: AbortSignal, partial_images?: number): Promise<UpstreamResponse> {
    const { model, request } = call
    const isStream = partial_images !== undefined
    const words = imageModelRules(model, quirks)
    const body = imageBody({ model, request, rules: words, partial_images, fields, upstream: id })
    const pictures = await picturesOf(call, signal)
    // Nobody can know it beforehand: a prompt that held it would end its own field, and write others.
    const boundary = `gatehouse-${randomAlphanumerics(32)}`
    const form = pictures.length > 0 ? imageForm(body, pictures, boundary) : undefined
    const path = PATHS[request.operation]
    return upstream.ask({ path, body: form ?? JSON.stringify(body), call, stream: isStream, order: true }, signal)
  }

  const readAll = async (answer: UpstreamResponse, model: string) =>
    readImages(parseJson(await answer.text(MAX_ANSWER_BYTES)), faultsOf(model, answer))

  return {
    operations: ['generate', 'edit', 'variation'],
    generate: async (call, signal) => readAll(await order(call, signal), call.model),
    async *stream(call, partial_images, signal) {
      if (!imageModelRules(call.model, quirks).streams || call.request.operation === 'variation') {
        yield { type: 'done', ...(await readAll(await order(call, signal), call.model)) }
        return
      }
      const answer = await order(call, signal, partial_images)
      yield* upstream.readAsked<ImageEvent>(answer, {
        events: () => readImageEvents(answer, call.request.n, faultsOf(call.model, answer)),
        whole: async () => ({ type: 'done', ...(await readAll(answer, call.model)) }),
      })
    },
    // Another Gatehouse, and runtimes without a public address, keep their images behind the same key.
    outputHeaders: (url) => (URL.parse(url)?.origin === origin ? headers : {}),
  }
}
