/** `/v1/responses` over a WebSocket: turns, streams, limits, revocation, back-pressure and the end. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { connect as connectTcp } from 'node:net'
import OpenAI from 'openai'
import { ResponsesWS } from 'openai/resources/responses/ws'
import { MAX_SOCKET_MILLISECONDS, MAX_SOCKETS_PER_TOKEN } from '../src/http/socket.ts'
import { manualClock } from './kit/clock.ts'
import { openPort, type Served, serve, watchUnhandled } from './kit/served.ts'
import { connectSocket, isLast, type ServerEvent, type SocketClient } from './kit/socket-client.ts'
import { chunk, chunks, failure, hang, startVendor, stream, type Wire } from './kit/vendor.ts'

let served: Served
let unhandled: ReturnType<typeof watchUnhandled>
const clients: SocketClient[] = []
beforeAll(async () => {
  unhandled = watchUnhandled()
  served = await serve({ server: { max_body_bytes: 200_000 } })
})
beforeEach(() => {
  served.vendor.requests.length = 0
})
afterEach(async () => {
  for (const client of clients.splice(0)) {
    client.close()
    await client.closed
  }
})
afterAll(async () => {
  await served.close()
  expect(unhandled.stop()).toEqual([])
})

async function connect({ token = served.token, url = served.url, headers = {} } = {}): Promise<SocketClient> {
  const client = await connectSocket(url, { token, headers })
  clients.push(client)
  return client
}

const USER = (text: string) => ({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] })
const ask = (text: string, more: object = {}) => ({ model: 'v/m', store: false, input: [USER(text)], ...more })
const idOf = (event: ServerEvent): string => (event.response as { id: string }).id
const codeOf = (event: ServerEvent): unknown => (event.error as { code: string } | undefined)?.code
const textOf = ({ response }: ServerEvent): string =>
  (response as { output: { content: { text: string }[] }[] }).output.map(({ content }) => content[0]?.text).join('')
/** The messages that the vendor received with its request of this number. */
const sent = (at: number) => {
  const { messages } = served.vendor.requests.at(at)?.json() ?? {}
  return (messages as { role: string; content: string }[]).map(({ role, content }) => `${role}: ${content}`)
}

