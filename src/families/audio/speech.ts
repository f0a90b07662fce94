/** The speech family: text is spoken by one target; its audio is passed on as it arrives, as bytes or as events. */
import type { Meter } from '../../calls/call.ts'
import type { StreamFamily } from '../../calls/family.ts'
import { textAt } from '../../calls/guards/content.ts'
import { createSample } from '../../kit/sample.ts'
import type { Tokenizer } from '../../kit/tokenizer.ts'
import type { CatalogueModel } from '../../models/catalogue.ts'
import { isPricedByTokens } from '../../models/prices.ts'
import type { SpeechCall, SpeechPart } from '../../providers/audio.ts'
import type { Target } from '../../providers/provider.ts'
import type { SpeechFormat, SpeechRequest } from '../../spec/audio-request.ts'
import { errorBody, GatewayError, invalidValue } from '../../spec/error.ts'
import type { Units } from '../../spec/usage.ts'
import { awaitFirst } from '../shared/await-first.ts'
import { partOf } from '../shared/provider-part.ts'
import { bytesASecond } from './duration.ts'

type SpeechWork = {
  request: SpeechCall['request']
  asEvents: boolean
  targets: Target[]
  model: CatalogueModel
  isPricedByTokens: boolean
}

type SpeechUsage = { input_tokens: number; output_tokens: number; total_tokens: number; estimated?: true }

type SpeechMeter = Meter<SpeechUsage> & {
  delivered(audio: Uint8Array): void
  /** The provider has failed: no more audio follows. */
  failed(): void
  reported(counts: Exclude<SpeechPart, Uint8Array>): void
}

export type Speech = StreamFamily<SpeechRequest, SpeechWork, SpeechMeter>

/** OpenAI's models accept 4,096 characters and 2,000 tokens; a character is most of a second of slow speech, 21 tokens. */
const MOST_AUDIO_TOKENS_A_CHARACTER = 4
const AUDIO_TOKENS_A_CHARACTER = 1.4
/** Of the text in UTF-8, in a second of speech: about three bytes a syllable, in scripts with one to three bytes a character. */
const TEXT_BYTES_A_SECOND = 15
/** What models make where the audio does not tell: OpenAI documents the rate of `pcm`. */
const AUDIO_BYTES_A_SECOND = { mp3: 16_000, opus: 6_000, aac: 12_000, flac: 24_000, wav: 48_000, pcm: 48_000 }

export function createSpeech({ tokenizer }: { tokenizer: Tokenizer }): Speech {
  return {
    endpoint: () => 'audio-speech',
    modelOf: ({ model }) => model,
    fit: fitSpeech,
    meter: (work) => createSpeechMeter(work, tokenizer),
    estimate({ request: { input, instructions = '' } }) {
      const characters = charactersOf(input)
      const bytes = Buffer.byteLength(input) + Buffer.byteLength(instructions)
      const units = (input_tokens: number, output_tokens: number): Units => ({
        input_tokens,
        output_tokens,
        output_audio_tokens: output_tokens,
        speech_characters: characters,
        requests: 1,
      })
      return {
        expected: units(Math.ceil(bytes / 4), Math.ceil(characters * AUDIO_TOKENS_A_CHARACTER)),
        most: units(bytes + 2, characters * MOST_AUDIO_TOKENS_A_CHARACTER),
      }
    },
    guarded: {
      input(work) {
        const request = { ...work.request }
        work.request = request
        return [...textAt(request, 'input'), ...textAt(request, 'instructions')]
      },
    },
    // Guards may have made it longer.
    beforeSend({ request, model }) {
      const refusal = tooLong(model, request)
      return refusal && Promise.reject(refusal)
    },
    texts: ({ request: { input, instructions } }) => [input, ...(instructions === undefined ? [] : [instructions])],
    policy: 'until_answered',
    targets: ({ targets }) => targets,
    async send(target, { request, asEvents }, { call, signal, meter }) {
      const speech = partOf(target, 'speech', 'serves no speech')
      const parts = speech.speak({ model: target.model, request, request_id: call.request_id }, signal)
      const audio = await awaitFirst(counted(parts, { meter, signal }))
      return {
        parts: asEvents ? deltas(audio) : audio,
        includesUsage: asEvents,
        end: (usage) => (asEvents ? doneEvent(usage) : ''),
      }
    },
    // An error among the bytes of the audio would be heard: the connection is cut instead.
    encodeError(error, { asEvents }) {
      if (!asEvents) throw error
      return event({ type: 'error', ...errorBody(error) })
    },
  }
}

