/** Traces of whole gateways, as an OTLP collector receives them. */
import { afterEach, describe, expect, it } from 'bun:test'
import { DEFAULT_TASKS } from '../src/config/config.ts'
import type { ModelConfig, ProviderConfig } from '../src/config/schema/schema.ts'
import type { OtlpConfig } from '../src/config/schema/telemetry-schema.ts'
import { systemClock } from '../src/kit/clock.ts'
import { type Collector, type ReceivedSpan, startCollector } from './kit/collector.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { failure, startVendor, stream, type Vendor, whole } from './kit/vendor.ts'
import { startVideoVendor } from './kit/video-vendor.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

function collector(): Collector {
  const started = startCollector()
  closing.push(started.stop)
  return started
}

function vendor(): Vendor {
  const started = startVendor()
  closing.push(started.stop)
  return started
}

type Setup = {
  providers?: Record<string, ProviderConfig>
  models?: Record<string, ModelConfig>
  otlp?: OtlpConfig
  environment?: Record<string, string>
}

async function gatewayOf({ otlp, environment = {}, ...settings }: Setup): Promise<TestGateway> {
  const gateway = await startGateway({ ...settings, telemetry: otlp ? { otlp } : {} }, { environment })
  closing.push(() => gateway[Symbol.asyncDispose]())
  return gateway
}

/** Exports what has ended, until the collector has so many spans. The usage of some calls is estimated after their end. */
async function exported(gateway: TestGateway, otlp: Collector, count: number): Promise<ReceivedSpan[]> {
  while (otlp.spans.length < count) {
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
    gateway.clock.advance(5_000)
  }
  return otlp.received()
}

const QUESTION = { model: 'acme/fast', messages: [{ role: 'user', content: 'a private question' }] }
const MODELS: Record<string, ModelConfig> = {
  'acme/fast': {
    targets: [
      { provider: 'acme', model: 'fast-1' },
      { provider: 'backup', model: 'fast-2' },
    ],
  },
}
const TRACE = '0af7651916cd43dd8448eb211c80319c'
const PARENT = 'b7ad6b7169203331'
const TRACEPARENT = `00-${TRACE}-${PARENT}-01`

