/**
 * Money, and what units cost by compiled prices: whole nano-units of the ledger's currency (10^-9), so that sums are exact; NaN
 * where a cost is unknown.
 */
import type { Units } from './usage.ts'

export const NANO = 1_000_000_000

/** The greatest amount in units of the currency: above it, nano-units are no longer exact in a number. */
export const MAX_AMOUNT = 9_000_000

/** From an amount as people write it, such as 0.25; rounded to the nearest nano-unit. */
export const toNano = (amount: number): number => Math.round(amount * NANO)

export const fromNano = (nano: number): number => nano / NANO

/** A decimal number without an exponent and without trailing zeros, such as `0.00123`. */
export function nanoText(nano: number | bigint): string {
  if (typeof nano === 'number' && nano >= 0 && Number.isSafeInteger(nano)) return decimalText(String(nano))
  const value = BigInt(nano)
  return value < 0n ? `-${decimalText(String(-value))}` : decimalText(String(value))
}

function decimalText(nano: string): string {
  const digits = nano.padStart(10, '0')
  const point = digits.length - 9
  let end = digits.length
  while (end > point && digits.charCodeAt(end - 1) === ZERO) end--
  return end === point ? digits.slice(0, point) : `${digits.slice(0, point)}.${digits.slice(point, end)}`
}

const ZERO = 48

/** Nano-units of the ledger's currency per token. NaN: unknown. */
export type TokenRates = {
  input: number
  cached_input: number
  cache_write: number
  cache_write_1h: number
  input_audio: number
  output: number
  reasoning: number
  output_audio: number
}

/** One entry of a table of prices. Undefined members match anything. */
type ImageRate = { size: string | undefined; quality: string | undefined; rate: number }
type VideoRate = { size: string | undefined; sound: boolean | undefined; rate: number }

const SERVICE_TIERS = ['batch', 'flex', 'priority'] as const
type ServiceTier = (typeof SERVICE_TIERS)[number]

/** The prices that are in force from one date on, compiled so that a charge is a few multiplications. */
export type PriceVersion = {
  /** Its date and a short hash of all that it says, such as `2026-11-01-3f2a9c1b`. */
  id: string
  /** Unix seconds. */
  from: number
  rates: TokenRates
  /** The greatest threshold first. */
  tiers: readonly { above: number; rates: TokenRates }[]
  /** Per image, where no entry of the table matches; NaN: unknown. */
  image: number
  images: readonly ImageRate[]
  /** Per video; NaN: none. */
  video: number
  /** Per second, where no entry of the table matches; NaN: none. */
  video_second: number
  video_seconds: readonly VideoRate[]
  three_d: number
  search: number
  /** Per character of a text that is spoken. */
  speech_character: number
  /** Per second of audio that is transcribed. */
  audio_second: number
  /** Per request; 0 where there is none. */
  request: number
  factors: Readonly<Record<ServiceTier, number>>
}

/** The version that is in force; undefined: none yet. */
export function priceAt(versions: readonly PriceVersion[], at: number): PriceVersion | undefined {
  for (let index = versions.length - 1; index >= 0; index--) {
    const version = versions[index]
    if (version && version.from <= at) return version
  }
  return undefined
}

/** A request whose input is longer than a threshold has the prices of that tier as a whole, its output included. */
export function ratesFor({ tiers, rates }: PriceVersion, input_tokens: number): TokenRates {
  for (const tier of tiers) if (input_tokens > tier.above) return tier.rates
  return rates
}

/** Whether nothing was used, so that even an unknown price makes it cost nothing. */
export const isNothing = (units: Units): boolean =>
  units.input_tokens === 0 &&
  units.output_tokens === 0 &&
  !units.requests &&
  !units.images &&
  !units.videos &&
  !units.three_d &&
  !units.searches &&
  !units.speech_characters &&
  !units.audio_seconds

