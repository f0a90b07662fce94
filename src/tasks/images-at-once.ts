/** A vendor of images as one that takes orders: what it is asked for is made before it answers. */
import { SNIFF_BYTES, sniff } from '../kit/sniff.ts'
import { asOrderRefusal } from '../providers/order-refusal.ts'
import type { ImageProvider, MadeImage, OrderProvider, RemoteOutput } from '../providers/provider.ts'
import { GatewayError } from '../spec/error.ts'
import type { ImageOrder } from '../spec/image-request.ts'

export function imagesAtOnce({ make, outputHeaders }: ImageProvider): OrderProvider<ImageOrder> {
  return {
    // Nobody makes the same image for the same key: asked twice, it would be paid twice.
    resubmit: 'unsafe',
    async start({ model, request, task_id }, signal) {
      const { images } = await make({ model, request, request_id: task_id }, signal).catch((thrown: unknown) => {
        throw thrown instanceof GatewayError ? asOrderRefusal(thrown) : thrown
      })
      return { operation: {}, made: images.map(outputOf) }
    },
    /** Asked only where the bytes that came with the answer were lost before they could be stored. */
    status: () => Promise.reject(new GatewayError('output_gone', 'The image was lost before it could be stored.')),
    ...(outputHeaders ? { outputHeaders } : {}),
  }
}

function outputOf(image: MadeImage): RemoteOutput {
  if ('url' in image) return { url: image.url }
  const bytes = new Uint8Array(Buffer.from(image.base64, 'base64'))
  return {
    content_type: sniff(bytes.subarray(0, SNIFF_BYTES)) ?? 'image/png',
    open: async () => new Blob([bytes]).stream(),
  }
}
