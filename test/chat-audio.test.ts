/** Audio in chat, in and out: official clients before the sandbox and before a scripted vendor, its units and its price, and refusals. */
import { afterAll, describe, expect, it } from 'bun:test'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { HumanMessage } from '@langchain/core/messages'
import { ChatOpenAI } from '@langchain/openai'
import { generateText } from 'ai'
import OpenAI, { toFile } from 'openai'
import type { TestGateway } from './kit/gateway.ts'
import { perTest } from './kit/per-test.ts'
import { openPort } from './kit/served.ts'
import { type Answer, chunk, completion, stream, usageChunk, whole } from './kit/vendor.ts'

type Json = Record<string, unknown>
type Messages = OpenAI.ChatCompletionMessageParam[]

const { open, vendorWith } = perTest()
const port = await openPort()
afterAll(() => port.close())
const client = new OpenAI({ apiKey: port.token, baseURL: port.url, maxRetries: 0 })

const MODEL = 'sandbox/voice'
const QUESTION = 'Why do lighthouses blink?'

const spoken = async (input: string, format: 'mp3' | 'wav') => {
  const body = { model: 'sandbox/speech', voice: 'tone', input, response_format: format }
  return Buffer.from(await (await client.audio.speech.create(body)).arrayBuffer()).toString('base64')
}
const heard = (data: string, format: 'mp3' | 'wav' = 'wav'): Messages => [
  { role: 'user', content: [{ type: 'input_audio', input_audio: { data, format } }] },
]
const transcribed = async (base64: string, name: string) => {
  const file = await toFile(Buffer.from(base64, 'base64'), name)
  return (await client.audio.transcriptions.create({ model: 'sandbox/transcription', file })).text
}

describe('the openai client before the sandbox', () => {
  it.each(['mp3', 'wav'] as const)(
    'asks in %s, and gets an answer as audio and text, with its tokens',
    async (format) => {
      const { choices, usage } = await client.chat.completions.create({
        model: MODEL,
        modalities: ['text', 'audio'],
        audio: { voice: 'tone', format },
        messages: heard(await spoken(QUESTION, format), format),
      })
      const { content, audio } = choices[0]?.message ?? {}
      expect(content).toBeNull()
      expect(audio?.id).toStartWith('audio_')
      expect(audio?.transcript).toContain('lighthouses')
      expect(await transcribed(audio?.data ?? '', `a.${format}`)).toBe(audio?.transcript ?? '')
      // Ten tokens a second in, and twenty out.
      expect(usage?.prompt_tokens_details?.audio_tokens).toBe(15)
      expect(usage?.completion_tokens_details?.audio_tokens).toBeGreaterThan(100)
    },
  )

  it('reads the transcript and the samples from a stream, then the usage', async () => {
    const chunks = await client.chat.completions.create({
      model: MODEL,
      modalities: ['text', 'audio'],
      audio: { voice: 'tone', format: 'pcm16' },
      messages: [{ role: 'user', content: 'Good morning' }],
      max_tokens: 10,
      stream: true,
      stream_options: { include_usage: true },
    })
    let [transcript, bytes, id, audio_tokens] = ['', 0, '', 0]
    for await (const { choices, usage } of chunks) {
      const { audio } = (choices[0]?.delta ?? {}) as { audio?: { id?: string; transcript?: string; data?: string } }
      id ||= audio?.id ?? ''
      transcript += audio?.transcript ?? ''
      bytes += Buffer.from(audio?.data ?? '', 'base64').length
      audio_tokens = usage?.completion_tokens_details?.audio_tokens ?? audio_tokens
    }
    expect(id).toStartWith('audio_')
    expect(transcript).not.toBe('')
    expect(audio_tokens).toBe(Math.ceil((bytes / 48_000) * 20))
  })

  it('goes on with an answer by its id', async () => {
    const { choices } = await client.chat.completions.create({
      model: MODEL,
      messages: [{ role: 'user', content: 'Hi' }, { role: 'assistant', audio: { id: 'audio_1' } }, ...heard('AAAA')],
    })
    expect(choices[0]?.message.content).toContain('understands only what its own speech has made')
  })

  it.each([
    ['another format', { audio: { voice: 'tone', format: 'flac' } }, 'audio.format'],
    ['a file that is streamed', { audio: { voice: 'tone', format: 'wav' }, stream: true }, 'audio.format'],
    ['no voice', { audio: { format: 'wav' } }, 'audio.voice'],
    ['a model without audio', { model: 'sandbox/general' }, 'modalities'],
    [
      'a model that hears nothing',
      { model: 'sandbox/general', messages: heard('AAAA') },
      'messages[0].content[0].type',
    ],
  ])('is told what is wrong with %s', async (_, more, param) => {
    const modalities = 'messages' in more ? ['text'] : ['text', 'audio']
    const body = { model: MODEL, messages: [{ role: 'user', content: 'Hi' }], modalities, ...more }
    const thrown = await client.chat.completions.create(body as never).catch((error: unknown) => error)
    expect(thrown).toMatchObject({ status: 400, param })
  })
})

