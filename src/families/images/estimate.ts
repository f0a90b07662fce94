/** Estimates the usage of an image request before it is sent. */
import type { ImageOrder } from '../../spec/image-request.ts'
import type { Estimate, Units } from '../../spec/usage.ts'

/** OpenAI documents 1,056 for a square image of medium quality, and at most 6,240; some models think before. */
const USUAL_TOKENS_OF_AN_IMAGE = 1_056
const MOST_TOKENS_OF_AN_IMAGE = 10_000
/** Of one input image, at high fidelity. */
const MOST_TOKENS_OF_AN_INPUT = 10_000
/** https://platform.openai.com/docs/guides/image-generation: 100 tokens for each partial image. */
const TOKENS_OF_A_PARTIAL_IMAGE = 100

/** Providers that charge by image report no tokens: the estimate contains both, and the prices of the model decide. */
export function estimateImages(
  { prompt, n, images = [], mask, size, quality }: ImageOrder,
  partial_images: number,
): Estimate {
  const inputs = images.length + (mask === undefined ? 0 : 1)
  const bytes = Buffer.byteLength(prompt)
  const units = (input_tokens: number, output_tokens: number): Units => ({
    input_tokens,
    output_tokens: output_tokens + n * partial_images * TOKENS_OF_A_PARTIAL_IMAGE,
    images: n,
    image_size: chosen(size),
    image_quality: chosen(quality),
    requests: 1,
  })
  return {
    expected: units(Math.ceil(bytes / 4) + inputs * USUAL_TOKENS_OF_AN_IMAGE, n * USUAL_TOKENS_OF_AN_IMAGE),
    most: units(bytes + inputs * MOST_TOKENS_OF_AN_INPUT, n * MOST_TOKENS_OF_AN_IMAGE),
  }
}

/** Undefined where the provider chooses. */
const chosen = (value: string | undefined): string | undefined => (value === 'auto' ? undefined : value)
