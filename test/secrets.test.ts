/** A provider that repeats the operator's key everywhere: no byte of it reaches a client, a log line or the store. */
import { afterEach, describe, expect, it } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { ProviderConfig } from '../src/config/schema/schema.ts'
import { formsOf } from '../src/providers/upstream/secret-forms.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { createStandaloneProvider, NEVER } from './kit/standalone-provider.ts'
import { type Answer, failure, startVendor, stream, type Vendor, whole } from './kit/vendor.ts'

const KEY = 'sk-canary+0123/456789==abcdefZ'
const PASSWORD = 'pass-canary-word'
const HEADER = 'header-canary-1'
const SECRETS = [KEY, PASSWORD, HEADER]
const base64 = (text: string) => Buffer.from(text).toString('base64')
/** Every form, as text. Base64 with the key at each offset within a group. */
const ECHO = SECRETS.flatMap((secret) => [
  secret,
  encodeURIComponent(secret),
  base64(secret),
  base64(`a${secret}`),
  base64(`ab${secret}`),
  Buffer.from(`user:${secret}`).toString('base64url'),
  `https://files.example/v1/a?key=${encodeURIComponent(secret)}`,
]).join(' ')

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const KINDS = ['chatcompat', 'messages-compat', 'contentgen-compat', 'responses-compat'] as const
type Kind = (typeof KINDS)[number]
const FIXTURES: Record<Kind, { whole: string; stream: string }> = {
  chatcompat: { whole: 'openai.json', stream: 'openai.sse' },
  'messages-compat': { whole: 'whole.json', stream: 'text.sse' },
  'contentgen-compat': { whole: 'whole.json', stream: 'stream.sse' },
  'responses-compat': { whole: 'whole.json', stream: 'text.sse' },
}
const fixture = (kind: Kind, form: 'whole' | 'stream') =>
  readFileSync(new URL(`./fixtures/${kind}/${FIXTURES[kind][form]}`, import.meta.url), 'utf8')

/** Members with a fixed set of values: with other values a response is invalid. */
const KIND_MEMBERS = /^(type|object|role|status|finish_reason|finishReason|stop_reason|call_id|name|modality)$/

/** The same response with the secrets in every text. */
function echoing(value: unknown, name = ''): unknown {
  if (typeof value === 'string') return KIND_MEMBERS.test(name) ? value : `${value} ${ECHO}`
  if (Array.isArray(value)) return value.map((item) => echoing(item))
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([member, inner]) => [member, echoing(inner, member)])
  return { ...Object.fromEntries(members), [`unknown_${KEY}`]: ECHO }
}

