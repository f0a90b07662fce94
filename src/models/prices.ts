/** Computes charges and costs of calls by the prices of the model and of its targets at the time of the call. */
import { type Price, type Prices, priceList, startOf, TOKEN_PRICES } from '../config/schema/price-schema.ts'
import { hash32 } from '../kit/secret.ts'
import type { Target } from '../providers/provider.ts'
import {
  amountOf,
  isNothing,
  MAX_AMOUNT,
  mostAmountOf,
  type PriceVersion,
  priceAt,
  type TokenRates,
  toNano,
} from '../spec/price.ts'
import type { Units } from '../spec/usage.ts'
import type { CatalogueModel } from './catalogue.ts'

/** In nano-units of the ledger's currency. Null: the price is unknown; never 0 for that reason. */
type Charge = {
  /** What the caller is charged: by the prices of the model. */
  amount: number | null
  /** What the provider charges: by the prices of the target; without own ones those of the model. */
  cost: number | null
  /** The version of the model's prices: its date and a short hash. */
  price: string | null
}

type Priced = Pick<CatalogueModel, 'prices'>

type ChargeParts = {
  model: Priced
  /** Undefined: none was called. */
  target: Pick<Target, 'prices'> | undefined
  units: Units
  /** Unix seconds: the time of the call. */
  at: number
}

export function chargeOf({ model, target, units, at }: ChargeParts): Charge {
  const version = model.prices && priceAt(model.prices, at)
  const amount = amountBy(version, units)
  const own = target?.prices
  const cost = own === undefined || own === model.prices ? amount : amountBy(priceAt(own, at), units)
  return { amount, cost, price: version?.id ?? null }
}

/**
 * Whether tokens are the only price of what a model speaks or transcribes: where its provider reports none, as of a stream
 * that its client leaves, they have to be estimated.
 */
export const isPricedByTokens = (
  { prices = [], targets }: Pick<CatalogueModel, 'prices' | 'targets'>,
  piece: 'speech_character' | 'audio_second',
): boolean =>
  [prices, ...targets.map((target) => target.prices ?? [])].some((versions) =>
    versions.some((version) => !Number.isNaN(version.rates.output) && Number.isNaN(version[piece])),
  )

function amountBy(version: PriceVersion | undefined, units: Units): number | null {
  if (version === undefined) return isNothing(units) ? 0 : null
  return orNull(amountOf(version, units))
}

/** The most that the caller can be charged for these units, however they divide; null: the price is unknown. */
export function mostOf({ model, units, at }: Omit<ChargeParts, 'target'>): number | null {
  const version = model.prices && priceAt(model.prices, at)
  if (version === undefined) return isNothing(units) ? 0 : null
  return orNull(mostAmountOf(version, units))
}

/** A wrong count or price must not corrupt the sums: an amount stays exact in a number, and many fit into 64 bits. */
const MAX_NANO = toNano(MAX_AMOUNT)

const orNull = (amount: number): number | null => (Number.isNaN(amount) ? null : Math.min(amount, MAX_NANO))

type Currencies = {
  /** Of the ledger. */
  currency: string
  /** What one unit of another currency is worth in the currency of the ledger. */
  exchange_rates: Readonly<Record<string, number>>
}

type CompileParts = Currencies & {
  /** Of prices that name no currency. Default USD. */
  default_currency?: string | undefined
}

/** Compiled once, when the catalogue is filled; undefined: the price is unknown. Prices without an exchange rate are unknown too. */
function compilePrices(
  prices: Prices | undefined,
  { currency, exchange_rates, default_currency = 'USD' }: CompileParts,
): readonly PriceVersion[] | undefined {
  if (prices === undefined) return undefined
  return priceList(prices).map((price) => {
    const own = price.currency ?? default_currency
    return versionOf(price, own === currency ? 1 : (exchange_rates[own] ?? Number.NaN))
  })
}

/** The prices of a model, and those of a target of it: its own, or the same. */
export function compiledPrices(
  { prices: own }: { prices?: Prices | undefined },
  ledger: Currencies,
): { prices: Priced['prices']; pricesOf(target: { prices?: Prices | undefined }): Target['prices'] } {
  const prices = compilePrices(own, ledger)
  const default_currency = own && priceList(own).at(-1)?.currency
  return {
    prices,
    pricesOf: (target) => compilePrices(target.prices, { ...ledger, default_currency }) ?? prices,
  }
}

