/** Encodes the events of an image stream: partial images, then each complete one. */
import { errorBody, type GatewayError } from '../../spec/error.ts'
import type { ImageOperation, ImageOrder, ImageUsage } from '../../spec/image-request.ts'

/** An image as its bytes. */
export type ImageFile = { bytes: Uint8Array; content_type: string; revised_prompt?: string }

type Head = { operation: ImageOperation; order: ImageOrder; created: number }

export type ImageStreamWriter = {
  partial(base64: string, index: number): string
  completed(files: ImageFile[], usage: ImageUsage | undefined): string
  fail(error: GatewayError): string
}

const event = (type: string, data: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`

export function createImageStreamWriter({ operation, order, created }: Head): ImageStreamWriter {
  const name = operation === 'generate' ? 'image_generation' : 'image_edit'
  const { size = 'auto', quality = 'auto', background = 'auto', output_format = 'png' } = order
  const head = { created_at: created, size, quality, background, output_format }
  return {
    partial: (base64, index) =>
      event(`${name}.partial_image`, { ...head, b64_json: base64, partial_image_index: index }),
    completed(files, usage) {
      const reported = usage ?? { input_tokens: 0, output_tokens: 0, total_tokens: 0 }
      return files
        .map(({ bytes, content_type }) =>
          event(`${name}.completed`, {
            ...head,
            output_format: content_type.replace('image/', ''),
            b64_json: base64Of(bytes),
            usage: { input_tokens_details: { text_tokens: reported.input_tokens, image_tokens: 0 }, ...reported },
          }),
        )
        .join('')
    },
    fail: (error) => event('error', errorBody(error)),
  }
}

export const base64Of = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
