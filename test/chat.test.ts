/** Chat completions through the whole gateway, with a provider on loopback: specification 2.2 to 2.4, 4 and 5. */
import { afterEach, describe, expect, test } from 'bun:test'
import { Compile } from 'typebox/compile'
import type { ModelConfig } from '../src/config/schema/schema.ts'
import { ChatChunk, ChatCompletion } from '../src/spec/chat-completion.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { chunk, chunks, completion, failure, hang, startVendor, stream, usageChunk, whole } from './kit/vendor.ts'

const open: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

/** A gateway with one model, `v/m`, served by a provider on loopback. */
async function start(model: ModelConfig = {}, more: Record<string, ModelConfig> = {}) {
  const vendor = startVendor()
  const gateway = await startGateway({
    providers: { v: { kind: 'chatcompat', base_url: vendor.url, key: 'upstream-secret-key' } },
    models: { 'v/m': model, ...more },
  })
  open.push(
    () => gateway[Symbol.asyncDispose](),
    () => vendor.stop(),
  )
  return { vendor, gateway }
}

const ask = (more: object = {}) => ({ model: 'v/m', messages: [{ role: 'user', content: 'one two' }], ...more })

/** The events of a stream's text: parsed data, or the unparsed comment or `[DONE]`. */
const eventsOf = (text: string): unknown[] =>
  text
    .split('\n\n')
    .filter(Boolean)
    .map((block) => (block.startsWith('data: {') ? JSON.parse(block.slice(6)) : block))

/** Reads a stream chunk by chunk. */
function reading(response: Response) {
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const decoder = new TextDecoder()
  return {
    async next() {
      const { done, value } = await reader.read()
      return done ? undefined : decoder.decode(value, { stream: true })
    },
    leave: () => reader.cancel(),
  }
}

/** A stream that sends `Hello` and breaks when the test decides. */
function cutOnceRead() {
  const gate = Promise.withResolvers<void>()
  const items = [chunk({ role: 'assistant', content: '' }), chunk({ content: 'Hello' }), gate.promise, chunk({})]
  return { answer: stream(items, { cutAfter: 3 }), now: gate.resolve }
}

/** The recorded usage, once every request has ended. */
async function usageOf(gateway: TestGateway) {
  await gateway.instance.drain({ deadline_ms: 60_000 })
  gateway.clock.advance(2_000)
  const rows = await gateway.instance.usage({ limit: 100 })
  return rows.map(({ model, requests, errors, input_tokens, output_tokens, estimated }) => ({
    model,
    requests,
    errors,
    input_tokens,
    output_tokens,
    estimated,
  }))
}