/** What units cost; NaN where the price of a part of them is unknown. */
export function amountOf(version: PriceVersion, units: Units): number {
  if (isNothing(units)) return 0
  const factor = factorOf(version, units.service_tier)
  const rates = ratesFor(version, units.input_tokens)
  if (!hasPieces(units)) {
    return version.request + inputAmount(rates, units, factor) + outputAmount(rates, units, factor)
  }
  const pieces = pieceAmount(version, units, factor, EXACT)
  const [input, output] = [inputAmount(rates, units, factor), outputAmount(rates, units, factor)]
  // Images, videos and audio are charged by piece, by token, or by both; tokens without a price are then part of the piece.
  if (pieces !== undefined) return version.request + pieces + (input || 0) + (output || 0)
  const isMeasured = units.input_tokens + units.output_tokens > 0
  return isMeasured ? version.request + input + output : Number.NaN
}

/**
 * The most that units cost when it is not known yet how they divide: each token has the dearest price that it can have.
 * Input counts as written to a cache, or as audio, only where the units say that some of it can be.
 */
export function mostAmountOf(version: PriceVersion, units: Units): number {
  if (isNothing(units)) return 0
  const factor = mostFactorOf(version, units.service_tier)
  let input = mostInputAmount(version.rates, units, factor)
  let output = mostOutputAmount(version.rates, units, factor)
  for (const { above, rates } of version.tiers) {
    if (units.input_tokens <= above) continue
    input = Math.max(input, mostInputAmount(rates, units, factor))
    output = Math.max(output, mostOutputAmount(rates, units, factor))
  }
  if (!hasPieces(units)) return version.request + input + output
  const pieces = pieceAmount(version, units, factor, MOST)
  return version.request + (pieces === undefined ? input + output : pieces + (input || 0) + (output || 0))
}

const hasPieces = ({ images, videos, three_d, searches, speech_characters, audio_seconds }: Units): boolean =>
  (images ?? 0) + (videos ?? 0) + (three_d ?? 0) + (searches ?? 0) + (speech_characters ?? 0) + (audio_seconds ?? 0) > 0

function factorOf({ factors }: PriceVersion, tier: string | undefined): number {
  if (tier === undefined) return 1
  return tier === 'flex' || tier === 'batch' || tier === 'priority' ? factors[tier] : 1
}

/** `auto` lets the provider choose. */
function mostFactorOf(version: PriceVersion, tier: string | undefined): number {
  if (tier !== 'auto') return tier === 'priority' ? Math.max(1, version.factors.priority) : factorOf(version, tier)
  return Math.max(1, version.factors.flex, version.factors.priority)
}

/** A part that was not used needs no price. */
const part = (count: number, rate: number): number => (count <= 0 ? 0 : Math.round(count * rate))

function inputAmount(rates: TokenRates, units: Units, factor: number): number {
  const cached = units.cached_tokens ?? 0
  const written = units.cache_write_tokens ?? 0
  const written_1h = units.cache_write_1h_tokens ?? 0
  const audio = units.input_audio_tokens ?? 0
  return (
    part(units.input_tokens - cached - written - written_1h - audio, rates.input * factor) +
    part(cached, rates.cached_input * factor) +
    part(written, rates.cache_write * factor) +
    part(written_1h, rates.cache_write_1h * factor) +
    part(audio, rates.input_audio * factor)
  )
}

function outputAmount(rates: TokenRates, units: Units, factor: number): number {
  const reasoning = units.reasoning_tokens ?? 0
  const audio = units.output_audio_tokens ?? 0
  return (
    part(units.output_tokens - reasoning - audio, rates.output * factor) +
    part(reasoning, rates.reasoning * factor) +
    part(audio, rates.output_audio * factor)
  )
}

/** A sum of parts is rounded up by at most half a unit for each. */
const most = (count: number, rate: number): number =>
  count <= 0 || rate === 0 ? 0 : Math.ceil(count * rate) + MOST_ROUNDED_UP
const MOST_ROUNDED_UP = 3