describe('A WebSocket of /v1/responses', () => {
  test('serves the openai package, turn after turn, with nothing stored', async () => {
    const client = new OpenAI({ apiKey: served.token, baseURL: served.url, maxRetries: 0 })
    const socket = new ResponsesWS(client)
    const events = socket.stream()
    const create = async (input: string, previous_response_id?: string) => {
      socket.send({
        type: 'response.create',
        model: 'v/m',
        store: false,
        input,
        ...(previous_response_id === undefined ? {} : { previous_response_id }),
      })
      for (;;) {
        const { value: event, done } = await events.next()
        if (done || event.type === 'error') throw new Error('The connection was closed, or there was an error.')
        if (event.type === 'message' && event.message.type === 'response.completed') return event.message.response
      }
    }
    served.vendor.answer(stream(chunks('One', '.')), stream(chunks('Two.')))
    const first = await create('Say one.')
    const second = await create('Say two.', first.id)
    expect([textOf({ type: '', response: first }), textOf({ type: '', response: second })]).toEqual(['One.', 'Two.'])
    expect(sent(1)).toEqual(['user: Say one.', 'assistant: One.', 'user: Say two.'])
    socket.close()
    const found = await client.responses.retrieve(first.id).then(
      () => 200,
      ({ status }) => status,
    )
    expect(found).toBe(404)
  })

  test('sends the events of the HTTP stream, one a message', async () => {
    const http = await fetch(`${served.url}/responses`, {
      method: 'POST',
      headers: { authorization: `Bearer ${served.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...ask('Hello'), stream: true }),
    })
    const types = [...(await http.text()).matchAll(/^event: (.*)$/gm)].map(([, type]) => type)
    const client = await connect()
    await client.create(ask('Hello'))
    expect(client.events.map(({ type }) => type)).toEqual(types as string[])
    expect(client.events.map(({ sequence_number }) => sequence_number)).toEqual(types.map((_, at) => at))
    expect(client.events.every(({ stream_id }) => stream_id === undefined)).toBe(true)
  })

  test('warms up without calling a model, and continues from that', async () => {
    const client = await connect()
    const warm = await client.create({ ...ask('Context.'), generate: false })
    expect([warm.type, textOf(warm), served.vendor.requests.length]).toEqual(['response.completed', '', 0])
    await client.create(ask('Go on.', { previous_response_id: idOf(warm) }))
    expect(sent(0)).toEqual(['user: Context.', 'user: Go on.'])
  })

  test('stores a response on request, with the unstored turns before it', async () => {
    const client = await connect()
    const first = await client.create(ask('One'))
    const second = await client.create(ask('Two', { store: true, previous_response_id: idOf(first) }))
    const other = await connect()
    const third = await other.create(ask('Three', { previous_response_id: idOf(second) }))
    expect(third.type).toBe('response.completed')
    expect(sent(-1)).toEqual(['user: One', 'assistant: Hello', 'user: Two', 'assistant: Hello', 'user: Three'])
  })

  test('does not find the unstored responses of another connection', async () => {
    const [one, other] = [await connect(), await connect()]
    const first = await one.create(ask('One'))
    const failed = await other.create(ask('Two', { previous_response_id: idOf(first) }))
    expect(failed).toMatchObject({
      type: 'error',
      status: 400,
      error: { code: 'previous_response_not_found', param: 'previous_response_id' },
    })
    expect((await one.create(ask('Two', { previous_response_id: idOf(first) }))).type).toBe('response.completed')
  })

  test('forgets the response that a failed turn continues, and keeps the connection', async () => {
    const client = await connect()
    const first = await client.create(ask('One'))
    const failed = await client.create(ask('Two', { previous_response_id: idOf(first), temperature: 9 }))
    expect([failed.status, codeOf(failed)]).toEqual([400, 'invalid_value'])
    const again = await client.create(ask('Two', { previous_response_id: idOf(first) }))
    expect(codeOf(again)).toBe('previous_response_not_found')
    served.vendor.answer(failure(429, { error: { message: 'Slow down.' } }, { 'retry-after': '7' }))
    const limited = await client.create(ask('Three'))
    expect(limited).toMatchObject({
      status: 429,
      error: { code: 'rate_limit_exceeded', headers: { 'retry-after': '7' } },
    })
    expect((await client.create(ask('Four'))).type).toBe('response.completed')
  })

  test('passes a provider of the same protocol, which gets the whole conversation', async () => {
    const events = readFileSync(new URL('./fixtures/responses-compat/text.sse', import.meta.url), 'utf8')
    const vendor = startVendor(stream([events], { done: false }), stream([events], { done: false }))
    const port = await openPort({
      providers: { r: { kind: 'responses-compat', base_url: vendor.url, key: 'vendor-key' } },
      models: { 'r/m': { targets: [{ provider: 'r', model: 'm' }] } },
    })
    try {
      const client = await connect({
        url: port.url,
        token: port.token,
        headers: { 'openai-beta': 'responses_websockets=2026-02-06, other=1' },
      })
      const first = await client.create(ask('One', { model: 'r/m' }))
      const second = await client.create(ask('Two', { model: 'r/m', previous_response_id: idOf(first) }))
      expect(second.type).toBe('response.completed')
      const request = await vendor.request(2)
      expect(request.json()).toMatchObject({ store: false, stream: true })
      expect(request.json()).not.toHaveProperty('previous_response_id')
      expect((request.json().input as { role?: string }[]).map(({ role }) => role)).toEqual([
        'user',
        ...(first.response as { output: { role?: string }[] }).output.map(({ role }) => role),
        'user',
      ] as string[])
      expect(request.headers['openai-beta']).toBe('other=1')
    } finally {
      await port.close()
      await vendor.stop()
    }
  })
})

describe('The streams of a WebSocket', () => {
  test('run at the same time; the requests of one stream run in order', async () => {
    const client = await connect()
    const holds = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const held =
      ({ promise }: PromiseWithResolvers<void>, text: string) =>
      async (wire: Wire) => {
        await promise
        await stream(chunks(text))(wire)
      }
    served.vendor.answer(...holds.map((hold, at) => held(hold, `held ${at}`)))
    client.send({ type: 'response.create', stream_id: 'a', ...ask('a1') })
    await served.vendor.request(1)
    client.send({ type: 'response.create', stream_id: 'b', ...ask('b1') })
    client.send({ type: 'response.create', stream_id: 'a', ...ask('a2') })
    await served.vendor.request(2)
    expect(served.vendor.requests.map((_, at) => sent(at))).toEqual([['user: a1'], ['user: b1']])
    holds[1]?.resolve()
    expect(textOf(await client.until((event) => isLast(event) && event.stream_id === 'b'))).toBe('held 1')
    expect(served.vendor.requests.length).toBe(2)
    holds[0]?.resolve()
    await served.vendor.request(3)
    expect(sent(2)).toEqual(['user: a2'])
    await client.until((event) => isLast(event) && event.stream_id === 'a' && textOf(event) === 'Hello')
    expect(client.events.every(({ stream_id }) => stream_id === 'a' || stream_id === 'b')).toBe(true)
  })

  test('can fork a conversation while its parent is the last of its stream', async () => {
    const client = await connect()
    const parent = await client.create(ask('Plan', { stream_id: 'main' }))
    const fork = await client.create(ask('Fork', { stream_id: 'critic', previous_response_id: idOf(parent) }))
    const next = await client.create(ask('Next', { stream_id: 'main', previous_response_id: idOf(parent) }))
    expect([fork.type, next.type]).toEqual(['response.completed', 'response.completed'])
    const late = await client.create(ask('Late', { stream_id: 'critic', previous_response_id: idOf(parent) }))
    expect(codeOf(late)).toBe('previous_response_not_found')
  })

  test('have at most 32 names, of at most 256 characters', async () => {
    const client = await connect()
    const names = Array.from({ length: 32 }, (_, at) => `${'x'.repeat(200)}.${at}`)
    for (const stream_id of names) client.send({ type: 'response.create', stream_id, ...ask('x'), generate: false })
    await client.until((event) => isLast(event) && event.stream_id === names[31])
    expect(client.events.filter(({ type }) => type === 'error')).toEqual([])
    expect(codeOf(await client.create(ask('x', { stream_id: 'one-more' })))).toBe('websocket_stream_limit_reached')
    expect((await client.create(ask('x', { stream_id: names[0] }))).type).toBe('response.completed')
    expect((await client.create(ask('x'))).type).toBe('response.completed')
    const other = await connect()
    expect((await other.create(ask('x', { stream_id: 'x'.repeat(256) }))).type).toBe('response.completed')
    for (const stream_id of ['', 'x'.repeat(257), 'a b', 7]) {
      const from = other.events.length
      other.send({ type: 'response.create', stream_id, ...ask('x') })
      expect(codeOf(await other.until(isLast, from))).toBe('invalid_stream_id')
    }
  })

  test('run at most 16 responses at a time', async () => {
    const client = await connect()
    const release = Promise.withResolvers<void>()
    served.vendor.otherwise(async (wire) => {
      await release.promise
      await stream(chunks('done'))(wire)
    })
    for (let at = 0; at < 17; at++) client.send({ type: 'response.create', stream_id: `s${at}`, ...ask('x') })
    await served.vendor.request(16)
    expect((await client.create({ ...ask('x', { stream_id: 's0' }), background: true })).status).toBe(400)
    expect(served.vendor.requests.length).toBe(16)
    release.resolve()
    await client.until((event) => isLast(event) && event.stream_id === 's16')
    expect(served.vendor.requests.length).toBe(17)
    served.vendor.otherwise(stream(chunks('Hello')))
  })
})

describe('A message of a WebSocket', () => {
  test.each([
    ['that is no JSON', '{"type"', 'invalid_json'],
    ['that is no object', '[1]', 'invalid_type'],
    ['of an unknown type', '{"type":"response.nothing"}', 'invalid_value'],
    ['nested too deep', `{"type":"response.create","input":${'['.repeat(600)}${']'.repeat(600)}}`, 'invalid_json'],
    [
      'with too many bytes',
      JSON.stringify({ type: 'response.create', input: 'x'.repeat(200_000) }),
      'request_too_large',
    ],
    ['without a model', '{"type":"response.create","input":"x"}', 'missing_required_parameter'],
    ['with a model that does not exist', '{"type":"response.create","model":"none","input":"x"}', 'model_not_found'],
    [
      'in the background',
      '{"type":"response.create","model":"v/m","input":"x","background":true}',
      'unsupported_parameter',
    ],
    [
      'with another type of generate',
      '{"type":"response.create","model":"v/m","input":"x","generate":1}',
      'invalid_type',
    ],
  ])('%s gets an error, and the connection stays open', async (_, text, code) => {
    const client = await connect()
    client.sendRaw(text)
    expect(codeOf(await client.until(isLast))).toBe(code)
    expect((await client.create(ask('x'))).type).toBe('response.completed')
  })

  test('may be as long as a body', async () => {
    const client = await connect()
    const empty = JSON.stringify({ type: 'response.create', model: 'v/m', store: false, input: '' }).length
    expect((await client.create({ model: 'v/m', store: false, input: 'x'.repeat(200_000 - empty) })).type).toBe(
      'response.completed',
    )
  })

  test('that is far too long, or binary, closes the connection', async () => {
    const long = await connect()
    long.sendRaw('x'.repeat(300_000))
    expect((await long.closed).code).not.toBe(1000)
    const binary = await connect()
    binary.sendRaw(new Uint8Array([1]))
    expect((await binary.closed).code).toBe(1003)
  })

  test('that steers a response is answered as not supported; an acknowledgement needs no answer', async () => {
    const client = await connect()
    client.send({ type: 'response.processed', response_id: 'resp_x' })
    client.send({ type: 'response.steer', previous_response_id: 'resp_x', input: 'Left.' })
    expect(await client.until(() => true)).toMatchObject({
      type: 'response.steer.failed',
      error: { code: 'steering_not_supported' },
      steer: { previous_response_id: 'resp_x', input: 'Left.' },
    })
  })

  test('waits behind others only within the bound of a body', async () => {
    const client = await connect()
    served.vendor.answer(hang())
    client.send({ type: 'response.create', ...ask('first') })
    await served.vendor.request(1)
    client.send({ type: 'response.create', stream_id: 'big', ...ask('x'.repeat(199_000)) })
    client.send({ type: 'response.create', stream_id: 'more', ...ask('x'.repeat(2_000)) })
    expect(await client.until(isLast)).toMatchObject({ stream_id: 'more', status: 429 })
  })
})

describe('A WebSocket connection', () => {
  test('is opened for a valid token only', async () => {
    const headers = {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'x3JJHMbDL1EzLkh9GBhXDw==',
    }
    const bad = await fetch(`${served.url}/responses`, { headers: { ...headers, authorization: 'Bearer no' } })
    expect([bad.status, (await bad.json()).error.code]).toEqual([401, 'invalid_api_key'])
    const elsewhere = await fetch(`${served.url}/chat/completions`, { headers })
    expect(elsewhere.status).toBe(426)
    await expect(connect({ token: 'no' })).rejects.toThrow('closed')
  })

  test('obeys the models of its token, and ends when the token is revoked', async () => {
    const { token, secret } = await served.gateway.instance.tokens.issue({ name: 'short', models: ['v/m'] })
    const client = await connect({ token: secret })
    expect(await client.create(ask('x', { model: 'sandbox/general' }))).toMatchObject({ status: 403 })
    expect((await client.create(ask('x'))).type).toBe('response.completed')
    await served.gateway.instance.tokens.revoke(token.token_id)
    expect(await client.create(ask('x'))).toMatchObject({ status: 401, error: { code: 'invalid_api_key' } })
    expect((await client.closed).code).toBe(1008)
  })

  test('is refused from an address that its token may not use, and so is each later message', async () => {
    const { tokens } = served.gateway.instance
    const { token, secret } = await tokens.issue({ name: 'here', allowed_addresses: ['127.0.0.0/8', '::1'] })
    const client = await connect({ token: secret })
    expect((await client.create(ask('x'))).type).toBe('response.completed')
    await tokens.update(token.token_id, { allowed_addresses: ['203.0.113.0/24'] })
    expect(await client.create(ask('x'))).toMatchObject({ status: 403, error: { code: 'address_not_allowed' } })
    await expect(connect({ token: secret })).rejects.toThrow('closed')
  })

  test(`is one of at most ${MAX_SOCKETS_PER_TOKEN} of its token`, async () => {
    const token = await served.tokenFor(['*'])
    for (let at = 0; at < MAX_SOCKETS_PER_TOKEN; at++) await connect({ token })
    await expect(connect({ token })).rejects.toThrow('closed')
    await connect()
    const [first] = clients
    first?.close()
    await first?.closed
    await connect({ token })
  })

  test('ends its calls at the providers when the client closes it', async () => {
    const client = await connect()
    served.vendor.answer(stream(chunks('Hel', 'lo'), { hangAfter: 2 }))
    client.send({ type: 'response.create', ...ask('x') })
    const { aborted } = await served.vendor.request(1)
    await client.until(({ type }) => type === 'response.output_text.delta')
    client.close()
    await aborted
  })

  test('stops the provider while the client reads nothing, and continues when it reads again', async () => {
    let produced = 0
    let isDone = false
    async function* flood() {
      yield chunk({ role: 'assistant', content: '' })
      while (!isDone) {
        produced++
        yield chunk({ content: 'x'.repeat(16 * 1024) })
      }
      yield chunk({}, 'stop')
    }
    served.vendor.answer(stream(flood()))
    const client = await rawSocket(served.url, served.token)
    client.send({ type: 'response.create', ...ask('x') })
    await served.vendor.request(1)
    let before = -1
    for (let unchanged = 0; unchanged < 200; unchanged++) {
      if (produced !== before) unchanged = 0
      before = produced
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(produced).toBeGreaterThan(0)
    expect(produced * 16 * 1024).toBeLessThan(64 * 1024 * 1024)
    client.resume()
    while (produced <= before) await new Promise((resolve) => setImmediate(resolve))
    isDone = true
    await client.seen('"total_tokens"')
    client.close()
  })

  test('logs a line for each call, with the id of the connection', async () => {
    const client = await connect({ headers: { 'x-request-id': 'conn-1' } })
    await client.create(ask('x'))
    const lines = served.gateway
      .logged()
      .split('\n')
      .flatMap((line) => (line.includes('conn-1') ? [JSON.parse(line)] : []))
    expect(lines).toEqual([
      expect.objectContaining({ method: 'GET', path: '/v1/responses', status: 101, request_id: 'conn-1' }),
      expect.objectContaining({ method: 'POST', status: 200, websocket: 'conn-1', model: 'v/m', outcome: 'done' }),
    ])
    expect(lines[1].request_id).not.toBe('conn-1')
  })

  test('ends after an hour, once its open response has ended', async () => {
    const clock = manualClock()
    const vendor = startVendor()
    const port = await openPort(
      { providers: { v: { base_url: vendor.url, key: 'k' } }, models: { 'v/m': {} } },
      { clock },
    )
    try {
      const [idle, busy] = [await connect(port), await connect(port)]
      clock.advance(MAX_SOCKET_MILLISECONDS - 1)
      expect((await idle.create(ask('x'))).type).toBe('response.completed')
      const release = Promise.withResolvers<void>()
      vendor.answer(async (wire) => {
        await release.promise
        await stream(chunks('late'))(wire)
      })
      busy.send({ type: 'response.create', ...ask('x') })
      await vendor.request(2)
      clock.advance(1)
      expect(codeOf(await idle.until(({ type }) => type === 'error'))).toBe('websocket_connection_limit_reached')
      expect((await idle.closed).code).toBe(1000)
      release.resolve()
      expect(textOf(await busy.until(({ type }) => type === 'response.completed'))).toBe('late')
      expect((await busy.closed).code).toBe(1000)
    } finally {
      await port.close()
      await vendor.stop()
    }
  })

  test('ends with 1001 when the gateway stops: at once when idle, else after its response', async () => {
    const vendor = startVendor()
    const port = await openPort({ providers: { v: { base_url: vendor.url, key: 'k' } }, models: { 'v/m': {} } })
    const [idle, busy] = [await connect(port), await connect(port)]
    const release = Promise.withResolvers<void>()
    vendor.answer(async (wire) => {
      await release.promise
      await stream(chunks('last'))(wire)
    })
    busy.send({ type: 'response.create', ...ask('x') })
    await vendor.request(1)
    const stopped = port.close({ deadline_ms: 20_000 })
    expect((await idle.closed).code).toBe(1001)
    expect(await busy.create(ask('y', { stream_id: 'new' }))).toMatchObject({ status: 503 })
    release.resolve()
    expect(textOf(await busy.until(({ type }) => type === 'response.completed'))).toBe('last')
    expect((await busy.closed).code).toBe(1001)
    await stopped
    await vendor.stop()
  })
})

/** A WebSocket client on a bare socket, which reads nothing until it is told to. */
async function rawSocket(base_url: string, token: string) {
  const { port, pathname } = new URL(`${base_url}/responses`)
  const socket = connectTcp(Number(port), '127.0.0.1')
  const opened = Promise.withResolvers<void>()
  let tail = ''
  let watch = () => {}
  socket.on('data', (bytes) => {
    opened.resolve()
    tail = (tail + bytes.toString('latin1')).slice(-4096)
    watch()
  })
  socket.write(
    `GET ${pathname} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n` +
      `Sec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==\r\nAuthorization: Bearer ${token}\r\n\r\n`,
  )
  await opened.promise
  socket.pause()
  return {
    /** One masked frame of text; the mask of zeros leaves the bytes as they are. */
    send(message: unknown) {
      const text = Buffer.from(JSON.stringify(message))
      const head = Buffer.from([0x81, 0x80 | 126, text.length >> 8, text.length & 255, 0, 0, 0, 0])
      socket.write(Buffer.concat([head, text]))
    },
    resume: () => socket.resume(),
    async seen(text: string) {
      while (!tail.includes(text)) await new Promise<void>((resolve) => (watch = resolve))
    },
    close: () => socket.destroy(),
  }
}
