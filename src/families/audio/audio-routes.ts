/** The routes of speech, transcriptions and translations, in the OpenAI form. */
import type { Pipeline } from '../../calls/pipeline.ts'
import type { ServerSettings } from '../../config/config.ts'
import { bodyLimits, readJson } from '../../http/body.ts'
import type { Context, Route } from '../../http/context.ts'
import { fieldsOfForm } from '../../http/form-fields.ts'
import { jsonResponse, textResponse } from '../../http/live.ts'
import { readForm } from '../../http/multipart.ts'
import { checker } from '../../kit/checker.ts'
import type { Clock } from '../../kit/clock.ts'
import { memberOf } from '../../kit/json.ts'
import type { Tokenizer } from '../../kit/tokenizer.ts'
import { knownMembers } from '../../protocols/shared/request-error.ts'
import type { TranscriptionCall } from '../../providers/audio.ts'
import {
  SPEECH_TYPES,
  SpeechEvent,
  SpeechRequest,
  Transcript,
  TranscriptEvent,
  TranscriptionRequest,
} from '../../spec/audio-request.ts'
import { type ErrorCode, GatewayError } from '../../spec/error.ts'
import { MODEL_REQUEST_ERRORS, UPSTREAM_ERRORS } from '../../spec/error-lists.ts'
import type { FormFields } from '../../spec/operation.ts'
import { readUserField } from '../shared/call-options.ts'
import { callStream } from '../shared/event-stream.ts'
import { FORM_MARGIN, recordingOf } from './recording.ts'
import { createSpeech, type Speech } from './speech.ts'
import { subtitles } from './subtitles.ts'
import { createTranscription, type Transcription, type TranscriptionInput } from './transcription.ts'

type AudioRouteParts = {
  pipeline: Pipeline
  settings: ServerSettings
  clock: Clock
  tokenizer: Tokenizer
}

const AUDIO_ERRORS: ErrorCode[] = [
  ...MODEL_REQUEST_ERRORS,
  'context_length_exceeded',
  'content_policy_violation',
  ...UPSTREAM_ERRORS,
]

export function audioRoutes(parts: AudioRouteParts): Route[] {
  const transcription = createTranscription()
  return [
    speechRoute(createSpeech(parts), parts),
    transcriptRoute('transcribe', { ...parts, transcription }),
    transcriptRoute('translate', { ...parts, transcription }),
  ]
}

const checkSpeech = checker(SpeechRequest)

function speechRoute(speech: Speech, { pipeline, settings, clock }: AudioRouteParts): Route {
  return {
    method: 'POST',
    path: '/v1/audio/speech',
    operation: {
      summary: 'Speak a text',
      description:
        'The response is the audio, sent as it arrives. With `stream_format: sse` it is a stream of events that ends with the usage.',
      tag: 'Audio',
      request: SpeechRequest,
      media: [...new Set(Object.values(SPEECH_TYPES))],
      stream: SpeechEvent,
      errors: AUDIO_ERRORS,
      example: { model: 'sandbox/speech', input: 'Good morning.', voice: 'tone' },
    },
    async handle(context) {
      const body = await readJson(context.request, bodyLimits(context, 'text', { settings, clock }))
      context.noteFields(body)
      pipeline.authorize(context, { family: 'audio-speech', model: memberOf(body, 'model') })
      readUserField(context, body, 'audio-speech')
      const request = knownMembers(SpeechRequest, checkSpeech, body)
      const { send, headers } = pipeline.prepareStream(speech, context, request)
      if (request.stream_format === 'sse') return callStream(send(), context, { headers, settings, clock })
      const sent = send()
      // Without a keep-alive, which would be heard, and so without a head before the first byte of audio.
      await sent.started
      const framing = { content_type: SPEECH_TYPES[request.response_format ?? 'mp3'], keep_alive: '' }
      const safe = { ...headers, 'x-content-type-options': 'nosniff' }
      return callStream(sent, context, { headers: safe, framing, settings, clock })
    },
  }
}

const checkTranscription = checker(TranscriptionRequest)

