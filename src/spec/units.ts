/** What a call uses, in the units that are counted, limited and charged. */

/** The parts of the two totals are absent where the provider does not report them. */
export type Units = {
  /** All input: read from a cache, written to one, audio and images included. */
  input_tokens: number
  /** All output: reasoning and audio included. */
  output_tokens: number
  /** Input that was read from the provider's prompt cache. */
  cached_tokens?: number
  /** Input that was written to a prompt cache of five minutes. */
  cache_write_tokens?: number
  /** Input that was written to a prompt cache of one hour. */
  cache_write_1h_tokens?: number
  input_audio_tokens?: number
  output_audio_tokens?: number
  reasoning_tokens?: number
  images?: number
  /** Such as `1024x1024`. */
  image_size?: string
  /** Such as `hd`. */
  image_quality?: string
  videos?: number
  /** Of all its videos together. */
  video_seconds?: number
  /** Such as `1280x720`. */
  video_size?: string
  has_sound?: boolean
  three_d?: number
  /** Of a rerank call. */
  searches?: number
  /** 1 of a call that was served: some prices are per request. */
  requests?: number
  /** By which the provider has served it, such as `flex`; undefined: the usual one. */
  service_tier?: string
  /** The provider reported no usage. */
  estimated?: boolean | undefined
}

/** Before a call is sent: what it probably uses, and the most that it can use as far as that is known. */
export type Estimate = { expected: Units; most: Units }

export const NO_UNITS: Readonly<Units> = { input_tokens: 0, output_tokens: 0 }
