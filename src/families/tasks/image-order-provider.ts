/** Adapts an image provider to the order interface: it generates the images before it responds. */
import { SNIFF_BYTES, sniff } from '../../kit/sniff.ts'
import { asOrderError } from '../../providers/orders/order-error.ts'
import type { GeneratedImage, ImageProvider, OrderProvider, RemoteOutput } from '../../providers/provider.ts'
import { GatewayError } from '../../spec/error.ts'
import type { ImageOrder } from '../../spec/image-request.ts'
import type { FailCode } from '../../spec/task.ts'

export function imageOrderProvider({ generate, outputHeaders }: ImageProvider): OrderProvider<ImageOrder> {
  return {
    // No image provider honours idempotency keys: a repeated order would be paid twice.
    resubmit: 'unsafe',
    async start({ model, request, task_id }, signal): ReturnType<OrderProvider<ImageOrder>['start']> {
      return generate({ model, request, request_id: task_id }, signal).then(
        ({ images }) => ({ operation: {}, outputs: images.map(outputOf) }),
        (thrown: unknown) => ({ operation: failureOf(thrown) }),
      )
    },
    /** Called where the generation has failed, or where the returned bytes were lost before they could be stored. */
    async status(operation) {
      const { fail_code, fail_reason } = operation as Partial<Failure>
      if (fail_code !== undefined) return { status: 'FAILURE', fail_code, fail_reason: fail_reason ?? '' }
      throw new GatewayError('output_gone', 'The image was lost before it could be stored.')
    },
    ...(outputHeaders ? { outputHeaders } : {}),
  }
}

type Failure = { fail_code: FailCode; fail_reason: string }

/** The failure of an accepted order that produced no image. Any other error is rethrown. */
function failureOf(thrown: unknown): Failure {
  if (!(thrown instanceof GatewayError)) throw thrown
  const { fail_code, accepted } = thrown.detail
  if (fail_code === undefined || accepted === 'no') throw asOrderError(thrown)
  return { fail_code, fail_reason: thrown.message }
}

function outputOf(image: GeneratedImage): RemoteOutput {
  if ('url' in image) return { url: image.url }
  const bytes = new Uint8Array(Buffer.from(image.base64, 'base64'))
  return {
    content_type: sniff(bytes.subarray(0, SNIFF_BYTES)) ?? 'image/png',
    open: async () => new Blob([bytes]).stream(),
  }
}
