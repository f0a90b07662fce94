/** Moderations through the whole gateway: what is classified, by which model, within which limits, and what is counted. */
import { describe, expect, it } from 'bun:test'
import OpenAI from 'openai'
import OldOpenAI from 'openai-6'
import type { ProviderConfig } from '../src/config/schema/schema.ts'
import { MAX_MODERATION_PARTS, MAX_MODERATION_TEXTS, type ModerationAnswer } from '../src/spec/moderation-request.ts'
import type { TestGateway } from './kit/gateway.ts'
import { perTest, postJson } from './kit/per-test.ts'
import { openPort } from './kit/served.ts'
import { type Answer, failure, whole } from './kit/vendor.ts'

type Json = Record<string, unknown>

const { open, vendorWith } = perTest()

const KEY = 'sk-secret-key-of-ours'
const CALM = 'A walk by the river'
const VIOLENT = 'I will kill you'
const IMAGE = 'https://example.com/a.png'
const image = (url: unknown) => ({ type: 'image_url', image_url: { url } })
const text = (words: unknown) => ({ type: 'text', text: words })

const moderate = (gateway: TestGateway, json: Json) =>
  postJson<ModerationAnswer & { error: Json }>(gateway, '/v1/moderations', json)

describe('the openai client', () => {
  it.each([
    ['openai 7', OpenAI],
    ['openai 6', OldOpenAI as unknown as typeof OpenAI],
  ])('%s: classifies a text, texts, and text with images', async (_, Client) => {
    const port = await openPort()
    try {
      const client = new Client({ baseURL: port.url, apiKey: port.token, maxRetries: 0 })
      const one = await client.moderations.create({ input: VIOLENT })
      expect([one.model, one.results.length, one.results[0]?.flagged]).toEqual(['sandbox/moderation', 1, true])
      expect(one.results[0]?.categories.violence).toBe(true)
      expect(one.results[0]?.category_scores.violence).toBeGreaterThan(0.5)
      const many = await client.moderations.create({ model: 'sandbox/moderation', input: [CALM, VIOLENT] })
      expect(many.results.map(({ flagged }) => flagged)).toEqual([false, true])
      const mixed = await client.moderations.create({
        input: [
          { type: 'text', text: CALM },
          { type: 'image_url', image_url: { url: 'https://example.com/murder.png' } },
        ],
      })
      expect(mixed.results).toHaveLength(1)
      expect(mixed.results[0]?.categories.violence).toBe(true)
      expect(mixed.results[0]?.category_applied_input_types.violence).toEqual(['text', 'image'])
      expect(mixed.results[0]?.category_applied_input_types.harassment).toEqual(['text'])
    } finally {
      await port.close()
    }
  })
})

describe('without a model', () => {
  it('takes the first moderation model of the list', async () => {
    const vendor = vendorWith(whole({ results: [{ flagged: false, categories: {} }] }))
    const gateway = await open({
      providers: { acme: { base_url: vendor.url, key: KEY } },
      models: { 'acme/judge': { families: ['moderations'] } },
    })
    expect((await moderate(gateway, { input: CALM })).body.model).toBe('acme/judge')
    expect((await moderate(gateway, { input: CALM, model: 'sandbox/moderation' })).body.model).toBe(
      'sandbox/moderation',
    )
  })

  it('is refused where there is none', async () => {
    const { status, body } = await moderate(await open({ sandbox: false }), { input: CALM })
    expect([status, body.error.code, body.error.param]).toEqual([404, 'model_not_found', 'model'])
  })
})

describe('known models', () => {
  it.each([
    ['openai', 'omni-moderation-latest', [image(IMAGE)], 200],
    ['mistral', 'mistral-moderation-latest', [image(IMAGE)], 400],
    ['mistral', 'mistral-moderation-2411', VIOLENT, 200],
  ])('the preset %s has %s', async (preset, model, input, status) => {
    // It does not tell its models.
    const vendor = vendorWith(failure(404), whole({ results: [{ categories: {} }] }))
    const gateway = await open({
      sandbox: false,
      providers: { v: { preset, base_url: vendor.url, key: KEY, discover: true } },
      models: { 'v/mistral-moderation-2411': {} },
    })
    await gateway.instance.discovery
    expect((await moderate(gateway, { model: `v/${model}`, input })).status).toBe(status)
  })

  it('are listed by a provider of the kind mistral, but not by one of a kind that serves none', async () => {
    const listed = async (kind: 'mistral' | 'deepseek') => {
      const vendor = vendorWith(whole({ data: [{ id: 'chat' }, { id: 'mistral-moderation-2411' }] }))
      const gateway = await open({
        sandbox: false,
        providers: { v: { kind, base_url: `${vendor.origin}/v1`, key: KEY, discover: true } },
      })
      await gateway.instance.discovery
      const { data } = (await (await gateway.call('/v1/models')).json()) as { data: { id: string }[] }
      return data.map(({ id }) => id)
    }
    expect(await listed('mistral')).toEqual(['v/chat', 'v/mistral-moderation-2411'])
    expect(await listed('deepseek')).toEqual(['v/chat'])
  })
})

