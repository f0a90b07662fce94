/** Realtime sessions on a real port: the sandbox, vendors that a test scripts, limits, money, client secrets and ends. */
import { afterEach, describe, expect, it } from 'bun:test'
import { createHash } from 'node:crypto'
import { type AddressInfo, connect as connectTcp, createServer } from 'node:net'
import type { Budget } from '../src/spec/rate-limit.ts'
import { type ManualClock, manualClock } from './kit/clock.ts'
import { openPort, type Port } from './kit/served.ts'

type Json = Record<string, unknown>
type Event = Json & { type: string }
type Headers = Record<string, string>

const LIVE = '/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent'
const KEY = 'sk-secret-of-the-vendor'

const started: { stop(): Promise<unknown> | unknown }[] = []
afterEach(async () => {
  for (const one of started.splice(0).reverse()) await one.stop()
})

async function open(settings: object = {}, parts: { clock?: ManualClock } = {}): Promise<Port> {
  const port = await openPort(settings, parts)
  started.push({ stop: () => port.close() })
  return port
}

type Client = {
  send(event: Json): void
  events: Event[]
  next(holds: (event: Event) => boolean): Promise<Event>
  closed: Promise<{ code: number; reason: string }>
  protocol(): string
  close(): void
}

async function connect(address: string, { headers = {}, protocols }: { headers?: Headers; protocols?: string[] } = {}) {
  const socket = new WebSocket(address.replace('http', 'ws'), { headers, ...(protocols ? { protocols } : {}) } as never)
  const events: Event[] = []
  let watchers: (() => void)[] = []
  const opened = Promise.withResolvers<void>()
  const closed = Promise.withResolvers<{ code: number; reason: string }>()
  socket.onopen = () => opened.resolve()
  socket.onmessage = ({ data }) => {
    events.push(JSON.parse(String(data)))
    for (const notify of watchers.splice(0)) notify()
  }
  socket.onclose = ({ code, reason }) => {
    opened.reject(new Error(`closed: ${code}`))
    closed.resolve({ code, reason })
  }
  await opened.promise
  started.push({ stop: () => socket.close() })
  const client: Client = {
    events,
    closed: closed.promise,
    protocol: () => socket.protocol,
    send: (event) => socket.send(JSON.stringify(event)),
    close: () => socket.close(),
    async next(holds) {
      for (;;) {
        const found = events.find(holds)
        if (found) return found
        await new Promise<void>((resolve) => watchers.push(resolve))
      }
    },
  }
  watchers = []
  return client
}

const bearer = (token: string): { headers: Headers } => ({ headers: { authorization: `Bearer ${token}` } })
const session = (port: Port, model: string, token = port.token) =>
  connect(`${port.url}/realtime?model=${model}`, bearer(token))
const isA = (type: string) => (event: Event) => event.type === type
const item = (text: string) => ({
  type: 'conversation.item.create',
  item: { type: 'message', role: 'user', content: [{ type: 'input_text', text }] },
})
const ASK = { type: 'response.create', response: { output_modalities: ['text'] } }

async function used({ gateway }: Port, requests: number) {
  for (;;) {
    const [row] = await gateway.instance.usage({ limit: 1 })
    if (row && row.requests >= requests) return row
    await new Promise(setImmediate)
  }
}

type Socket = { send(text: string): void; close(code?: number, reason?: string): void }

/** A vendor over WebSockets: `answer` gets each event. */
function startVendor(answer: (event: Json, socket: Socket) => void, onOpen: (socket: Socket) => void = () => {}) {
  const requests: { path: string; headers: Headers }[] = []
  const received: Json[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request, self) {
      const { pathname, search } = new URL(request.url)
      requests.push({ path: pathname + search, headers: Object.fromEntries(request.headers) })
      return self.upgrade(request) ? undefined : new Response('', { status: 404 })
    },
    websocket: {
      open: (socket) => onOpen({ send: (text) => void socket.sendText(text), close: (...how) => socket.close(...how) }),
      message(socket, data) {
        const event = JSON.parse(String(data))
        received.push(event)
        answer(event, { send: (text) => void socket.sendText(text), close: (...how) => socket.close(...how) })
      },
    },
  })
  started.push({ stop: () => server.stop(true) })
  return { origin: `http://127.0.0.1:${server.port}`, requests, received }
}

/** One text frame of more than an event may have. */
const LONG_EVENT = Buffer.alloc(33 * 1024 * 1024 + 10, 'a')
LONG_EVENT.set([0x81, 127, 0, 0, 0, 0, 2, 16, 0, 0])

