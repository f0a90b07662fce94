/** Reads the response of an OpenAI-shaped provider to an image order: images, usage, and the events of a stream to its end. */
import { asRecord, isRecord, type JsonRecord } from '../../kit/json.ts'
import { createEventSource, payloadOf } from '../../protocols/shared/chunk-stream.ts'
import { type Faults, holdsError } from '../../protocols/shared/upstream.ts'
import { GatewayError } from '../../spec/error.ts'
import type { ImageUsage } from '../../spec/image-request.ts'
import type { GeneratedImage, ImageEvent } from '../provider.ts'
import type { UpstreamResponse } from '../upstream/upstream-request.ts'

type ImageResult = { images: GeneratedImage[]; usage?: ImageUsage }

/** An image of 64 megapixels as PNG, in base64. */
const MAX_EVENT_CHARACTERS = 96 * 1024 * 1024

/** Reads a whole body. Throws the error of `faults` for an invalid one. */
export function readImages(payload: unknown, faults: Faults): ImageResult {
  const body = Array.isArray(payload) ? payload[0] : payload
  if (isRecord(body) && holdsError(body)) throw faults.inAnswer(body)
  // The second name is used by compatible providers that accept many more fields than the official API.
  const list = isRecord(body) ? [body.data, body.images].find(Array.isArray) : undefined
  if (!isRecord(body) || !list) throw faults.notUnderstood('answered without a list of images')
  const images = list.flatMap((item) => imageIn(item) ?? [])
  const usage = usageIn(body)
  return { images, ...(usage ? { usage } : {}) }
}

/** Base64, bare or as a data URI, or a URL; with the prompt as the provider revised it. */
export function imageIn(item: unknown): GeneratedImage | undefined {
  const { b64_json, url, revised_prompt } = isRecord(item) ? item : ({ url: item } as JsonRecord)
  const revised = typeof revised_prompt === 'string' && revised_prompt !== '' ? { revised_prompt } : {}
  const given = [b64_json, url].find((one): one is string => typeof one === 'string' && one !== '')
  if (given === undefined) return undefined
  const data = /^data:([^;,]*);base64,/i.exec(given.slice(0, 200)) // the prefix of a data URI; what follows is megabytes
  if (data) return { base64: given.slice(data[0].length), ...revised }
  if (given === b64_json) return { base64: given, ...revised }
  return /^https?:\/\//i.test(given) ? { url: given, ...revised } : undefined
}

export const countOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : undefined

/** With this family's names, or with those of chat, which compatible providers use here too. */
function usageIn({ usage }: JsonRecord): ImageUsage | undefined {
  if (!isRecord(usage)) return undefined
  const input_tokens = countOf(usage.input_tokens) ?? countOf(usage.prompt_tokens) ?? 0
  const output_tokens = countOf(usage.output_tokens) ?? countOf(usage.completion_tokens) ?? 0
  const total_tokens = Math.max(countOf(usage.total_tokens) ?? 0, input_tokens + output_tokens)
  if (total_tokens === 0) return undefined
  const details = asRecord(usage.input_tokens_details)
  const [text_tokens, image_tokens] = [countOf(details.text_tokens), countOf(details.image_tokens)]
  const counts = text_tokens === undefined && image_tokens === undefined ? undefined : { text_tokens, image_tokens }
  return {
    input_tokens,
    output_tokens,
    total_tokens,
    ...(counts
      ? { input_tokens_details: { text_tokens: counts.text_tokens ?? 0, image_tokens: counts.image_tokens ?? 0 } }
      : {}),
  }
}

/**
 * The events of a stream: partial images as they arrive, then all complete ones. The stream ends with the requested number
 * of images, or with the end of the body after at least one.
 */
export async function* readImageEvents(
  answer: UpstreamResponse,
  requested: number,
  faults: Faults,
): AsyncGenerator<ImageEvent> {
  const next = createEventSource({ answer, faults, limit: MAX_EVENT_CHARACTERS })
  const images: GeneratedImage[] = []
  let usage: ImageUsage | undefined
  for (let isOver = false; !isOver && images.length < requested; ) {
    const { bytes, events } = await next()
    isOver = bytes === undefined
    for (const event of events) {
      const payload = payloadOf(event, { faults, atEnd: isOver })
      if (payload instanceof GatewayError) throw payload
      if (!payload) continue
      const image = imageIn(payload)
      const type = String(payload.type ?? event.event)
      if (type.endsWith('.partial_image')) {
        if (image && 'base64' in image) {
          yield { type: 'partial', index: countOf(payload.partial_image_index) ?? 0, base64: image.base64 }
        }
      } else if (type.endsWith('.completed')) {
        if (!image) throw faults.notUnderstood('reported a complete image without its bytes')
        images.push(image)
        usage = usageIn(payload) ?? usage
      }
    }
  }
  if (images.length === 0) throw faults.cut()
  yield { type: 'done', images, ...(usage ? { usage } : {}) }
}