describe('a complete response', () => {
  test('has the form of section 2.4: message, mirrored delta, our id and the public model name', async () => {
    const { vendor, gateway } = await start()
    vendor.answer(whole(completion('Hello')))
    const response = await gateway.chat(ask({ model: 'm' }))
    const body = await response.json()
    expect(response.status).toBe(200)
    expect(Compile(ChatCompletion).Check(body)).toBe(true)
    expect(body).toMatchObject({ object: 'chat.completion', model: 'v/m', system_fingerprint: 'fp_test' })
    expect(body.id).toMatch(/^chatcmpl-/)
    expect(body.id).not.toBe('chatcmpl-test') // that of the provider
    expect(body.choices[0].message).toEqual({ role: 'assistant', content: 'Hello', refusal: null })
    expect(body.choices[0].delta).toMatchObject({ role: 'assistant', content: 'Hello' })
    expect(vendor.requests[0]?.json()).toMatchObject({ model: 'm', messages: [{ role: 'user', content: 'one two' }] })
    expect(vendor.requests[0]?.headers.authorization).toBe('Bearer upstream-secret-key')
  })

  test('has the full usage of section 2.4, as the provider reported it', async () => {
    const { vendor, gateway } = await start()
    const usage = {
      prompt_tokens: 9,
      completion_tokens: 3,
      total_tokens: 12,
      prompt_tokens_details: { cached_tokens: 4 },
    }
    vendor.answer(whole(completion('Hello', { usage })))
    const body = await (await gateway.chat(ask())).json()
    expect(body.usage).toEqual({
      prompt_tokens: 9,
      completion_tokens: 3,
      total_tokens: 12,
      prompt_tokens_details: { cached_tokens: 4, text_tokens: 9, audio_tokens: 0, image_tokens: 0 },
      completion_tokens_details: { text_tokens: 3, audio_tokens: 0, reasoning_tokens: 0 },
      input_tokens: 9,
      output_tokens: 3,
      input_tokens_details: null,
      prompt_cache_hit_tokens: 4,
    })
    expect(await usageOf(gateway)).toEqual([
      { model: 'v/m', requests: 1, errors: 0, input_tokens: 9, output_tokens: 3, estimated: 0 },
    ])
  })

  test('has an estimated usage, marked as such, when the provider reports none', async () => {
    const { vendor, gateway } = await start()
    vendor.answer(whole(completion('Hello', { usage: undefined })))
    const { usage } = await (await gateway.chat(ask())).json()
    expect(usage.estimated).toBe(true)
    expect(usage.completion_tokens).toBe(1)
    expect(usage.prompt_tokens).toBeGreaterThan(1)
  })

  test('forwards a provider field only if the operator allows it', async () => {
    const vendor = startVendor()
    const gateway = await startGateway({
      providers: { v: { base_url: vendor.url, fields: { allow: ['top_k'] } } },
      models: { 'v/m': {} },
    })
    open.push(() => gateway[Symbol.asyncDispose](), vendor.stop)
    await gateway.chat(ask({ top_k: 5, frobnicate: 6 }))
    const sent = vendor.requests[0]?.json()
    expect(sent?.top_k).toBe(5)
    expect('frobnicate' in (sent ?? {})).toBe(false)
  })

  test('is rejected before anything is sent when a field is out of range', async () => {
    const { vendor, gateway } = await start({ limits: { max_tokens: { minimum: 1, maximum: 100 } } })
    const response = await gateway.chat(ask({ max_tokens: 101 }))
    expect(response.status).toBe(400)
    expect((await response.json()).error).toMatchObject({ code: 'invalid_value', param: 'max_tokens' })
    expect(vendor.requests.length).toBe(0)
  })

  test('is cancelled at the provider as soon as the client disconnects', async () => {
    const { vendor, gateway } = await start()
    vendor.answer(hang())
    const client = new AbortController()
    const answer = gateway.chat(ask(), { signal: client.signal })
    const request = await vendor.request()
    client.abort()
    await request.aborted
    await answer.catch(() => {})
    expect((await usageOf(gateway))[0]).toMatchObject({ requests: 1, errors: 0, estimated: 1 })
  })
})