describe('a traced call', () => {
  it('is a server span, with a client span for each attempt', async () => {
    const [acme, backup, otlp] = [vendor(), vendor(), collector()]
    acme.answer(failure(503, { message: 'Overloaded.' }))
    const providers = {
      acme: {
        base_url: acme.url,
        keys: [
          { key: 'first-key-0001', name: 'main' },
          { key: 'second-key-2', models: ['x'] },
        ],
      },
      backup: { base_url: backup.url },
    }
    const gateway = await gatewayOf({ providers, models: MODELS, otlp: { endpoint: otlp.url } })
    const response = await gateway.chat(QUESTION)
    expect(response.status).toBe(200)

    const spans = await exported(gateway, otlp, 3)
    expect(spans).toHaveLength(3)
    const server = spans.find(({ kind }) => kind === 'server')
    const [first, second] = [1, 2].map((number) =>
      spans.find(({ attributes }) => attributes['gatehouse.attempt'] === number),
    )
    expect(server).toMatchObject({
      name: 'POST /v1/chat/completions',
      parent_id: '',
      status: { code: 0 },
      attributes: {
        'http.request.method': 'POST',
        'http.route': '/v1/chat/completions',
        'http.response.status_code': 200,
        'gen_ai.operation.name': 'chat',
        'gen_ai.request.model': 'acme/fast',
        'gatehouse.request_id': response.headers.get('x-request-id'),
        'gatehouse.attempts': 2,
      },
    })
    expect(server?.resource).toMatchObject({ 'service.name': 'gatehouse', 'service.version': '0.0.0-test' })
    expect(server?.resource['service.instance.id']).toMatch(/^gw_\w+$/)
    expect(first).toMatchObject({
      name: 'chat fast-1',
      kind: 'client',
      trace_id: server?.trace_id,
      parent_id: server?.span_id,
      status: { code: 2 },
      attributes: {
        'gen_ai.provider.name': 'acme',
        'gen_ai.request.model': 'fast-1',
        'http.response.status_code': 503,
        'gatehouse.key': 'main',
        'gatehouse.attempt.next': 'other_target',
      },
    })
    expect(first?.attributes['error.type']).toBeString()
    expect(second).toMatchObject({
      name: 'chat fast-2',
      parent_id: server?.span_id,
      status: { code: 0 },
      attributes: { 'gatehouse.provider': 'backup', 'gen_ai.usage.input_tokens': expect.any(Number) },
    })
    const text = JSON.stringify(spans)
    for (const secret of ['first-key-0001', 'private question', gateway.token]) expect(text).not.toContain(secret)
    expect(gateway.logged()).toContain(`"trace_id":"${server?.trace_id}"`)
  })

  it('that is streamed lasts until its last byte', async () => {
    const [acme, otlp] = [vendor(), collector()]
    let end = () => {}
    const held = new Promise<void>((resolve) => {
      end = resolve
    })
    acme.answer(async (wire) => {
      await wire.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n')
      const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' }
      const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 }
      const delta = (content: string, rest: object) =>
        `data: ${JSON.stringify({ ...chunk, choices: [{ index: 0, delta: { content }, finish_reason: null }], ...rest })}\n\n`
      await wire.write(delta('Hel', {}))
      await held
      const choices = [{ index: 0, delta: { content: 'lo' }, finish_reason: 'stop' }]
      await wire.write(`${delta('', { choices, usage })}data: [DONE]\n\n`)
      wire.close()
    })
    const providers = { acme: { base_url: acme.url }, backup: { base_url: acme.url } }
    const gateway = await gatewayOf({ providers, models: MODELS, otlp: { endpoint: otlp.url } })
    const response = await gateway.chat({ ...QUESTION, stream: true })
    const body = response.text()
    gateway.clock.advance(3_000)
    end()
    await body
    const [server, attempt] = await exported(gateway, otlp, 2)
    for (const span of [server, attempt]) expect((span?.end_ms ?? 0) - (span?.start_ms ?? 0)).toBe(3_000)
    expect(attempt?.attributes).toMatchObject({
      'gen_ai.request.stream': true,
      'gen_ai.response.time_to_first_chunk': 0,
      'gen_ai.usage.output_tokens': 2,
    })
  })

  it('that breaks after its first part is an error of the attempt', async () => {
    const [acme, otlp] = [vendor(), collector()]
    let cut = () => {}
    const held = new Promise<void>((resolve) => {
      cut = resolve
    })
    acme.answer(async (wire) => {
      const chunk = { choices: [{ index: 0, delta: { content: 'Hel' } }] }
      await wire.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n')
      await wire.write(`data: ${JSON.stringify(chunk)}\n\n`)
      await held
      wire.close()
    })
    const providers = { acme: { base_url: acme.url }, backup: { base_url: acme.url } }
    const gateway = await gatewayOf({ providers, models: MODELS, otlp: { endpoint: otlp.url } })
    const reader = (await gateway.chat({ ...QUESTION, stream: true })).body?.getReader()
    await reader?.read()
    cut()
    while (!(await reader?.read())?.done);
    const spans = await exported(gateway, otlp, 2)
    expect(spans.map(({ status }) => status.message)).toEqual(['upstream_cut', 'upstream_cut'])
  })

  it('of a background response is a trace of its own', async () => {
    const otlp = collector()
    const gateway = await gatewayOf({ otlp: { endpoint: otlp.url } })
    const json = { model: 'sandbox/general', input: 'hi', background: true }
    expect((await gateway.call('/v1/responses', { json })).status).toBe(200)
    const spans = await exported(gateway, otlp, 3)
    const submitted = spans.find(({ kind }) => kind === 'server')
    const own = spans.find(({ kind }) => kind === 'internal')
    expect(own).toMatchObject({ name: 'chat sandbox/general', parent_id: '', status: { code: 0 } })
    expect(own?.trace_id).not.toBe(submitted?.trace_id)
    expect(spans.find(({ kind }) => kind === 'client')).toMatchObject({
      trace_id: own?.trace_id,
      parent_id: own?.span_id,
    })
  })

  it('that is refused has no attempt, and is no fault of the server', async () => {
    const otlp = collector()
    const gateway = await gatewayOf({ otlp: { endpoint: otlp.url } })
    await gateway.chat({ ...QUESTION, model: 'none/none' })
    await gateway.call('/healthz')
    const spans = await exported(gateway, otlp, 1)
    expect(spans).toHaveLength(1)
    expect(spans[0]).toMatchObject({ status: { code: 0 }, attributes: { 'error.type': 'model_not_found' } })
  })
})

