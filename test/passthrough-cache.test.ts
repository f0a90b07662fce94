/** The response cache where requests and responses pass through unchanged: to providers of the client's own API. */
import { afterEach, describe, expect, it } from 'bun:test'
import { readFileSync } from 'node:fs'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { type Answer, startVendor, stream, type Vendor, whole } from './kit/vendor.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

const fixture = (name: string) => readFileSync(new URL(`./fixtures/${name}`, import.meta.url), 'utf8')
const MESSAGES = [{ role: 'user', content: 'hi' }]
const CONTENTS = { contents: [{ role: 'user', parts: [{ text: 'hi' }] }], generationConfig: { temperature: 0 } }

type Kind = 'messages-compat' | 'contentgen-compat' | 'responses-compat'
type Ask = { path: string; json: Record<string, unknown>; headers?: Record<string, string> }
type Api = { kind: Kind; whole: Ask; streams: Ask[]; answer: string; events: string; member: string }

const APIS: Record<string, Api> = {
  Messages: {
    kind: 'messages-compat',
    whole: { path: '/v1/messages', json: { model: 'm/m', messages: MESSAGES, max_tokens: 9, temperature: 0 } },
    streams: [
      {
        path: '/v1/messages',
        json: { model: 'm/m', messages: MESSAGES, max_tokens: 9, temperature: 0, stream: true },
      },
    ],
    answer: 'messages-compat/whole.json',
    events: 'messages-compat/text.sse',
    member: '"service_tier"',
  },
  contentgen: {
    kind: 'contentgen-compat',
    whole: { path: '/v1beta/models/m/m:generateContent', json: CONTENTS },
    streams: [
      { path: '/v1beta/models/m/m:streamGenerateContent?alt=sse', json: CONTENTS },
      { path: '/v1beta/models/m/m:streamGenerateContent', json: CONTENTS },
    ],
    answer: 'contentgen-compat/whole.json',
    events: 'contentgen-compat/stream.sse',
    member: '"promptTokensDetails"',
  },
  Responses: {
    kind: 'responses-compat',
    whole: { path: '/v1/responses', json: { model: 'm/m', input: 'hi', temperature: 0, store: false } },
    streams: [
      { path: '/v1/responses', json: { model: 'm/m', input: 'hi', temperature: 0, store: false, stream: true } },
    ],
    answer: 'responses-compat/whole.json',
    events: 'responses-compat/text.sse',
    member: '"max_tool_calls"',
  },
}

type Started = { gateway: TestGateway; vendor: Vendor }

async function start({ kind, answer, events }: Api): Promise<Started> {
  const vendor = startVendor()
  closing.push(vendor.stop)
  const streamed: Answer = stream([fixture(events)], { done: false })
  const complete: Answer = whole(JSON.parse(fixture(answer)), { headers: { 'x-vendor': 'secret', 'request-id': 'r' } })
  vendor.otherwise((wire) => {
    const isStream = wire.request.json().stream === true || wire.request.path.includes('streamGenerateContent')
    return (isStream ? streamed : complete)(wire)
  })
  const gateway = await startGateway({
    providers: { m: { kind, base_url: vendor.url, key: 'k', quirks: { passthrough: true } } },
    models: { 'm/m': { cache: {} } },
  })
  closing.push(() => gateway[Symbol.asyncDispose]())
  return { gateway, vendor }
}

type Got = { status: number; cache: string | null; headers: Headers; text: string }

async function send({ gateway }: Started, { path, json, headers }: Ask): Promise<Got> {
  const response = await gateway.call(path, { json, ...(headers ? { headers } : {}) })
  const text = await response.text()
  return { status: response.status, cache: response.headers.get('x-gatehouse-cache'), headers: response.headers, text }
}

/** Settled calls, in order: the last fields of the access log. */
const lines = (gateway: TestGateway) =>
  gateway
    .logged()
    .split('\n')
    .filter((line) => line.includes('"event":"request"'))
    .map((line) => JSON.parse(line) as Record<string, unknown>)

