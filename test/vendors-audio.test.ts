/** Vendors of audio behind AI SDK packages: what each is sent, and what becomes of its responses. */
import { describe, expect, it } from 'bun:test'
import type { ProviderKind } from '../src/config/schema/provider-kinds.ts'
import { perTest } from './kit/per-test.ts'
import { type Answer, failure, type VendorRequest, whole } from './kit/vendor.ts'

type Json = Record<string, unknown>

const { open, vendorWith } = perTest()
const KEY = 'key-canary-of-the-operator'
const MP3 = new Uint8Array([0xff, 0xf3, 0x44, 0xc0, 1, 2])

/** A response with bytes that are no text. */
const bytes =
  (body: Uint8Array, type: string): Answer =>
  async (wire) => {
    await wire.write(`HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${body.length}\r\n\r\n`)
    await wire.write(body)
  }

type Setting = { model?: string; options?: Json; version?: string }

async function setUp(kind: ProviderKind, answers: Answer[], { model = 'm', options, version = '' }: Setting = {}) {
  const vendor = vendorWith(...answers)
  const gateway = await open({
    sandbox: false,
    providers: { v: { kind, base_url: `${vendor.origin}${version}`, key: KEY, ...(options ? { options } : {}) } },
    models: { [`v/${model}`]: { families: ['audio-speech', 'audio-transcription'] } },
  })
  const speak = (json: Json = {}) =>
    gateway.call('/v1/audio/speech', { json: { model: `v/${model}`, input: 'Hello', voice: 'nova', ...json } })
  const transcribe = (fields: Record<string, string> = {}, path = 'transcriptions') => {
    const form = new FormData()
    for (const [name, value] of Object.entries({ model: `v/${model}`, ...fields })) form.append(name, value)
    form.append('file', new File([MP3], 'a.mp3'))
    return gateway.call(`/v1/audio/${path}`, { form })
  }
  return { vendor, speak, transcribe }
}

const formOf = async ({ bytes, headers }: VendorRequest) =>
  new Response(new Uint8Array(bytes), { headers: { 'content-type': headers['content-type'] ?? '' } }).formData()

type SpeechCase = {
  path: RegExp
  body: Json
  answer: Answer
  key: string
  format: string
  setting?: Setting
  voice?: string
}

const SPEECH: Partial<Record<ProviderKind, SpeechCase>> = {
  elevenlabs: {
    path: /^\/v1\/text-to-speech\/nova\?output_format=mp3_44100_128$/,
    body: { text: 'Hello', model_id: 'm', voice_settings: { speed: 1.1 } },
    answer: bytes(MP3, 'audio/mpeg'),
    key: 'xi-api-key',
    format: 'mp3',
  },
  deepgram: {
    path: /^\/v1\/speak\?model=aura-2-nova-en&encoding=mp3/,
    body: { text: 'Hello' },
    answer: bytes(MP3, 'audio/mpeg'),
    key: 'authorization',
    format: 'mp3',
    setting: { model: 'aura-2' },
  },
  azure: {
    path: /^\/openai\/v1\/audio\/speech\?api-version=v1$/,
    body: { model: 'm', input: 'Hello', voice: 'nova', response_format: 'mp3', speed: 1.1 },
    answer: bytes(MP3, 'audio/mpeg'),
    key: 'api-key',
    format: 'mp3',
    setting: { options: { resourceName: 'r' }, version: '/openai' },
  },
  mistral: {
    path: /^\/v1\/audio\/speech$/,
    body: { model: 'm', input: 'Hello', voice_id: 'nova', response_format: 'mp3', stream: false },
    answer: whole({ audio_data: Buffer.from(MP3).toString('base64') }),
    key: 'authorization',
    format: 'mp3',
    setting: { version: '/v1' },
  },
  xai: {
    path: /^\/v1\/tts$/,
    body: { text: 'Hello', voice_id: 'nova', language: 'auto', output_format: { codec: 'mp3' }, speed: 1.1 },
    answer: bytes(MP3, 'audio/mpeg'),
    key: 'authorization',
    format: 'mp3',
    setting: { version: '/v1' },
  },
  groq: {
    path: /^\/v1\/audio\/speech$/,
    body: { model: 'm', input: 'Hello', voice: 'nova', response_format: 'mp3', speed: 1.1 },
    answer: bytes(MP3, 'audio/mpeg'),
    key: 'authorization',
    format: 'mp3',
    setting: { version: '/v1' },
  },
}