describe('the trace of a request', () => {
  const providersOf = (acme: Vendor) => ({ acme: { base_url: acme.url }, backup: { base_url: acme.url } })

  it('is that of its traceparent', async () => {
    const [acme, otlp] = [vendor(), collector()]
    const gateway = await gatewayOf({ providers: providersOf(acme), models: MODELS, otlp: { endpoint: otlp.url } })
    await gateway.chat(QUESTION, { headers: { traceparent: TRACEPARENT, tracestate: 'acme=1,bad key=2' } })
    const spans = await exported(gateway, otlp, 2)
    expect(spans.map(({ trace_id }) => trace_id)).toEqual([TRACE, TRACE])
    expect(spans.find(({ kind }) => kind === 'server')).toMatchObject({ parent_id: PARENT, state: 'acme=1' })
  })

  it.each([
    ['of the wrong length', `00-${TRACE}-b7ad6b71-01`],
    ['with upper case', `00-${TRACE.toUpperCase()}-${PARENT}-01`],
    ['of version ff', `ff-${TRACE}-${PARENT}-01`],
    ['with more after version 00', `${TRACEPARENT}-extra`],
    ['without a trace id', `00-${'0'.repeat(32)}-${PARENT}-01`],
    ['without a span id', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['that is oversized', `01-${TRACE}-${PARENT}-01-${'x'.repeat(5_000)}`],
    ['that was sent twice', `${TRACEPARENT}, ${TRACEPARENT}`],
  ])('is a new one for a traceparent %s', async (_, traceparent) => {
    const [acme, otlp] = [vendor(), collector()]
    const gateway = await gatewayOf({ providers: providersOf(acme), models: MODELS, otlp: { endpoint: otlp.url } })
    await gateway.chat(QUESTION, { headers: { traceparent, tracestate: 'acme=1' } })
    const [server] = await exported(gateway, otlp, 2)
    expect(server?.trace_id).not.toBe(TRACE)
    expect(server).toMatchObject({ parent_id: '', state: '' })
  })

  it('continues that of a traceparent of a later version', async () => {
    const [acme, otlp] = [vendor(), collector()]
    const gateway = await gatewayOf({ providers: providersOf(acme), models: MODELS, otlp: { endpoint: otlp.url } })
    await gateway.chat(QUESTION, { headers: { traceparent: `01-${TRACE}-${PARENT}-01-later` } })
    expect((await exported(gateway, otlp, 2))[0]?.trace_id).toBe(TRACE)
  })

  it('is not exported where its client does not sample it, and is named in the log all the same', async () => {
    const [acme, otlp] = [vendor(), collector()]
    const gateway = await gatewayOf({ providers: providersOf(acme), models: MODELS, otlp: { endpoint: otlp.url } })
    await gateway.chat(QUESTION, { headers: { traceparent: `00-${TRACE}-${PARENT}-00` } })
    await gateway.chat(QUESTION)
    const spans = await exported(gateway, otlp, 2)
    expect(spans.some(({ trace_id }) => trace_id === TRACE)).toBe(false)
    expect(gateway.logged()).toContain(`"trace_id":"${TRACE}"`)
  })

  it('follows the sampling ratio where it begins here', async () => {
    const [acme, otlp] = [vendor(), collector()]
    const gateway = await gatewayOf({
      providers: providersOf(acme),
      models: MODELS,
      otlp: { endpoint: otlp.url, sampling: 0 },
    })
    await gateway.chat(QUESTION)
    await gateway.chat(QUESTION, { headers: { traceparent: TRACEPARENT } })
    const spans = await exported(gateway, otlp, 2)
    expect(spans.map(({ trace_id }) => trace_id)).toEqual([TRACE, TRACE])
  })

  it('is sampled as OTEL_TRACES_SAMPLER says', async () => {
    const [acme, otlp] = [vendor(), collector()]
    const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: otlp.url, OTEL_TRACES_SAMPLER: 'always_on' }
    const gateway = await gatewayOf({ providers: providersOf(acme), models: MODELS, environment })
    await gateway.chat(QUESTION, { headers: { traceparent: `00-${TRACE}-${PARENT}-00` } })
    expect((await exported(gateway, otlp, 2))[0]?.trace_id).toBe(TRACE)
  })

  it('is sent to the providers that may have it, without baggage', async () => {
    const [acme, other, otlp] = [vendor(), vendor(), collector()]
    acme.answer(failure(503, { message: 'Overloaded.' }))
    const gateway = await gatewayOf({
      providers: { acme: { base_url: acme.url }, backup: { base_url: other.url } },
      models: MODELS,
      otlp: { endpoint: otlp.url, propagate_to: ['acme'] },
    })
    await gateway.chat(QUESTION, { headers: { traceparent: TRACEPARENT, tracestate: 'a=1', baggage: 'user=secret' } })
    const spans = await exported(gateway, otlp, 3)
    const attempt = spans.find(({ attributes }) => attributes['gatehouse.provider'] === 'acme')
    expect(acme.requests[0]?.headers).toMatchObject({
      traceparent: `00-${TRACE}-${attempt?.span_id}-01`,
      tracestate: 'a=1',
    })
    for (const name of ['traceparent', 'tracestate']) expect(other.requests[0]?.headers).not.toHaveProperty(name)
    for (const { requests } of [acme, other]) expect(requests[0]?.headers).not.toHaveProperty('baggage')
  })

  it('is neither read nor sent without an export', async () => {
    const acme = vendor()
    const gateway = await gatewayOf({ providers: providersOf(acme), models: MODELS, otlp: { propagate_to: ['*'] } })
    await gateway.chat(QUESTION, { headers: { traceparent: TRACEPARENT } })
    expect(acme.requests[0]?.headers).not.toHaveProperty('traceparent')
    expect(gateway.logged()).not.toContain('trace_id')
  })
})