/** The ids that a client sees as those of the response. */
const idOf = (text: string) =>
  (/"responseId"\s*:\s*"([^"]+)"/.exec(text) ?? /"id"\s*:\s*"([^"]+)"/.exec(text))?.[1] ?? ''
const withoutId = (text: string) => text.replaceAll(idOf(text), '')

describe.each(Object.entries(APIS))('%s', (_, api) => {
  const all: [string, Ask, boolean][] = [
    ['a whole response', api.whole, false],
    ...api.streams.map((ask): [string, Ask, boolean] => [`a stream of ${ask.path}`, ask, true]),
  ]

  it.each(all)('returns %s unchanged but for its id', async (__, ask, is_stream) => {
    const started = await start(api)
    const first = await send(started, ask)
    started.gateway.clock.advance(5_000)
    const second = await send(started, ask)
    expect([first.status, first.cache, second.status, second.cache]).toEqual([200, 'miss', 200, 'hit'])
    expect(started.vendor.requests).toHaveLength(1)
    expect(idOf(second.text)).not.toBe(idOf(first.text))
    expect(withoutId(second.text)).toBe(withoutId(first.text))
    // It was passed through: a translation does not have this member.
    expect(second.text).toContain(api.member)
    expect([first.headers.get('age'), second.headers.get('age')]).toEqual([null, '5'])
    const own = ({ headers }: Got) => ['content-type', 'x-vendor', 'cache-control'].map((name) => headers.get(name))
    expect(own(second)).toEqual(own(first))
    expect(second.headers.get('x-gatehouse-target')).toBe(first.headers.get('x-gatehouse-target'))
    expect(first.headers.get('x-gatehouse-target')).toStartWith('m/')
    const [asked, answered] = lines(started.gateway)
    expect([asked?.stream, answered?.stream]).toEqual(is_stream ? [true, true] : [undefined, undefined])
    expect(asked).toMatchObject({ cache: 'miss' })
    expect(Number(asked?.input_tokens)).toBeGreaterThan(0)
    expect(answered).toMatchObject({ cache: 'hit', input_tokens: 0, output_tokens: 0 })
  })

  it('keeps its forms apart: each is a miss at first', async () => {
    const started = await start(api)
    const asks = [api.whole, ...api.streams]
    const found: (string | null)[] = []
    for (const ask of [...asks, ...asks]) found.push((await send(started, ask)).cache)
    expect(found).toEqual([...asks.map(() => 'miss'), ...asks.map(() => 'hit')])
  })

  it('gives the clients of other APIs a response of their own', async () => {
    const started = await start(api)
    for (const ask of [api.whole, ...api.streams]) await send(started, ask)
    const others = Object.values(APIS).filter((other) => other !== api)
    for (const ask of others.flatMap((other) => [other.whole, ...other.streams])) {
      const [first, second] = [await send(started, ask), await send(started, ask)]
      expect([first.status, first.cache, second.cache]).toEqual([200, 'miss', 'hit'])
      expect(withoutId(second.text)).toBe(withoutId(first.text))
    }
    const chat = { model: 'm/m', messages: MESSAGES, temperature: 0 }
    const completion = await send(started, { path: '/v1/chat/completions', json: chat })
    expect(completion.cache).toBe('miss')
    expect(JSON.parse(completion.text).object).toBe('chat.completion')
  })

  it('does not cache a stream that breaks off', async () => {
    const started = await start(api)
    const [ask] = api.streams
    if (!ask) throw new Error('there is no stream')
    started.vendor.answer(stream(fixture(api.events).split(/(?<=\n\r?\n)/), { done: false, resetAfter: 2 }))
    await send(started, ask)
    const found = [await send(started, ask), await send(started, ask)]
    expect(found.map(({ cache }) => cache)).toEqual(['miss', 'hit'])
  })
})

describe('a header that passes to the provider', () => {
  it('distinguishes requests', async () => {
    const api = APIS.Messages as Api
    const started = await start(api)
    const of = (beta: string): Ask => ({ ...api.whole, headers: { 'anthropic-beta': beta } })
    const found: (string | null)[] = []
    for (const ask of [of('a'), of('a'), of('b'), api.whole, of('b')]) found.push((await send(started, ask)).cache)
    expect(found).toEqual(['miss', 'hit', 'miss', 'miss', 'hit'])
  })
})

describe('requests that use what the provider stores', () => {
  it.each<[string, string, object]>([
    ['a container', 'Messages', { container: 'container_1' }],
    ['cached content', 'contentgen', { cachedContent: 'cachedContents/1' }],
  ])('are not cached: %s', async (_, name, more) => {
    const api = APIS[name] as Api
    const started = await start(api)
    const ask = { ...api.whole, json: { ...api.whole.json, ...more } }
    const found = [await send(started, ask), await send(started, ask)]
    expect(found.map(({ status, cache }) => [status, cache])).toEqual([
      [200, 'bypass'],
      [200, 'bypass'],
    ])
  })
})
