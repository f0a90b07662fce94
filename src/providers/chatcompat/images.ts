/** Images of any OpenAI-shaped vendor: `/images/generations` as JSON, `/images/edits` and `/images/variations` as forms. */
import type { Quirks } from '../../config/quirks.ts'
import { parseJson } from '../../kit/json.ts'
import { GatewayError } from '../../spec/error.ts'
import type { ImageOperation } from '../../spec/image-request.ts'
import type { Media } from '../media.ts'
import { takenAs } from '../order-refusal.ts'
import type { ImageCall, ImageProvider } from '../provider.ts'
import { errorInAnswer, refusalToError } from '../refusal.ts'
import type { UpstreamAnswer } from '../transport-answer.ts'
import { neverSent } from '../transport-failure.ts'
import { readImageEvents, readImages } from './image-answer.ts'
import { imageBody, imageForm, imageWordsOf, type Picture } from './image-words.ts'
import type { PostParts } from './post.ts'
import type { Faults } from './reading.ts'
import { isEventStream } from './relay.ts'

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

export function createCompatImages({ id, settings, transport, clock, log, media }: ImageParts): ImageProvider {
  const { base_url, headers, timeouts, secrets, fields, quirks } = settings
  const upstream = `The upstream "${id}"`
  const origin = new URL(base_url).origin

  const faultsOf = (model: string): Faults => ({
    inAnswer: (payload) => noted(takenAs(errorInAnswer({ provider: id, model, payload, secrets, clock })), model),
    notUnderstood: (what, upstream_status) =>
      new GatewayError(
        'bad_upstream_response',
        `${upstream} ${what}.`,
        upstream_status === undefined ? {} : { upstream_status },
      ),
    cut: () => new GatewayError('upstream_cut', `${upstream} ended its answer before the image was complete.`),
  })

  function noted(error: GatewayError, model: string): GatewayError {
    const { upstream_status } = error.detail
    if (error.status >= 500) log.warn('upstream refused', { provider: id, model, upstream_status, error: error.code })
    return error
  }

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
  async function order(call: ImageCall, signal: AbortSignal, partial_images?: number): Promise<UpstreamAnswer> {
    const { model, request, request_id } = call
    const isStream = partial_images !== undefined
    const words = imageWordsOf(model, quirks)
    const body = imageBody({ model, request, words, partial_images, fields, upstream: id })
    const pictures = await picturesOf(call, signal)
    const form = pictures.length > 0 ? imageForm(body, pictures, `gatehouse-${request_id}`) : undefined
    const answer = await transport.send({
      provider: id,
      url: `${base_url}${PATHS[request.operation]}`,
      method: 'POST',
      headers: {
        'content-type': form?.content_type ?? 'application/json',
        accept: isStream ? 'text/event-stream' : 'application/json',
        // A compressed stream arrives in lumps, when the compressor's buffer is full.
        ...(isStream ? { 'accept-encoding': 'identity' } : {}),
        'user-agent': 'gatehouse',
        'x-request-id': request_id,
        ...headers,
      },
      body: form?.bytes ?? JSON.stringify(body),
      order: true,
      signal,
      timeouts,
      stream: isStream,
    })
    const { status } = answer
    if (status >= 200 && status < 300) return answer
    const payload = parseJson(await answer.excerpt())
    const refusal = { provider: id, model, status, headers: answer.headers, payload, secrets, clock }
    throw noted(takenAs(refusalToError(refusal)), model)
  }

  const readAll = async (answer: UpstreamAnswer, model: string) =>
    readImages(parseJson(await answer.text(MAX_ANSWER_BYTES)), faultsOf(model))

  return {
    operations: ['generate', 'edit', 'variation'],
    make: async (call, signal) => readAll(await order(call, signal), call.model),
    async *stream(call, partial_images, signal) {
      if (!imageWordsOf(call.model, quirks).streams || call.request.operation === 'variation') {
        yield { type: 'done', ...(await readAll(await order(call, signal), call.model)) }
        return
      }
      const answer = await order(call, signal, partial_images)
      let isComplete = false
      try {
        // JSON in one piece instead of a stream; some vendors label it as a stream even so.
        if (await isEventStream(answer)) yield* readImageEvents(answer, call.request.n, faultsOf(call.model))
        else yield { type: 'done', ...(await readAll(answer, call.model)) }
        isComplete = true
      } finally {
        if (isComplete) answer.release()
        else answer.drop()
      }
    },
    // Another Gatehouse, and runtimes without a public address, keep their images behind the same key.
    outputHeaders: (url) => (URL.parse(url)?.origin === origin ? headers : {}),
  }
}