/** A vendor that opens a session, answers its first frame with these bytes, and no other. */
async function startMuteVendor(answer: Uint8Array) {
  const closed = Promise.withResolvers<void>()
  let isClosed = false
  let watchers: { first: number; resolve(): void }[] = []
  const seen: number[] = []
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('close', () => {
      isClosed = true
      closed.resolve()
    })
    socket.once('data', (head) => {
      const key = /sec-websocket-key: (.*)\r/i.exec(String(head))?.[1]
      const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
      )
      socket.on('data', (bytes) => {
        const first = Number(bytes[0])
        if (seen.length === 0) socket.write(answer)
        seen.push(first)
        for (const watcher of watchers) if (watcher.first === first) watcher.resolve()
        watchers = watchers.filter((watcher) => watcher.first !== first)
      })
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  started.push({ stop: () => void server.close() })
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    closed: closed.promise,
    isClosed: () => isClosed,
    /** A frame that begins with this byte. */
    received: (first: number) =>
      new Promise<void>((resolve) => (seen.includes(first) ? resolve() : watchers.push({ first, resolve }))),
  }
}

const USAGE = {
  total_tokens: 300,
  input_tokens: 200,
  output_tokens: 100,
  input_token_details: {
    cached_tokens: 50,
    text_tokens: 20,
    audio_tokens: 180,
    cached_tokens_details: { audio_tokens: 50 },
  },
  output_token_details: { text_tokens: 10, audio_tokens: 90 },
}
const created = (id: string) => JSON.stringify({ type: 'response.created', response: { id } })
const done = (id: string, usage: unknown = USAGE) => JSON.stringify({ type: 'response.done', response: { id, usage } })
/** Answers each `response.create`. */
const answering = (event: Json, socket: Socket) => {
  if (event.type !== 'response.create') return
  socket.send(created('r1'))
  socket.send(JSON.stringify({ type: 'response.output_text.delta', response_id: 'r1', delta: `Hi ${KEY}` }))
  socket.send(done('r1'))
}
const PRICES = { input: 4, cached_input: 1, input_audio: 32, output: 16, output_audio: 64 }
const openaiWith = (origin: string, more: object = {}) => ({
  providers: { v: { base_url: `${origin}/v1`, key: KEY } },
  models: { 'v/gpt-realtime': { prices: PRICES } },
  ...more,
})