const TRANSCRIPTION_FORM: FormFields = {
  numbers: ['temperature'],
  booleans: ['stream'],
  lists: ['timestamp_granularities', 'include', 'known_speaker_names', 'known_speaker_references'],
}

type TranscriptRouteParts = AudioRouteParts & { transcription: Transcription }

function transcriptRoute(task: TranscriptionCall['task'], parts: TranscriptRouteParts): Route {
  const { pipeline, transcription, settings, clock } = parts
  const isTranslation = task === 'translate'
  return {
    method: 'POST',
    path: isTranslation ? '/v1/audio/translations' : '/v1/audio/transcriptions',
    operation: {
      summary: isTranslation ? 'Translate speech to English text' : 'Transcribe speech',
      description:
        'A form with the audio as `file`. `text`, `srt` and `vtt` are plain text, the other formats JSON.' +
        (isTranslation ? '' : ' With `stream: true` the response is a stream of events.'),
      tag: 'Audio',
      request: TranscriptionRequest,
      files: ['file'],
      form_only: true,
      response: Transcript,
      media: ['text/plain'],
      ...(isTranslation ? {} : { stream: TranscriptEvent }),
      errors: AUDIO_ERRORS,
    },
    async handle(context) {
      const limits = { ...bodyLimits(context, 'media', { settings, clock }), margin: FORM_MARGIN }
      const form = await readForm(context.request, limits)
      const files = form.filter(({ name }) => name === 'file')
      const fields = fieldsOfForm(
        form.filter(({ name }) => name !== 'file'),
        TRANSCRIPTION_FORM,
      )
      pipeline.authorize(context, { family: 'audio-transcription', model: fields.model })
      readUserField(context, { ...fields }, 'audio-transcription')
      const request = transcriptionIn(fields, task)
      const [file] = files
      if (!file || files.length > 1 || typeof file.value === 'string') {
        const code = file ? 'invalid_value' : 'missing_required_parameter'
        throw new GatewayError(code, '"file" must be one file of the form, with a file name.', { param: 'file' })
      }
      const input = { task, request, recording: recordingOf(file.value) }
      if (request.stream) {
        const { send, headers } = pipeline.prepareStream(transcription.stream, context, input)
        return callStream(send(), context, { headers, settings, clock })
      }
      return whole(input, context)
    },
  }

  async function whole(input: TranscriptionInput, context: Context): Promise<Response> {
    const prepared = pipeline.prepare(transcription.whole, context, input)
    const { headers } = prepared
    const { answer, usage } = await prepared.send()
    const { response_format = 'json' } = input.request
    const text = response_format === 'text' ? `${answer.text}\n` : subtitles(answer, response_format)
    if (text === undefined) {
      const segments =
        response_format === 'verbose_json' && answer.segments?.map((one) => ({ ...NO_STATISTICS, ...one }))
      return jsonResponse({ ...answer, ...(segments && { segments }), usage }, { context, clock, headers })
    }
    return textResponse(text, context, clock, { 'content-type': 'text/plain; charset=utf-8', ...headers })
  }
}

/** Of a segment: libraries require them, and only OpenAI's models report them. */
const NO_STATISTICS = { seek: 0, tokens: [], temperature: 0, avg_logprob: 0, compression_ratio: 1, no_speech_prob: 0 }

function transcriptionIn(fields: object, task: TranscriptionCall['task']): TranscriptionRequest {
  const { file: _, ...request } = knownMembers(TranscriptionRequest, checkTranscription, { ...fields, file: '' })
  const { stream, response_format: format } = request
  if (task === 'translate' && stream) throw unsupported('stream', 'Translations are not streamed.')
  if (task === 'translate' && format === 'diarized_json') {
    throw unsupported('response_format', 'Translations have no "diarized_json".')
  }
  if (stream && format !== undefined && format !== 'json' && format !== 'text' && format !== 'diarized_json') {
    throw unsupported('stream', `"stream" and "response_format": "${format}" cannot be combined: events have no times.`)
  }
  return request
}

const unsupported = (param: string, message: string) => new GatewayError('unsupported_parameter', message, { param })
