/** What OpenAI-shaped vendors answer to an image order, read: images, counts, and the events of a stream to their end. */

import { isRecord, type JsonRecord } from '../../kit/json.ts'
import { payloadOf } from '../../protocols/event-payload.ts'
import { createEventSource } from '../../protocols/event-source.ts'
import { holdsError } from '../../protocols/provider-error.ts'
import type { Faults } from '../../protocols/upstream.ts'
import { GatewayError } from '../../spec/error.ts'
import type { ImageUsage } from '../../spec/image-request.ts'
import type { GeneratedImage, ImageEvent } from '../provider.ts'
import type { UpstreamResponse } from '../upstream/transport-response.ts'

type Made = { images: GeneratedImage[]; usage?: ImageUsage }

/** An image of 64 megapixels as PNG, in base64. */
const MAX_EVENT_CHARACTERS = 96 * 1024 * 1024

/** A whole answer. Throws what `faults` says of one that is none. */
export function readImages(payload: unknown, faults: Faults): Made {
  const body = Array.isArray(payload) ? payload[0] : payload
  if (isRecord(body) && holdsError(body)) throw faults.inAnswer(body)
  // The second name is of imitators that take a great many fields beside the official ones.
  const list = isRecord(body) ? [body.data, body.images].find(Array.isArray) : undefined
  if (!isRecord(body) || !list) throw faults.notUnderstood('answered with no list of images')
  const images = list.flatMap((item) => imageIn(item) ?? [])
  const usage = usageIn(body)
  return { images, ...(usage ? { usage } : {}) }
}

/** Base64, bare or as a data URI, or an address; with the prompt that the vendor made of the caller's. */
export function imageIn(item: unknown): GeneratedImage | undefined {
  const { b64_json, url, revised_prompt } = isRecord(item) ? item : ({ url: item } as JsonRecord)
  const told = typeof revised_prompt === 'string' && revised_prompt !== '' ? { revised_prompt } : {}
  const given = [b64_json, url].find((one): one is string => typeof one === 'string' && one !== '')
  if (given === undefined) return undefined
  const data = /^data:([^;,]*);base64,/i.exec(given.slice(0, 200)) // a data URI's head; what follows is megabytes
  if (data) return { base64: given.slice(data[0].length), ...told }
  if (given === b64_json) return { base64: given, ...told }
  return /^https?:\/\//i.test(given) ? { url: given, ...told } : undefined
}

const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : undefined

/** In the words of this family, or in those of chat, which imitators use here too. */
function usageIn({ usage }: JsonRecord): ImageUsage | undefined {
  if (!isRecord(usage)) return undefined
  const input_tokens = count(usage.input_tokens) ?? count(usage.prompt_tokens) ?? 0
  const output_tokens = count(usage.output_tokens) ?? count(usage.completion_tokens) ?? 0
  const total_tokens = Math.max(count(usage.total_tokens) ?? 0, input_tokens + output_tokens)
  if (total_tokens === 0) return undefined
  const details = isRecord(usage.input_tokens_details) ? usage.input_tokens_details : {}
  const [text_tokens, image_tokens] = [count(details.text_tokens), count(details.image_tokens)]
  const told = text_tokens === undefined && image_tokens === undefined ? undefined : { text_tokens, image_tokens }
  return {
    input_tokens,
    output_tokens,
    total_tokens,
    ...(told
      ? { input_tokens_details: { text_tokens: told.text_tokens ?? 0, image_tokens: told.image_tokens ?? 0 } }
      : {}),
  }
}

/**
 * The events of a stream: partial images as they come, then all that are complete. It is at its end with as many as
 * were asked for, or with the body's own end after one at least.
 */
export async function* readImageEvents(
  answer: UpstreamResponse,
  asked: number,
  faults: Faults,
): AsyncGenerator<ImageEvent> {
  const next = createEventSource({ answer, faults, limit: MAX_EVENT_CHARACTERS })
  const images: GeneratedImage[] = []
  let usage: ImageUsage | undefined
  for (let isOver = false; !isOver && images.length < asked; ) {
    const { bytes, events } = await next()
    isOver = bytes === undefined
    for (const event of events) {
      const said = payloadOf(event, { faults, atEnd: isOver })
      if (said instanceof GatewayError) throw said
      if (!said) continue
      const image = imageIn(said)
      const type = String(said.type ?? event.event)
      if (type.endsWith('.partial_image')) {
        if (image && 'base64' in image) {
          yield { type: 'partial', index: count(said.partial_image_index) ?? 0, base64: image.base64 }
        }
      } else if (type.endsWith('.completed')) {
        if (!image) throw faults.notUnderstood('completed an image without its bytes')
        images.push(image)
        usage = usageIn(said) ?? usage
      }
    }
  }
  if (images.length === 0) throw faults.cut()
  yield { type: 'done', images, ...(usage ? { usage } : {}) }
}