describe('a session of the Realtime API', () => {
  it('reaches the vendor with its key and the name of its model, and shows neither', async () => {
    const vendor = startVendor(answering, (socket) =>
      socket.send(JSON.stringify({ type: 'session.created', session: { model: 'gpt-realtime' } })),
    )
    const port = await open(openaiWith(vendor.origin))
    const client = await session(port, 'v/gpt-realtime')
    expect((await client.next(isA('session.created'))).session).toEqual({ model: 'v/gpt-realtime' })
    client.send(ASK)
    await client.next(isA('response.done'))
    expect(vendor.requests[0]?.path).toBe('/v1/realtime?model=gpt-realtime')
    expect(vendor.requests[0]?.headers.authorization).toBe(`Bearer ${KEY}`)
    expect(JSON.stringify(client.events)).not.toContain(KEY)
  })

  it('is charged for each response by the usage of the vendor, once', async () => {
    const vendor = startVendor(answering)
    const port = await open(openaiWith(vendor.origin))
    const client = await session(port, 'v/gpt-realtime')
    client.send(ASK)
    await client.next(isA('response.done'))
    const row = await used(port, 1)
    expect(row).toMatchObject({ requests: 1, input_tokens: 200, output_tokens: 100, estimated: 0 })
    const { data } = (await (await port.gateway.call('/v1/usage?by=model')).json()) as { data: Json[] }
    // 50 cached, 130 audio and 20 text tokens of input; 90 audio and 10 text tokens of output.
    expect(data[0]?.cost).toBeCloseTo((50 * 1 + 130 * 32 + 20 * 4 + 90 * 64 + 10 * 16) / 1e6, 9)
  })

  it('has answers of bounded length in the sandbox', async () => {
    const port = await open()
    const client = await session(port, 'sandbox/realtime')
    client.send(item('long '.repeat(2_000)))
    client.send({ type: 'response.create' })
    await client.next(isA('response.done'))
    const deltas = client.events.filter(isA('response.output_audio_transcript.delta')).map(({ delta }) => delta)
    expect(deltas.join('').length).toBeLessThanOrEqual(2_000)
  })

  it('is recorded too where the vendor begins a response by itself', async () => {
    const vendor = startVendor((event, socket) => {
      if (event.type === 'input_audio_buffer.append') answering({ type: 'response.create' }, socket)
    })
    const port = await open(openaiWith(vendor.origin))
    const client = await session(port, 'v/gpt-realtime')
    client.send({ type: 'input_audio_buffer.append', audio: 'AAAA' })
    await client.next(isA('response.done'))
    expect(await used(port, 1)).toMatchObject({ requests: 1, output_tokens: 100 })
  })

  it.each([
    ['at the price of its model', { input: 2.5, input_audio: 6, output: 10 }, 4 * 2.5 + 96 * 6 + 20 * 10],
    ['by the minute', { audio_minute: 0.06 }, 2.5 * 1_000],
    ['at the prices of the session where the catalogue has none', undefined, 4 * 4 + 96 * 32 + 20 * 16],
  ])('charges what another model has transcribed once, %s', async (_, prices, micros) => {
    const tokens = {
      type: 'tokens',
      total_tokens: 120,
      input_tokens: 100,
      output_tokens: 20,
      input_token_details: { text_tokens: 4, audio_tokens: 96 },
    }
    const usage = prices && 'audio_minute' in prices ? { type: 'duration', seconds: 2.5 } : tokens
    const heard = (item_id: string, counted?: object) =>
      JSON.stringify({
        type: 'conversation.item.input_audio_transcription.completed',
        item_id,
        content_index: 0,
        transcript: 'Hi.',
        usage: counted,
      })
    const vendor = startVendor((event, socket) => {
      if (event.type !== 'session.update') return answering(event, socket)
      socket.send(JSON.stringify({ type: 'session.updated', session: event.session }))
      for (const text of [heard('i1', usage), heard('i1', usage), heard('i2')]) socket.send(text)
    })
    const models = {
      'v/gpt-realtime': { prices: PRICES },
      ...(prices && { 'v/scribe': { prices, families: ['audio-transcription'] } }),
    }
    const port = await open(openaiWith(vendor.origin, { models }))
    const client = await session(port, 'v/gpt-realtime')
    client.send({ type: 'session.update', session: { audio: { input: { transcription: { model: 'scribe' } } } } })
    client.send(ASK)
    await client.next(isA('response.done'))
    const response = 50 * 1 + 130 * 32 + 20 * 4 + 90 * 64 + 10 * 16
    const requests = async () =>
      (await port.gateway.instance.usage({ limit: 9 })).reduce((sum, row) => sum + row.requests, 0)
    while ((await requests()) < 2) await new Promise(setImmediate)
    expect(await requests()).toBe(2)
    const { data } = (await (await port.gateway.call('/v1/usage?by=model')).json()) as { data: Json[] }
    const costs = data.map(({ model, cost }) => [model, Math.round(Number(cost) * 1e6)])
    expect(Object.fromEntries(costs)).toEqual({
      'v/gpt-realtime': response + (prices ? 0 : micros),
      ...(prices && { 'v/scribe': micros }),
    })
  })

  it.each([
    ['no model', '/realtime', 400],
    ['an unknown model', '/realtime?model=v/none', 404],
    ['a model of another family', '/realtime?model=sandbox/general', 400],
    ['a call', '/realtime?model=sandbox/realtime&call_id=1', 400],
  ])('is refused with a status for %s', async (_, path, status) => {
    const port = await open()
    const headers = { ...bearer(port.token).headers, upgrade: 'websocket', connection: 'Upgrade' }
    const answer = await port.gateway.call(`/v1${path}`, { headers })
    expect(answer.status).toBe(status)
    expect((await port.gateway.call(`/v1${path}`)).status).toBe(426)
  })

  it('is refused for a token that may not use the model or the family', async () => {
    const port = await open()
    const issue = (more: object) => port.gateway.instance.tokens.issue({ name: 'n', ...more } as never)
    for (const limits of [{ models: ['sandbox/general'] }, { families: ['chatcompat'] }]) {
      const { secret } = await issue(limits)
      const headers = { ...bearer(secret).headers, upgrade: 'websocket' }
      expect((await port.gateway.call('/v1/realtime?model=sandbox/realtime', { headers })).status).toBe(403)
    }
    await expect(session(port, 'sandbox/realtime', 'gh-wrong-token')).rejects.toThrow()
  })

  it('keeps its model, and a limited token to functions', async () => {
    const vendor = startVendor(answering)
    const port = await open(openaiWith(vendor.origin))
    const client = await session(port, 'v/gpt-realtime', await port.tokenFor(['v/*']))
    client.send({ type: 'session.update', event_id: 'e1', session: { model: 'other' } })
    const refused = await client.next(isA('error'))
    expect(refused.error).toMatchObject({ code: 'invalid_value', event_id: 'e1' })
    client.send({ type: 'session.update', session: { tools: [{ type: 'mcp', server_url: 'http://x' }] } })
    client.send({
      type: 'session.update',
      session: { model: 'v/gpt-realtime', tools: [{ type: 'function', name: 'f' }] },
    })
    client.send(ASK)
    await client.next(isA('response.done'))
    expect(vendor.received.filter(({ type }) => type === 'session.update')).toEqual([
      { type: 'session.update', session: { model: 'gpt-realtime', tools: [{ type: 'function', name: 'f' }] } },
    ])
  })
})

