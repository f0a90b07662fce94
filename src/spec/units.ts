/** What a call uses, in the units that are counted, limited and charged. */
import type { Usage } from './usage.ts'

/** The parts of the two totals are absent where the provider does not report them. */
export type Units = {
  /** All input: read from a cache, written to one, audio and images included. */
  input_tokens: number
  /** All output: reasoning and audio included. */
  output_tokens: number
  /** Input that was read from the provider's prompt cache. */
  cached_tokens?: number | undefined
  /** Input that was written to a prompt cache of five minutes. */
  cache_write_tokens?: number | undefined
  /** Input that was written to a prompt cache of one hour. */
  cache_write_1h_tokens?: number | undefined
  input_audio_tokens?: number | undefined
  output_audio_tokens?: number | undefined
  reasoning_tokens?: number | undefined
  images?: number | undefined
  /** Such as `1024x1024`. */
  image_size?: string | undefined
  /** Such as `hd`. */
  image_quality?: string | undefined
  videos?: number | undefined
  /** Of all its videos together. */
  video_seconds?: number | undefined
  /** Such as `1280x720`. */
  video_size?: string | undefined
  has_sound?: boolean | undefined
  three_d?: number | undefined
  /** Of a rerank call. */
  searches?: number | undefined
  /** 1 of a call that was served: some prices are per request. */
  requests?: number | undefined
  /** By which the provider has served it, such as `flex`; undefined: the usual one. */
  service_tier?: string | undefined
  /** The provider reported no usage. */
  estimated?: boolean | undefined
}

/** Before a call is sent: what it probably uses, and the most that it can use as far as that is known. */
export type Estimate = { expected: Units; most: Units }

export const NO_UNITS: Readonly<Units> = { input_tokens: 0, output_tokens: 0 }

/** No response has a billion tokens, nor as many images. */
const MAX_COUNT = 1_000_000_000

const count = (given: number): number => (given > 0 ? Math.min(MAX_COUNT, Math.round(given)) : 0)
const partOf = (rest: number, given: number | undefined) =>
  given === undefined ? undefined : Math.min(rest, count(given))
const piecesOf = (given: number | undefined) =>
  given === undefined || Number.isNaN(given) ? undefined : Math.min(MAX_COUNT, Math.max(0, given))

/**
 * As providers may report them: a wrong count must not corrupt the sums. Counts are finite, and the parts of a total are
 * together at most the total: a token that is reported as two kinds counts as the first of them.
 */
export function boundedUnits(units: Units): Units {
  const input_tokens = count(units.input_tokens)
  const output_tokens = count(units.output_tokens)
  const cached_tokens = partOf(input_tokens, units.cached_tokens)
  let rest = input_tokens - (cached_tokens ?? 0)
  const cache_write_tokens = partOf(rest, units.cache_write_tokens)
  rest -= cache_write_tokens ?? 0
  const cache_write_1h_tokens = partOf(rest, units.cache_write_1h_tokens)
  rest -= cache_write_1h_tokens ?? 0
  const output_audio_tokens = partOf(output_tokens, units.output_audio_tokens)
  return {
    input_tokens,
    output_tokens,
    cached_tokens,
    cache_write_tokens,
    cache_write_1h_tokens,
    input_audio_tokens: partOf(rest, units.input_audio_tokens),
    output_audio_tokens,
    reasoning_tokens: partOf(output_tokens - (output_audio_tokens ?? 0), units.reasoning_tokens),
    images: piecesOf(units.images),
    image_size: units.image_size,
    image_quality: units.image_quality,
    videos: piecesOf(units.videos),
    video_seconds: piecesOf(units.video_seconds),
    video_size: units.video_size,
    has_sound: units.has_sound,
    three_d: piecesOf(units.three_d),
    searches: piecesOf(units.searches),
    requests: units.requests,
    service_tier: units.service_tier,
    estimated: units.estimated,
  } satisfies Required<Record<keyof Units, unknown>>
}

/** The units of a served chat call. `service_tier`: as the client requested it. */
export function unitsOfUsage(usage: Usage, service_tier?: string): Units {
  const { prompt_tokens_details: input, completion_tokens_details: output } = usage
  const written_1h = input.cache_write_1h_tokens ?? 0
  return {
    input_tokens: usage.prompt_tokens,
    output_tokens: usage.completion_tokens,
    cached_tokens: input.cached_tokens,
    cache_write_tokens: Math.max(0, (input.cache_write_tokens ?? 0) - written_1h),
    cache_write_1h_tokens: written_1h,
    input_audio_tokens: input.audio_tokens,
    output_audio_tokens: output.audio_tokens,
    reasoning_tokens: output.reasoning_tokens,
    requests: 1,
    service_tier,
    estimated: usage.estimated,
  }
}
