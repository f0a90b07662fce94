/**
 * The token usage of one response (specification, section 2.4), and what a call uses, in the units that are counted, limited
 * and charged.
 */
import Type from 'typebox'
import { integer, orNull, titled } from './fields.ts'

const count = Type.Integer({ minimum: 0 })

const InputTokenDetails = titled('InputTokenDetails', {
  cached_tokens: count,
  text_tokens: count,
  audio_tokens: count,
  image_tokens: count,
  cache_write_tokens: Type.Optional(count),
  cache_write_1h_tokens: integer({ minimum: 0 }, 'The part of `cache_write_tokens` that is cached for an hour.'),
})
type InputTokenDetails = Type.Static<typeof InputTokenDetails>

const OutputTokenDetails = titled('OutputTokenDetails', {
  text_tokens: count,
  audio_tokens: count,
  reasoning_tokens: count,
})

export const Usage = titled('Usage', {
  prompt_tokens: count,
  completion_tokens: count,
  total_tokens: count,
  prompt_tokens_details: InputTokenDetails,
  completion_tokens_details: OutputTokenDetails,
  input_tokens: count,
  output_tokens: count,
  input_tokens_details: Type.Optional(orNull(InputTokenDetails)),
  prompt_cache_hit_tokens: Type.Optional(count),
  cost: Type.Optional(
    orNull(
      Type.Number({ minimum: 0 }),
      'What the request is charged, in units of the currency of the ledger; null: the price is unknown. Present where the request has `usage: {"include": true}`.',
    ),
  ),
  estimated: Type.Optional(
    Type.Literal(true, { description: 'Present when the upstream gave no usage and the counts are an estimate.' }),
  ),
})
export type Usage = Type.Static<typeof Usage>

/** For requests that only have text input: embeddings, rerank. */
export const TextUsage = titled('TextUsage', {
  prompt_tokens: count,
  total_tokens: count,
  estimated: Usage.properties.estimated,
})
export type TextUsage = Type.Static<typeof TextUsage>

/** The known token counts of a response. Everything except the two sums may be absent. */
type UsageCounts = {
  input: number
  output: number
  cached?: number | undefined
  /** All that was written, and the part of it that was written to a cache of one hour. */
  cache_write?: number | undefined
  cache_write_1h?: number | undefined
  input_audio?: number | undefined
  input_image?: number | undefined
  output_audio?: number | undefined
  reasoning?: number | undefined
  estimated?: boolean | undefined
}

/** Builds the specification's usage object. Text tokens are the remainder after all other kinds. */
export function usageFrom(counts: UsageCounts): Usage {
  const { input, output } = counts
  const inputAudio = counts.input_audio ?? 0
  const inputImage = counts.input_image ?? 0
  const outputAudio = counts.output_audio ?? 0
  const reasoning = counts.reasoning ?? 0
  const details: InputTokenDetails = {
    cached_tokens: counts.cached ?? 0,
    text_tokens: Math.max(0, input - inputAudio - inputImage),
    audio_tokens: inputAudio,
    image_tokens: inputImage,
  }
  if (counts.cache_write !== undefined) details.cache_write_tokens = counts.cache_write
  if (counts.cache_write_1h !== undefined) details.cache_write_1h_tokens = counts.cache_write_1h
  const usage: Usage = {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: details,
    completion_tokens_details: {
      text_tokens: Math.max(0, output - outputAudio - reasoning),
      audio_tokens: outputAudio,
      reasoning_tokens: reasoning,
    },
    input_tokens: input,
    output_tokens: output,
    input_tokens_details: null,
  }
  if (counts.cached !== undefined) usage.prompt_cache_hit_tokens = counts.cached
  if (counts.estimated) usage.estimated = true
  return usage
}

/** The usage of two calls together. */
export function addedUsage(one: Usage, other: Usage): Usage {
  const sum = (of: (usage: Usage) => number | undefined): number | undefined => {
    const [left, right] = [of(one), of(other)]
    return left === undefined && right === undefined ? undefined : (left ?? 0) + (right ?? 0)
  }
  return usageFrom({
    input: one.input_tokens + other.input_tokens,
    output: one.output_tokens + other.output_tokens,
    cached: sum((usage) => usage.prompt_cache_hit_tokens ?? usage.prompt_tokens_details.cached_tokens),
    cache_write: sum((usage) => usage.prompt_tokens_details.cache_write_tokens),
    cache_write_1h: sum((usage) => usage.prompt_tokens_details.cache_write_1h_tokens),
    input_audio: sum((usage) => usage.prompt_tokens_details.audio_tokens),
    input_image: sum((usage) => usage.prompt_tokens_details.image_tokens),
    output_audio: sum((usage) => usage.completion_tokens_details.audio_tokens),
    reasoning: sum((usage) => usage.completion_tokens_details.reasoning_tokens),
    estimated: one.estimated || other.estimated,
  })
}

/** The parts of the two totals are absent where nothing was used of them, or the provider does not report them. */
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
  /** Of the text that was spoken. */
  speech_characters?: number | undefined
  /** Of the audio that was transcribed. */
  audio_seconds?: number | undefined
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

const wholeOf = (given: number): number => (given > 0 ? Math.min(MAX_COUNT, Math.round(given)) : 0)
const partOf = (rest: number, given: number | undefined) =>
  given === undefined ? undefined : Math.min(rest, wholeOf(given))
const piecesOf = (given: number | undefined) =>
  given === undefined || Number.isNaN(given) ? undefined : Math.min(MAX_COUNT, Math.max(0, given))

/**
 * As providers may report them: a wrong count must not corrupt the sums. Counts are finite, and the parts of a total are
 * together at most the total: a token that is reported as two kinds counts as the first of them.
 */
export function boundedUnits(units: Units): Units {
  const input_tokens = wholeOf(units.input_tokens)
  const output_tokens = wholeOf(units.output_tokens)
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
    speech_characters: piecesOf(units.speech_characters),
    audio_seconds: piecesOf(units.audio_seconds),
    requests: units.requests,
    service_tier: units.service_tier,
    estimated: units.estimated,
  } satisfies Required<Record<keyof Units, unknown>>
}

/** A part that was not used is absent: it would be written three times for each call. */
const used = (count: number): number | undefined => count || undefined

/** The units of a served chat call. `service_tier`: as the client requested it. */
export function unitsOfUsage(usage: Usage, service_tier?: string): Units {
  const { prompt_tokens_details: input, completion_tokens_details: output } = usage
  const written_1h = input.cache_write_1h_tokens ?? 0
  return {
    input_tokens: usage.prompt_tokens,
    output_tokens: usage.completion_tokens,
    cached_tokens: used(input.cached_tokens),
    cache_write_tokens: used(Math.max(0, (input.cache_write_tokens ?? 0) - written_1h)),
    cache_write_1h_tokens: used(written_1h),
    input_audio_tokens: used(input.audio_tokens),
    output_audio_tokens: used(output.audio_tokens),
    reasoning_tokens: used(output.reasoning_tokens),
    requests: 1,
    service_tier,
    estimated: usage.estimated,
  }
}