describe('limits and budgets of a session', () => {
  const tokenWith = async (port: Port, more: { budgets?: Budget[]; rate_limits?: object }) =>
    (await port.gateway.instance.tokens.issue({ name: 'limited', ...more } as never)).secret

  it('a budget that runs out ends it with an event and a close code', async () => {
    const vendor = startVendor(answering)
    const port = await open(openaiWith(vendor.origin))
    const budgets = [{ amount: 0.53, window: 'total' }] as Budget[]
    const client = await session(port, 'v/gpt-realtime', await tokenWith(port, { budgets }))
    client.send(ASK)
    await client.next(isA('response.done'))
    await used(port, 1)
    client.send(ASK)
    const refused = await client.next(isA('error'))
    expect(refused.error).toMatchObject({ code: 'insufficient_quota' })
    expect(await client.closed).toMatchObject({ code: 1008 })
    expect(vendor.received).toHaveLength(1)
  })

  it('a rate limit refuses a response, and the session goes on', async () => {
    const vendor = startVendor(answering)
    const port = await open(openaiWith(vendor.origin))
    const client = await session(
      port,
      'v/gpt-realtime',
      await tokenWith(port, { rate_limits: { requests_per_minute: 1 } }),
    )
    client.send(ASK)
    await client.next(isA('response.done'))
    client.send(ASK)
    expect((await client.next(isA('error'))).error).toMatchObject({ code: 'rate_limit_exceeded' })
    client.send(item('still here'))
    while (vendor.received.length < 2) await new Promise(setImmediate)
    expect(vendor.received.map(({ type }) => type)).toEqual(['response.create', 'conversation.item.create'])
  })

  it('a response that the vendor begins beyond a budget is canceled, and what it used recorded', async () => {
    const vendor = startVendor((event, socket) => {
      if (event.type === 'input_audio_buffer.append') socket.send(created('r1'))
      if (event.type === 'response.cancel') socket.send(done('r1'))
    })
    const port = await open(openaiWith(vendor.origin))
    const budgets = [{ amount: 0.0001, window: 'total' }] as Budget[]
    const client = await session(port, 'v/gpt-realtime', await tokenWith(port, { budgets }))
    client.send({ type: 'input_audio_buffer.append', audio: 'AAAA' })
    expect((await client.next(isA('error'))).error).toMatchObject({ code: 'insufficient_quota' })
    expect(await client.closed).toMatchObject({ code: 1008 })
    expect(await used(port, 1)).toMatchObject({ requests: 1, output_tokens: 100 })
  })

  it('what the vendor has delivered before it cut a response is estimated, and nothing where it had not', async () => {
    const vendor = startVendor((event, socket) => {
      if (event.type !== 'response.create') return
      socket.send(created('r1'))
      socket.send(JSON.stringify({ type: 'response.output_text.delta', response_id: 'r1', delta: 'x'.repeat(400) }))
      socket.close(1011, 'broken')
    })
    const port = await open(openaiWith(vendor.origin))
    const client = await session(port, 'v/gpt-realtime')
    client.send(ASK)
    expect((await client.next(isA('error'))).error).toMatchObject({ code: 'upstream_cut' })
    expect(await client.closed).toMatchObject({ code: 1011 })
    expect(await used(port, 1)).toMatchObject({ requests: 1, output_tokens: 100, estimated: 1 })
  })

  it('a request that the vendor refuses leaves no open response, however often', async () => {
    const vendor = startVendor((event, socket) => {
      if (event.type === 'response.create' && event.event_id !== 'good') {
        socket.send(JSON.stringify({ type: 'error', error: { code: 'active', event_id: event.event_id } }))
      } else answering(event, socket)
    })
    const port = await open(openaiWith(vendor.origin))
    const client = await session(port, 'v/gpt-realtime')
    for (let at = 1; at <= 40; at++) {
      client.send(ASK)
      while (client.events.length < at) await new Promise(setImmediate)
    }
    expect(client.events.every(({ error }) => (error as Json).code === 'active')).toBe(true)
    client.send({ ...ASK, event_id: 'good' })
    await client.next(isA('response.done'))
  })

  it('what the vendor begins by itself is recorded although the token was revoked', async () => {
    const vendor = startVendor((event, socket) => {
      if (event.type === 'input_audio_buffer.append') socket.send(created('r1'))
      if (event.type === 'response.cancel') socket.send(done('r1'))
    })
    const port = await open(openaiWith(vendor.origin))
    const { secret, token } = await port.gateway.instance.tokens.issue({ name: 'revoked' })
    const client = await session(port, 'v/gpt-realtime', secret)
    await port.gateway.instance.tokens.revoke(token.token_id)
    client.send({ type: 'input_audio_buffer.append', audio: 'AAAA' })
    expect((await client.next(isA('error'))).error).toMatchObject({ code: 'invalid_api_key' })
    expect(await client.closed).toMatchObject({ code: 1008 })
    expect(await used(port, 1)).toMatchObject({ requests: 1, output_tokens: 100 })
  })

  it('many small events wait within the same memory as few large ones', async () => {
    const silent = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
    started.push({ stop: () => silent.stop(true) })
    const port = await open(openaiWith(`http://127.0.0.1:${silent.port}`))
    const client = await session(port, 'v/gpt-realtime')
    for (let at = 0; at < 17_000; at++) client.send({ type: 'x' })
    expect(await client.closed).toMatchObject({ code: 1008, reason: expect.stringContaining('Too much') })
  })

  it('sessions that only transcribe are refused, since no response would be counted', async () => {
    const vendor = startVendor(answering)
    const port = await open(openaiWith(vendor.origin))
    const client = await session(port, 'v/gpt-realtime')
    client.send({ type: 'session.update', session: { type: 'transcription' } })
    expect((await client.next(isA('error'))).error).toMatchObject({ code: 'unsupported_value', param: 'session.type' })
    expect(vendor.received).toEqual([])
  })

  it('a client that leaves in a response is charged for what the vendor still reports', async () => {
    const vendor = startVendor((event, socket) => {
      if (event.type === 'response.create') socket.send(created('r1'))
      if (event.type === 'response.cancel') socket.send(done('r1'))
    })
    const port = await open(openaiWith(vendor.origin))
    const client = await session(port, 'v/gpt-realtime')
    client.send(ASK)
    await client.next(isA('response.created'))
    client.close()
    expect(await used(port, 1)).toMatchObject({ requests: 1, input_tokens: 200, estimated: 0 })
  })

  it('a client that leaves once it has asked, before the vendor begins, is charged as well', async () => {
    const asked = Promise.withResolvers<Socket>()
    const vendor = startVendor((event, socket) => {
      if (event.type === 'response.create') asked.resolve(socket)
      if (event.type === 'response.cancel') socket.send(done('r1'))
    })
    const port = await open(openaiWith(vendor.origin))
    const client = await session(port, 'v/gpt-realtime')
    client.send(ASK)
    const socket = await asked.promise
    client.close()
    await client.closed
    socket.send(created('r1'))
    expect(await used(port, 1)).toMatchObject({ requests: 1, input_tokens: 200, estimated: 0 })
  })
})