const echoingStream = (text: string): string =>
  text.replace(/^data: ?(\{.*)$/gm, (_, json: string) => `data: ${JSON.stringify(echoing(JSON.parse(json)))}`)

const HEADERS = { 'x-request-id': ECHO, 'request-id': ECHO, 'retry-after': KEY, 'x-echo': ECHO, server: KEY }

const wholeOf = (kind: Kind): Answer =>
  whole(echoing(JSON.parse(fixture(kind, 'whole'))) as object, { headers: HEADERS })
const streamOf = (kind: Kind, options: object = {}): Answer =>
  stream([echoingStream(fixture(kind, 'stream'))], { done: kind === 'chatcompat', headers: HEADERS, ...options })

const CLIENTS: Record<Kind, (model: string, is_stream: boolean) => { path: string; json: object }> = {
  chatcompat: (model, is_stream) => ({
    path: '/v1/chat/completions',
    json: { model, stream: is_stream, messages: [{ role: 'user', content: 'Hello' }] },
  }),
  'messages-compat': (model, is_stream) => ({
    path: '/v1/messages',
    json: { model, stream: is_stream, max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] },
  }),
  'contentgen-compat': (model, is_stream) => ({
    path: `/v1beta/models/${model}:${is_stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    json: { contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] },
  }),
  'responses-compat': (model, is_stream) => ({
    path: '/v1/responses',
    json: { model, stream: is_stream, input: 'Hello' },
  }),
}

async function start(config: ProviderConfig, more: object = {}): Promise<{ gateway: TestGateway; vendor: Vendor }> {
  const vendor = startVendor()
  const base_url = vendor.url.replace('http://', `http://operator:${PASSWORD}@`)
  const gateway = await startGateway({
    providers: { v: { base_url, key: KEY, headers: { 'x-proxy-token': HEADER }, ...config } },
    models: { 'v/m': { targets: [{ provider: 'v', model: 'vendor-model' }] } },
    ...more,
  })
  closing.push(
    () => vendor.stop(),
    () => gateway[Symbol.asyncDispose](),
  )
  return { gateway, vendor }
}

/** The joined SSE deltas of a response. */
const joined = (text: string): string =>
  [...text.matchAll(/"(?:content|text|delta|thinking|partial_json)":"((?:[^"\\]|\\.)*)"/g)]
    .map(([, part]) => part)
    .join('')

function expectClean(text: string, forms = SECRETS.flatMap(formsOf)): void {
  for (const seen of [text, joined(text)]) for (const form of forms) expect(seen).not.toContain(form)
}

async function responseOf(gateway: TestGateway, path: string, json: object): Promise<{ status: number; text: string }> {
  const answer = await gateway.call(path, { json })
  const headers = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join('\n')
  return { status: answer.status, text: `${headers}\n\n${await answer.text()}` }
}

for (const kind of KINDS) {
  describe(`a ${kind} provider that repeats its secrets in every text and header`, () => {
    for (const client of KINDS) {
      for (const passthrough of client === kind ? [true, false] : [false]) {
        const clientTitle = `${client} clients${passthrough ? ' with passthrough' : ''}`

        it(`returns none to ${clientTitle}, in whole responses`, async () => {
          const { gateway, vendor } = await start({ kind, quirks: { passthrough } })
          vendor.answer(wholeOf(kind))
          const { path, json } = CLIENTS[client]('v/m', false)
          const { status, text } = await responseOf(gateway, path, json)
          expect(status).toBe(200)
          expect(text).toContain('[redacted]')
          expectClean(text + gateway.logged())
        })

        it(`returns none to ${clientTitle}, in streams`, async () => {
          const { gateway, vendor } = await start({ kind, quirks: { passthrough } })
          vendor.answer(streamOf(kind), streamOf(kind, { chunkBytes: 97 }))
          const { path, json } = CLIENTS[client]('v/m', true)
          for (let run = 0; run < 2; run++) {
            const { status, text } = await responseOf(gateway, path, json)
            expect(status).toBe(200)
            expect(text).toContain('[redacted]')
            expectClean(text + gateway.logged())
          }
        })

        it(`returns none to ${clientTitle}, in errors`, async () => {
          const { gateway, vendor } = await start({ kind, quirks: { passthrough } })
          const error = { message: ECHO, param: KEY, code: KEY, type: KEY, status: KEY, details: [{ reason: ECHO }] }
          const statuses = [400, 401, 403, 404, 413, 422, 429, 500, 503]
          for (const status of statuses) {
            vendor.answer(failure(status, error, HEADERS))
            const { path, json } = CLIENTS[client]('v/m', false)
            const answer = await responseOf(gateway, path, json)
            expect(answer.status).toBeGreaterThanOrEqual(400)
            expectClean(answer.text + gateway.logged())
          }
          vendor.answer(stream([{ type: 'error', error }], { done: false, headers: HEADERS }))
          const { path, json } = CLIENTS[client]('v/m', true)
          expectClean((await responseOf(gateway, path, json)).text + gateway.logged())
        })

        it(`ends a stream for ${clientTitle} with a secret in pieces`, async () => {
          const { gateway, vendor } = await start({ kind, quirks: { passthrough } })
          for (const size of [1, 3, 7, KEY.length - 1]) {
            const pieces = KEY.match(new RegExp(`.{1,${size}}`, 'g')) ?? []
            vendor.answer(stream([inPieces(kind, pieces)], { done: kind === 'chatcompat' }))
            const { path, json } = CLIENTS[client]('v/m', true)
            const { text } = await responseOf(gateway, path, json)
            expect(text).toContain('repeated the gateway')
            // Not even half of it.
            expectClean(text + gateway.logged(), [KEY.slice(0, Math.ceil(KEY.length / 2))])
          }
        })
      }
    }
  })
}

/** Matches the text in an event of the fixture's stream. */
const DELTA: Record<Exclude<Kind, 'contentgen-compat'>, RegExp> = {
  chatcompat: /("delta":\{[^}]*"content":)"[^"]+"/,
  'messages-compat': /("text_delta", ?"text": ?)"[^"]+"/,
  'responses-compat': /("delta":)"[^"]+"/,
}

/** The fixture's stream with these texts as deltas before its first delta. */
function inPieces(kind: Kind, pieces: string[]): string {
  const events = fixture(kind, 'stream').split('\n\n')
  if (kind === 'contentgen-compat') {
    const deltas = pieces.map((text) => ({ candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0 }] }))
    return [...deltas.map((delta) => `data: ${JSON.stringify(delta)}`), ...events].join('\n\n')
  }
  const at = events.findIndex((event) => DELTA[kind].test(event))
  const model = events[at] ?? ''
  const encode = (piece: string) => model.replace(DELTA[kind], (_, before: string) => before + JSON.stringify(piece))
  return [...events.slice(0, at), ...pieces.map(encode), ...events.slice(at)].join('\n\n')
}

describe('a stream that is split at any byte', () => {
  it('returns no secret', async () => {
    const { gateway, vendor } = await start({ kind: 'chatcompat' })
    const event = `data: ${JSON.stringify({ id: 'a', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: { content: ` ${KEY} ` }, finish_reason: null }] })}\n\n`
    const end = fixture('chatcompat', 'stream').split('\n\n').slice(-4).join('\n\n')
    for (let at = 1; at < event.length; at++) {
      vendor.answer(
        stream([event.slice(0, at), new Promise((resolve) => setImmediate(resolve)), event.slice(at) + end]),
      )
      const { text } = await responseOf(gateway, '/v1/chat/completions', CLIENTS.chatcompat('v/m', true).json)
      expect(text).toContain('[redacted]')
      expectClean(text)
    }
  })
})