function fitSpeech(model: CatalogueModel, given: SpeechRequest): SpeechWork {
  const { model: _, stream_format, user: __, ...rest } = given
  const { formats, voices } = model.speech
  const refusal = tooLong(model, given)
  if (refusal) throw refusal
  const response_format = given.response_format ?? defaultFormat(formats)
  refuseOther(model, { param: 'response_format', value: response_format, known: formats })
  if (typeof given.voice === 'string') refuseOther(model, { param: 'voice', value: given.voice, known: voices })
  return {
    request: { ...rest, response_format },
    asEvents: stream_format === 'sse',
    targets: model.targets,
    model,
    isPricedByTokens: isPricedByTokens(model, 'speech_character'),
  }
}

const charactersOf = (input: string): number => [...input].length

function tooLong({ id, speech }: CatalogueModel, { input }: Pick<SpeechRequest, 'input'>): GatewayError | undefined {
  const { characters: most = Number.POSITIVE_INFINITY } = speech
  const characters = charactersOf(input)
  if (characters <= most) return undefined
  const message = `"input" has ${characters} characters; the model "${id}" speaks at most ${most}.`
  return new GatewayError('context_length_exceeded', message, { param: 'input' })
}

const defaultFormat = (formats: readonly SpeechFormat[] | undefined): SpeechFormat =>
  formats === undefined || formats.includes('mp3') ? 'mp3' : (formats[0] as SpeechFormat)

type Choice = { param: string; value: string; known: readonly string[] | undefined }

function refuseOther({ id }: CatalogueModel, { param, value, known }: Choice): void {
  if (known === undefined || known.includes(value)) return
  const message = `"${param}" of the model "${id}" must be one of ${known.join(', ')}.`
  throw invalidValue(param, message)
}

/** The audio alone; what the provider counts goes to the meter. */
async function* counted(
  parts: AsyncIterable<SpeechPart>,
  { meter, signal }: { meter: SpeechMeter; signal: AbortSignal },
): AsyncGenerator<Uint8Array> {
  try {
    for await (const part of parts) {
      if (part instanceof Uint8Array) {
        meter.delivered(part)
        yield part
      } else meter.reported(part)
    }
  } catch (thrown) {
    if (!signal.aborted) meter.failed()
    throw thrown
  }
}

export const event = (data: { type: string }) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`

async function* deltas(audio: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  for await (const bytes of audio) {
    const base64 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64')
    yield event({ type: 'speech.audio.delta', ...{ audio: base64 } })
  }
}

const doneEvent = (usage: SpeechUsage | undefined) =>
  event({ type: 'speech.audio.done', ...{ usage: usage ?? { input_tokens: 0, output_tokens: 0, total_tokens: 0 } } })

function createSpeechMeter(work: SpeechWork, tokenizer: Tokenizer): SpeechMeter {
  let usage: SpeechUsage | undefined
  let head: Uint8Array | undefined
  let audio_bytes = 0
  let hasFailed = false

  /** The spoken part of the text: where the provider has failed, as much as the audio has time for. */
  function share(): number {
    if (!hasFailed || !head) return 1
    const { input, speed = 1, response_format } = work.request
    const seconds = audio_bytes / (bytesASecond(head) ?? AUDIO_BYTES_A_SECOND[response_format])
    return Math.min(1, (seconds * TEXT_BYTES_A_SECOND * speed) / Buffer.byteLength(input))
  }

  const sentCharacters = () => Math.ceil(charactersOf(work.request.input) * share())

  /**
   * Of a provider that reports no tokens, or some of them, or has not yet when its client leaves. The tokens of the audio
   * count only where they are what is charged: all of them where the client leaves, since the provider does not stop there.
   */
  async function estimated(): Promise<SpeechUsage> {
    let { input_tokens = 0, output_tokens = 0 } = usage ?? {}
    if (input_tokens === 0) {
      const sample = createSample()
      sample.add(work.request.input)
      input_tokens = await sample.tokens(tokenizer)
    }
    if (output_tokens === 0 && work.isPricedByTokens)
      output_tokens = Math.ceil(sentCharacters() * AUDIO_TOKENS_A_CHARACTER)
    return { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens, estimated: true }
  }

  return {
    delivered(audio) {
      head ??= audio
      audio_bytes += audio.length
    },
    failed() {
      hasFailed = true
    },
    reported({ input_tokens, output_tokens }) {
      usage = { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens }
    },
    async usage() {
      // No audio comes of no tokens, whatever was reported.
      const isWhole = usage && (!head || (usage.input_tokens > 0 && usage.output_tokens > 0))
      if (!usage || !(isWhole || usage.estimated)) usage = await estimated()
      return usage
    },
    hasCounted: () => head !== undefined || usage !== undefined,
    units: ({ input_tokens, output_tokens, estimated }) => ({
      input_tokens,
      output_tokens,
      output_audio_tokens: output_tokens,
      speech_characters: sentCharacters(),
      requests: 1,
      estimated: estimated || hasFailed || undefined,
    }),
  }
}
