/** Speech and transcription through the whole gateway: with the official clients, against the sandbox and a scripted vendor. */
import { afterAll, describe, expect, it } from 'bun:test'
import OpenAI, { toFile } from 'openai'
import OldOpenAI from 'openai-6'
import { sniff } from '../src/kit/sniff.ts'
import type { TestGateway } from './kit/gateway.ts'
import { perTest } from './kit/per-test.ts'
import { openPort } from './kit/served.ts'
import { type Answer, failure, type StreamItem, stream, whole } from './kit/vendor.ts'

type Json = Record<string, unknown>

const { open, vendorWith } = perTest()
const port = await openPort()
afterAll(() => port.close())
const client = new OpenAI({ apiKey: port.token, baseURL: port.url, maxRetries: 0 })

const TEXT = 'Good morning. How are you, Zoë? 🐈'
const SPEECH = 'sandbox/speech'
const TRANSCRIPTION = 'sandbox/transcription'

const spoken = async (format: 'mp3' | 'wav' = 'mp3', input = TEXT) => {
  const answer = await client.audio.speech.create({ model: SPEECH, voice: 'tone', input, response_format: format })
  return new Uint8Array(await answer.arrayBuffer())
}

/** A WAV file of this many seconds of silence, with one byte a sample and 8,000 samples a second. */
function silence(seconds: number): Uint8Array<ArrayBuffer> {
  const header = Buffer.alloc(44)
  header.write('RIFF', 0)
  header.write('WAVEfmt ', 8)
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(8_000, 24)
  header.writeUInt32LE(8_000, 28)
  header.writeUInt16LE(8, 34)
  header.write('data', 36)
  return new Uint8Array(Buffer.concat([header, Buffer.alloc(seconds * 8_000 - 44)]))
}

/** What the ledger has of the one call of a gateway. */
async function used(gateway: TestGateway): Promise<Json> {
  for (;;) {
    gateway.clock.advance(60)
    await new Promise((resolve) => setImmediate(resolve))
    const [usage] = await gateway.instance.usage({ limit: 1 })
    if (usage) return usage
  }
}

const formOf = (fields: Record<string, string>, file: Uint8Array<ArrayBuffer> = silence(2), name = 'a.wav') => {
  const form = new FormData()
  for (const [field, value] of Object.entries(fields)) form.append(field, value)
  form.append('file', new File([file], name))
  return form
}

