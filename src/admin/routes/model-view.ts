/** How the admin API shows what is known of a model: sizes, capabilities, lifecycle and prices. */
import Type from 'typebox'
import type { CatalogueModel } from '../../models/catalogue.ts'
import { statusAt } from '../../models/lifecycle.ts'
import { orNull, titled } from '../../spec/fields.ts'
import { type PriceVersion, priceAt } from '../../spec/price.ts'

const time = (description: string) => orNull(Type.Integer({ description: `${description} Unix seconds.` }))
const amount = (description: string) =>
  orNull(Type.Number({ description: `${description} In the currency of the ledger; null: none, or not known.` }))

const ModelPrice = titled('ModelPrice', {
  from: orNull(Type.Integer({ description: 'In force from then on. Unix seconds; null: ever since.' })),
  input: amount('A million input tokens.'),
  cached_input: amount('A million that were read from a cache of the provider.'),
  cache_write: amount('A million that were written to one.'),
  output: amount('A million output tokens.'),
  reasoning: amount('A million output tokens of reasoning.'),
  output_audio: amount('A million output tokens of audio.'),
  tiers: Type.Array(
    Type.Object({
      above: Type.Integer({ description: 'In force where the input has more tokens.' }),
      input: amount('A million input tokens.'),
      output: amount('A million output tokens.'),
    }),
  ),
  image: amount('An image.'),
  video: amount('A video.'),
  video_second: amount('A second of video.'),
  three_d: amount('A 3D model.'),
  search: amount('A search of the web.'),
  speech_characters: amount('A million characters of text that is spoken.'),
  audio_minute: amount('A minute of audio that is transcribed.'),
  request: amount('A request, besides its tokens.'),
})
type ModelPrice = Type.Static<typeof ModelPrice>

export const KnownFields = {
  id: Type.String(),
  families: Type.Array(Type.String(), { description: 'Those that at least one of its targets serves.' }),
  status: Type.String({ description: '`active`, `deprecated` or `retired`.' }),
  deprecated_at: time('Its deprecation, also one ahead.'),
  retired_at: time('Its retirement, also one ahead.'),
  replaced_by: orNull(Type.String({ description: 'The model to use instead.' })),
  created: Type.Integer({ description: 'When it entered the catalogue. Unix seconds.' }),
  context_tokens: orNull(Type.Integer({ description: 'Input and output together; null: not known.' })),
  max_output_tokens: orNull(Type.Integer({ description: 'null: not known.' })),
  price: orNull(ModelPrice),
}
export const DetailFields = {
  prices: Type.Array(ModelPrice, { description: 'By date, the oldest first; those ahead too.' }),
  capabilities: Type.Record(Type.String(), Type.Boolean(), {
    description: 'What the configuration says that it supports or does not. What is absent is supported.',
  }),
  fallbacks: Type.Record(Type.String(), Type.Array(Type.String()), {
    description: 'Models that serve a call in its place, by the reason.',
  }),
  speech: Type.Object(
    {
      characters: orNull(Type.Integer()),
      voices: orNull(Type.Array(Type.String())),
      formats: orNull(Type.Array(Type.String())),
    },
    { description: 'What it accepts of speech; null: anything is forwarded.' },
  ),
}

export function knownOf(model: CatalogueModel, now: number) {
  const price = model.prices && priceAt(model.prices, now)
  return {
    id: model.id,
    families: model.families,
    status: statusAt(model, now),
    deprecated_at: model.deprecated_at ?? null,
    retired_at: model.retired_at ?? null,
    replaced_by: model.replaced_by ?? null,
    created: model.created,
    context_tokens: model.context_tokens ?? null,
    max_output_tokens: model.limits.max_tokens?.maximum ?? null,
    price: price ? priceView(price) : null,
  }
}

/** What the model's own page shows besides. */
export function detailsOf({ prices = [], capabilities, fallbacks, speech }: CatalogueModel) {
  const reasons = Object.entries(fallbacks).map(([reason, ids]) => [reason, [...ids]] as const)
  return {
    prices: prices.map(priceView),
    capabilities: { ...capabilities } as Record<string, boolean>,
    fallbacks: Object.fromEntries(reasons),
    speech: {
      characters: speech.characters ?? null,
      voices: speech.voices?.slice() ?? null,
      formats: speech.formats?.slice() ?? null,
    },
  }
}

/** A rate is in nano-units for a token. */
const perMillion = (rate: number): number | null => (Number.isNaN(rate) ? null : rate / 1_000)
const perPiece = (rate: number): number | null => (Number.isNaN(rate) || rate === 0 ? null : rate / 1e9)

function priceView(version: PriceVersion): ModelPrice {
  const { from, rates, tiers } = version
  return {
    from: Number.isFinite(from) ? from : null,
    input: perMillion(rates.input),
    cached_input: perMillion(rates.cached_input),
    cache_write: perMillion(rates.cache_write),
    output: perMillion(rates.output),
    reasoning: perMillion(rates.reasoning),
    output_audio: perMillion(rates.output_audio),
    tiers: tiers.map((tier) => ({
      above: tier.above,
      input: perMillion(tier.rates.input),
      output: perMillion(tier.rates.output),
    })),
    image: perPiece(version.image),
    video: perPiece(version.video),
    video_second: perPiece(version.video_second),
    three_d: perPiece(version.three_d),
    search: perPiece(version.search),
    speech_characters: version.speech_character === 0 ? null : perMillion(version.speech_character),
    audio_minute: perPiece(version.audio_second * 60),
    request: perPiece(version.request),
  }
}
