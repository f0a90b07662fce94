/** Speech and transcription by any provider with OpenAI's paths: `/audio/speech`, `/audio/transcriptions`, `/audio/translations`. */
import { matchesGlob } from '../../kit/glob.ts'
import { asRecord, isRecord, type JsonRecord, parseJson } from '../../kit/json.ts'
import { createEventSource, payloadOf } from '../../protocols/shared/chunk-stream.ts'
import { type Faults, holdsError } from '../../protocols/shared/upstream.ts'
import type { Transcript, TranscriptSegment, TranscriptUsage } from '../../spec/audio-request.ts'
import { GatewayError } from '../../spec/error.ts'
import type { SpeechPart, SpeechProvider, TranscriptionCall, TranscriptionProvider, TranscriptPart } from '../audio.ts'
import { type ProviderSettings, withFieldRules } from '../settings.ts'
import type { PostParts } from '../upstream/post-json.ts'
import { createUpstream } from '../upstream/upstream.ts'
import type { UpstreamResponse } from '../upstream/upstream-request.ts'
import { countOf } from './image-response.ts'

type Upstream = ReturnType<typeof createUpstream>

/**
 * Models whose audio is charged by tokens, which only their events report (OpenAI's API reference, `stream_format`, read in
 * the package `openai` 7.55.0): they are asked for events whatever the client wants.
 */
const REPORTS_IN_EVENTS = ['gpt-4o*-tts*', '*/gpt-4o*-tts*']

/** A minute of audio without compression, in base64. */
const MAX_EVENT_CHARACTERS = 16 * 1024 * 1024
/** Times of each word of some hours of speech. */
const MAX_TRANSCRIPT_BYTES = 64 * 1024 * 1024

export const audioMembers = (parts: PostParts) => ({
  speech: createSpeech(parts),
  transcription: createTranscription(parts),
})

function createSpeech(parts: PostParts): SpeechProvider {
  const upstream = createUpstream(parts)
  const { fields } = parts.settings
  return {
    async *speak(call, signal) {
      const { model, request } = call
      const name = model.toLowerCase()
      const asksForEvents = REPORTS_IN_EVENTS.some((glob) => matchesGlob(glob, name))
      const body = withFieldRules({ ...request, model, ...(asksForEvents ? { stream_format: 'sse' } : {}) }, fields)
      const asked = {
        path: '/audio/speech',
        body: JSON.stringify(body),
        call,
        stream: true,
        headers: { accept: asksForEvents ? 'text/event-stream' : '*/*' },
      }
      const response = await upstream.request(asked, signal)
      let isComplete = false
      try {
        yield* readSpeech(response, model, upstream)
        isComplete = true
      } finally {
        if (isComplete) response.release()
        else response.drop()
      }
    },
  }
}

const AUDIO_TYPES = /^(audio\/|application\/(octet-stream|ogg)\b|binary\/octet-stream\b)/i