describe.each(Object.entries(SPEECH) as [ProviderKind, SpeechCase][])('speech of %s', (kind, one) => {
  it('is asked for in its own form, with its key, and its audio comes back', async () => {
    const { vendor, speak } = await setUp(kind, [one.answer], one.setting)
    const answer = await speak('speed' in one.body || 'voice_settings' in one.body ? { speed: 1.1 } : {})
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'audio/mpeg'])
    expect(await answer.bytes()).toEqual(MP3)
    const [request] = vendor.requests
    expect(request?.path).toMatch(one.path)
    expect(request?.json()).toEqual(one.body)
    expect(request?.headers[one.key]).toContain(KEY)
  })

  it('that is refused or broken is reported without its key', async () => {
    const empty = kind === 'mistral' ? whole({ audio_data: '' }) : bytes(new Uint8Array(), 'audio/mpeg')
    const { speak } = await setUp(kind, [failure(401, { message: `bad ${KEY}` }), empty], one.setting)
    for (const code of ['upstream_auth', 'bad_upstream_response']) {
      const answer = await speak()
      const text = await answer.text()
      expect([answer.status >= 500, (JSON.parse(text) as { error: Json }).error.code]).toEqual([true, code])
      expect(text).not.toContain(KEY)
    }
  })
})

it('speech in a form that the vendor lacks is refused before anything is sent', async () => {
  const { vendor, speak } = await setUp('elevenlabs', [])
  for (const [json, param] of [
    [{ response_format: 'flac' }, 'response_format'],
    [{ response_format: 'opus' }, 'response_format'],
  ] as const) {
    const answer = await speak(json)
    expect([answer.status, ((await answer.json()) as { error: Json }).error.param]).toEqual([400, param])
  }
  const mistral = await setUp('mistral', [], { version: '/v1' })
  expect(((await (await mistral.speak({ speed: 2 })).json()) as { error: Json }).error.param).toBe('speed')
  expect([...vendor.requests, ...mistral.vendor.requests]).toEqual([])
})

const WORDS = [
  { word: 'Hello', text: 'Hello', start: 0.1, end: 0.5, type: 'word' },
  { word: 'you.', text: 'you.', start: 0.6, end: 1, type: 'word' },
  { word: 'Bye', text: 'Bye', start: 1.2, end: 1.5, type: 'word' },
]
const WHISPER = {
  text: 'Hello you. Bye',
  language: 'english',
  duration: 1.5,
  segments: [
    {
      id: 0,
      seek: 0,
      start: 0.1,
      end: 1,
      text: 'Hello you.',
      tokens: [1],
      temperature: 0,
      avg_logprob: -1,
      compression_ratio: 1,
      no_speech_prob: 0,
    },
    {
      id: 1,
      seek: 0,
      start: 1.2,
      end: 1.5,
      text: 'Bye',
      tokens: [1],
      temperature: 0,
      avg_logprob: -1,
      compression_ratio: 1,
      no_speech_prob: 0,
    },
  ],
  words: WORDS.map(({ word, start, end }) => ({ word, start, end })),
}

type TranscriptCase = {
  answers: Answer[]
  path: RegExp
  /** Fields of its form, or the query. */
  sent: Record<string, string>
  query?: true
  setting?: Setting
  /** It has no times of words. */
  has_no_words?: true
}

const TRANSCRIPTS: Partial<Record<ProviderKind, TranscriptCase>> = {
  elevenlabs: {
    answers: [whole({ language_code: 'en', language_probability: 1, text: 'Hello you. Bye', words: WORDS })],
    path: /^\/v1\/speech-to-text$/,
    sent: { model_id: 'm', language_code: 'en' },
  },
  deepgram: {
    answers: [
      whole({
        metadata: { duration: 1.5 },
        results: { channels: [{ alternatives: [{ transcript: 'Hello you. Bye', words: WORDS }] }] },
      }),
    ],
    path: /^\/v1\/listen\?/,
    sent: { model: 'm', language: 'en', smart_format: 'true' },
    query: true,
  },
  azure: {
    answers: [whole(WHISPER)],
    path: /^\/openai\/v1\/audio\/transcriptions\?api-version=v1$/,
    sent: { model: 'm', language: 'en' },
    setting: { options: { resourceName: 'r' }, version: '/openai' },
  },
  groq: {
    answers: [whole(WHISPER)],
    path: /^\/v1\/audio\/transcriptions$/,
    sent: { model: 'm', language: 'en' },
    setting: { version: '/v1' },
  },
  mistral: {
    answers: [whole({ ...WHISPER, model: 'm', usage: { prompt_audio_seconds: 1.5 } })],
    path: /^\/v1\/audio\/transcriptions$/,
    sent: { model: 'm' },
    setting: { version: '/v1' },
    has_no_words: true,
  },
  xai: {
    answers: [whole({ text: 'Hello you. Bye', language: 'en', duration: 1.5, words: WORDS })],
    path: /^\/v1\/stt$/,
    sent: { language: 'en' },
    setting: { version: '/v1' },
  },
}