const NANO = 1_000_000_000
/** Token prices are per million tokens: this many nano-units a token. */
const NANO_OF_MILLIONTH = 1_000
const THOUSAND = 1_000
const MILLION = 1_000_000
const SECONDS_A_MINUTE = 60

function versionOf(price: Price, exchange: number): PriceVersion {
  const each = (amount: number | undefined) => (amount === undefined ? Number.NaN : amount * NANO * exchange)
  const rates = ratesOf(price, exchange)
  const { tiers = [], images = [], video_seconds = [], service_tiers } = price
  return {
    id: versionName(price, exchange),
    from: startOf(price) ?? Number.POSITIVE_INFINITY,
    rates,
    tiers: [...tiers]
      .sort((a, b) => b.above_input_tokens - a.above_input_tokens)
      .map((tier) => ({ above: tier.above_input_tokens, rates: ratesOf(scaledTier(price, tier), exchange) })),
    image: each(price.image),
    images: images.map((one) => ({ size: one.size, quality: one.quality, rate: each(one.price) })),
    video: each(price.video),
    video_second: each(price.video_second),
    video_seconds: video_seconds.map((one) => ({ size: one.size, sound: one.sound, rate: each(one.price) })),
    three_d: each(price.three_d),
    search: each(price.searches) / THOUSAND,
    speech_character: each(price.speech_characters) / MILLION,
    audio_second: each(price.audio_minute) / SECONDS_A_MINUTE,
    request: Math.round(each(price.request ?? 0)),
    factors: {
      batch: service_tiers?.batch ?? 1,
      flex: service_tiers?.flex ?? 1,
      priority: service_tiers?.priority ?? 1,
    },
  }
}

type TokenPrices = Pick<Price, (typeof TOKEN_PRICES)[number]>

/** A part without a price of its own costs what providers charge then: that of the next wider part. */
function ratesOf(prices: TokenPrices, exchange: number): TokenRates {
  const rate = (...amounts: (number | undefined)[]) => {
    const amount = amounts.find((one) => one !== undefined)
    return amount === undefined ? Number.NaN : amount * NANO_OF_MILLIONTH * exchange
  }
  const { input, output, cache_write } = prices
  return {
    input: rate(input),
    cached_input: rate(prices.cached_input, input),
    cache_write: rate(cache_write, input),
    cache_write_1h: rate(prices.cache_write_1h, cache_write, input),
    input_audio: rate(prices.input_audio, input),
    output: rate(output),
    reasoning: rate(prices.reasoning, output),
    output_audio: rate(prices.output_audio, output),
  }
}

const OUTPUT_PRICES: readonly string[] = ['output', 'reasoning', 'output_audio']

/**
 * The prices of a tier. One that it omits rises as its input or output price does: Anthropic, Google and OpenAI raise the
 * prices of caching and of all output by the same factor.
 */
function scaledTier(base: TokenPrices, tier: TokenPrices): TokenPrices {
  const ratio = (name: 'input' | 'output') => {
    const [from, to] = [base[name], tier[name]]
    return from && to !== undefined ? to / from : 1
  }
  const [input, output] = [ratio('input'), ratio('output')]
  const out: TokenPrices = {}
  for (const name of TOKEN_PRICES) {
    const own = base[name]
    const scaled = own === undefined ? undefined : own * (OUTPUT_PRICES.includes(name) ? output : input)
    const value = tier[name] ?? scaled
    if (value !== undefined) out[name] = value
  }
  return out
}

/** The same prices at the same exchange rate have the same name, in every process and after every restart. */
function versionName(price: Price, exchange: number): string {
  const { source: _, as_of, ...figures } = price
  const hash = hash32(`${canonical(figures)} ${exchange}`)
    .toString(16)
    .padStart(8, '0')
  const date = price.from ?? as_of
  return date === undefined ? hash : `${date}-${hash}`
}

/** JSON with the members of each object in the order of their names. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )
}
