/** Charges of calls, and how a response states them. */
import { describe, expect, it } from 'bun:test'
import type { ModelConfig } from '../src/config/schema/schema.ts'
import { perTest } from './kit/per-test.ts'
import { chunk, completion, stream, usageChunk, whole } from './kit/vendor.ts'

const { open, vendorWith } = perTest()

const usage = {
  prompt_tokens: 1_000,
  completion_tokens: 100,
  total_tokens: 1_100,
  prompt_tokens_details: { cached_tokens: 400 },
  completion_tokens_details: { reasoning_tokens: 90 },
}
const PRICES = { input: 2.5, cached_input: 0.25, output: 10 }
/** 600 at 2.5, 400 at 0.25, and 100 at 10, each per million. */
const CHARGE = 0.0026
const messages = [{ role: 'user', content: 'Hi' }]

async function setUp(model: ModelConfig = { prices: PRICES }, more: object = {}, server: object = {}) {
  const vendor = vendorWith()
  const gateway = await open({
    providers: { v: { kind: 'chatcompat', base_url: vendor.url, ...more } },
    models: { 'v/m': model },
    server,
  })
  const send = async (path: string, json: object, headers = {}) => {
    const response = await gateway.call(path, { json: { model: 'v/m', ...json }, headers })
    return { response, cost: response.headers.get('x-gatehouse-cost') }
  }
  const chat = (json: object = {}, headers = {}) => send('/v1/chat/completions', { messages, ...json }, headers)
  return { vendor, gateway, send, chat }
}

const lastUsage = async (response: Response) =>
  (await response.text())
    .split('\n\n')
    .filter((event) => event.startsWith('data: {'))
    .map((event) => JSON.parse(event.slice(6)))
    .findLast((one) => one.usage)?.usage

describe('the header x-gatehouse-cost', () => {
  it('says what a whole response is charged', async () => {
    const { vendor, chat } = await setUp()
    vendor.answer(whole(completion('Hello', { usage })))
    expect((await chat()).cost).toBe('0.0026')
  })

  it('is unknown, not 0, where the model has no price', async () => {
    const { vendor, chat } = await setUp({})
    vendor.answer(whole(completion('Hello', { usage })))
    expect((await chat()).cost).toBe('unknown')
  })

  it('is 0 where the model is free', async () => {
    const { vendor, chat } = await setUp({ prices: { input: 0, output: 0 } })
    vendor.answer(whole(completion('Hello', { usage })))
    expect((await chat()).cost).toBe('0')
  })

  it('has no exponent', async () => {
    const { vendor, chat } = await setUp({ prices: { input: 0.001, output: 0 } })
    vendor.answer(whole(completion('Hello', { usage: { prompt_tokens: 2, completion_tokens: 1 } })))
    expect((await chat()).cost).toBe('0.000000002')
  })

  it('is 0 where the response comes from the cache', async () => {
    const { vendor, chat } = await setUp({ prices: PRICES, cache: {} })
    vendor.answer(whole(completion('Hello', { usage })))
    const json = { temperature: 0 }
    expect([(await chat(json)).cost, (await chat(json)).cost]).toEqual(['0.0026', '0'])
  })

  it('is absent from errors and streams', async () => {
    const { vendor, chat } = await setUp()
    vendor.answer(stream([chunk({ role: 'assistant', content: 'Hi' }), chunk({}, 'stop')]))
    const streamed = await chat({ stream: true })
    await streamed.response.text()
    expect([streamed.cost, (await chat({ max_tokens: -1 })).cost]).toEqual([null, null])
  })

  it('is absent with server.show_cost: false', async () => {
    const { chat } = await setUp(undefined, {}, { show_cost: false })
    expect((await chat()).cost).toBeNull()
  })

  it('is on the responses of the other chat APIs', async () => {
    const { vendor, send } = await setUp()
    vendor.otherwise(whole(completion('Hello', { usage })))
    const of = async (path: string, json: object) => (await send(path, json)).cost
    expect(await of('/v1/messages', { messages, max_tokens: 10 })).toBe('0.0026')
    expect(await of('/v1/responses', { input: 'Hi' })).toBe('0.0026')
    expect(await of('/v1beta/models/v/m:generateContent', { contents: [{ parts: [{ text: 'Hi' }] }] })).toBe('0.0026')
    expect(await of('/v1/completions', { prompt: 'Hi' })).toBe('0.0026')
  })

  it('is on embeddings, which are charged by input tokens', async () => {
    const { vendor, send } = await setUp({ families: ['embeddings'], prices: { input: 0.02 } })
    vendor.answer(whole({ data: [{ index: 0, embedding: [1] }], usage: { prompt_tokens: 5_000, total_tokens: 5_000 } }))
    expect((await send('/v1/embeddings', { input: 'Hi' })).cost).toBe('0.0001')
  })

  it('is on reranking, which is charged by search', async () => {
    const { vendor, send } = await setUp(
      { families: ['rerank'], prices: { searches: 2 } },
      { kind: 'rerank-compat', key: 'k' },
    )
    const documents = Array.from({ length: 101 }, () => 'text')
    const results = documents.map((_, index) => ({ index, relevance_score: 1 }))
    vendor.answer(whole({ results }))
    expect((await send('/v1/rerank', { query: 'Hi', documents })).cost).toBe('0.004')
    vendor.answer(whole({ results, meta: { billed_units: { search_units: 3 } } }))
    expect((await send('/v1/rerank', { query: 'Hi', documents })).cost).toBe('0.006')
  })

  it('is on moderations, where a free model has a price of 0', async () => {
    const result = { flagged: false, categories: {}, category_scores: {} }
    const free = await setUp({ families: ['moderations'], prices: { input: 0 } })
    free.vendor.answer(whole({ results: [result] }))
    expect((await free.send('/v1/moderations', { input: 'Hi' })).cost).toBe('0')
    const unknown = await setUp({ families: ['moderations'] })
    unknown.vendor.answer(whole({ results: [result] }))
    expect((await unknown.send('/v1/moderations', { input: 'Hi' })).cost).toBe('unknown')
  })

  it('is on images, by number, size and quality, or by token', async () => {
    const b64_json = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    const images = [{ size: '1024x1024', quality: 'high', price: 0.167 }]
    const byPiece = await setUp({ families: ['image-generation'], prices: { images, image: 0.01 } })
    byPiece.vendor.otherwise(whole({ data: [{ b64_json }, { b64_json }] }))
    const json = { prompt: 'A river', n: 2 }
    expect((await byPiece.send('/v1/images/generations', json)).cost).toBe('0.02')
    const high = { ...json, size: '1024x1024', quality: 'high' }
    expect((await byPiece.send('/v1/images/generations', high)).cost).toBe('0.334')
    const byToken = await setUp({ families: ['image-generation'], prices: { input: 5, output: 40 } })
    const counted = { input_tokens: 50, output_tokens: 4_160, total_tokens: 4_210 }
    byToken.vendor.answer(whole({ data: [{ b64_json }], usage: counted }))
    expect((await byToken.send('/v1/images/generations', json)).cost).toBe('0.16665')
  })
})