describe('the openai client', () => {
  it.each([
    ['openai 7', OpenAI],
    ['openai 6', OldOpenAI as unknown as typeof OpenAI],
  ])('%s: gets back what it had spoken', async (_, Client) => {
    const own = new Client({ apiKey: port.token, baseURL: port.url, maxRetries: 0 })
    for (const format of ['mp3', 'wav'] as const) {
      const answer = await own.audio.speech.create({
        model: SPEECH,
        voice: 'tone',
        input: TEXT,
        response_format: format,
      })
      const bytes = new Uint8Array(await answer.arrayBuffer())
      expect([answer.headers.get('content-type'), sniff(bytes)]).toEqual(
        format === 'mp3' ? ['audio/mpeg', 'audio/mpeg'] : ['audio/wav', 'audio/wav'],
      )
      const file = await toFile(bytes, `a.${format}`)
      const { text, usage } = await own.audio.transcriptions.create({ model: TRANSCRIPTION, file })
      expect(text).toBe(TEXT)
      expect(usage).toEqual({ type: 'duration', seconds: expect.any(Number) })
    }
  })

  it('gets texts, subtitles, times of words and speakers', async () => {
    const bytes = await spoken('mp3', 'One two. Three')
    const ask = async (response_format: OpenAI.AudioResponseFormat, more: object = {}): Promise<unknown> =>
      client.audio.transcriptions.create({
        model: TRANSCRIPTION,
        file: await toFile(bytes, 'a.mp3'),
        response_format,
        ...more,
      })
    expect(await ask('text')).toBe('One two. Three\n')
    expect(await ask('srt')).toBe(
      '1\n00:00:00,192 --> 00:00:00,576\nOne two.\n\n2\n00:00:00,624 --> 00:00:00,864\nThree\n\n',
    )
    expect(await ask('vtt')).toMatch(/^WEBVTT\n\n00:00:00\.192 --> 00:00:00\.576\nOne two\.\n\n/)
    const verbose = (await ask('verbose_json', { timestamp_granularities: ['word', 'segment'] })) as Json
    expect([verbose.task, verbose.duration, verbose.segments, verbose.words]).toMatchObject([
      'transcribe',
      0.96,
      [{ text: 'One two.' }, { text: 'Three' }],
      [{ word: 'One' }, { word: 'two.' }, { word: 'Three' }],
    ])
    const diarized = (await ask('diarized_json')) as Json
    expect(diarized.segments).toMatchObject([{ speaker: 'A' }, { speaker: 'A' }])
    const translated = await client.audio.translations.create({
      model: TRANSCRIPTION,
      file: await toFile(bytes, 'a.mp3'),
    })
    expect(translated.text).toBe('One two. Three')
  })

  it('reads events of a transcription and of speech', async () => {
    const file = await toFile(await spoken(), 'a.mp3')
    const events = await client.audio.transcriptions.create({ model: TRANSCRIPTION, file, stream: true })
    let text = ''
    let last: Json = {}
    for await (const event of events) {
      if (event.type === 'transcript.text.delta') text += event.delta
      last = event as unknown as Json
    }
    expect([text, last.type, last.text]).toEqual([TEXT, 'transcript.text.done', TEXT])
    expect(last.usage).toMatchObject({ type: 'duration' })

    const answer = await client.audio.speech.create({ model: SPEECH, voice: 'tone', input: TEXT, stream_format: 'sse' })
    const data = (await answer.text()).split('\n\n').flatMap((one) => one.match(/^data: (.*)$/m)?.[1] ?? [])
    const parsed = data.map((one) => JSON.parse(one) as Json)
    const audio = Buffer.concat(parsed.flatMap(({ audio }) => (audio ? [Buffer.from(String(audio), 'base64')] : [])))
    expect(new Uint8Array(audio)).toEqual(await spoken())
    expect(parsed.at(-1)).toEqual({
      type: 'speech.audio.done',
      usage: { input_tokens: expect.any(Number), output_tokens: expect.any(Number), total_tokens: expect.any(Number) },
    })
  })
})

describe('the sandbox', () => {
  it('says of other audio that it does not understand it', async () => {
    const { text } = await client.audio.transcriptions.create({
      model: TRANSCRIPTION,
      file: await toFile(silence(1), 'a.wav'),
    })
    expect(text).toContain('understands only audio')
  })

  it('fails as its directives ask', async () => {
    const speech = () => client.audio.speech.create({ model: SPEECH, voice: 'tone', input: '@sandbox status=429\nHi' })
    await expect((async () => speech())()).rejects.toMatchObject({ status: 429 })
    const file = await toFile(silence(1), 'a.wav')
    const text = () => client.audio.transcriptions.create({ model: TRANSCRIPTION, file, prompt: '@sandbox status=503' })
    await expect((async () => text())()).rejects.toMatchObject({ status: 503 })
  })
})

describe('a request for speech', () => {
  const speak = (json: Json) =>
    port.gateway.call('/v1/audio/speech', { json: { model: SPEECH, voice: 'tone', ...json } })
  it.each<[string, Json, number, string | undefined]>([
    ['no input', {}, 400, 'input'],
    ['an empty input', { input: '' }, 400, 'input'],
    ['4,096 characters', { input: '🐈'.repeat(4_096) }, 200, undefined],
    ['4,097 characters', { input: '🐈'.repeat(4_097) }, 400, 'input'],
    ['a format that the model lacks', { input: 'Hi', response_format: 'opus' }, 400, 'response_format'],
    ['an unknown format', { input: 'Hi', response_format: 'midi' }, 400, 'response_format'],
    ['a slow speed', { input: 'Hi', speed: 0.25 }, 200, undefined],
    ['a slower speed', { input: 'Hi', speed: 0.24 }, 400, 'speed'],
    ['a fast speed', { input: 'Hi', speed: 4 }, 200, undefined],
    ['a faster speed', { input: 'Hi', speed: 4.1 }, 400, 'speed'],
    ['a voice by its id', { input: 'Hi', voice: { id: 'voice_1' } }, 200, undefined],
    ['no voice', { input: 'Hi', voice: null }, 400, 'voice'],
    ['null for what is optional', { input: 'Hi', speed: null, instructions: null }, 200, undefined],
  ])('%s', async (_, json, status, param) => {
    const answer = await speak(json)
    const text = await answer.text()
    const { error = {} } = answer.ok ? {} : (JSON.parse(text) as { error: Json })
    expect([answer.status, error.param]).toEqual([status, param])
  })
})

