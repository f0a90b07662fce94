/** The shape of an image in the form that a vendor accepts: pixels or a ratio, from whichever the client sent. */
import type { JSONObject } from '@ai-sdk/provider'
import { GatewayError } from '../../../spec/error.ts'
import type { ImageOrder } from '../../../spec/image-request.ts'
import { ratioOf } from '../../orders/order-fields.ts'
import type { Shape } from './image-family.ts'

/** The area that image models are trained for, in pixels. */
const USUAL_AREA = 1024 * 1024
/** Sides are multiples of this for every vendor here. */
const STEP = 32

type Dimensions = {
  size?: `${number}x${number}`
  aspectRatio?: `${number}:${number}`
  options?: JSONObject
}

/** Throws `unsupported_value` for a ratio that the model does not generate. */
export function dimensionsOf(
  order: Pick<ImageOrder, 'size' | 'aspect_ratio'>,
  shape: Shape,
  named: string,
): Dimensions {
  const size = order.size === 'auto' ? undefined : order.size
  const { aspect_ratio } = order
  if (shape.by === 'size') {
    const pixels = size ?? (aspect_ratio === undefined ? undefined : sizeFor(aspect_ratio))
    if (pixels === undefined) return {}
    if (!shape.options) return { size: pixels as `${number}x${number}` }
    const [width = 0, height = 0] = pixels.split('x').map(Number)
    return { options: { [shape.options.width]: width, [shape.options.height]: height } }
  }
  const ratio = aspect_ratio ?? (size === undefined ? undefined : ratioOf({ size }))
  if (ratio === undefined) return {}
  if (shape.among && !shape.among.includes(ratio)) {
    const param = aspect_ratio === undefined ? 'size' : 'aspect_ratio'
    const message = `${named} generates images of the ratios ${shape.among.join(', ')}; "${param}" is ${ratio}.`
    throw new GatewayError('unsupported_value', message, { param, accepted: 'no' })
  }
  return shape.option ? { options: { [shape.option]: ratio } } : { aspectRatio: ratio as `${number}:${number}` }
}

function sizeFor(ratio: string): string {
  const [wide = 1, high = 1] = ratio.split(':').map(Number)
  const side = (share: number) => Math.max(STEP, Math.round(Math.sqrt(USUAL_AREA * share) / STEP) * STEP)
  return `${side(wide / high)}x${side(high / wide)}`
}