describe('an export', () => {
  it('has the headers of the file and of the environment', async () => {
    const [acme, otlp] = [vendor(), collector()]
    const gateway = await gatewayOf({
      providers: { acme: { base_url: acme.url }, backup: { base_url: acme.url } },
      models: MODELS,
      otlp: { endpoint: otlp.url, headers: { 'x-tenant': 'one' } },
      environment: { OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20x', OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip' },
    })
    await gateway.chat(QUESTION)
    await exported(gateway, otlp, 2)
    expect(otlp.exports[0]).toMatchObject({
      path: '/v1/traces',
      headers: { 'x-tenant': 'one', authorization: 'Bearer x', 'content-encoding': 'gzip' },
    })
  })

  it('is made of what is queued when the gateway stops', async () => {
    const [acme, otlp] = [vendor(), collector()]
    const gateway = await startGateway({
      providers: { acme: { base_url: acme.url }, backup: { base_url: acme.url } },
      models: MODELS,
      telemetry: { otlp: { endpoint: otlp.url } },
    })
    await gateway.chat(QUESTION)
    await gateway.instance.close({ deadline_ms: 1_000 })
    expect(otlp.spans).toHaveLength(2)
  })

  it('of a trace that crosses two gateways shows one trace', async () => {
    const [acme, otlp] = [vendor(), collector()]
    const far = await gatewayOf({
      providers: { acme: { base_url: acme.url } },
      models: { 'acme/fast': {} },
      otlp: { endpoint: otlp.url },
      environment: { OTEL_SERVICE_NAME: 'far' },
    })
    const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: (request) => far.instance.fetch(request) })
    closing.push(() => server.stop(true))
    const near = await gatewayOf({
      providers: { far: { base_url: `http://127.0.0.1:${server.port}/v1`, key: far.token } },
      models: { 'far/acme/fast': {} },
      otlp: { endpoint: otlp.url, propagate_to: ['far'] },
      environment: { OTEL_SERVICE_NAME: 'near' },
    })
    const response = await near.chat({ ...QUESTION, model: 'far/acme/fast', stream: true })
    expect(await response.text()).toContain('[DONE]')
    await exported(near, otlp, 2)
    const spans = await exported(far, otlp, 4)
    expect(new Set(spans.map(({ trace_id }) => trace_id)).size).toBe(1)
    const chain = []
    for (let span = spans.find(({ parent_id }) => parent_id === ''); span; ) {
      chain.push(`${span.resource['service.name']} ${span.kind}`)
      const { span_id } = span
      span = spans.find(({ parent_id }) => parent_id === span_id)
    }
    expect(chain).toEqual(['near server', 'near client', 'far server', 'far client'])
  })
})