describe('a stream', () => {
  test('has exactly the framing that event-stream clients expect', async () => {
    const { vendor, gateway } = await start()
    vendor.answer(stream(chunks('Hel', 'lo')))
    const response = await gateway.chat(ask({ stream: true }))
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(response.headers.get('cache-control')).toBe('no-cache, no-transform')
    expect(response.headers.get('x-accel-buffering')).toBe('no')
    const events = eventsOf(await response.text())
    expect(events.at(-1)).toBe('data: [DONE]')
    const received = events.slice(0, -1) as ChatChunk[]
    for (const one of received) {
      expect(Compile(ChatChunk).Check(one)).toBe(true)
      expect(one).toMatchObject({ id: received[0]?.id, created: received[0]?.created, model: 'v/m' })
      expect('usage' in one).toBe(false)
    }
    expect(received.map((one) => [one.choices[0]?.delta, one.choices[0]?.finish_reason])).toEqual([
      [{ role: 'assistant', content: '' }, null],
      [{ content: 'Hel' }, null],
      [{ content: 'lo' }, null],
      [{}, 'stop'],
    ])
  })

  test('reports its usage in one last chunk if requested', async () => {
    const { vendor, gateway } = await start()
    vendor.answer(stream(chunks('Hello')))
    const response = await gateway.chat(ask({ stream: true, stream_options: { include_usage: true } }))
    const events = eventsOf(await response.text()).slice(0, -1) as ChatChunk[]
    expect(events.map((one) => [one.choices.length, one.usage?.total_tokens ?? one.usage])).toEqual([
      [1, null],
      [1, null],
      [1, null],
      [0, 12],
    ])
  })

  test('without usage from the provider reports an estimate if requested, and is recorded in any case', async () => {
    const { vendor, gateway } = await start()
    vendor.otherwise(stream(chunks('Hello').slice(0, -1)))
    const plain = await (await gateway.chat(ask({ stream: true }))).text()
    expect(plain).toEndWith('data: [DONE]\n\n')
    expect(plain).not.toContain('usage')
    const options = { stream: true, stream_options: { include_usage: true } }
    const events = eventsOf(await (await gateway.chat(ask(options))).text()) as ChatChunk[]
    expect(events.at(-2)?.usage).toMatchObject({ completion_tokens: 1, estimated: true })
    expect((await usageOf(gateway))[0]).toMatchObject({ requests: 2, errors: 0, output_tokens: 2, estimated: 2 })
  })

  test('returns the status of an error before the first chunk', async () => {
    const { vendor, gateway } = await start()
    vendor.answer(failure(429, { message: 'slow down' }, { 'retry-after': '7' }))
    const response = await gateway.chat(ask({ stream: true }))
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '7'])
    expect((await response.json()).error.code).toBe('rate_limit_exceeded')
    expect(await usageOf(gateway)).toEqual([
      { model: 'v/m', requests: 1, errors: 1, input_tokens: 0, output_tokens: 0, estimated: 0 },
    ])
  })

  test('that breaks ends with one error event without [DONE]; its tokens so far are recorded', async () => {
    const { vendor, gateway } = await start()
    const cut = cutOnceRead()
    vendor.answer(cut.answer)
    const response = await gateway.chat(ask({ stream: true }))
    const read = reading(response)
    let text = ''
    while (!text.includes('Hello')) text += await read.next()
    cut.now()
    for (let more = await read.next(); more !== undefined; more = await read.next()) text += more
    const events = eventsOf(text)
    expect(response.status).toBe(200)
    expect(events.at(-1)).toMatchObject({ error: { code: 'upstream_cut', type: 'upstream_error', param: null } })
    expect(events.filter((event) => typeof event === 'string')).toEqual([])
    expect((await usageOf(gateway))[0]).toMatchObject({ requests: 1, errors: 1, output_tokens: 1, estimated: 1 })
  })

  test('that ends without a finish_reason is an error, even if the connection closed normally', async () => {
    const { vendor, gateway } = await start()
    vendor.answer(stream([chunk({ role: 'assistant', content: 'Hel' })], { done: false }))
    const text = await (await gateway.chat(ask({ stream: true }))).text()
    expect(text).toContain('upstream_cut')
    expect(text).not.toContain('[DONE]')
  })

  test('that the client abandons is cancelled at the provider; its tokens so far are recorded', async () => {
    const { vendor, gateway } = await start()
    vendor.answer(stream(chunks('Hello', 'world'), { hangAfter: 2 }))
    const response = await gateway.chat(ask({ stream: true }))
    const stream_ = reading(response)
    // The role alone may come first: the provider's bytes are read as they arrive.
    for (let seen = ''; !seen.includes('Hello'); ) seen += await stream_.next()
    await stream_.leave()
    await vendor.aborted
    expect((await usageOf(gateway))[0]).toMatchObject({ requests: 1, errors: 0, output_tokens: 1, estimated: 1 })
  })

  test('that the client abandons before the first byte is cancelled at the provider too', async () => {
    const { vendor, gateway } = await start()
    vendor.answer(hang())
    const client = new AbortController()
    const answer = gateway.chat(ask({ stream: true }), { signal: client.signal })
    const request = await vendor.request()
    client.abort()
    await request.aborted
    await answer.catch(() => {})
    await vendor.idle()
  })

  test('sends keep-alives during silence, before the first chunk and between chunks', async () => {
    const { vendor, gateway } = await start()
    let go = () => {}
    const gate = () =>
      new Promise<void>((resolve) => {
        go = resolve
      })
    const first = gate()
    const openFirst = go
    const second = gate()
    const openSecond = go
    const [role, word, ...rest] = chunks('Hello')
    vendor.answer(stream([first, role ?? {}, word ?? {}, second, ...rest]))
    const answer = gateway.chat(ask({ stream: true }))
    await vendor.request()
    gateway.clock.advance(15_000)
    const response = await answer
    expect(response.status).toBe(200)
    const read = reading(response)
    expect(await read.next()).toBe(': keep-alive\n\n')
    const comment = read.next()
    gateway.clock.advance(15_000)
    expect(await comment).toBe(': keep-alive\n\n')
    openFirst()
    let received = ''
    while (!received.includes('Hello')) received += (await read.next()) ?? ''
    expect(received).not.toContain(': keep-alive')
    const again = read.next()
    gateway.clock.advance(15_000)
    expect(await again).toBe(': keep-alive\n\n')
    openSecond()
    let end = ''
    for (let text = await read.next(); text !== undefined; text = await read.next()) end += text
    expect(end).toEndWith('data: [DONE]\n\n')
  })

  test('measures the silence from the arrival of the request, including its body and failed targets', async () => {
    const gate = Promise.withResolvers<void>()
    const first = startVendor(async (wire) => {
      await gate.promise
      await failure(503)(wire)
    })
    const second = startVendor(hang())
    const gateway = await startGateway({
      providers: { a: { base_url: first.url }, b: { base_url: second.url } },
      models: { 'v/m': { targets: ['a', 'b'].map((provider) => ({ provider, model: 'm' })) } },
    })
    open.push(gateway[Symbol.asyncDispose], first.stop, second.stop)
    const body = new TransformStream<Uint8Array, Uint8Array>()
    const writer = body.writable.getWriter()
    const answer = gateway.instance.fetch(
      new Request('http://gatehouse.test/v1/chat/completions', {
        method: 'POST',
        headers: { authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json' },
        body: body.readable,
      }),
    )
    gateway.clock.advance(5_000)
    await writer.write(new TextEncoder().encode(JSON.stringify(ask({ stream: true }))))
    await writer.close()
    await first.request()
    gateway.clock.advance(5_000)
    gate.resolve()
    await second.request()
    gateway.clock.advance(4_999)
    await new Promise((resolve) => setImmediate(resolve))
    expect(Bun.peek.status(answer)).toBe('pending')
    gateway.clock.advance(1)
    const read = reading(await answer)
    expect(await read.next()).toBe(': keep-alive\n\n')
    await read.leave()
  })

  test('ends with an error event when the provider rejects the request after a keep-alive was sent', async () => {
    const { vendor, gateway } = await start()
    let go = () => {}
    const gate = new Promise<void>((resolve) => {
      go = resolve
    })
    vendor.answer(async (wire) => {
      await gate
      await failure(500)(wire)
    })
    const answer = gateway.chat(ask({ stream: true }))
    await vendor.request()
    gateway.clock.advance(15_000)
    const response = await answer
    go()
    const text = await response.text()
    expect(response.status).toBe(200)
    expect(text).toContain('"code":"bad_upstream_response"')
    expect(text).not.toContain('[DONE]')
  })

  test('has no id: or retry: field, and no comment within an event', async () => {
    const { vendor, gateway } = await start()
    vendor.answer(stream([': comment\n\nid: 7\nretry: 5\n', ...chunks('Hello')]))
    const text = await (await gateway.chat(ask({ stream: true }))).text()
    for (const block of text.split('\n\n').filter(Boolean)) expect(block).toMatch(/^(data: [^\n]+|: keep-alive)$/)
  })

  test('gives every choice its own role and finish_reason', async () => {
    const { vendor, gateway } = await start()
    const items = [
      chunk({ content: 'a' }),
      chunk({ content: 'b' }, null, 1),
      chunk({}, 'stop', 1),
      chunk({}, 'length'),
      usageChunk(),
    ]
    vendor.answer(stream(items))
    const events = eventsOf(await (await gateway.chat(ask({ stream: true, n: 2 }))).text()).slice(0, -1) as ChatChunk[]
    const of = (index: number) => events.flatMap((one) => one.choices.filter((choice) => choice.index === index))
    for (const index of [0, 1]) expect(of(index)[0]?.delta).toEqual({ role: 'assistant', content: '' })
    expect(of(0).at(-1)?.finish_reason).toBe('length')
    expect(of(1).at(-1)?.finish_reason).toBe('stop')
  })
})

