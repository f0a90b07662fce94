/** Audio in chat: what the sandbox hears in a question, and how it speaks an answer; both in the tones of its speech. */
import { memberOf } from '../../../src/kit/json.ts'
import type { ChatRequest } from '../../../src/providers/provider.ts'
import type { GeneratedAudio } from '../../../src/spec/message.ts'
import { invalidRequest } from './invalid-request.ts'
import { audioOf, secondsOfText, type ToneFormat, textOf } from './tone-code.ts'

/** By the names of the API. */
const FORMATS: Record<string, ToneFormat> = { wav: 'wav', mp3: 'mp3', pcm16: 'pcm' }

/** OpenAI's counts. */
const INPUT_TOKENS_A_SECOND = 10
const OUTPUT_TOKENS_A_SECOND = 20
const WAV_BYTES_A_SECOND = 48_000
const MP3_BYTES_A_SECOND = 4_000

/** Of base64; the work is done in the thread that serves every request. */
const MAX_INPUT_AUDIO = 4 * 1024 * 1024
/** Some 100 seconds. */
export const MAX_AUDIO_CHARACTERS = 2_000
const EXPIRES_SECONDS = 3_600

/** The text of audio in a question; undefined: the sandbox does not understand it. */
export const textOfAudio = (base64: string): string | undefined =>
  base64.length > MAX_INPUT_AUDIO ? undefined : textOf(Buffer.from(base64, 'base64'))

export function inputAudioTokens(base64: string): number {
  const isWav = base64.startsWith('UklG') // RIFF
  const seconds = (base64.length * 3) / 4 / (isWav ? WAV_BYTES_A_SECOND : MP3_BYTES_A_SECOND)
  return Math.ceil(seconds * INPUT_TOKENS_A_SECOND)
}

export const outputAudioTokens = (text: string): number => Math.ceil(secondsOfText(text) * OUTPUT_TOKENS_A_SECOND)

/** In which the answer is to be spoken; undefined: it is text. Throws `upstream_invalid_request`. */
export function audioFormat({ modalities, audio }: ChatRequest, isStream: boolean): ToneFormat | undefined {
  if (!modalities?.includes('audio')) return undefined
  const name = memberOf(audio, 'format')
  if (typeof memberOf(audio, 'voice') !== 'string') throw refused('audio.voice', 'must name a voice, such as "tone"')
  const format = typeof name === 'string' && Object.hasOwn(FORMATS, name) ? FORMATS[name] : undefined
  if (!format) throw refused('audio.format', `must be one of ${Object.keys(FORMATS).join(', ')}`)
  if (isStream && format !== 'pcm') throw refused('audio.format', 'must be "pcm16" with "stream": true')
  return format
}

const refused = (param: string, rule: string) => invalidRequest(`"${param}" of the sandbox ${rule}.`, param)

type AudioAnswer = { id: string; pieces: readonly string[]; format: ToneFormat; created: number }

/** In the parts of a stream: its id, the transcript, the audio, and until when a later request may refer to it. */
export function* audioParts({ id, pieces, format, created }: AudioAnswer): Generator<GeneratedAudio> {
  yield { id, transcript: '' }
  for (const transcript of pieces) yield { transcript }
  for (const part of audioOf(pieces.join(''), format)) yield { data: Buffer.from(part).toString('base64') }
  yield { expires_at: created + EXPIRES_SECONDS }
}

export function wholeAudio({ id, pieces, format, created }: AudioAnswer): GeneratedAudio {
  const transcript = pieces.join('')
  const data = Buffer.concat([...audioOf(transcript, format)]).toString('base64')
  return { id, data, expires_at: created + EXPIRES_SECONDS, transcript }
}