describe('other endpoints', () => {
  it('return no secret in embeddings and images', async () => {
    const { gateway, vendor } = await start(
      {},
      {
        models: {
          'v/e': { families: ['embeddings'], targets: [{ provider: 'v', model: 'e' }] },
          'v/i': { families: ['image-generation'], targets: [{ provider: 'v', model: 'i' }] },
        },
      },
    )
    vendor.answer(
      whole(
        {
          object: 'list',
          model: KEY,
          data: [{ object: 'embedding', index: 0, embedding: [1, 2], note: ECHO }],
          usage: {},
        },
        { headers: HEADERS },
      ),
    )
    expectClean((await responseOf(gateway, '/v1/embeddings', { model: 'v/e', input: 'a' })).text)
    const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    vendor.answer(whole({ created: 1, data: [{ b64_json: png, revised_prompt: ECHO }] }, { headers: HEADERS }))
    const image = await responseOf(gateway, '/v1/images/generations', {
      model: 'v/i',
      prompt: 'a',
      response_format: 'b64_json',
    })
    expect(image.text).toContain('[redacted]')
    expect(image.text).toContain(png)
    expectClean(image.text + gateway.logged())
  })

  it('return no secret in the model list of a provider', async () => {
    const vendor = startVendor()
    closing.push(() => vendor.stop())
    vendor.otherwise(whole({ object: 'list', data: [{ id: `m-${KEY}`, object: 'model', created: 1, owned_by: KEY }] }))
    const gateway = await startGateway({
      discover: true,
      providers: { v: { base_url: vendor.url, key: KEY, discover: true } },
    })
    closing.push(() => gateway[Symbol.asyncDispose]())
    await gateway.instance.discovery
    const list = await (await gateway.call('/v1/models')).text()
    expect(list).toContain('v/m-[redacted]')
    expectClean(list)
  })
})

describe('a key that is too short or common', () => {
  for (const key of ['ollama', 'sk-test', 'not-needed', 'password', 'assistant', 'completion', 'tool_calls']) {
    it(`does not change responses: ${key}`, async () => {
      const { gateway, vendor } = await start({ key, headers: {} })
      vendor.answer(whole({ ...JSON.parse(fixture('chatcompat', 'whole')), system_fingerprint: `about ${key}` }))
      const { text } = await responseOf(gateway, '/v1/chat/completions', CLIENTS.chatcompat('v/m', false).json)
      expect(text).toContain(`about ${key}`)
    })
  }

  it('is a secret if it has eight characters', async () => {
    const { gateway, vendor } = await start({ key: 'sk-tests', headers: {} })
    vendor.answer(whole({ ...JSON.parse(fixture('chatcompat', 'whole')), system_fingerprint: 'about sk-tests' }))
    const { text } = await responseOf(gateway, '/v1/chat/completions', CLIENTS.chatcompat('v/m', false).json)
    expect(text).toContain('about [redacted]')
  })
})

describe('tasks', () => {
  const standaloneVideo = (config: ProviderConfig) => {
    const vendor = startVendor()
    closing.push(() => vendor.stop())
    const call = { model: 'm', request: { model: 'm', messages: [] }, request_id: 'r' }
    const { providerAt } = createStandaloneProvider({ key: KEY, ...config }, call)
    return { vendor, video: providerAt(`${vendor.origin}/v1`).video }
  }

  it('fail with a reason without secrets', async () => {
    const { vendor, video } = standaloneVideo({ kind: 'luma' })
    vendor.answer(whole({ id: 'a', state: 'failed', failure_reason: `bad ${KEY} and ${base64(`ab${KEY}`)}` }))
    const progress = await video?.status({ id: 'a' }, NEVER)
    expect(progress).toMatchObject({ status: 'FAILURE' })
    expect(JSON.stringify(progress)).toContain('[redacted]')
    expectClean(JSON.stringify(progress))
  })

  it('have links without secrets', async () => {
    const { vendor, video } = standaloneVideo({ kind: 'luma' })
    const url = `https://files.example/a.mp4?key=${encodeURIComponent(KEY)}`
    vendor.answer(whole({ id: 'a', state: 'completed', assets: { video: url } }))
    const progress = await video?.status({ id: 'a' }, NEVER)
    expect(progress).toMatchObject({ status: 'SUCCESS' })
    expectClean(JSON.stringify(progress))
  })

  it('have the link of Google without the key in it', async () => {
    const { vendor, video } = standaloneVideo({ kind: 'google' })
    const uri = `https://files.example/a:download?alt=media&key=${encodeURIComponent(KEY)}`
    const response = { generateVideoResponse: { generatedSamples: [{ video: { uri } }] } }
    vendor.answer(whole({ name: 'models/m/operations/o', done: true, response }))
    const progress = await video?.status({ model: 'm', operation: { operationName: 'models/m/operations/o' } }, NEVER)
    expect(progress).toMatchObject({ outputs: [{ url: 'https://files.example/a:download?alt=media' }] })
  })
})