describe('several targets', () => {
  test('try the next one before the first chunk, and only for a fault of the first', async () => {
    const cut = cutOnceRead()
    const first = startVendor(failure(503), failure(400), cut.answer)
    const second = startVendor(whole(completion('from the second')))
    const gateway = await startGateway({
      providers: { f: { base_url: first.url }, s: { base_url: second.url } },
      models: {
        'x/y': {
          targets: [
            { provider: 'f', model: 'm' },
            { provider: 's', model: 'm' },
          ],
        },
      },
    })
    open.push(() => gateway[Symbol.asyncDispose](), first.stop, second.stop)
    const request = { model: 'x/y', messages: [{ role: 'user', content: 'hi' }] }
    expect((await (await gateway.chat(request)).json()).choices[0].message.content).toBe('from the second')
    expect((await gateway.chat(request)).status).toBe(400)
    const broken = await gateway.chat({ ...request, stream: true })
    cut.now()
    expect(await broken.text()).toContain('upstream_cut')
    expect(second.requests.length).toBe(1)
  })
})

test('are each called once when all of them fail: retries do not multiply', async () => {
  const vendors = [startVendor(), startVendor(), startVendor()]
  for (const vendor of vendors) vendor.otherwise(failure(503))
  const gateway = await startGateway({
    providers: Object.fromEntries(vendors.map(({ url }, i) => [`p${i}`, { base_url: url }])),
    models: { 'x/y': { targets: vendors.map((_, i) => ({ provider: `p${i}`, model: 'm' })) } },
  })
  open.push(() => gateway[Symbol.asyncDispose](), ...vendors.map(({ stop }) => stop))
  for (const stream of [false, true]) {
    const response = await gateway.chat({ model: 'x/y', messages: [{ role: 'user', content: 'hi' }], stream })
    expect(response.status).toBe(503)
  }
  expect(vendors.map(({ requests }) => requests.length)).toEqual([2, 2, 2])
})

