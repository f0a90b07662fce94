/** One adapter each for vendors of speech and of transcription that have an AI SDK package with `doGenerate`. */
import { isRecord, memberOf, parseJson } from '../../kit/json.ts'
import { sentencesOf } from '../../kit/sentences.ts'
import { refusedField } from '../../protocols/shared/request-error.ts'
import type { Transcript, TranscriptWord } from '../../spec/audio-request.ts'
import { GatewayError } from '../../spec/error.ts'
import type { SpeechProvider, TranscriptionCall, TranscriptionProvider } from '../audio.ts'
import type { Wire } from '../upstream/transport-fetch.ts'
import type {
  Option,
  SpeechFamily,
  SpeechModel,
  Timed,
  TranscriptionFamily,
  TranscriptionModel,
} from './audio-family.ts'
import type { Connection } from './connection.ts'
import { createPackageErrors } from './errors.ts'

export function createAiSdkSpeech(connection: Connection<SpeechFamily, SpeechModel>): SpeechProvider {
  const { id, vendor } = connection
  const errors = createPackageErrors(connection)
  return {
    async *speak({ model, request, request_id }, signal) {
      const { input, voice, response_format, speed, instructions } = request
      const outputFormat = vendor.formats[response_format]
      if (outputFormat === undefined) {
        throw unsupported('response_format', `"${id}" speaks in ${Object.keys(vendor.formats).join(', ')} only`)
      }
      if (speed !== undefined && speed !== 1 && !vendor.has_speed) throw unsupported('speed', `"${id}" has one speed`)
      const { fetch, wire } = await connection.fetchFor({ model, signal, request_id })
      try {
        const sdk = await connection.model(model, fetch)
        const { audio, usage } = await sdk.doGenerate({
          text: input,
          voice: typeof voice === 'string' ? voice : voice.id,
          outputFormat,
          ...(speed === undefined || !vendor.has_speed ? {} : { speed }),
          ...(instructions === undefined || !vendor.has_instructions ? {} : { instructions }),
          abortSignal: signal,
          providerOptions: { [vendor.namespace]: {} },
        })
        const bytes = typeof audio === 'string' ? new Uint8Array(Buffer.from(audio, 'base64')) : audio
        if (bytes.length === 0)
          throw new GatewayError('bad_upstream_response', `The upstream "${id}" returned no audio.`)
        // First, so that they count even if the client leaves while it reads the audio.
        const counts = tokensIn(usage)
        if (counts) yield counts
        yield bytes
      } catch (thrown) {
        signal.throwIfAborted()
        throw errors.thrown(thrown, wire, { model, fields: {} })
      }
    },
  }
}

const unsupported = (param: string, why: string) => refusedField(param, `is not supported: ${why}`)

/** As the vendors name them: the packages pass on what they were given. */
function tokensIn(usage: unknown): { input_tokens: number; output_tokens: number } | undefined {
  if (!isRecord(usage)) return undefined
  const input = usage.promptTokenCount ?? usage.input_tokens
  const output = usage.candidatesTokenCount ?? usage.output_tokens
  return typeof input === 'number' && typeof output === 'number'
    ? { input_tokens: input, output_tokens: output }
    : undefined
}

export function createAiSdkTranscription(
  connection: Connection<TranscriptionFamily, TranscriptionModel>,
): TranscriptionProvider {
  const { id, vendor } = connection
  const errors = createPackageErrors(connection)
  return {
    async transcribe(call, signal) {
      const { model, recording, request, request_id } = call
      refuseOther(call, id)
      const { fetch, wire } = await connection.fetchFor({ model, signal, request_id })
      try {
        const sdk = await connection.model(model, fetch)
        const result = await sdk.doGenerate({
          audio: recording.bytes,
          mediaType: recording.content_type,
          abortSignal: signal,
          providerOptions: { [vendor.namespace]: optionsOf(request, vendor) },
        })
        return transcriptOf({ ...result, words: result.words ?? wordsIn(wire) }, request, vendor)
      } catch (thrown) {
        signal.throwIfAborted()
        const fieldOf = (option: string) => FIELDS.find((field) => vendor.options?.[field] === option)
        throw errors.thrown(thrown, wire, { model, fields: { fieldOf } })
      }
    },
  }
}

const FIELDS = ['language', 'prompt', 'temperature'] as const

type TranscriptRequest = TranscriptionCall['request']

const hasTimes = ({ response_format }: TranscriptRequest): boolean =>
  response_format === 'verbose_json' || response_format === 'srt' || response_format === 'vtt'

/** Throws for what changes the answer and would be ignored. */
function refuseOther({ task, request }: TranscriptionCall, id: string): void {
  if (task === 'translate') {
    const message = `The provider "${id}" transcribes, and does not translate.`
    throw new GatewayError('unsupported_endpoint', message, { param: 'model' })
  }
  if (request.response_format === 'diarized_json') throw unsupported('response_format', `"${id}" names no speakers`)
  if (request.include?.length) throw unsupported('include', `"${id}" has no log probabilities`)
}

function optionsOf(request: TranscriptRequest, vendor: TranscriptionFamily): Record<string, Option> {
  const { options = {}, timed, always, detects } = vendor
  const own: Record<string, Option> = { ...always, ...(request.language === undefined ? detects : {}) }
  for (const field of FIELDS) {
    const [name, value] = [options[field], request[field]]
    if (name !== undefined && value !== undefined) own[name] = value
  }
  const wantsWords = request.timestamp_granularities?.includes('word') ?? false
  return { ...own, ...(hasTimes(request) ? timed?.(wantsWords) : {}) }
}

/** Of a response in OpenAI's shape: some packages leave them out where there are segments too. */
function wordsIn({ response }: Wire): Timed[] | undefined {
  const payload = parseJson(response?.text ?? '')
  const words: unknown = memberOf(payload, 'words')
  if (!Array.isArray(words)) return undefined
  return words.flatMap((one: unknown) =>
    isRecord(one) && typeof one.word === 'string' && typeof one.start === 'number' && typeof one.end === 'number'
      ? [{ text: one.word, startSecond: one.start, endSecond: one.end }]
      : [],
  )
}

type Result = Awaited<ReturnType<TranscriptionModel['doGenerate']>>

function transcriptOf(result: Result, request: TranscriptRequest, vendor: TranscriptionFamily): Transcript {
  const { text, language, durationInSeconds: named = -1 } = result
  const duration = Number.isFinite(named) && named >= 0 ? named : undefined
  const usage = duration !== undefined && {
    usage: {
      type: 'duration' as const,
      seconds: duration,
      ...(vendor.duration_of_words && { estimated: true as const }),
    },
  }
  if (!hasTimes(request)) return { text, ...usage }
  const areWords = vendor.segments === 'words'
  const words = (areWords ? result.segments : (result.words ?? [])).map(wordOf)
  const segments = areWords
    ? sentencesOf(words)
    : result.segments.map((one) => ({ start: one.startSecond, end: one.endSecond, text: one.text }))
  const { timestamp_granularities: times = ['segment'] } = request
  return {
    task: 'transcribe',
    ...(language === undefined ? {} : { language }),
    ...(duration === undefined ? {} : { duration }),
    text,
    ...(times.includes('segment') || request.response_format !== 'verbose_json'
      ? { segments: segments.map((one, id) => ({ id, ...one })) }
      : {}),
    ...(times.includes('word') && request.response_format === 'verbose_json' ? { words } : {}),
    ...usage,
  }
}

const wordOf = ({ text, startSecond, endSecond }: Timed): TranscriptWord => ({
  word: text,
  start: startSecond,
  end: endSecond,
})