describe('limits, on both sides', () => {
  const many = <T>(count: number, item: T) => Array<T>(count).fill(item)
  it.each([
    ['no input', {}, 'input'],
    ['an input of null', { input: null }, 'input'],
    ['an input that is a number', { input: 5 }, 'input'],
    ['an input that is an object', { input: text('x') }, 'input'],
    ['no items', { input: [] }, 'input'],
    ['an empty text', { input: '' }, 200],
    ['an item that is a number', { input: ['x', 5] }, 'input[1]'],
    ['a part among texts', { input: ['x', text('x')] }, 'input[1]'],
    ['a text among parts', { input: [text('x'), 'x'] }, 'input[1]'],
    [`${MAX_MODERATION_TEXTS} texts`, { input: many(MAX_MODERATION_TEXTS, 'x') }, 200],
    ['one text more', { input: many(MAX_MODERATION_TEXTS + 1, 'x') }, 'input'],
    [`${MAX_MODERATION_PARTS} parts`, { input: many(MAX_MODERATION_PARTS, text('x')) }, 200],
    ['one part more', { input: many(MAX_MODERATION_PARTS + 1, text('x')) }, 'input'],
    ['a part without a text', { input: [{ type: 'text' }] }, 'input[0].text'],
    ['a part of another type', { input: [{ type: 'audio', audio: {} }] }, 'input[0].type'],
    ['an image by its address', { input: [image(IMAGE)] }, 200],
    ['an image as a data URI', { input: [image('data:image/png;base64,AAAA')] }, 200],
    ['an image of another scheme', { input: [image('file:///etc/passwd')] }, 'input[0].image_url.url'],
    ['an address without a host', { input: [text('x'), image('https://')] }, 'input[1].image_url.url'],
    ['a data URI of a text', { input: [image('data:text/plain;base64,AAAA')] }, 'input[0].image_url.url'],
    ['a data URI that is not base64', { input: [image('data:image/png,AAAA')] }, 'input[0].image_url.url'],
    ['an image without an address', { input: [{ type: 'image_url', image_url: {} }] }, 'input[0].image_url.url'],
    ['a model of null', { input: 'x', model: null }, 200],
    // As every family: the model is resolved before the rest of the body is validated.
    ['an empty model', { input: 'x', model: '' }, [404, 'model']],
    ['a model of another family', { input: 'x', model: 'sandbox/rerank' }, 'model'],
  ] as [string, Json, number | string | [number, string]][])('%s', async (_, json, expected) => {
    const { status, body } = await moderate(await open(), json)
    if (typeof expected === 'number') expect(status).toBe(expected)
    else expect([status, body.error.param]).toEqual(typeof expected === 'string' ? [400, expected] : expected)
  })

  it('reads a body of 8 MiB and not one byte more', async () => {
    const gateway = await open()
    const around = JSON.stringify({ input: '' }).length
    const send = (bytes: number) => moderate(gateway, { input: 'x'.repeat(bytes - around) })
    expect((await send(8 * 1024 * 1024)).status).toBe(200)
    expect((await send(8 * 1024 * 1024 + 1)).status).toBe(413)
  })

  it('refuses images for a model that is declared to take none, and sends parts without an image as a text', async () => {
    const vendor = vendorWith(whole({ results: [{ categories: { pii: false } }] }))
    const gateway = await open({
      providers: { v: { base_url: vendor.url, key: KEY } },
      models: { 'v/m': { families: ['moderations'], capabilities: { image_input: false } } },
    })
    const refused = await moderate(gateway, { model: 'v/m', input: [text('x'), image(IMAGE)] })
    expect([refused.status, refused.body.error.param]).toEqual([400, 'input[1].image_url'])
    expect((await moderate(gateway, { model: 'v/m', input: [text('a'), text('b')] })).status).toBe(200)
    expect(vendor.requests.map((request) => request.json().input)).toEqual(['a\nb'])
  })
})

describe('usage', () => {
  it('is that of the provider, or an estimate where it reports none', async () => {
    const gateway = await open()
    const reported = await moderate(gateway, { input: VIOLENT })
    expect(reported.body.usage).toEqual({ prompt_tokens: 4, total_tokens: 4 })
    const estimated = await moderate(gateway, { input: `${VIOLENT}\n@sandbox usage=none` })
    expect(estimated.body.usage).toMatchObject({ estimated: true })
    expect(estimated.body.usage.prompt_tokens).toBeGreaterThan(2)
  })

  it('is recorded for the token and the model', async () => {
    const gateway = await open()
    await moderate(gateway, { input: VIOLENT })
    await moderate(gateway, { input: 'x\n@sandbox status=500' })
    await gateway.instance.drain({ deadline_ms: 60_000 })
    gateway.clock.advance(2_000)
    expect(await gateway.instance.usage({ limit: 10 })).toMatchObject([
      // The failure may have been charged, for at most a token for each of its bytes.
      { model: 'sandbox/moderation', requests: 2, errors: 1, input_tokens: 27, output_tokens: 0, estimated: 1 },
    ])
  })
})