describe('client secrets', () => {
  const make = async (port: Port, json: Json) => {
    const answer = await port.gateway.call('/v1/realtime/client_secrets', { json })
    return { status: answer.status, body: (await answer.json()) as Json & { value: string; error?: Json } }
  }

  it('open sessions of their model with their settings, through the subprotocol of browsers', async () => {
    const port = await open()
    const made = await make(port, { session: { type: 'realtime', model: 'sandbox/realtime', instructions: 'Sing.' } })
    expect(made.status).toBe(200)
    expect(made.body.value).toStartWith('ek_')
    const protocols = ['realtime', `openai-insecure-api-key.${made.body.value}`]
    const client = await connect(`${port.url}/realtime?model=sandbox/general`, { protocols })
    expect(client.protocol()).toBe('realtime')
    const updated = await client.next(isA('session.updated'))
    expect(updated.session).toMatchObject({ model: 'sandbox/realtime', instructions: 'Sing.' })
  })

  it('are nothing elsewhere, nor changed, expired, or of a revoked token', async () => {
    const port = await open()
    const { token, secret } = await port.gateway.instance.tokens.issue({ name: 'maker' })
    const answer = await port.gateway.call('/v1/realtime/client_secrets', {
      json: { session: { model: 'sandbox/realtime' }, expires_after: { seconds: 60 } },
      ...bearer(secret),
    })
    const { value } = (await answer.json()) as { value: string }
    const chat = await port.gateway.call('/v1/chat/completions', {
      json: { model: 'sandbox/general' },
      ...bearer(value),
    })
    expect(chat.status).toBe(401)
    await expect(session(port, 'sandbox/realtime', `${value}x`)).rejects.toThrow()
    const [payload = '', signature = ''] = value.slice(3).split('.')
    const forged = JSON.parse(Buffer.from(payload, 'base64url').toString())
    const late = Buffer.from(JSON.stringify({ ...forged, expires_at: 9e9 })).toString('base64url')
    await expect(session(port, 'sandbox/realtime', `ek_${late}.${signature}`)).rejects.toThrow()
    const client = await session(port, 'sandbox/realtime', value)
    client.close()
    await port.gateway.instance.tokens.revoke(token.token_id)
    await expect(session(port, 'sandbox/realtime', value)).rejects.toThrow()
  })

  it('end at their time, and with the token that made them, as its sessions do', async () => {
    const clock = manualClock()
    const opened = JSON.stringify({ type: 'session.created', session: {} })
    const vendor = startVendor(answering, (socket) => socket.send(opened))
    const port = await open(openaiWith(vendor.origin), { clock })
    const expires_at = Math.floor(clock.now() / 1000) + 100
    const { secret } = await port.gateway.instance.tokens.issue({ name: 'maker', expires_at })
    const [short = '', long = ''] = await Promise.all(
      [60, 7_200].map(async (seconds) => {
        const json = { session: { model: 'v/gpt-realtime' }, expires_after: { seconds } }
        const answer = await port.gateway.call('/v1/realtime/client_secrets', { json, ...bearer(secret) })
        return ((await answer.json()) as { value: string }).value
      }),
    )
    const client = await session(port, 'v/gpt-realtime', short)
    await client.next(isA('session.created'))
    clock.advance(60_000)
    await expect(session(port, 'v/gpt-realtime', short)).rejects.toThrow()
    const other = await session(port, 'v/gpt-realtime', long)
    other.close()
    clock.advance(40_000)
    await expect(session(port, 'v/gpt-realtime', long)).rejects.toThrow()
    client.send(ASK)
    expect(await client.closed).toMatchObject({ code: 1008, reason: expect.stringContaining('invalid_api_key') })
  })

  it.each([
    [{ session: {} }, 'missing_required_parameter'],
    [{ session: { model: 'sandbox/general' } }, 'unsupported_endpoint'],
    [{ session: { model: 'sandbox/realtime' }, expires_after: { seconds: 9 } }, 'invalid_value'],
    [{ session: { model: 'sandbox/realtime' }, expires_after: { seconds: 7_201 } }, 'invalid_value'],
    [{ session: { model: 'sandbox/realtime', instructions: 'x'.repeat(8_000) } }, 'request_too_large'],
  ])('are refused for %p', async (json, code) => {
    const port = await open()
    const { body } = await make(port, json)
    expect(body.error?.code).toBe(code)
  })
})