describe('a form with audio', () => {
  const ask = async (fields: Record<string, string>, file?: Uint8Array<ArrayBuffer>, path = 'transcriptions') => {
    const answer = await port.gateway.call(`/v1/audio/${path}`, {
      form: formOf({ model: TRANSCRIPTION, ...fields }, file),
    })
    const isJson = answer.headers.get('content-type')?.includes('json')
    return { status: answer.status, error: ((isJson ? await answer.json() : {}) as { error?: Json }).error }
  }
  it.each<[string, Record<string, string>, number, string | undefined]>([
    ['a language', { language: 'en' }, 200, undefined],
    ['no language', { language: 'English, please' }, 400, 'language'],
    ['a temperature', { temperature: '1' }, 200, undefined],
    ['a temperature that is too high', { temperature: '1.1' }, 400, 'temperature'],
    ['a format', { response_format: 'vtt' }, 200, undefined],
    ['an unknown format', { response_format: 'docx' }, 400, 'response_format'],
    ['times that are streamed', { response_format: 'srt', stream: 'true' }, 400, 'stream'],
  ])('%s', async (_, fields, status, param) => {
    const answer = await ask(fields)
    expect([answer.status, answer.error?.param]).toEqual([status, param])
  })

  it('is refused where its file is missing, empty, text, twice, or an image', async () => {
    const png = new Uint8Array(Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAA', 'base64'))
    for (const file of [new Uint8Array(), png]) expect((await ask({}, file)).error).toMatchObject({ param: 'file' })
    const without = formOf({ model: TRANSCRIPTION })
    without.delete('file')
    const text = formOf({ model: TRANSCRIPTION })
    text.set('file', 'not a file')
    const twice = formOf({ model: TRANSCRIPTION })
    twice.append('file', new File([silence(1)], 'b.wav'))
    for (const form of [without, text, twice]) {
      const answer = await port.gateway.call('/v1/audio/transcriptions', { form })
      expect([answer.status, ((await answer.json()) as { error: Json }).error.param]).toEqual([400, 'file'])
    }
  })

  it('is refused where it is JSON, with the type that is right', async () => {
    const answer = await port.gateway.call('/v1/audio/transcriptions', { json: { model: TRANSCRIPTION } })
    expect(answer.status).toBe(415)
    expect(await answer.text()).toContain('multipart/form-data')
  })

  it('is not streamed, and names no speakers, where it is to be translated', async () => {
    expect((await ask({ stream: 'true' }, undefined, 'translations')).error).toMatchObject({ param: 'stream' })
    const diarized = await ask({ response_format: 'diarized_json' }, undefined, 'translations')
    expect(diarized.error).toMatchObject({ param: 'response_format' })
  })
})

describe('an OpenAI-shaped vendor', () => {
  const setUp = async (answers: Answer[], model: Json = {}, name = 'm') => {
    const vendor = vendorWith(...answers)
    const gateway = await open({
      providers: { v: { base_url: vendor.url, key: 'sk-secret' } },
      models: { [`v/${name}`]: { families: ['audio-speech', 'audio-transcription'], ...model } },
    })
    const speak = (json: Json = {}) =>
      gateway.call('/v1/audio/speech', { json: { model: `v/${name}`, input: 'Hi', voice: 'ash', ...json } })
    const transcribe = (fields: Record<string, string> = {}, path = 'transcriptions', file?: Uint8Array<ArrayBuffer>) =>
      gateway.call(`/v1/audio/${path}`, { form: formOf({ model: `v/${name}`, ...fields }, file) })
    const received = async (at = 0) => {
      const { bytes = new Uint8Array(), headers = {}, path } = vendor.requests[at] ?? {}
      const form = await new Response(new Uint8Array(bytes), {
        headers: { 'content-type': headers['content-type'] ?? '' },
      }).formData()
      return { path, form }
    }
    return { vendor, gateway, speak, transcribe, received }
  }
  const audio = (items: StreamItem[], options: object = {}) =>
    stream(items, { done: false, headers: { 'content-type': 'audio/mpeg' }, ...options })

  it('gets what the client asks for speech, and its bytes pass', async () => {
    const { vendor, speak } = await setUp([audio([new Uint8Array([1, 2]), new Uint8Array([3])])])
    const answer = await speak({ instructions: 'Whisper.', speed: 1.5, other: 1 })
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'audio/mpeg'])
    expect([...(await answer.bytes())]).toEqual([1, 2, 3])
    expect(vendor.requests[0]?.path).toBe('/v1/audio/speech')
    expect(vendor.requests[0]?.json()).toEqual({
      model: 'm',
      input: 'Hi',
      voice: 'ash',
      instructions: 'Whisper.',
      speed: 1.5,
      response_format: 'mp3',
    })
  })

  it('is asked for events where only these have the usage, and the client gets the bytes', async () => {
    const delta = (text: string) => ({ type: 'speech.audio.delta', audio: Buffer.from(text).toString('base64') })
    const done = { type: 'speech.audio.done', usage: { input_tokens: 14, output_tokens: 101, total_tokens: 115 } }
    const prices = { input: 0.6, output: 12 }
    const answers = [stream([delta('ab'), delta('c'), done], { done: false })]
    const { vendor, gateway, speak } = await setUp(answers, { prices }, 'gpt-4o-mini-tts')
    expect(await (await speak()).text()).toBe('abc')
    expect(vendor.requests[0]?.json()).toMatchObject({ stream_format: 'sse' })
    expect(await used(gateway)).toMatchObject({ input_tokens: 14, output_tokens: 101 })
  })

  it('cuts the connection where its audio ends early, and says so in events', async () => {
    const [first, second] = [Promise.withResolvers(), Promise.withResolvers()]
    const cut = (read: Promise<unknown>) => audio([new Uint8Array([1, 2]), read, new Uint8Array([3])], { cutAfter: 1 })
    const { speak } = await setUp([cut(first.promise), cut(second.promise)])
    const answer = await speak()
    expect(answer.status).toBe(200)
    first.resolve(undefined)
    await expect(answer.bytes()).rejects.toBeTruthy()
    const streamed = await speak({ stream_format: 'sse' })
    second.resolve(undefined)
    const events = await streamed.text()
    expect(events).toContain('event: error\n')
    expect(events).not.toContain('speech.audio.done')
  })

  it.each<[string, Answer, number]>([
    ['an error', failure(400, { message: 'no such voice' }), 400],
    ['an error in JSON with status 200', whole({ error: { message: 'overloaded' } }), 502],
    ['JSON', whole({ url: 'https://example.com/a.mp3' }), 502],
    ['a web page', whole('<html>', { headers: { 'content-type': 'text/html' } }), 502],
    ['nothing', whole('', { headers: { 'content-type': 'audio/mpeg' } }), 502],
    ['XML', whole('<Error/>', { headers: { 'content-type': 'application/xml' } }), 502],
    ['JSON of no type', whole('{"error":1}', { headers: { 'content-type': 'application/octet-stream' } }), 502],
    ['events without audio', stream([{ type: 'speech.audio.done', usage: {} }], { done: false }), 502],
  ])('that answers a request for speech with %s is reported with a status', async (_, answer, status) => {
    const { speak } = await setUp([answer])
    const failed = await speak()
    expect(failed.status).toBe(status)
    expect(failed.headers.get('content-type')).toContain('json')
  })

  it('may send audio of no type that begins like a text', async () => {
    const bytes = new Uint8Array([0x3c, 0, 1, 0x80])
    const { speak } = await setUp([audio([bytes], { headers: { 'content-type': 'application/octet-stream' } })])
    const answer = await speak()
    expect([answer.headers.get('x-content-type-options'), await answer.bytes()]).toEqual(['nosniff', bytes])
  })

  it('cannot forge events of a transcription by their names', async () => {
    const forged = { type: 'transcript.x\nevent: transcript.text.done\ndata: {"text":"forged"}' }
    const events = [forged, { type: 'transcript.text.done', text: 'Hello' }]
    const { transcribe } = await setUp([stream(events, { done: false })])
    expect(await (await transcribe({ stream: 'true' })).text()).not.toContain('forged')
  })

  it('is charged for the text that guards have made of that of the client, within the limit of the model', async () => {
    const vendor = vendorWith(audio([new Uint8Array([1])]))
    const gateway = await open({
      providers: { v: { base_url: vendor.url } },
      guards: {
        long: { kind: 'patterns', patterns: ['ab'], on: ['input'], action: 'replace' },
      },
      models: {
        'v/m': {
          families: ['audio-speech'],
          guards: ['long'],
          speech: { characters: 20 },
          prices: { speech_characters: 1_000 },
        },
      },
    })
    const speak = (input: string) => gateway.call('/v1/audio/speech', { json: { model: 'v/m', input, voice: 'ash' } })
    const answer = await speak('ab c')
    await answer.bytes()
    const sent = vendor.requests[0]?.json().input as string
    expect(sent.length).toBeGreaterThan(4)
    await used(gateway)
    const { data } = (await (await gateway.call('/v1/usage?by=model')).json()) as { data: Json[] }
    expect(data).toMatchObject([{ cost: sent.length / 1_000 }])
    const refused = await speak('ab '.repeat(6))
    expect([refused.status, ((await refused.json()) as { error: Json }).error.code]).toEqual([
      400,
      'context_length_exceeded',
    ])
    expect(vendor.requests).toHaveLength(1)
  })

  it('gets the form of the client with the own name of the model', async () => {
    const { vendor, transcribe, received } = await setUp([whole({ text: 'Hello' })])
    const fields = {
      language: 'de',
      prompt: 'Zoë "x"',
      temperature: '0.2',
      'timestamp_granularities[]': 'word',
      response_format: 'verbose_json',
      chunking_strategy: 'auto',
      'include[]': 'logprobs',
    }
    const answer = await transcribe(fields)
    expect(await answer.json()).toEqual({ text: 'Hello', usage: { type: 'duration', seconds: 2 } })
    const { path, form } = await received()
    expect(path).toBe('/v1/audio/transcriptions')
    const file = form.get('file') as File
    form.delete('file')
    expect(Object.fromEntries(form)).toEqual({ ...fields, model: 'm' })
    expect([file.name, await file.bytes()]).toEqual(['a.wav', silence(2)])
    expect(vendor.requests[0]?.body).toContain('content-type: audio/wav\r\n')
  })

  it('gets a form of its own where the fields are larger than the margin of the request', async () => {
    const { transcribe, received } = await setUp([whole({ text: 'Hello' })])
    const prompt = 'x'.repeat(90_000)
    expect((await transcribe({ prompt })).status).toBe(200)
    const { form } = await received()
    expect([form.get('prompt'), await (form.get('file') as File).bytes()]).toEqual([prompt, silence(2)])
  })

  it('is asked for JSON where the client wants a text or subtitles', async () => {
    const segments = [{ start: 0, end: 1.5, text: ' Hello --> you\n\nthere ' }]
    const { transcribe, received } = await setUp([whole({ text: 'Hello' }), whole({ text: 'Hello', segments })])
    const text = await transcribe({ response_format: 'text' }, 'translations')
    expect([text.headers.get('content-type'), await text.text()]).toEqual(['text/plain; charset=utf-8', 'Hello\n'])
    expect(await (await transcribe({ response_format: 'srt' })).text()).toBe(
      '1\n00:00:00,000 --> 00:00:01,500\nHello -> you\nthere\n\n',
    )
    const [first, second] = [await received(0), await received(1)]
    expect([first.path, first.form.get('response_format')]).toEqual(['/v1/audio/translations', 'json'])
    expect(second.form.get('response_format')).toBe('verbose_json')
  })

  it('streams its events, and where it answers as a whole the client still gets events', async () => {
    const usage = { type: 'tokens', input_tokens: 20, input_token_details: { audio_tokens: 18 }, output_tokens: 5 }
    const events = [
      { type: 'transcript.text.delta', delta: 'Hel' },
      { type: 'transcript.text.delta', delta: 'lo' },
      { type: 'transcript.text.done', text: 'Hello', usage: { ...usage, total_tokens: 25 } },
    ]
    const lost = Promise.withResolvers()
    const cut = stream([...events.slice(0, 1), lost.promise, ...events.slice(1)], { cutAfter: 1 })
    const { transcribe } = await setUp([stream(events, { done: false }), whole({ text: 'Hello' }), cut])
    const read = async (begun = () => {}) => {
      const answer = await transcribe({ stream: 'true' })
      begun()
      return (await answer.text())
        .split('\n\n')
        .flatMap((one) => one.match(/^data: (.*)$/m)?.[1] ?? [])
        .map((one) => JSON.parse(one) as Json)
    }
    expect(await read()).toEqual(events)
    expect((await read()).map(({ type, delta, text }) => [type, delta ?? text])).toEqual([
      ['transcript.text.delta', 'Hello'],
      ['transcript.text.done', 'Hello'],
    ])
    expect((await read(() => lost.resolve(undefined))).map(({ type }) => type)).toEqual([
      'transcript.text.delta',
      'error',
    ])
  })

  it('is replaced by the next target, which gets the same audio', async () => {
    const [broken, good] = [vendorWith(failure(500)), vendorWith(whole({ text: 'Hello' }))]
    const gateway = await open({
      providers: { a: { base_url: broken.url }, b: { base_url: good.url } },
      models: {
        'x/m': {
          families: ['audio-transcription'],
          targets: [
            { provider: 'a', model: 'one' },
            { provider: 'b', model: 'a-longer-name' },
          ],
        },
      },
    })
    const answer = await gateway.call('/v1/audio/transcriptions', { form: formOf({ model: 'x/m' }) })
    expect(((await answer.json()) as Json).text).toBe('Hello')
    const [first, second] = await Promise.all(
      [broken, good].map(async ({ requests: [request] }) => {
        const headers = { 'content-type': request?.headers['content-type'] ?? '' }
        return new Response(new Uint8Array(request?.bytes ?? []), { headers }).formData()
      }),
    )
    expect([first?.get('model'), second?.get('model')]).toEqual(['one', 'a-longer-name'])
    const file = second?.get('file') as File
    expect(await file.bytes()).toEqual(silence(2))
  })

  it('is charged by character, by minute or by token', async () => {
    const cost = (answer: Response) => answer.headers.get('x-gatehouse-cost')
    const byMinute = await setUp([whole({ text: 'a' }), whole({ text: 'a', duration: 90 })], {
      prices: { audio_minute: 0.006 },
    })
    expect(cost(await byMinute.transcribe())).toBe('0.0002')
    expect(cost(await byMinute.transcribe())).toBe('0.009')
    const usage = {
      type: 'tokens',
      input_tokens: 1_000,
      input_token_details: { audio_tokens: 900, text_tokens: 100 },
      output_tokens: 10,
      total_tokens: 1_010,
    }
    const byToken = await setUp([whole({ text: 'a', usage })], { prices: { input: 2.5, input_audio: 6, output: 10 } })
    const answer = await byToken.transcribe()
    expect([cost(answer), ((await answer.json()) as Json).usage]).toEqual(['0.00575', usage])
    const unknown = await setUp([whole({ text: 'a' })])
    expect(cost(await unknown.transcribe())).toBe('unknown')
    const budget = await setUp([audio([new Uint8Array([1])])], { prices: { speech_characters: 15 } })
    await (await budget.speak({ input: 'x'.repeat(1_000) })).bytes()
    await used(budget.gateway)
    const { data } = (await (await budget.gateway.call('/v1/usage?by=model')).json()) as { data: Json[] }
    expect(data[0]).toMatchObject({ cost: 0.015 })
  })

  it('is charged for the whole file, not for the part of it in which somebody speaks', async () => {
    const segment = (end: number) => ({ segments: [{ start: 0, end, text: 'a' }] })
    const told = [segment(0.5), segment(-1), { usage: { type: 'duration', seconds: -1 } }, { duration: 0 }, segment(9)]
    const { transcribe } = await setUp(
      told.map((members) => whole({ text: 'a', ...members })),
      { prices: { audio_minute: 0.06 } },
    )
    for (const _ of told) {
      const answer = await transcribe({}, 'transcriptions', silence(60))
      const { usage } = (await answer.json()) as Json
      expect([answer.headers.get('x-gatehouse-cost'), usage]).toEqual(['0.06', { type: 'duration', seconds: 60 }])
    }
    const compressed = new Uint8Array([0xff, 0xf3, 1, 2])
    const other = await setUp([whole({ text: 'a', ...segment(3) }), whole({ text: 'a', ...segment(-3) })])
    const seconds = async () => (await (await other.transcribe({}, 'transcriptions', compressed)).json()) as Json
    expect((await seconds()).usage).toEqual({ type: 'duration', seconds: 3, estimated: true })
    expect((await seconds()).usage).toEqual({ type: 'duration', seconds: 4 / 8_000, estimated: true })
  })

  it.each(['false', 'true'])('is charged for a transcript that a guard blocks (stream: %s)', async (stream) => {
    const vendor = vendorWith(whole({ text: 'the secret word' }))
    const gateway = await open({
      providers: { v: { base_url: vendor.url } },
      guards: { secret: { kind: 'patterns', patterns: ['secret'], on: ['output'], action: 'block' } },
      models: {
        'v/m': { families: ['audio-transcription'], guards: ['secret'], prices: { audio_minute: 0.006 } },
      },
    })
    const form = formOf({ model: 'v/m', stream })
    const answer = await gateway.call('/v1/audio/transcriptions', { form })
    const { error } = (await answer.json()) as { error: Json }
    expect([answer.status, error.code]).toEqual([400, 'content_blocked'])
    expect(await used(gateway)).toMatchObject({ requests: 1, errors: 1, estimated: 0 })
    const { data } = (await (await gateway.call('/v1/usage?by=model')).json()) as { data: Json[] }
    expect(data).toMatchObject([{ model: 'v/m', cost: 0.0002 }])
  })

  it.each<[Json, Json]>([
    [
      { input_tokens: 0, output_tokens: 0 },
      { output_tokens: 1_400, estimated: 1 },
    ],
    [{ input_tokens: 9 }, { input_tokens: 9, output_tokens: 1_400, estimated: 1 }],
    [{ output_tokens: 7 }, { output_tokens: 7, estimated: 1 }],
    [
      { input_tokens: 9, output_tokens: 1 },
      { input_tokens: 9, output_tokens: 1, estimated: 0 },
    ],
  ])('is charged for estimated tokens of speech where it reports %j', async (usage, counted) => {
    const events = [
      { type: 'speech.audio.delta', audio: 'AAAA' },
      { type: 'speech.audio.done', usage },
    ]
    const prices = { input: 1, output: 10 }
    const { gateway, speak } = await setUp([stream(events, { done: false })], { prices }, 'gpt-4o-mini-tts')
    await (await speak({ input: 'x'.repeat(1_000) })).bytes()
    const found = await used(gateway)
    expect(found).toMatchObject(counted)
    expect(found.input_tokens).toBeGreaterThan(0)
  })

  it('is charged for estimated tokens where the client leaves before they are reported', async () => {
    const audioDelta = { type: 'speech.audio.delta', audio: 'AAAA' }
    const textDelta = { type: 'transcript.text.delta', delta: 'Hello' }
    const never = new Promise(() => {})
    const prices = { input: 1, output: 10 }
    const left = async (answer: Response) => {
      const reader = (answer.body as ReadableStream<Uint8Array>).getReader()
      await reader.read()
      await reader.cancel()
    }
    const speech = await setUp([stream([audioDelta, never])], { prices }, 'gpt-4o-mini-tts')
    await left(await speech.speak({ input: 'x'.repeat(1_000) }))
    expect(await used(speech.gateway)).toMatchObject({ output_tokens: 1_400, estimated: 1 })
    const transcription = await setUp([stream([textDelta, never])], { prices })
    await left(await transcription.transcribe({ stream: 'true' }))
    expect(await used(transcription.gateway)).toMatchObject({ input_tokens: 20, output_tokens: 10, estimated: 1 })
  })

  it('is charged for the audio that the client has got where the provider fails, each time that a client repeats the call', async () => {
    const second = new Uint8Array(48_000)
    const speakCut = async (model: Json, json: Json = {}) => {
      const reads = [Promise.withResolvers(), Promise.withResolvers()]
      const answers = reads.map(({ promise }) => audio([second, promise, second], { cutAfter: 1 }))
      const { gateway, speak } = await setUp(answers, model)
      const costs: unknown[] = []
      let usage: Json = {}
      for (const read of reads) {
        const answer = await speak({ input: 'x'.repeat(1_000), response_format: 'pcm', ...json })
        read.resolve(undefined)
        await expect(answer.bytes()).rejects.toBeTruthy()
        do usage = await used(gateway)
        while (Number(usage.requests) <= costs.length)
        const { data } = (await (await gateway.call('/v1/usage?by=model')).json()) as { data: Json[] }
        costs.push(data[0]?.cost)
      }
      return { costs, usage }
    }
    const byCharacter = await speakCut({ prices: { speech_characters: 1_000 } })
    expect(byCharacter.costs).toEqual([0.015, 0.03])
    expect(byCharacter.usage).toMatchObject({ requests: 2, errors: 2, estimated: 2 })
    const faster = await speakCut({ prices: { input: 0, output: 1_000 } }, { speed: 2 })
    expect(faster.costs).toEqual([0.042, 0.084])
    expect((await speakCut({ prices: { speech_characters: 1_000 } }, { input: 'Hi' })).costs).toEqual([0.002, 0.004])
  })

  it('is limited by the seconds that compressed audio of few bits lasts', async () => {
    const amr = new Uint8Array(Buffer.from('#!AMR\n'.padEnd(6 + 13 * 50 * 4, '\x04\0\0\0\0\0\0\0\0\0\0\0\0')))
    const { transcribe } = await setUp([whole({ text: 'a' })], { rate_limits: { audio_seconds_per_minute: 3 } })
    expect((await transcribe({}, 'transcriptions', amr)).status).toBe(429)
    expect((await transcribe({}, 'transcriptions', amr.subarray(0, 6 + 13 * 50 * 2))).status).toBe(200)
  })

  it('is limited by the text that guards have made of that of the client', async () => {
    const vendor = vendorWith(audio([new Uint8Array([1])]))
    const prices = { speech_characters: 1_000 }
    const gateway = await open({
      providers: { v: { base_url: vendor.url } },
      budgets: [{ amount: 0.015, window: 'day' }],
      guards: { long: { kind: 'patterns', patterns: ['ab'], on: ['input'], action: 'replace' } },
      models: { 'v/m': { families: ['audio-speech'], guards: ['long'], prices } },
    })
    const speak = (input: string) => gateway.call('/v1/audio/speech', { json: { model: 'v/m', input, voice: 'ash' } })
    const refused = await speak('ab ab ab')
    expect([refused.status, ((await refused.json()) as { error: Json }).error.code]).toEqual([
      429,
      'insufficient_quota',
    ])
    expect(vendor.requests).toEqual([])
    const admitted = await speak('cd cd cd')
    expect([admitted.status, await admitted.bytes()]).toEqual([200, new Uint8Array([1])])
  })

  it('is limited by the seconds of audio, to the last one', async () => {
    const rate_limits = { audio_seconds_per_minute: 3 }
    const { gateway, transcribe } = await setUp(
      [1, 2, 3].map(() => whole({ text: 'a' })),
      { rate_limits },
    )
    const ask = async (seconds: number) => (await transcribe({}, 'transcriptions', silence(seconds))).status
    expect([await ask(4), await ask(2), await ask(2), await ask(1), await ask(1)]).toEqual([429, 200, 429, 200, 429])
    gateway.clock.advance(61_000)
    expect(await ask(3)).toBe(200)
  })

  it('may send segments that are none', async () => {
    const odd = [{ segments: {} }, { segments: [null, { text: 5 }] }, { segments: 'none', duration: 'Infinity' }]
    const { transcribe } = await setUp(odd.map((members) => whole({ text: 'Hello', ...members })))
    for (const _ of odd) {
      const answer = await transcribe({ response_format: 'srt' })
      expect([answer.status, await answer.text()]).toEqual([200, '1\n00:00:00,000 --> 00:00:00,000\nHello\n\n'])
    }
  })
})