describe('usage: {include: true}', () => {
  const asked = { usage: { include: true } }

  it('adds the charge to the usage of a whole response', async () => {
    const { vendor, chat } = await setUp()
    vendor.answer(whole(completion('Hello', { usage })))
    const { response } = await chat(asked)
    expect(((await response.json()) as { usage: object }).usage).toMatchObject({ prompt_tokens: 1_000, cost: CHARGE })
    expect(vendor.requests[0]?.json().usage).toBeUndefined()
  })

  it('adds the usage with the charge to a stream', async () => {
    const { vendor, chat } = await setUp()
    vendor.answer(stream([chunk({ role: 'assistant', content: 'Hi' }), chunk({}, 'stop'), { ...usageChunk(), usage }]))
    const { response } = await chat({ ...asked, stream: true })
    expect(await lastUsage(response)).toMatchObject({ prompt_tokens: 1_000, cost: CHARGE })
  })

  it('is null where the price is unknown', async () => {
    const { vendor, chat } = await setUp({})
    vendor.answer(whole(completion('Hello', { usage })))
    const { response } = await chat(asked)
    expect(((await response.json()) as { usage: object }).usage).toMatchObject({ cost: null })
  })

  it('is absent unless the request asks for it, even where the provider reports its own', async () => {
    const { vendor, chat } = await setUp()
    const own = { ...usage, cost: 99, cost_details: { upstream_inference_cost: 98 }, is_byok: true }
    vendor.answer(whole(completion('Hello', { usage: own })), whole(completion('Hello', { usage: own })))
    expect(await (await chat()).response.text()).not.toContain('cost')
    const { response } = await chat(asked)
    const text = await response.text()
    expect(JSON.parse(text).usage.cost).toBe(CHARGE)
    expect(text).not.toContain('cost_details')
  })

  it.each([false, true])('is 0 from the cache, with stream: %p', async (isStream) => {
    const { vendor, chat } = await setUp({ prices: PRICES, cache: {} })
    if (isStream)
      vendor.answer(
        stream([chunk({ role: 'assistant', content: 'Hi' }), chunk({}, 'stop'), { ...usageChunk(), usage }]),
      )
    else vendor.answer(whole(completion('Hello', { usage })))
    const json = { ...asked, temperature: 0, stream: isStream }
    const costOf = async ({ response }: { response: Response }) =>
      isStream ? (await lastUsage(response)).cost : ((await response.json()) as { usage: { cost: number } }).usage.cost
    expect([await costOf(await chat(json)), await costOf(await chat(json))]).toEqual([CHARGE, 0])
  })

  it('is 0 from the cache where members of the provider follow its usage', async () => {
    const { vendor, chat } = await setUp({ prices: PRICES, cache: {} })
    const { usage: counted, ...answer } = completion('Hello', { usage }) as Record<string, unknown>
    vendor.answer(whole({ ...answer, usage: counted, service_tier: 'default', system_fingerprint: 'fp_1' }))
    const json = { ...asked, temperature: 0 }
    const [first, again] = [await (await chat(json)).response.text(), await (await chat(json)).response.text()]
    expect(JSON.parse(first)).toMatchObject({ usage: { cost: CHARGE }, service_tier: 'default' })
    expect(JSON.parse(again)).toEqual({
      ...JSON.parse(first),
      id: JSON.parse(again).id,
      usage: { ...JSON.parse(first).usage, cost: 0 },
    })
  })
})