describe('a session of the Live API', () => {
  const CONTENT = { serverContent: { modelTurn: { parts: [{ text: 'Hello' }] } } }
  const USED = {
    promptTokenCount: 40,
    responseTokenCount: 20,
    totalTokenCount: 60,
    promptTokensDetails: [{ modality: 'AUDIO', tokenCount: 30 }],
    responseTokensDetails: [{ modality: 'AUDIO', tokenCount: 20 }],
  }
  const live = (event: Json, socket: Socket) => {
    if (event.setup) socket.send(JSON.stringify({ setupComplete: {} }))
    if (!event.clientContent) return
    socket.send(JSON.stringify(CONTENT))
    socket.send(JSON.stringify({ serverContent: { turnComplete: true }, usageMetadata: USED }))
  }
  const gemini = (origin: string) => ({
    providers: { g: { kind: 'contentgen-compat', base_url: `${origin}/v1beta`, key: KEY } },
    models: { 'g/gemini-live': { families: ['realtime'], prices: PRICES } },
  })

  it.each(['header', 'query'])('is relayed with the token in the %s, and charged by its usage', async (place) => {
    const vendor = startVendor(live)
    const port = await open(gemini(vendor.origin))
    const origin = port.url.replace(/\/v1$/, '')
    const client = await (place === 'header'
      ? connect(origin + LIVE, { headers: { 'x-goog-api-key': port.token } })
      : connect(`${origin}${LIVE}?key=${port.token}`))
    client.send({ setup: { model: 'models/g/gemini-live', generationConfig: { responseModalities: ['AUDIO'] } } })
    await client.next((event) => 'setupComplete' in event)
    client.send({ clientContent: { turns: [], turnComplete: true } })
    await client.next((event) => 'usageMetadata' in event)
    expect(vendor.requests[0]?.path).toBe(LIVE)
    expect(vendor.requests[0]?.headers['x-goog-api-key']).toBe(KEY)
    expect(vendor.received[0]).toMatchObject({ setup: { model: 'models/gemini-live' } })
    expect(await used(port, 1)).toMatchObject({
      model: 'g/gemini-live',
      requests: 1,
      input_tokens: 40,
      output_tokens: 20,
    })
  })

  it.each([
    [{ clientContent: { turns: [], turnComplete: true } }],
    [{ client_content: { turns: [], turn_complete: true } }],
  ])('admits a response before the vendor is asked, in either spelling: %p', async (ask) => {
    const vendor = startVendor(live)
    const port = await open(gemini(vendor.origin))
    const issued = await port.gateway.instance.tokens.issue({ name: 'n', rate_limits: { requests_per_minute: 1 } })
    await port.gateway.call('/v1/chat/completions', {
      json: { model: 'sandbox/general', messages: [{ role: 'user', content: 'Hi' }] },
      ...bearer(issued.secret),
    })
    const client = await connect(`${port.url.replace(/\/v1$/, '')}${LIVE}?key=${issued.secret}`)
    client.send({ setup: { model: 'models/g/gemini-live', generation_config: { max_output_tokens: 10 } } })
    client.send(ask)
    expect(await client.closed).toMatchObject({ code: 1008, reason: expect.stringContaining('rate_limit_exceeded') })
    expect(vendor.received.map((event) => Object.keys(event)[0])).toEqual(['setup'])
  })

  it('counts a response of which only the end comes', async () => {
    const vendor = startVendor((event, socket) => {
      if (event.clientContent)
        socket.send(JSON.stringify({ serverContent: { turnComplete: true }, usageMetadata: USED }))
    })
    const port = await open(gemini(vendor.origin))
    const client = await connect(`${port.url.replace(/\/v1$/, '')}${LIVE}?key=${port.token}`)
    client.send({ setup: { model: 'models/g/gemini-live' } })
    client.send({ clientContent: { turns: [], turnComplete: true } })
    await client.next((event) => 'usageMetadata' in event)
    expect(await used(port, 1)).toMatchObject({ requests: 1, input_tokens: 40 })
  })

  it('ends with the reason where a rate limit refuses a response: its API has no event for errors', async () => {
    const vendor = startVendor(live)
    const port = await open(gemini(vendor.origin))
    const issued = await port.gateway.instance.tokens.issue({ name: 'n', rate_limits: { requests_per_minute: 1 } })
    const client = await connect(`${port.url.replace(/\/v1$/, '')}${LIVE}?key=${issued.secret}`)
    client.send({ setup: { model: 'models/g/gemini-live' } })
    client.send({ clientContent: { turns: [], turnComplete: true } })
    await client.next((event) => 'usageMetadata' in event)
    client.send({ clientContent: { turns: [], turnComplete: true } })
    expect(await client.closed).toMatchObject({ code: 1008, reason: expect.stringContaining('rate_limit_exceeded') })
  })

  it('ends with the reason where its model may not be used, or has another API', async () => {
    const port = await open(openaiWith('http://127.0.0.1:1'))
    const client = await connect(port.url.replace(/\/v1$/, '') + LIVE, { headers: { 'x-goog-api-key': port.token } })
    client.send({ setup: { model: 'models/v/gpt-realtime' } })
    const { code, reason } = await client.closed
    expect([code, reason]).toEqual([1008, expect.stringContaining('unsupported_value')])
  })
})