describe('other clients before the sandbox', () => {
  it('LangChain hears an answer', async () => {
    const model = new ChatOpenAI({
      model: MODEL,
      apiKey: port.token,
      configuration: { baseURL: port.url },
      modalities: ['text', 'audio'],
      audio: { voice: 'tone', format: 'wav' },
    })
    const data = await spoken(QUESTION, 'wav')
    const answer = await model.invoke([
      new HumanMessage({ content: [{ type: 'input_audio', input_audio: { data, format: 'wav' } }] as never }),
    ])
    const audio = answer.additional_kwargs.audio as { transcript: string; data: string }
    expect(await transcribed(audio.data, 'a.wav')).toBe(audio.transcript)
    const { usage_metadata } = answer as unknown as { usage_metadata: { output_token_details: { audio: number } } }
    expect(usage_metadata.output_token_details.audio).toBeGreaterThan(100)
  })

  it('the AI SDK sends a file of audio', async () => {
    const provider = createOpenAICompatible({ name: 'gatehouse', baseURL: port.url, apiKey: port.token })
    const data = await spoken(QUESTION, 'mp3')
    const { text } = await generateText({
      model: provider.chatModel(MODEL),
      messages: [{ role: 'user', content: [{ type: 'file', mediaType: 'audio/mpeg', data }] }],
    })
    expect(text).toContain('lighthouses')
  })
})

