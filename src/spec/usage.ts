/** The token usage of one response (specification, section 2.4). */
import Type from 'typebox'
import { integer } from './fields.ts'

const count = Type.Integer({ minimum: 0 })

const InputTokenDetails = Type.Object(
  {
    cached_tokens: count,
    text_tokens: count,
    audio_tokens: count,
    image_tokens: count,
    cache_write_tokens: Type.Optional(count),
    cache_write_1h_tokens: integer({ minimum: 0 }, 'The part of `cache_write_tokens` that is cached for an hour.'),
  },
  { title: 'InputTokenDetails' },
)
type InputTokenDetails = Type.Static<typeof InputTokenDetails>

const OutputTokenDetails = Type.Object(
  { text_tokens: count, audio_tokens: count, reasoning_tokens: count },
  { title: 'OutputTokenDetails' },
)

export const Usage = Type.Object(
  {
    prompt_tokens: count,
    completion_tokens: count,
    total_tokens: count,
    prompt_tokens_details: InputTokenDetails,
    completion_tokens_details: OutputTokenDetails,
    input_tokens: count,
    output_tokens: count,
    input_tokens_details: Type.Optional(Type.Union([InputTokenDetails, Type.Null()])),
    prompt_cache_hit_tokens: Type.Optional(count),
    cost: Type.Optional(
      Type.Union([Type.Number({ minimum: 0 }), Type.Null()], {
        description:
          'What the request is charged, in units of the currency of the ledger; null: the price is unknown. Present where the request has `usage: {"include": true}`.',
      }),
    ),
    estimated: Type.Optional(
      Type.Literal(true, { description: 'Present when the upstream gave no usage and the counts are an estimate.' }),
    ),
  },
  { title: 'Usage' },
)
export type Usage = Type.Static<typeof Usage>

/** For requests that only have text input: embeddings, rerank. */
export const TextUsage = Type.Object(
  { prompt_tokens: count, total_tokens: count, estimated: Usage.properties.estimated },
  { title: 'TextUsage' },
)
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