/** JSON or markup, as no audio begins. */
const isText = (bytes: Uint8Array): boolean =>
  /^[{<][\s\x20-\x7e]*$/.test(Buffer.from(bytes.subarray(0, 8)).toString('latin1'))

async function* readSpeech(response: UpstreamResponse, model: string, upstream: Upstream): AsyncGenerator<SpeechPart> {
  const faults = upstream.faultsOf(model, response)
  const type = response.headers.get('content-type') ?? ''
  const isEvents = type.startsWith('text/event-stream')
  if (!isEvents && type !== '' && !AUDIO_TYPES.test(type)) {
    const payload = parseJson(await response.text(MAX_EVENT_CHARACTERS))
    if (isRecord(payload) && holdsError(payload)) throw faults.inAnswer(payload)
    throw faults.notUnderstood(`answered with ${type.split(';')[0]} instead of audio`)
  }
  if (isEvents) {
    yield* readSpeechEvents(response, faults)
    return
  }
  let isEmpty = true
  for (let bytes = await response.read(); bytes !== undefined; bytes = await response.read()) {
    if (bytes.length === 0) continue
    if (isEmpty && !type.startsWith('audio/') && isText(bytes)) {
      throw faults.notUnderstood('answered with a text instead of audio')
    }
    isEmpty = false
    yield bytes
  }
  if (isEmpty) throw faults.notUnderstood('answered without any audio')
}

async function* readSpeechEvents(response: UpstreamResponse, faults: Faults): AsyncGenerator<SpeechPart> {
  let isEmpty = true
  for await (const { type, audio, usage } of payloadsOf(response, faults)) {
    if (type === 'speech.audio.delta' && typeof audio === 'string') {
      const decoded = new Uint8Array(Buffer.from(audio, 'base64'))
      if (decoded.length === 0) continue
      isEmpty = false
      yield decoded
    } else if (type === 'speech.audio.done') {
      if (isEmpty) throw faults.notUnderstood('answered without any audio')
      const counts = tokensIn(usage)
      if (counts) yield counts
      return
    }
  }
}

/** The data of the events of a stream. Throws for an error among them, and at the end of a stream that its reader has not left. */
async function* payloadsOf(answer: UpstreamResponse, faults: Faults): AsyncGenerator<JsonRecord> {
  const next = createEventSource({ answer, faults, limit: MAX_EVENT_CHARACTERS })
  for (;;) {
    const { bytes, events } = await next()
    for (const event of events) {
      const payload = payloadOf(event, { faults, atEnd: bytes === undefined })
      if (payload instanceof GatewayError) throw payload
      if (payload) yield payload
    }
    if (bytes === undefined) throw faults.cut()
  }
}

function createTranscription(parts: PostParts): Required<TranscriptionProvider> {
  const upstream = createUpstream(parts)
  const { fields } = parts.settings

  const ask = (call: TranscriptionCall, signal: AbortSignal, stream: boolean) =>
    upstream.request(
      {
        path: call.task === 'transcribe' ? '/audio/transcriptions' : '/audio/translations',
        body: call.recording.form(formFields(call, stream, fields)),
        call,
        stream,
      },
      signal,
    )

  async function readWhole(response: UpstreamResponse, model: string): Promise<Transcript> {
    const faults = upstream.faultsOf(model, response)
    const payload = parseJson(await response.text(MAX_TRANSCRIPT_BYTES))
    if (isRecord(payload) && holdsError(payload)) throw faults.inAnswer(payload)
    const transcript = isRecord(payload) ? transcriptOf(payload) : undefined
    if (!transcript) throw faults.notUnderstood('answered without a text')
    return transcript
  }

  async function* readEvents(response: UpstreamResponse, model: string): AsyncGenerator<TranscriptPart> {
    const faults = upstream.faultsOf(model, response)
    for await (const payload of payloadsOf(response, faults)) {
      if (typeof payload.type !== 'string') continue
      if (payload.type !== 'transcript.text.done') {
        // It becomes a line of the client's stream.
        if (/^transcript\.[\w.]+$/.test(payload.type)) yield { type: 'event', event: payload }
        continue
      }
      const transcript = transcriptOf(payload)
      if (!transcript) throw faults.notUnderstood('ended without a text')
      yield { type: 'end', transcript }
      return
    }
  }

  return {
    transcribe: async (call, signal) => readWhole(await ask(call, signal, false), call.model),
    async *stream(call, signal) {
      const response = await ask(call, signal, true)
      yield* upstream.readStreamOrWhole<TranscriptPart>(response, {
        events: () => readEvents(response, call.model),
        whole: async () => ({ type: 'end', transcript: await readWhole(response, call.model) }),
      })
    },
  }
}

/** Lists are repeated fields whose names end with `[]`, as OpenAI's clients send them; objects are JSON. */
function formFields(
  { model, request }: TranscriptionCall,
  stream: boolean,
  rules: ProviderSettings['fields'],
): [string, string][] {
  const body = withFieldRules(
    { ...request, model, response_format: sentFormat(request.response_format), ...(stream ? { stream: true } : {}) },
    rules,
  )
  return Object.entries(body).flatMap(([name, value]): [string, string][] => {
    if (Array.isArray(value)) return value.map((item) => [`${name}[]`, String(item)])
    return [[name, typeof value === 'object' ? JSON.stringify(value) : String(value)]]
  })
}

/** Texts and subtitles are made of JSON, which tells the usage and the duration too. */
function sentFormat(format: TranscriptionCall['request']['response_format']): string {
  if (format === 'text') return 'json'
  return format === 'srt' || format === 'vtt' ? 'verbose_json' : format
}

const MEMBERS = ['task', 'language', 'languages', 'words', 'logprobs'] as const

/** Undefined: it has no text. */
function transcriptOf(payload: JsonRecord): Transcript | undefined {
  const { text, usage } = payload
  if (typeof text !== 'string') return undefined
  // Some compatible servers write it as text.
  const duration = Number(payload.duration ?? Number.NaN)
  const known = MEMBERS.flatMap((name) => (payload[name] == null ? [] : [[name, payload[name]]]))
  const counts = transcriptUsage(usage)
  return {
    ...(Object.fromEntries(known) as Partial<Transcript>),
    ...(Array.isArray(payload.segments) ? { segments: payload.segments.filter(isSegment) } : {}),
    text,
    ...(duration >= 0 && Number.isFinite(duration) ? { duration } : {}),
    ...(counts ? { usage: counts } : {}),
  }
}

/** Subtitles and durations are made of them. */
const isSegment = (value: unknown): value is TranscriptSegment =>
  isRecord(value) && typeof value.text === 'string' && Number.isFinite(value.start) && Number.isFinite(value.end)

function transcriptUsage(usage: unknown): TranscriptUsage | undefined {
  if (!isRecord(usage)) return undefined
  if (typeof usage.seconds === 'number' && usage.seconds >= 0 && Number.isFinite(usage.seconds))
    return { type: 'duration', seconds: usage.seconds }
  const counts = tokensIn(usage)
  if (!counts) return undefined
  const details = asRecord(usage.input_token_details)
  const [text_tokens, audio_tokens] = [countOf(details.text_tokens), countOf(details.audio_tokens)]
  const known = {
    ...(text_tokens === undefined ? {} : { text_tokens }),
    ...(audio_tokens === undefined ? {} : { audio_tokens }),
  }
  return {
    type: 'tokens',
    input_tokens: counts.input_tokens,
    ...(Object.keys(known).length > 0 ? { input_token_details: known } : {}),
    output_tokens: counts.output_tokens,
    total_tokens: counts.input_tokens + counts.output_tokens,
  }
}

function tokensIn(usage: unknown): { input_tokens: number; output_tokens: number } | undefined {
  if (!isRecord(usage)) return undefined
  const input_tokens = countOf(usage.input_tokens)
  const output_tokens = countOf(usage.output_tokens)
  if (input_tokens === undefined && output_tokens === undefined) return undefined
  return { input_tokens: input_tokens ?? 0, output_tokens: output_tokens ?? 0 }
}