describe('a deprecated or retired model', () => {
  const life = { deprecated_at: 1_700_000_000, replaced_by: 'v/m' }

  test('is served with headers that announce it', async () => {
    const { gateway } = await start({}, { 'v/old': { ...life, retired_at: 4_000_000_000 } })
    const response = await gateway.chat(ask({ model: 'v/old' }))
    expect(response.status).toBe(200)
    expect(response.headers.get('deprecation')).toBe('@1700000000')
    expect(response.headers.get('sunset')).toBe(new Date(4_000_000_000_000).toUTCString())
    expect(response.headers.get('link')).toBe('</v1/models/v/m>; rel="successor-version"')
    expect(response.headers.get('x-model-replaced-by')).toBe('v/m')
  })

  test('returns 410 with its successor once it is retired', async () => {
    const { gateway } = await start({}, { 'v/old': { status: 'retired', replaced_by: 'v/m' } })
    const response = await gateway.chat(ask({ model: 'v/old' }))
    expect(response.status).toBe(410)
    expect((await response.json()).error).toMatchObject({ code: 'model_retired', replaced_by: 'v/m' })
  })

  test('redirects to its successor if configured, and reports it', async () => {
    const old: ModelConfig = { status: 'retired', replaced_by: 'v/m', when_retired: 'redirect' }
    const { vendor, gateway } = await start({}, { 'v/old': old })
    const response = await gateway.chat(ask({ model: 'v/old' }))
    expect((await response.json()).model).toBe('v/m')
    expect(response.headers.get('x-model-requested')).toBe('v/old')
    expect(response.headers.get('x-model-served')).toBe('v/m')
    expect(vendor.requests[0]?.json().model).toBe('m')
  })
})

test('the log never contains a prompt, a response or a secret', async () => {
  const { vendor, gateway } = await start()
  vendor.answer(
    whole(completion('answer-canary')),
    stream(chunks('answer-canary'), { cutAfter: 2 }),
    failure(401, { message: 'bad key upstream-secret-key' }),
    failure(400, { message: 'prompt-canary is bad' }),
  )
  const messages = [{ role: 'user', content: 'prompt-canary' }]
  for (const more of [{}, { stream: true }, {}, {}])
    await (await gateway.chat({ model: 'v/m', messages, ...more })).text()
  await gateway.call(`/v1/models?key=${gateway.token}`, { headers: { authorization: '' } })
  await gateway.call('/v1/models', { headers: { authorization: 'Bearer wrong-secret-canary' } })
  await gateway.instance.drain({ deadline_ms: 0 }) // the line of a failed call is written once its usage is estimated
  const logged = gateway.logged()
  expect(logged.split('\n').filter((line) => line.includes('request_id')).length).toBeGreaterThanOrEqual(6)
  for (const secret of ['canary', 'upstream-secret-key', gateway.token]) expect(logged).not.toContain(secret)
})