describe('the whole life of a task', () => {
  it('is one trace: its submission, the steps that changed it, its end and its webhook', async () => {
    const otlp = collector()
    const film = startVideoVendor({ polls: 3 })
    closing.push(film.stop)
    const asked: (string | null)[] = []
    const proxy = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch(request) {
        asked.push(request.headers.get('traceparent'))
        const { pathname, search } = new URL(request.url)
        return fetch(`${new URL(film.url).origin}${pathname}${search}`, request)
      },
    })
    const heard = Promise.withResolvers<Headers>()
    const hook = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch({ headers }) {
        heard.resolve(headers)
        return new Response()
      },
    })
    closing.push(
      () => proxy.stop(true),
      () => hook.stop(true),
    )
    const gateway = await startGateway(
      {
        providers: {
          film: { kind: 'chatcompat-video', base_url: `http://127.0.0.1:${proxy.port}/v1`, key: 'secret-key' },
        },
        models: { 'film/short': { families: ['video-generation'] } },
        tasks: { ...DEFAULT_TASKS, poll_seconds: 0.05, callback_origins: [hook.url.origin] },
        telemetry: { otlp: { endpoint: otlp.url, propagate_to: ['film'] } },
      },
      { clock: systemClock, environment: { OTEL_BSP_SCHEDULE_DELAY: '20' } },
    )
    closing.push(() => gateway[Symbol.asyncDispose]())
    const json = { model: 'film/short', prompt: 'a private kite', callback_url: hook.url.href }
    const response = await gateway.call('/v1/video/generations', { json, headers: { traceparent: TRACEPARENT } })
    expect(response.status).toBe(200)
    const webhook = await heard.promise
    while (!otlp.spans.some(({ name }) => name === 'webhook')) await Bun.sleep(10)

    const spans = otlp.received()
    expect(new Set(spans.map(({ trace_id }) => trace_id))).toEqual(new Set([TRACE]))
    const named = (name: string) => spans.filter((span) => span.name === name)
    const [server] = named('POST /v1/video/generations')
    const [task] = named('task film/short')
    expect(server?.parent_id).toBe(PARENT)
    expect(task).toMatchObject({ parent_id: server?.span_id, attributes: { 'gatehouse.task.status': 'SUCCESS' } })
    for (const name of ['task prepare', 'task submit', 'task copy', 'webhook']) {
      expect(named(name)).toHaveLength(1)
      expect(named(name)[0]?.parent_id).toBe(task?.span_id ?? '')
    }
    // Three polls were made; a span has each that changed the status or the progress.
    expect(named('task poll').length).toBeGreaterThanOrEqual(1)
    expect(named('task poll').length).toBeLessThanOrEqual(4)
    expect(named('webhook')[0]?.attributes).toMatchObject({
      'http.response.status_code': 200,
      'gatehouse.webhook.attempt': 1,
    })
    expect(webhook.get('traceparent')).toBe(`00-${TRACE}-${named('webhook')[0]?.span_id}-01`)
    const traced = asked.filter((header) => header !== null)
    expect(traced.length).toBeGreaterThanOrEqual(4)
    expect(new Set(traced)).toEqual(new Set([`00-${TRACE}-${task?.span_id}-01`]))
    for (const secret of ['private kite', 'secret-key']) expect(JSON.stringify(spans)).not.toContain(secret)
  })
})