describe.each(Object.entries(TRANSCRIPTS) as [ProviderKind, TranscriptCase][])('transcription by %s', (kind, one) => {
  it('gets the audio, and its text comes back with times', async () => {
    const { vendor, transcribe } = await setUp(kind, one.answers, one.setting)
    const answer = await transcribe({
      language: 'en',
      response_format: 'verbose_json',
      'timestamp_granularities[]': 'word',
    })
    const body = (await answer.json()) as Json
    expect([answer.status, body.text, body.duration, body.usage]).toEqual([
      200,
      'Hello you. Bye',
      1.5,
      { type: 'duration', seconds: 1.5, ...(kind === 'elevenlabs' && { estimated: true }) },
    ])
    if (!one.has_no_words) expect(body.words).toMatchObject(WORDS.map(({ word, start, end }) => ({ word, start, end })))
    const [request] = vendor.requests as [VendorRequest]
    expect(request.path).toMatch(one.path)
    if (one.query) {
      expect(Object.fromEntries(new URLSearchParams(request.path.split('?')[1]))).toEqual(one.sent)
      expect(request.bytes).toEqual(MP3)
      return
    }
    const form = await formOf(request)
    expect(Object.fromEntries(form)).toMatchObject(one.sent)
    expect(await (form.get('file') as File).bytes()).toEqual(MP3)
  })

  it('becomes subtitles', async () => {
    const { transcribe } = await setUp(kind, one.answers, one.setting)
    expect(await (await transcribe({ response_format: 'srt' })).text()).toBe(
      '1\n00:00:00,100 --> 00:00:01,000\nHello you.\n\n2\n00:00:01,200 --> 00:00:01,500\nBye\n\n',
    )
  })

  it('that is limited is reported as such', async () => {
    const { transcribe } = await setUp(kind, [failure(429)], one.setting)
    expect((await transcribe()).status).toBe(429)
  })
})

it('AssemblyAI gets the audio first, and is asked until the text is there', async () => {
  const { vendor, transcribe } = await setUp('assemblyai', [
    whole({ upload_url: 'https://cdn.assemblyai.com/upload/1' }),
    whole({ id: 't1', status: 'queued' }),
    whole({
      id: 't1',
      status: 'completed',
      text: 'Hello you. Bye',
      language_code: 'en',
      audio_duration: 1.5,
      words: WORDS.map(({ text, start, end }) => ({ text, start: start * 1000, end: end * 1000 })),
    }),
  ])
  const answer = await transcribe({ response_format: 'verbose_json' })
  const body = (await answer.json()) as Json
  expect([answer.status, body.text]).toEqual([200, 'Hello you. Bye'])
  expect(body.segments).toMatchObject([
    { text: 'Hello you.', start: 0.1, end: 1 },
    { text: 'Bye', start: 1.2, end: 1.5 },
  ])
  expect(vendor.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'POST /v2/upload',
    'POST /v2/transcript',
    'GET /v2/transcript/t1',
  ])
  expect(vendor.requests[0]?.bytes).toEqual(MP3)
  expect(vendor.requests[1]?.json()).toMatchObject({
    audio_url: 'https://cdn.assemblyai.com/upload/1',
    language_detection: true,
  })
})

it('what a vendor cannot do is refused by name before anything is sent', async () => {
  const { vendor, transcribe } = await setUp('deepgram', [])
  const refused = async (fields: Record<string, string>, path?: string) => {
    const { error } = (await (await transcribe(fields, path)).json()) as { error: Json }
    return [error.code, error.param]
  }
  expect(await refused({}, 'translations')).toEqual(['unsupported_endpoint', 'model'])
  expect(await refused({ response_format: 'diarized_json' })).toEqual(['unsupported_parameter', 'response_format'])
  expect(await refused({ 'include[]': 'logprobs' })).toEqual(['unsupported_parameter', 'include'])
  expect(vendor.requests).toEqual([])
})