describe('an OpenAI-shaped vendor', () => {
  const PRICES = { input: 2.5, input_audio: 40, output: 10, output_audio: 80 }
  const USAGE = {
    prompt_tokens: 120,
    completion_tokens: 260,
    total_tokens: 380,
    prompt_tokens_details: { audio_tokens: 100, text_tokens: 20, cached_tokens: 0 },
    completion_tokens_details: { audio_tokens: 200, text_tokens: 60, reasoning_tokens: 0 },
  }
  const AUDIO = { id: 'audio_1', data: 'AAAA', expires_at: 1_800_000_000, transcript: 'Hello' }
  const ASK = {
    model: 'v/gpt-audio',
    modalities: ['text', 'audio'],
    audio: { voice: 'alloy', format: 'pcm16' },
    messages: [...heard('AAAA'), { role: 'assistant', audio: { id: 'audio_0' } }, { role: 'user', content: 'Go on' }],
  }

  const setUp = async (answer: Answer, more: Json = {}, kind: Json = {}) => {
    const vendor = vendorWith(answer)
    const gateway = await open({
      providers: { v: { base_url: vendor.url, key: 'sk-secret', ...kind } },
      models: { 'v/gpt-audio': { prices: PRICES, ...more } },
      guards: { secrets: { kind: 'patterns', patterns: ['falcon'] } },
    })
    return {
      vendor,
      gateway,
      ask: (json: Json = {}) => gateway.call('/v1/chat/completions', { json: { ...ASK, ...json } }),
    }
  }

  async function charged(gateway: TestGateway): Promise<Json> {
    for (;;) {
      gateway.clock.advance(60)
      await new Promise((resolve) => setImmediate(resolve))
      const { data } = (await (await gateway.call('/v1/usage?by=model')).json()) as { data: Json[] }
      if (data[0]) return data[0]
    }
  }

  it('gets the request as it is, and its answer comes back with the price of its audio', async () => {
    const answer = completion('', { usage: USAGE })
    answer.choices = [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: null, audio: AUDIO } }]
    const { vendor, gateway, ask } = await setUp(whole(answer))
    const body = (await (await ask()).json()) as { choices: { message: Json }[]; usage: Json }
    expect(vendor.requests[0]?.json()).toMatchObject({ ...ASK, model: 'gpt-audio' })
    expect(body.choices[0]?.message).toMatchObject({ content: null, audio: AUDIO })
    expect(body.usage.completion_tokens_details).toMatchObject({ audio_tokens: 200 })
    const cost = (20 * 2.5 + 100 * 40 + 60 * 10 + 200 * 80) / 1e6
    expect((await charged(gateway)).cost).toBeCloseTo(cost, 9)
  })

  it('streams it, and is charged by its usage', async () => {
    const events = [{ id: 'audio_1', transcript: '' }, { transcript: 'Hello' }, { data: 'AAAA' }, { expires_at: 9 }]
    const { gateway, ask } = await setUp(
      stream([...events.map((audio) => chunk({ audio })), chunk({}, 'stop'), { ...usageChunk(), usage: USAGE }]),
    )
    const text = await (await ask({ stream: true })).text()
    for (const audio of events) expect(text).toContain(`"audio":${JSON.stringify(audio)}`)
    expect((await charged(gateway)).cost).toBeCloseTo((20 * 2.5 + 100 * 40 + 60 * 10 + 200 * 80) / 1e6, 9)
  })

  it('is charged for the audio that it has sent where the client leaves', async () => {
    const never = new Promise(() => {})
    const second = Buffer.alloc(48_000).toString('base64')
    const { gateway, ask } = await setUp(stream([chunk({ audio: { id: 'a', data: second } }), never]))
    const reader = ((await ask({ stream: true })).body as ReadableStream<Uint8Array>).getReader()
    for (let read = ''; !read.includes('"data"'); ) read += Buffer.from((await reader.read()).value ?? []).toString()
    await reader.cancel()
    const row = await charged(gateway)
    expect(row).toMatchObject({ output_tokens: 20, estimated: 1 })
    expect(row.cost).toBeGreaterThan((20 * 80) / 1e6)
  })

  it.each([
    ['messages-compat', { modalities: undefined, audio: undefined }, 'messages'],
    ['messages-compat', {}, 'audio'],
    ['contentgen-compat', { messages: heard('AAAA'), audio: undefined }, 'modalities'],
    ['responses-compat', { messages: heard('AAAA') }, 'audio'],
  ])('of the kind %s that cannot is not called for %p', async (kind, more, param) => {
    const { vendor, ask } = await setUp(whole({}), {}, { kind })
    const answer = await ask({ ...more, ...(param === 'messages' ? { messages: ASK.messages.slice(1) } : {}) })
    expect([answer.status, ((await answer.json()) as { error: Json }).error.param]).toEqual([400, param])
    expect(vendor.requests).toEqual([])
  })

  it('is not called where guards check answers, since they cannot check audio', async () => {
    const { vendor, ask } = await setUp(whole({}), { guards: ['secrets'] })
    const answer = await ask()
    expect(((await answer.json()) as { error: Json }).error).toMatchObject({
      code: 'unsupported_value',
      param: 'modalities',
    })
    expect(vendor.requests).toEqual([])
  })

  it('does not hear of audio by its id from a limited token', async () => {
    const { vendor, gateway, ask } = await setUp(whole({}))
    const { secret } = await gateway.instance.tokens.issue({ name: 'limited', models: ['v/gpt-audio'] })
    const answer = await gateway.call('/v1/chat/completions', {
      json: ASK,
      headers: { authorization: `Bearer ${secret}` },
    })
    expect(((await answer.json()) as { error: Json }).error.param).toBe('messages[1].audio.id')
    expect(vendor.requests).toEqual([])
    expect(ask).toBeDefined()
  })
})