describe('the end of a session', () => {
  it('comes with a code and an event where the gateway stops, at its deadline', async () => {
    const port = await openPort()
    const client = await session(port, 'sandbox/realtime')
    await client.next(isA('session.created'))
    await port.close({ deadline_ms: 300 })
    expect((await client.next(isA('error'))).error).toMatchObject({ code: 'shutting_down' })
    expect(await client.closed).toMatchObject({ code: 1001 })
  })

  it('comes at half of the time that a stop has, or after the response that is open then', async () => {
    const clock = manualClock()
    let vendorSocket: Socket | undefined
    const vendor = startVendor((event, socket) => {
      if (event.type === 'response.create') vendorSocket = socket
      socket.send(event.type === 'response.create' ? created('r1') : JSON.stringify({ type: 'echo' }))
    })
    const port = await openPort(openaiWith(vendor.origin), { clock })
    const [busy, idle] = [await session(port, 'v/gpt-realtime'), await session(port, 'v/gpt-realtime')]
    busy.send(ASK)
    await busy.next(isA('response.created'))
    idle.send({ type: 'x' })
    await idle.next(isA('echo'))
    let ended = 0
    for (const client of [busy, idle]) void client.closed.then(() => ended++)
    const drained = port.gateway.instance.drain({ deadline_ms: 10_250 })
    clock.advance(4_999)
    expect(ended).toBe(0)
    clock.advance(1)
    expect(await idle.closed).toMatchObject({ code: 1001, reason: expect.stringContaining('shutting_down') })
    vendorSocket?.send(done('r1'))
    expect(await busy.closed).toMatchObject({ code: 1001 })
    const types = busy.events.map(({ type }) => type)
    expect(types.slice(types.indexOf('response.done'))).toEqual(['response.done', 'error'])
    await drained
    expect(await used(port, 1)).toMatchObject({ requests: 1, output_tokens: 100 })
    await port.close()
  })

  /** A session by a clock that stands still; `echo` shows that it is open. */
  async function sessionAt(clock: ManualClock) {
    const vendor = startVendor((event, socket) => socket.send(JSON.stringify({ type: 'echo', id: event.id })))
    const port = await open(openaiWith(vendor.origin), { clock })
    const client = await session(port, 'v/gpt-realtime')
    let id = 0
    async function echo() {
      const own = ++id
      client.send({ type: 'x', id: own })
      await client.next((event) => event.id === own)
    }
    await echo()
    return { client, echo }
  }

  it('comes after 15 minutes without an event, not before', async () => {
    const clock = manualClock()
    const { client, echo } = await sessionAt(clock)
    for (const ms of [14 * 60_000, 15 * 60_000 - 1]) {
      clock.advance(ms)
      await echo()
    }
    clock.advance(15 * 60_000)
    expect(await client.closed).toMatchObject({ code: 1000, reason: expect.stringContaining('idle') })
  })

  it('comes after 60 minutes with an event, not before', async () => {
    const clock = manualClock()
    const { client, echo } = await sessionAt(clock)
    for (const ms of [...Array(4).fill(14 * 60_000), 4 * 60_000 - 1]) {
      clock.advance(ms)
      await echo()
    }
    clock.advance(1)
    expect((await client.next(isA('error'))).error).toMatchObject({ code: 'websocket_connection_limit_reached' })
    expect(await client.closed).toMatchObject({ code: 1000 })
  })

  it.each([
    ['leaves', 1005],
    ['is sent a too long event', 1011],
  ])('takes the connection of a vendor that answers no close, when the client %s', async (_, code) => {
    const clock = manualClock()
    const vendor = await startMuteVendor(code === 1005 ? Buffer.alloc(0) : LONG_EVENT)
    const port = await open(openaiWith(vendor.origin), { clock })
    const client = await session(port, 'v/gpt-realtime')
    client.send({ type: 'x' })
    await vendor.received(0x81)
    if (code === 1005) client.close()
    await vendor.received(0x88)
    clock.advance(4_999)
    expect(vendor.isClosed()).toBe(false)
    clock.advance(1)
    await vendor.closed
    expect(await client.closed).toMatchObject({ code })
  })

  it('comes where the client does not read what the vendor sends', async () => {
    const frame = Buffer.from(LONG_EVENT.subarray(0, 1024 * 1024 + 10))
    frame.set([0, 16, 0, 0], 6)
    frame.write('{"a":"', 10)
    frame.write('"}', frame.length - 2)
    const vendor = await startMuteVendor(Buffer.concat(Array(40).fill(frame)))
    const port = await open(openaiWith(vendor.origin))
    const { hostname, port: number } = new URL(port.url)
    const client = connectTcp(Number(number), hostname)
    started.push({ stop: () => void client.destroy() })
    const opened = new Promise((resolve) => client.once('data', resolve))
    client.write(
      `GET /v1/realtime?model=v/gpt-realtime HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${btoa('0123456789abcdef')}\r\nAuthorization: Bearer ${port.token}\r\n\r\n`,
    )
    await opened
    client.pause()
    client.write(Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x7b, 0x7d]))
    await vendor.received(0x88)
    let last = ''
    client.on('data', (bytes) => {
      last = (last + String(bytes).slice(-60)).slice(-60)
    })
    const ended = new Promise((resolve) => client.once('end', resolve))
    client.resume()
    await ended
    expect(last).toEndWith('The client reads too slowly.')
  })

  it('comes with an error where the vendor refuses the connection', async () => {
    const port = await open(openaiWith('http://127.0.0.1:1'))
    const client = await session(port, 'v/gpt-realtime')
    expect((await client.next(isA('error'))).error).toMatchObject({ code: 'upstream_unreachable' })
    expect(await client.closed).toMatchObject({ code: 1011 })
  })
})

