/** Prices of a model or a target, as the operator writes them. Each is what the provider's price list states. */
import Type from 'typebox'
import { flag, list, number, optional, section, text } from '../../spec/fields.ts'
import { mark } from '../../spec/marks.ts'

/** A price of a million per unit is a mistake, and would leave no digits for nano-units. */
const MAX_PRICE = 1_000_000
const price = (description: string) => Type.Number({ minimum: 0, maximum: MAX_PRICE, description })
const SIZE = '^\\S{1,64}$'

/** Per million tokens. Without a price of its own a part is charged as the next wider one, as providers charge it. */
const tokenPrices = {
  input: optional(price('Per million input tokens of any family.')),
  cached_input: optional(price("Per million input tokens from the provider's cache. Default: input.")),
  cache_write: optional(price('Written to a cache of five minutes. Default: input.')),
  cache_write_1h: optional(price('Written to a cache of one hour. Default: cache_write.')),
  input_audio: optional(price('Per million audio input tokens. Default: input.')),
  output: optional(price('Per million output tokens.')),
  reasoning: optional(price('Per million reasoning tokens. Default: output.')),
  output_audio: optional(price('Per million audio output tokens. Default: output.')),
}

const PriceTier = section({
  above_input_tokens: Type.Integer({
    minimum: 0,
    description: 'Longer requests have these prices as a whole.',
  }),
  ...tokenPrices,
})

const ImagePrice = section({
  size: text({ pattern: SIZE }, 'Such as 1024x1024. Default: any.'),
  quality: text({ pattern: SIZE }, 'Such as high. Default: any.'),
  price: price('Per image.'),
})

const VideoPrice = section({
  size: text({ pattern: SIZE }, 'Such as 1280x720, or 720p. Default: any.'),
  sound: flag('Whether it has sound. Default: either.'),
  price: price('Per second.'),
})

const factor = (description: string) => number({ minimum: 0, maximum: 100 }, `${description} Default 1.`)

const priceFields = {
  currency: text({ ...mark.shown, pattern: '^[A-Z]{3}$' }, 'ISO 4217. Default USD.'),
  ...tokenPrices,
  tiers: list(PriceTier, { minItems: 1, maxItems: 10 }, 'For long requests.'),
  image: optional(price('Per other image.')),
  images: list(ImagePrice, { minItems: 1, maxItems: 100 }, 'By size and quality; the first match counts.'),
  video: optional(price('Per video, besides its seconds.')),
  video_second: optional(price('Per second of other video.')),
  video_seconds: list(VideoPrice, { minItems: 1, maxItems: 100 }, 'By size and sound; the first match counts.'),
  three_d: optional(price('Per 3D model.')),
  searches: optional(price('Per thousand searches of rerank requests.')),
  speech_characters: optional(price('Per million characters of speech.')),
  audio_minute: optional(price('Per minute of transcribed audio.')),
  request: optional(price('Per request, besides all others.')),
  service_tiers: optional(
    section(
      {
        batch: factor('Of batches.'),
        flex: factor('Of requests with `service_tier: flex`.'),
        priority: factor('Of requests with `service_tier: priority`.'),
      },
      'Factors on all prices but `request`.',
    ),
  ),
  from: text({ ...mark.shown, pattern: '^\\d{4}-\\d{2}-\\d{2}(T\\d{2}:\\d{2}(:\\d{2})?Z)?$' }, 'Date or UTC time.'),
  source: text('Where the prices come from.'),
  as_of: text(mark.shown, 'The date of reading.'),
}

export const Price = section(priceFields)
export type Price = Type.Static<typeof Price>

/** One, or one after another by `from`. */
export const Prices = Type.Union([
  Price,
  Type.Array(Price, {
    minItems: 1,
    maxItems: 100,
    description: 'Prices of several dates, in order; each counts from its `from` on.',
  }),
])
export type Prices = Type.Static<typeof Prices>

export const TOKEN_PRICES = Object.keys(tokenPrices) as (keyof typeof tokenPrices)[]

/** As a list in the order of their dates. */
export const priceList = (prices: Prices): readonly Price[] => (Array.isArray(prices) ? prices : [prices])

/** The unix seconds of `from`; those of always: negative infinity. Undefined: there is no such date. */
export function startOf({ from }: Pick<Price, 'from'>): number | undefined {
  if (from === undefined) return Number.NEGATIVE_INFINITY
  const milliseconds = Date.parse(from)
  // Some engines accept the 30th of February as the 2nd of March.
  const exists = !Number.isNaN(milliseconds) && new Date(milliseconds).toISOString().startsWith(from.slice(0, 10))
  return exists ? Math.floor(milliseconds / 1000) : undefined
}
