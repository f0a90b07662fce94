/** Contract of a vendor's row for audio behind AI SDK packages. */
import type { SpeechFormat } from '../../spec/audio-request.ts'

export type Option = string | number | boolean | string[]
type CallParts = { abortSignal: AbortSignal; providerOptions: Record<string, Record<string, Option>> }

/** What is used of a package's model; the packages bring several versions of its full type. */
export type SpeechModel = {
  doGenerate(
    options: CallParts & { text: string; voice: string; outputFormat: string; instructions?: string; speed?: number },
  ): PromiseLike<{ audio: string | Uint8Array; usage?: unknown }>
}
export type TranscriptionModel = {
  doGenerate(options: CallParts & { audio: Uint8Array; mediaType: string }): PromiseLike<{
    text: string
    segments: Timed[]
    words?: Timed[] | undefined
    language: string | undefined
    durationInSeconds: number | undefined
  }>
}
export type Timed = { text: string; startSecond: number; endSecond: number }

export type SpeechFamily = {
  /** The values of `response_format` that it has, as the package names them. */
  formats: Partial<Record<SpeechFormat, string>>
  has_speed?: true
  has_instructions?: true
}

export type TranscriptionFamily = {
  /** The package's options for the fields of a request, and what only tunes is left out where it has none. */
  options?: { language?: string; prompt?: string; temperature?: string }
  /** Whether what the package calls segments are words. */
  segments: 'words' | 'segments'
  /** The package's duration is the end of the last word: the audio may last longer. */
  duration_of_words?: true
  always?: Record<string, Option>
  /** Options of a request that names no language. */
  detects?: Record<string, Option>
  /** The options with which times come. */
  timed?(words: boolean): Record<string, Option>
}
