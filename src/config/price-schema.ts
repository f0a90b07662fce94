/** Prices of a model or a target, as the operator writes them. Each is what the provider's price list states. */
import Type, { type TSchema } from 'typebox'

const closed = { additionalProperties: false } as const
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema)

/** A price of a million per unit is a mistake, and would leave no digits for nano-units. */
const MAX_PRICE = 1_000_000
const price = (description: string) => Type.Number({ minimum: 0, maximum: MAX_PRICE, description })
const SIZE = '^\\S{1,64}$'

/** Per million tokens. Without a price of its own a part is charged as the next wider one, as providers charge it. */
const tokenPrices = {
  input: optional(price('Per million input tokens; also of embedding, rerank and moderation requests.')),
  cached_input: optional(price("Per million input tokens read from the provider's cache. Default: input.")),
  cache_write: optional(price('Per million input tokens written to a cache of five minutes. Default: input.')),
  cache_write_1h: optional(price('Per million input tokens written to a cache of one hour. Default: cache_write.')),
  input_audio: optional(price('Per million audio input tokens. Default: input.')),
  output: optional(price('Per million output tokens.')),
  reasoning: optional(price('Per million reasoning tokens. Default: output.')),
  output_audio: optional(price('Per million audio output tokens. Default: output.')),
}

const PriceTier = Type.Object(
  {
    above_input_tokens: Type.Integer({
      minimum: 0,
      description: 'Requests with more input tokens than this, cached ones included, have these prices as a whole.',
    }),
    ...tokenPrices,
  },
  closed,
)

const ImagePrice = Type.Object(
  {
    size: optional(Type.String({ pattern: SIZE, description: 'Such as 1024x1024. Default: any.' })),
    quality: optional(Type.String({ pattern: SIZE, description: 'Such as high. Default: any.' })),
    price: price('Per image.'),
  },
  closed,
)

const VideoPrice = Type.Object(
  {
    size: optional(Type.String({ pattern: SIZE, description: 'Such as 1280x720, or 720p. Default: any.' })),
    sound: optional(Type.Boolean({ description: 'Whether it has sound. Default: either.' })),
    price: price('Per second.'),
  },
  closed,
)

const factor = (description: string) =>
  optional(Type.Number({ minimum: 0, maximum: 100, description: `${description} Default 1.` }))

const priceFields = {
  currency: optional(Type.String({ pattern: '^[A-Z]{3}$', description: 'ISO 4217. Default USD.' })),
  ...tokenPrices,
  tiers: optional(
    Type.Array(PriceTier, {
      minItems: 1,
      maxItems: 10,
      description: 'Other prices for long requests. What a tier omits rises with its input or output price.',
    }),
  ),
  image: optional(price('Per image that no entry of `images` matches.')),
  images: optional(
    Type.Array(ImagePrice, { minItems: 1, maxItems: 100, description: 'By size and quality; the first match counts.' }),
  ),
  video: optional(price('Per video, besides its seconds.')),
  video_second: optional(price('Per second of video that no entry of `video_seconds` matches.')),
  video_seconds: optional(
    Type.Array(VideoPrice, { minItems: 1, maxItems: 100, description: 'By size and sound; the first match counts.' }),
  ),
  three_d: optional(price('Per 3D model.')),
  searches: optional(price('Per thousand searches of rerank requests.')),
  request: optional(price('Per request, besides all others.')),
  service_tiers: optional(
    Type.Object(
      {
        batch: factor('Of batches.'),
        flex: factor('Of requests with `service_tier: flex`.'),
        priority: factor('Of requests with `service_tier: priority`.'),
      },
      { ...closed, description: 'Factors on all prices but `request`, such as 0.5 for half.' },
    ),
  ),
  from: optional(
    Type.String({
      pattern: '^\\d{4}-\\d{2}-\\d{2}(T\\d{2}:\\d{2}(:\\d{2})?Z)?$',
      description: 'The date, or the UTC time, from which the prices count. Default: always.',
    }),
  ),
  source: optional(Type.String({ description: 'Where the prices come from.' })),
  as_of: optional(Type.String({ description: 'The date at which they were read there.' })),
}

export const Price = Type.Object(priceFields, closed)
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