describe('faults of other gateways', () => {
  // https://github.com/BerriAI/litellm/pull/35913: a model without a price was logged at $0.
  it('a model without a price is never charged 0', async () => {
    const { vendor, chat } = await setUp({ prices: { input: 2.5 } })
    vendor.answer(whole(completion('Hello', { usage })))
    expect((await chat()).cost).toBe('unknown')
  })

  // https://github.com/BerriAI/litellm/pull/35290, and as xAI and Gemini report them: outside of the completion tokens.
  it('reasoning tokens that the provider leaves out of the completion tokens are charged', async () => {
    const { vendor, chat } = await setUp()
    const hidden = { ...usage, completion_tokens: 10, prompt_tokens_details: {} }
    vendor.answer(whole(completion('Hello', { usage: hidden })))
    expect((await chat()).cost).toBe('0.0035')
  })

  // https://github.com/BerriAI/litellm/issues/36114: a stream was charged by its first usage, not by its last.
  it('the last usage of a stream counts', async () => {
    const { vendor, chat } = await setUp()
    const early = { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 }
    vendor.answer(
      stream([
        { ...chunk({ role: 'assistant', content: 'Hi' }), usage: early },
        chunk({}, 'stop'),
        { ...usageChunk(), usage },
      ]),
    )
    const { response } = await chat({ usage: { include: true }, stream: true })
    expect(await lastUsage(response)).toMatchObject({ cost: CHARGE })
  })
})

describe('tokens that are written to a cache for five minutes and for an hour', () => {
  const counted = {
    input_tokens: 100,
    cache_read_input_tokens: 1_000,
    cache_creation_input_tokens: 500,
    cache_creation: { ephemeral_5m_input_tokens: 200, ephemeral_1h_input_tokens: 300 },
    output_tokens: 10,
  }
  const prices = { input: 3, cached_input: 0.3, cache_write: 3.75, cache_write_1h: 6, output: 15 }
  const COST = '0.0033'
  const message = {
    id: 'msg_v',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: 'Hi' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: counted,
  }
  const events = [
    {
      type: 'message_start',
      message: { ...message, content: [], stop_reason: null, usage: { ...counted, output_tokens: 1 } },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 10 } },
    { type: 'message_stop' },
  ]

  it.each(['translated', 'passed through'])('are charged by their own prices: %s', async (how) => {
    const { vendor, chat, send } = await setUp({ prices }, { kind: 'messages-compat', key: 'k' })
    vendor.answer(whole(message))
    const { cost } = how === 'translated' ? await chat() : await send('/v1/messages', { messages, max_tokens: 10 })
    expect(cost).toBe(COST)
  })

  it('are charged the same in a stream', async () => {
    const { vendor, chat } = await setUp({ prices }, { kind: 'messages-compat', key: 'k' })
    const named = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    vendor.answer(stream(named))
    const { response } = await chat({ usage: { include: true }, stream: true })
    expect((await lastUsage(response)).cost).toBe(Number(COST))
  })

  it('are told apart for clients of the Messages API whose model is served by another API', async () => {
    const { vendor, send } = await setUp({ prices })
    const details = { cached_tokens: 1_000, cache_write_tokens: 500, cache_write_1h_tokens: 300 }
    vendor.answer(
      whole(
        completion('Hi', { usage: { prompt_tokens: 1_600, completion_tokens: 10, prompt_tokens_details: details } }),
      ),
    )
    const { response, cost } = await send('/v1/messages', { messages, max_tokens: 10 })
    expect(cost).toBe(COST)
    expect(((await response.json()) as { usage: object }).usage).toMatchObject({
      cache_creation_input_tokens: 500,
      cache_creation: { ephemeral_5m_input_tokens: 200, ephemeral_1h_input_tokens: 300 },
    })
  })
})

describe('the price of a call', () => {
  it('has the factor of its service tier', async () => {
    const { vendor, chat } = await setUp({ prices: { ...PRICES, service_tiers: { flex: 0.5 } } })
    vendor.otherwise(whole(completion('Hello', { usage })))
    expect((await chat({ service_tier: 'flex' })).cost).toBe('0.0013')
    expect((await chat({ service_tier: 'default' })).cost).toBe('0.0026')
  })

  it('is that of the fallback that serves it', async () => {
    const vendor = vendorWith(whole(completion('Hello', { usage })))
    const gateway = await open({
      providers: {
        v: { kind: 'chatcompat', base_url: vendor.url },
        off: { kind: 'chatcompat', base_url: 'http://127.0.0.1:9/v1' },
      },
      models: { 'off/m': { prices: { input: 1_000, output: 1_000 }, fallbacks: ['v/m'] }, 'v/m': { prices: PRICES } },
    })
    const response = await gateway.chat({ model: 'off/m', messages })
    expect(response.headers.get('x-gatehouse-cost')).toBe('0.0026')
  })
})
