/** Requests for speech, transcriptions and translations of speech, and their responses, in the OpenAI format. */
import Type from 'typebox'
import { flag, integer, list, number, oneOf, optional, text, titled } from './fields.ts'
import { Usage } from './usage.ts'

const MAX_SPEECH_CHARACTERS = 100_000

export const SPEECH_FORMATS = ['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm'] as const
export type SpeechFormat = (typeof SPEECH_FORMATS)[number]

/** `pcm`: 16 bits a sample, little-endian, one channel, mostly 24,000 samples a second. */
export const SPEECH_TYPES: Record<SpeechFormat, string> = {
  mp3: 'audio/mpeg',
  opus: 'audio/ogg',
  aac: 'audio/aac',
  flac: 'audio/flac',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
}

const VOICE = /^\S{1,200}$/.source

export const SpeechRequest = titled('SpeechRequest', {
  model: Type.String({ minLength: 1, description: 'A model whose `supported_endpoint_types` has `audio-speech`.' }),
  input: Type.String({
    minLength: 1,
    maxLength: MAX_SPEECH_CHARACTERS,
    description: 'The text that is spoken. Most models accept far fewer characters than the gateway.',
  }),
  voice: Type.Union([Type.String({ pattern: VOICE }), Type.Object({ id: Type.String({ pattern: VOICE }) })], {
    description: "The name of one of the model's voices, or the id of a voice of one's own.",
  }),
  instructions: text({ maxLength: 10_000 }, 'How the text is spoken, where the model understands it.'),
  response_format: oneOf(SPEECH_FORMATS, 'Default mp3.'),
  speed: number({ minimum: 0.25, maximum: 4 }, 'Default 1.'),
  stream_format: oneOf(
    ['audio', 'sse'],
    'The bytes of the audio, as they arrive, or events that contain them and end with the usage. Default audio.',
  ),
  user: text('The end user.'),
})
export type SpeechRequest = Type.Static<typeof SpeechRequest>

/** The events of `stream_format: sse`. */
export const SpeechEvent = titled('SpeechEvent', {
  type: Type.String({ description: '`speech.audio.delta` or `speech.audio.done`.' }),
  audio: text('A part of the audio in base64.'),
  usage: Type.Optional(
    Type.Object({ input_tokens: Type.Integer(), output_tokens: Type.Integer(), total_tokens: Type.Integer() }),
  ),
})

const TRANSCRIPT_FORMATS = ['json', 'text', 'srt', 'verbose_json', 'vtt', 'diarized_json'] as const
export type TranscriptFormat = (typeof TRANSCRIPT_FORMATS)[number]

/** Of OpenAI. */
const MOST_SPEAKERS = 4

export const TranscriptionRequest = titled('TranscriptionRequest', {
  file: Type.String({ description: 'The audio: a file of the form.' }),
  model: Type.String({
    minLength: 1,
    description: 'A model whose `supported_endpoint_types` has `audio-transcription`.',
  }),
  language: text({ pattern: '^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$' }, 'ISO 639-1, such as `en`. Default: detected.'),
  prompt: text({ maxLength: 100_000 }, 'A text that guides the style, or continues earlier audio.'),
  response_format: oneOf(
    TRANSCRIPT_FORMATS,
    '`diarized_json` names speakers, where the model does. Translations: not `diarized_json`. Default json.',
  ),
  stream: flag('Respond with events, as the text is recognized. Transcriptions only.'),
  temperature: number({ minimum: 0, maximum: 1 }, 'Default 0.'),
  timestamp_granularities: list(
    Type.Enum(['word', 'segment']),
    { maxItems: 2 },
    'With `verbose_json`: times of words, of segments, or of both. Default segment.',
  ),
  include: list(Type.Enum(['logprobs']), { maxItems: 1 }, 'With `json`: log probabilities of the tokens.'),
  chunking_strategy: optional(
    Type.Union([Type.Literal('auto'), Type.Record(Type.String(), Type.Unknown())], {
      description: 'How the audio is cut: `auto`, or settings of voice detection as a JSON object.',
    }),
  ),
  known_speaker_names: list(
    Type.String({ maxLength: 1_000 }),
    { maxItems: MOST_SPEAKERS },
    'With `diarized_json`: names of speakers.',
  ),
  known_speaker_references: list(
    Type.String({ maxLength: 4_000_000 }),
    { maxItems: MOST_SPEAKERS },
    'With `diarized_json`: a sample of each named speaker, as a data URI.',
  ),
  user: text('The end user.'),
})
export type TranscriptionRequest = Omit<Type.Static<typeof TranscriptionRequest>, 'file'>

const count = Type.Integer({ minimum: 0 })

/** By tokens, or by the seconds of the audio. */
const TranscriptUsage = Type.Union([
  Type.Object({
    type: Type.Literal('tokens'),
    input_tokens: count,
    input_token_details: Type.Optional(
      Type.Object({ text_tokens: Type.Optional(count), audio_tokens: Type.Optional(count) }),
    ),
    output_tokens: count,
    total_tokens: count,
  }),
  Type.Object({
    type: Type.Literal('duration'),
    seconds: Type.Number({ minimum: 0 }),
    estimated: Usage.properties.estimated,
  }),
])
export type TranscriptUsage = Type.Static<typeof TranscriptUsage>

const time = (description: string) => Type.Number({ minimum: 0, description })

const Segment = Type.Object({ start: time('Seconds.'), end: time('Seconds.'), text: Type.String() })
const Word = Type.Object({ word: Type.String(), start: time('Seconds.'), end: time('Seconds.') })
export type TranscriptSegment = Type.Static<typeof Segment>
export type TranscriptWord = Type.Static<typeof Word>

/** What each format has is the provider's; the text is always there. */
export const Transcript = titled('Transcript', {
  text: Type.String(),
  task: text('`transcribe` or `translate`.'),
  language: text('As the provider names it.'),
  duration: number({ minimum: 0 }, 'Seconds.'),
  segments: list(Segment, 'With further members of the provider, such as `speaker`.'),
  words: list(Word, 'With `timestamp_granularities: ["word"]`.'),
  logprobs: list(Type.Record(Type.String(), Type.Unknown()), 'With `include: ["logprobs"]`.'),
  usage: optional(TranscriptUsage),
})
export type Transcript = Type.Static<typeof Transcript>

/** The events of a transcription with `stream: true`. */
export const TranscriptEvent = titled('TranscriptEvent', {
  type: Type.String({
    description: '`transcript.text.delta`, `transcript.text.segment`, and at the end `transcript.text.done`.',
  }),
  delta: text('Of a delta: the next part of the text.'),
  text: text('Of the end: the whole text. Of a segment: its text.'),
  segment_id: text('Of a delta: the segment that it belongs to.'),
  id: text('Of a segment.'),
  start: number('Of a segment: seconds.'),
  end: number('Of a segment: seconds.'),
  speaker: text('Of a segment.'),
  sequence: integer('Of some providers.'),
  usage: optional(TranscriptUsage),
})