describe('how a chat call ended', () => {
  const setup = async (contents: boolean) => {
    const [acme, otlp] = [vendor(), collector()]
    const gateway = await gatewayOf({
      providers: { acme: { base_url: acme.url }, backup: { base_url: acme.url } },
      models: MODELS,
      otlp: { endpoint: otlp.url, contents },
    })
    return { acme, otlp, gateway }
  }
  const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 }
  const call = { id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Paris"}' } }
  const attemptIn = (spans: ReceivedSpan[]) => spans.find(({ kind }) => kind === 'client')

  it('is an event for each choice and each call of a tool, without its arguments', async () => {
    const { acme, otlp, gateway } = await setup(false)
    const message = { role: 'assistant', content: 'a private answer', tool_calls: [call] }
    const choices = [{ index: 0, message, finish_reason: 'tool_calls' }]
    acme.answer(whole({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage }))
    await gateway.chat(QUESTION)
    const spans = await exported(gateway, otlp, 2)
    const attempt = attemptIn(spans)
    expect(attempt?.attributes['gen_ai.response.finish_reasons']).toEqual(['tool_calls'])
    expect(attempt?.events).toEqual([
      { name: 'gen_ai.choice', attributes: { index: 0, finish_reason: 'tool_calls' } },
      {
        name: 'gen_ai.tool.call',
        attributes: { index: 0, 'gen_ai.tool.name': 'get_weather', 'gen_ai.tool.call.id': 'call_1' },
      },
    ])
    for (const secret of ['private', 'Paris']) expect(JSON.stringify(spans)).not.toContain(secret)
  })

  it('has its prompt and its response with `contents: true`, streamed or not', async () => {
    const { acme, otlp, gateway } = await setup(true)
    const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' }
    const delta = (content: string, finish_reason: string | null = null) => ({
      ...chunk,
      choices: [{ index: 0, delta: { content }, finish_reason }],
    })
    const last = { ...delta('"née" \u{1F600}', 'stop'), usage }
    acme.answer(stream([delta('Hel'), delta('lo\n'), last]))
    await (await gateway.chat({ ...QUESTION, stream: true })).text()
    const choices = [{ index: 0, message: { role: 'assistant', content: 'Whole' }, finish_reason: 'stop' }]
    acme.answer(whole({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage }))
    await gateway.chat(QUESTION)
    const spans = (await exported(gateway, otlp, 4)).filter(({ kind }) => kind === 'client')
    const messages = (name: string) => spans.map(({ attributes }) => JSON.parse(String(attributes[name])))
    const asked = [{ role: 'user', parts: [{ type: 'text', content: 'a private question' }] }]
    expect(messages('gen_ai.input.messages')).toEqual([asked, asked])
    const said = (content: string) => [{ role: 'assistant', parts: [{ type: 'text', content }], finish_reason: 'stop' }]
    expect(
      messages('gen_ai.output.messages').toSorted((one) => (one[0].parts[0].content === 'Whole' ? 1 : -1)),
    ).toEqual([said('Hello\n"née" \u{1F600}'), said('Whole')])
  })

  it('has at most 16,384 characters of each, the latest of the prompt', async () => {
    const { acme, otlp, gateway } = await setup(true)
    const message = { role: 'assistant', content: 'b'.repeat(100_000), tool_calls: [call] }
    const choices = [{ index: 0, message, finish_reason: 'stop' }]
    acme.answer(whole({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage }))
    const messages = ['first', 'a'.repeat(100_000), 'latest'].map((content) => ({ role: 'user', content }))
    await gateway.chat({ ...QUESTION, messages })
    const { attributes = {} } = attemptIn(await exported(gateway, otlp, 2)) ?? {}
    const input = String(attributes['gen_ai.input.messages'])
    const output = String(attributes['gen_ai.output.messages'])
    for (const text of [input, output]) {
      expect(text.length).toBeLessThan(17_000)
      expect(text.length).toBeGreaterThan(16_000)
      expect(JSON.parse(text)).toBeArray()
    }
    expect(input).toContain('latest')
    expect(input).toContain('[earlier messages left out]')
    expect(input).not.toContain('first')
    expect(output).not.toContain('Paris')
  })
})