describe('where a session goes', () => {
  it('the next target serves it where the first cannot be connected, and is charged', async () => {
    const vendor = startVendor(answering)
    const port = await open({
      providers: {
        gone: { base_url: 'http://127.0.0.1:1/v1', key: KEY },
        v: { base_url: `${vendor.origin}/v1`, key: KEY },
      },
      models: {
        talk: {
          families: ['realtime'],
          prices: PRICES,
          targets: [
            { provider: 'gone', model: 'gpt-realtime' },
            { provider: 'v', model: 'gpt-realtime-2', priority: 1 },
          ],
        },
      },
    })
    const client = await session(port, 'talk')
    client.send({ ...ASK, event_id: 'mine' })
    await client.next(isA('response.done'))
    expect(vendor.requests.map(({ path }) => path)).toEqual(['/v1/realtime?model=gpt-realtime-2'])
    expect(vendor.received).toEqual([{ ...ASK, event_id: 'mine' }])
    expect(await used(port, 1)).toMatchObject({ requests: 1, output_tokens: 100 })
  })

  it('no other target is tried once one has opened it', async () => {
    const first = startVendor((_, socket) => socket.close(1011, 'broken'))
    const second = startVendor(answering)
    const providerOf = ({ origin }: { origin: string }) => ({ base_url: `${origin}/v1`, key: KEY })
    const targets = [
      { provider: 'a', model: 'm' },
      { provider: 'b', model: 'm', priority: 1 },
    ]
    const port = await open({
      providers: { a: providerOf(first), b: providerOf(second) },
      models: { talk: { families: ['realtime'], targets } },
    })
    const client = await session(port, 'talk')
    client.send(ASK)
    expect((await client.next(isA('error'))).error).toMatchObject({ code: 'upstream_cut' })
    expect(second.requests).toEqual([])
  })

  it.each([
    ['v1', '/openai/v1/realtime?model=my-realtime'],
    ['2025-04-01-preview', '/openai/realtime?api-version=2025-04-01-preview&deployment=my-realtime'],
  ])('Azure serves a deployment at api-version %s', async (apiVersion, path) => {
    const vendor = startVendor(answering)
    const port = await open({
      providers: { azure: { kind: 'azure', base_url: `${vendor.origin}/openai`, key: KEY, options: { apiVersion } } },
      models: { 'azure/my-realtime': { families: ['realtime'] } },
    })
    const client = await session(port, 'azure/my-realtime')
    client.send(ASK)
    await client.next(isA('response.done'))
    expect(vendor.requests[0]?.path).toBe(path)
    expect(vendor.requests[0]?.headers['api-key']).toBe(KEY)
    expect(vendor.requests[0]?.headers.authorization).toBeUndefined()
    expect(JSON.stringify(client.events)).not.toContain(KEY)
  })
})
