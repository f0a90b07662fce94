/** Converts a mask from transparency, as OpenAI has it, to the black and white of other vendors. */
import { GatewayError } from '../../../spec/error.ts'
import type { Medium } from '../../media.ts'

const OPAQUE = 255
/** Some vendors accept two colours only: pixels that are more than half transparent are to be changed. */
const HALF = 128

/**
 * Transparent pixels become `colour`, all others the other one. A mask without transparent pixels is assumed to be in
 * the vendor's own format, and stays as it is.
 */
export async function maskIn(colour: 'white' | 'black', bytes: Uint8Array): Promise<Medium> {
  const { createCanvas, loadImage } = await import('@napi-rs/canvas')
  const image = await loadImage(Buffer.from(bytes)).catch(() => {
    throw new GatewayError('input_media_invalid', '"mask" could not be read: it must be a PNG or WebP image.', {
      param: 'mask',
      accepted: 'no',
    })
  })
  const canvas = createCanvas(image.width, image.height)
  const context = canvas.getContext('2d')
  context.drawImage(image, 0, 0)
  const pixels = context.getImageData(0, 0, image.width, image.height)
  const { data } = pixels
  let hasTransparency = false
  for (let at = 0; at < data.length; at += 4) {
    const isChanged = (data[at + 3] ?? OPAQUE) < HALF
    hasTransparency ||= isChanged
    const level = isChanged === (colour === 'white') ? 255 : 0
    data.fill(level, at, at + 3)
    data[at + 3] = OPAQUE
  }
  if (hasTransparency) context.putImageData(pixels, 0, 0)
  return { bytes: new Uint8Array(await canvas.encode('png')), content_type: 'image/png' }
}
