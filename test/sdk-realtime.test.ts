/** Realtime clients of the vendors before the sandbox: both of the `openai` package, and the Live client of `@google/genai`. */
import { afterAll, beforeAll, describe, expect, it } from 'bun:test'
import { GoogleGenAI, type LiveServerMessage, Modality } from '@google/genai'
import { GoogleGenAI as GoogleGenAI2 } from 'google-genai-2'
import OpenAI from 'openai'
import { OpenAIRealtimeWebSocket } from 'openai/realtime/websocket'
import { OpenAIRealtimeWS } from 'openai/realtime/ws'
import { openPort, type Port } from './kit/served.ts'
import { withTls } from './kit/tls-port.ts'

type Event = { type: string } & Record<string, unknown>

const MODEL = 'sandbox/realtime'
const item = (text: string) => ({
  type: 'conversation.item.create' as const,
  item: { type: 'message' as const, role: 'user' as const, content: [{ type: 'input_text' as const, text }] },
})

let port: Port
let tls: Awaited<ReturnType<typeof withTls>>
beforeAll(async () => {
  port = await openPort()
  tls = await withTls(port.url)
})
afterAll(async () => {
  tls.close()
  await port.close()
})

/** The calls in the ledger, once there are at least so many. */
async function requests(least = 0): Promise<number> {
  for (;;) {
    const rows = await port.gateway.instance.usage({ limit: 10 })
    const count = rows.reduce((sum, { requests }) => sum + requests, 0)
    if (count >= least) return count
    await new Promise(setImmediate)
  }
}

type Realtime = OpenAIRealtimeWS

/** Holds a session of one spoken response, and returns its events. */
function converse(realtime: Realtime): Promise<Event[]> {
  const events: Event[] = []
  const { promise, resolve, reject } = Promise.withResolvers<Event[]>()
  realtime.on('error', reject)
  realtime.on('event', (event) => {
    events.push(event as unknown as Event)
    if (event.type === 'session.created') {
      realtime.send({ type: 'session.update', session: { type: 'realtime', instructions: 'Be brief.' } })
      realtime.send(item('Good morning'))
      realtime.send({ type: 'response.create' })
    }
    if (event.type === 'response.done') resolve(events)
  })
  return promise.finally(() => realtime.close())
}

const spoken = (client: OpenAI) =>
  new OpenAIRealtimeWS({ model: MODEL, options: { rejectUnauthorized: false } }, client)

/** For `new WebSocket`, which has no options for TLS. */
function trusting<T>(open: () => T): T {
  const Native = globalThis.WebSocket
  globalThis.WebSocket = class extends Native {
    constructor(url: string | URL, protocols: string[]) {
      super(url, { protocols, tls: { rejectUnauthorized: false } } as never)
    }
  } as never
  try {
    return open()
  } finally {
    globalThis.WebSocket = Native
  }
}

describe('the openai package', () => {
  it.each([
    ['OpenAIRealtimeWS', spoken],
    [
      'OpenAIRealtimeWebSocket',
      (client: OpenAI) =>
        trusting(
          () =>
            new OpenAIRealtimeWebSocket({ model: MODEL, dangerouslyAllowBrowser: true }, client) as unknown as Realtime,
        ),
    ],
  ])('%s holds a session: settings, text, audio and usage', async (_, open) => {
    const before = await requests()
    const events = await converse(open(new OpenAI({ apiKey: port.token, baseURL: tls.url })))
    expect([...new Set(events.map(({ type }) => type))]).toEqual([
      'session.created',
      'session.updated',
      'conversation.item.added',
      'response.created',
      'response.output_audio_transcript.delta',
      'response.output_audio.delta',
      'response.done',
    ])
    expect(events.at(-1)?.response).toMatchObject({
      usage: { input_tokens: 3, output_token_details: { audio_tokens: 6 } },
    })
    expect(await requests(before + 1)).toBe(before + 1)
  })

  it('opens a session with a client secret that it has made, and is told of errors by event and by status', async () => {
    const maker = new OpenAI({ apiKey: port.token, baseURL: port.url })
    const secret = await maker.realtime.clientSecrets.create({
      session: { type: 'realtime', model: MODEL, instructions: 'Sing.' },
      expires_after: { anchor: 'created_at', seconds: 60 },
    })
    expect(secret.value).toStartWith('ek_')
    const realtime = spoken(new OpenAI({ apiKey: secret.value, baseURL: tls.url }))
    const error = await new Promise<{ error?: unknown }>((resolve) => {
      realtime.on('error', resolve)
      realtime.on('session.updated', ({ session }) => {
        expect(session).toMatchObject({ model: MODEL, instructions: 'Sing.' })
        realtime.send({ type: 'nonsense' } as never)
      })
    })
    expect(error.error).toMatchObject({ code: 'unknown_event' })
    realtime.close()

    const refused = spoken(new OpenAI({ apiKey: `${secret.value}x`, baseURL: tls.url }))
    expect(String(await new Promise((resolve) => refused.on('error', resolve)))).toContain('401')
  })
})

describe.each([
  ['@google/genai 3', GoogleGenAI],
  ['@google/genai 2', GoogleGenAI2 as unknown as typeof GoogleGenAI],
])('%s', (_, Client) => {
  const baseUrl = () => port.url.replace(/\/v1$/, '')

  it.each([Modality.AUDIO, Modality.TEXT])('holds a session of the Live API that answers with %s', async (modality) => {
    const before = await requests()
    const ai = new Client({ apiKey: port.token, httpOptions: { baseUrl: baseUrl() } })
    const messages: LiveServerMessage[] = []
    const ended = Promise.withResolvers<void>()
    const session = await ai.live.connect({
      model: MODEL,
      config: { responseModalities: [modality], systemInstruction: 'Be brief.' },
      callbacks: {
        onmessage(message) {
          messages.push(message)
          if (message.serverContent?.turnComplete) ended.resolve()
        },
        onclose: ({ reason }) => ended.reject(new Error(reason)),
      },
    })
    session.sendClientContent({ turns: [{ role: 'user', parts: [{ text: 'Good morning' }] }] })
    await ended.promise
    const parts = messages.flatMap(({ serverContent }) => serverContent?.modelTurn?.parts ?? [])
    if (modality === Modality.TEXT) expect(parts.map(({ text }) => text).join('')).toBe('You said: Good morning')
    else expect(parts[0]?.inlineData?.mimeType).toBe('audio/pcm;rate=24000')
    expect(messages.at(-1)?.usageMetadata).toMatchObject({ promptTokenCount: 3, responseTokenCount: 6 })
    expect(await requests(before + 1)).toBe(before + 1)
    session.close()
  })

  it('is told why a session is refused', async () => {
    const ai = new Client({ apiKey: await port.tokenFor(['sandbox/compact']), httpOptions: { baseUrl: baseUrl() } })
    const closed = Promise.withResolvers<string>()
    const opening = ai.live.connect({
      model: MODEL,
      callbacks: { onmessage() {}, onclose: ({ reason }) => closed.resolve(reason) },
    })
    opening.catch(() => {}) // version 2 leaves it open
    expect(await closed.promise).toStartWith('model_not_allowed')
  })
})