const OPENAI_RESULT = {
  flagged: true,
  categories: { violence: true, illicit: null },
  category_scores: { violence: 0.9, illicit: 0.1 },
  category_applied_input_types: { violence: ['text', 'image'] },
}
const MISTRAL_RESULT = { categories: { selfharm: false, pii: true }, category_scores: { selfharm: 0.001, pii: 0.98 } }

/** Shapes: OpenAI's of openai 7's types; Mistral's of the docs of its client-python (`ModerationResponse`, read 2026-11-22). */
describe.each([
  ['any OpenAI-shaped vendor', {}, '', OPENAI_RESULT, OPENAI_RESULT],
  ['the preset mistral', { preset: 'mistral' }, '/v1', MISTRAL_RESULT, { ...MISTRAL_RESULT, flagged: true }],
  ['the kind mistral', { kind: 'mistral' }, '/v1', MISTRAL_RESULT, { ...MISTRAL_RESULT, flagged: true }],
] as [string, ProviderConfig, string, Json, Json][])('%s', (_, config, base, result, expected) => {
  async function openVendor(...answers: Answer[]) {
    const vendor = vendorWith(...answers)
    const gateway = await open({
      sandbox: false,
      providers: { v: { ...config, base_url: vendor.origin + base, key: KEY } },
      models: { 'v/m': { families: ['moderations'], targets: [{ provider: 'v', model: 'judge-1' }] } },
    })
    return { vendor, gateway }
  }

  it('is asked by its own endpoint, and answers in the common shape', async () => {
    const answer = { id: 'mod-1', model: 'judge-1', usage: { prompt_tokens: 9, total_tokens: 9 }, results: [result] }
    const { vendor, gateway } = await openVendor(whole(answer))
    const { status, body } = await moderate(gateway, { input: VIOLENT, unknown: 1 })
    expect([status, body.model, body.results as unknown]).toEqual([200, 'v/m', [expected]])
    expect(body.usage).toEqual({ prompt_tokens: 9, total_tokens: 9 })
    const [request] = vendor.requests
    expect([request?.path, request?.headers.authorization]).toEqual([`${base}/moderations`, `Bearer ${KEY}`])
    expect(request?.json()).toEqual({ model: 'judge-1', input: VIOLENT })
  })

  it('gets a list of texts, or of parts, as the client wrote it', async () => {
    const { vendor, gateway } = await openVendor(whole({ results: [result, result] }), whole({ results: [result] }))
    const parts = [text(CALM), image(IMAGE)]
    expect((await moderate(gateway, { input: [CALM, VIOLENT] })).body.results).toHaveLength(2)
    expect((await moderate(gateway, { input: parts })).body.results).toHaveLength(1)
    expect(vendor.requests.map((request) => request.json().input)).toEqual([[CALM, VIOLENT], parts])
  })

  it.each([
    ['no results', {}],
    ['too few results', { results: [] }],
    ['too many results', { results: [result, result] }],
    ['a result without categories', { results: [{ flagged: true }] }],
    ['something that is no JSON', '<html>'],
  ])('that answers with %s is not understood', async (_, answer) => {
    const { gateway } = await openVendor(whole(answer))
    const { status, body } = await moderate(gateway, { input: CALM })
    expect([status, body.error.code]).toEqual([502, 'bad_upstream_response'])
  })

  it.each([
    [400, 400, 'upstream_invalid_request'],
    [401, 502, 'upstream_auth'],
    [429, 429, 'rate_limit_exceeded'],
  ])('that answers with status %d', async (status, ours, code) => {
    const { gateway } = await openVendor(failure(status))
    const answer = await moderate(gateway, { input: CALM })
    expect([answer.status, answer.body.error.code]).toEqual([ours, code])
    expect(JSON.stringify(answer.body) + gateway.logged()).not.toContain(KEY)
  })
})

describe('several targets', () => {
  it('tries the next one after a failure', async () => {
    const [bad, good] = [vendorWith(failure(500)), vendorWith(whole({ results: [OPENAI_RESULT] }))]
    const gateway = await open({
      providers: { bad: { base_url: bad.url, key: KEY }, good: { base_url: good.url, key: KEY } },
      models: {
        judge: {
          families: ['moderations'],
          targets: ['bad', 'good'].map((provider) => ({ provider, model: 'm' })),
        },
      },
    })
    const { status, body } = await moderate(gateway, { model: 'judge', input: CALM })
    expect([status, body.results[0]?.flagged]).toEqual([200, true])
    expect([bad.requests.length, good.requests.length]).toEqual([1, 1])
  })
})