function mostInputAmount(rates: TokenRates, units: Units, factor: number): number {
  let rate = Math.max(rates.input, rates.cached_input)
  if (units.cache_write_tokens) rate = Math.max(rate, rates.cache_write)
  if (units.cache_write_1h_tokens) rate = Math.max(rate, rates.cache_write_1h)
  if (units.input_audio_tokens) rate = Math.max(rate, rates.input_audio)
  return most(units.input_tokens, rate * factor)
}

function mostOutputAmount(rates: TokenRates, units: Units, factor: number): number {
  let rate = Math.max(rates.output, rates.reasoning)
  if (units.output_audio_tokens) rate = Math.max(rate, rates.output_audio)
  return most(units.output_tokens, rate * factor)
}

/** What images, videos, 3D models, searches and audio cost by piece; undefined where none has such a price. */
function pieceAmount(version: PriceVersion, units: Units, factor: number, rates: PieceRates): number | undefined {
  let sum: number | undefined
  const add = (count: number | undefined, rate: number) => {
    if (count && !Number.isNaN(rate)) sum = (sum ?? 0) + rates.charge(count, rate * factor)
  }
  add(units.images, rates.image(version, units))
  add(units.videos, version.video)
  add(units.three_d, version.three_d)
  add(units.searches, version.search)
  add(units.speech_characters, version.speech_character)
  add(units.audio_seconds, version.audio_second)
  if (units.videos && hasSecondRates(version)) {
    sum = (sum ?? 0) + rates.charge(units.video_seconds ?? Number.NaN, rates.video(version, units) * factor)
  }
  return sum
}

const hasSecondRates = ({ video_second, video_seconds }: PriceVersion): boolean =>
  video_seconds.length > 0 || !Number.isNaN(video_second)

/** `isOpen`: what the units do not say can be any value. */
const matches = <Value>(priced: Value | undefined, found: Value | undefined, isOpen: boolean): boolean =>
  priced === undefined || priced === found || (isOpen && found === undefined)

/** The prices of the entries that fit, in their order. */
const imageRates = ({ images }: PriceVersion, { image_size, image_quality }: Units, isOpen: boolean): number[] =>
  images
    .filter(({ size, quality }) => matches(size, image_size, isOpen) && matches(quality, image_quality, isOpen))
    .map(({ rate }) => rate)

const videoRates = ({ video_seconds }: PriceVersion, { video_size, has_sound }: Units, isOpen: boolean): number[] =>
  video_seconds
    .filter(({ size }) => matches(size, video_size, isOpen) || isOfSide(video_size, size))
    .filter(({ sound }) => matches(sound, has_sound, isOpen))
    .map(({ rate }) => rate)

/** `720p` is any size whose shorter side has 720 pixels. */
function isOfSide(found = '', size = ''): boolean {
  const side = /^(\d+)p$/.exec(size)?.[1]
  const sides = /^(\d+)x(\d+)$/.exec(found)
  return side !== undefined && sides !== null && Math.min(Number(sides[1]), Number(sides[2])) === Number(side)
}

const mostOfRates = (rates: readonly number[], otherwise: number): number => {
  const known = Number.isNaN(otherwise) ? rates : [...rates, otherwise]
  return known.length === 0 ? Number.NaN : Math.max(...known)
}

type PieceRates = {
  charge(count: number, rate: number): number
  image(version: PriceVersion, units: Units): number
  video(version: PriceVersion, units: Units): number
}
const EXACT: PieceRates = {
  charge: part,
  image: (version, units) => imageRates(version, units, false)[0] ?? version.image,
  video: (version, units) => videoRates(version, units, false)[0] ?? version.video_second,
}
/** The dearest price that fits what is known: a size that the provider chooses can be any. */
const MOST: PieceRates = {
  charge: most,
  image: (version, units) => mostOfRates(imageRates(version, units, true), version.image),
  video: (version, units) => mostOfRates(videoRates(version, units, true), version.video_second),
}
