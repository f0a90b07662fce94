/** The contract of a provider that speaks or transcribes. */
import type {
  SpeechFormat,
  SpeechRequest,
  Transcript,
  TranscriptFormat,
  TranscriptionRequest,
} from '../spec/audio-request.ts'

export type SpeechCall = {
  model: string
  /** Within the model's limits; the voice by its name or id. */
  request: Omit<SpeechRequest, 'model' | 'stream_format' | 'user'> & { response_format: SpeechFormat }
  request_id: string
}

/** A part of the audio, or what the provider has counted: the last counts are valid. */
export type SpeechPart = Uint8Array | { input_tokens: number; output_tokens: number }

export type SpeechProvider = {
  /**
   * The audio in parts, as they arrive. Throws GatewayError before the first part for an error response, and where it ends
   * early; ends at once when `signal` is aborted. `detail.accepted: 'no'` says that it was certainly not accepted.
   */
  speak(call: SpeechCall, signal: AbortSignal): AsyncIterable<SpeechPart>
}

/** Audio of a request: its bytes can be sent several times, to one target after another. */
export type Recording = {
  filename: string
  content_type: string
  readonly bytes: Uint8Array<ArrayBuffer>
  /** A form with the file and these fields: a view of memory that the recording keeps, valid until the next call. */
  form(fields: readonly (readonly [name: string, value: string])[]): {
    bytes: Uint8Array<ArrayBuffer>
    content_type: string
  }
}

export type TranscriptionCall = {
  model: string
  task: 'transcribe' | 'translate'
  request: Omit<TranscriptionRequest, 'model' | 'stream' | 'user'> & { response_format: TranscriptFormat }
  recording: Recording
  request_id: string
}

/** An event of a transcription; the last one of a complete stream is the end. */
export type TranscriptPart =
  | { type: 'event'; event: Readonly<Record<string, unknown>> }
  | { type: 'end'; transcript: Transcript }

export type TranscriptionProvider = {
  /** Throws GatewayError; one with `detail.accepted: 'no'` says that the request was certainly not accepted. */
  transcribe(call: TranscriptionCall, signal: AbortSignal): Promise<Transcript>
  /** The same with the text as it is recognized; absent where the provider has no such API. */
  stream?(call: TranscriptionCall, signal: AbortSignal): AsyncIterable<TranscriptPart>
}
