/** A provider that repeats the operator's key in stored or later responses, or in those an AI SDK package reads. */
import { afterEach, describe, expect, it } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { ProviderConfig } from '../src/config/schema/schema.ts'
import { formsOf } from '../src/providers/upstream/secret-forms.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { type Answer, failure, startVendor, stream, type Vendor, whole } from './kit/vendor.ts'

const KEY = 'sk-canary+0123/456789==abcdefZ'
const base64 = (text: string) => Buffer.from(text).toString('base64')
const ECHO = [KEY, encodeURIComponent(KEY), base64(KEY), base64(`a${KEY}`), base64(`ab${KEY}`)].join(' ')
/** Texts that a client must never receive: any form of the key, or half of it. */
const FORBIDDEN = [...formsOf(KEY), KEY.slice(0, Math.ceil(KEY.length / 2))]

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

async function start(config: ProviderConfig, families?: string[]): Promise<{ gateway: TestGateway; vendor: Vendor }> {
  const vendor = startVendor()
  const gateway = await startGateway({
    providers: { v: { base_url: vendor.url, key: KEY, ...config } },
    models: { 'v/m': { ...(families ? { families } : {}), targets: [{ provider: 'v', model: 'm' }] } } as never,
  })
  closing.push(
    () => vendor.stop(),
    () => gateway[Symbol.asyncDispose](),
  )
  return { gateway, vendor }
}

const deltasOf = (text: string): string =>
  [...text.matchAll(/"(?:content|text|delta)":"((?:[^"\\]|\\.)*)"/g)].map(([, part]) => part).join('')

function expectClean(text: string): void {
  for (const seen of [text, deltasOf(text)]) for (const form of FORBIDDEN) expect(seen).not.toContain(form)
}

async function responseOf(
  gateway: TestGateway,
  path: string,
  json?: object,
): Promise<{ status: number; text: string }> {
  const answer = await gateway.call(path, json ? { json } : {})
  const headers = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join('\n')
  return { status: answer.status, text: `${headers}\n\n${await answer.text()}` }
}

const delta = (content: string, more: object = {}) =>
  `data: ${JSON.stringify({ id: 'a', object: 'chat.completion.chunk', created: 1, model: 'm', ...more, choices: [{ index: 0, delta: { role: 'assistant', content }, finish_reason: null }] })}\n\n`
const END = `data: ${JSON.stringify({ id: 'a', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } })}\n\n`
const completion = (content: string) => ({
  id: ECHO,
  object: 'chat.completion',
  created: 1,
  model: ECHO,
  system_fingerprint: ECHO,
  choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
})
const echoStream = (): Answer => stream([delta(`Hi ${ECHO} `, { system_fingerprint: ECHO }) + END], { done: true })
const inPieces = (size: number): Answer =>
  stream([['Hi ', ...(KEY.match(new RegExp(`.{1,${size}}`, 'g')) ?? [])].map((text) => delta(text)).join('') + END], {
    done: true,
  })

const chat = (stream_: boolean) => ({ model: 'v/m', stream: stream_, messages: [{ role: 'user', content: 'Hello' }] })

describe.each(['image/png', 'audio/mpeg', 'model/gltf+json', 'video/mp4, application/json'])(
  'a text response labelled %s',
  (type) => {
    it.each(['chatcompat', 'mistral', 'groq'] as const)('contains no secret of a %s provider', async (kind) => {
      const { gateway, vendor } = await start({ kind })
      const headers = { 'content-type': type }
      for (const is_stream of [false, true]) {
        vendor.answer(
          is_stream
            ? stream([delta(`Hi ${ECHO} `) + END], { headers, done: true })
            : whole(completion(`Hi ${ECHO}`), { headers }),
          failure(400, { message: ECHO, param: KEY }, headers),
        )
        for (let run = 0; run < 2; run++) {
          const { text } = await responseOf(gateway, '/v1/chat/completions', chat(is_stream))
          expectClean(text + gateway.logged())
        }
      }
    })
  },
)

describe('rerank', () => {
  it('contains no secret in results, headers and errors', async () => {
    const { gateway, vendor } = await start({ kind: 'chatcompat', quirks: { rerank: true } }, ['rerank'])
    const request = { model: 'v/m', query: 'x', documents: ['a'], return_documents: true }
    vendor.answer(
      whole(
        { id: ECHO, results: [{ index: 0, relevance_score: 0.5, document: { text: ECHO } }], meta: { note: ECHO } },
        { headers: { 'x-request-id': ECHO } },
      ),
      failure(400, { message: ECHO, param: KEY, code: KEY, type: KEY }, { 'retry-after': KEY }),
    )
    const found = await responseOf(gateway, '/v1/rerank', request)
    expect(found.status).toBe(200)
    const refused = await responseOf(gateway, '/v1/rerank', request)
    expect(refused.status).toBe(400)
    expectClean(found.text + refused.text + gateway.logged())
  })
})

describe.each(['mistral', 'togetherai', 'fireworks', 'deepinfra', 'groq', 'deepseek'] as const)(
  'a provider of the kind %s',
  (kind) => {
    it('returns no secret in a whole response', async () => {
      const { gateway, vendor } = await start({ kind })
      vendor.otherwise(whole(completion(`Hi ${ECHO}`), { headers: { 'x-request-id': ECHO } }))
      const { text } = await responseOf(gateway, '/v1/chat/completions', chat(false))
      expect(text).toContain('Hi [redacted]')
      expectClean(text + gateway.logged())
    })

    it('returns no secret in a stream', async () => {
      const { gateway, vendor } = await start({ kind })
      vendor.otherwise(echoStream())
      const { text } = await responseOf(gateway, '/v1/chat/completions', chat(true))
      expect(text).toContain('Hi [redacted]')
      expectClean(text + gateway.logged())
    })

    it.each([1, 7])('ends a stream with a secret in pieces of %d bytes', async (size) => {
      const { gateway, vendor } = await start({ kind })
      vendor.otherwise(inPieces(size))
      const { text } = await responseOf(gateway, '/v1/chat/completions', chat(true))
      expect(text).toContain('repeated the gateway')
      expectClean(text + gateway.logged())
    })

    it('returns no secret in errors', async () => {
      const { gateway, vendor } = await start({ kind })
      for (const status of [400, 401, 422, 500]) {
        vendor.otherwise(failure(status, { message: ECHO, param: KEY, code: KEY, type: KEY }, { 'x-request-id': ECHO }))
        const { text } = await responseOf(gateway, '/v1/chat/completions', chat(false))
        expectClean(text + gateway.logged())
      }
    })
  },
)

describe.each(['content', 'reasoning_content', 'refusal'])('a secret in pieces in the field %s', (field) => {
  it('ends the stream', async () => {
    const { gateway, vendor } = await start({ kind: 'chatcompat' })
    const pieces = KEY.match(/.{1,3}/g) ?? []
    vendor.answer(stream([pieces.map((piece) => delta(piece).replace('"content"', `"${field}"`)).join('') + END]))
    const { text } = await responseOf(gateway, '/v1/chat/completions', chat(true))
    expect(text).toContain('repeated the gateway')
  })
})

describe('a stored response', () => {
  const RESPONSES_STREAM = readFileSync(new URL('./fixtures/responses-compat/text.sse', import.meta.url), 'utf8')
  const echoing = (text: string) =>
    text.replaceAll(/"(delta|text)": ?"([^"]*)"/g, (_, name, text) => `"${name}":"${text} ${ECHO}"`)

  it.each(['chatcompat', 'responses-compat'] as const)('of a %s provider contains no secret', async (kind) => {
    const { gateway, vendor } = await start({ kind })
    vendor.answer(kind === 'chatcompat' ? echoStream() : stream([echoing(RESPONSES_STREAM)], { done: false }))
    const { text } = await responseOf(gateway, '/v1/responses', { model: 'v/m', input: 'x', stream: true })
    expect(text).toContain('[redacted]')
    const id = /"id":"(resp_\w+)"/.exec(text)?.[1]
    const stored = await responseOf(gateway, `/v1/responses/${id}`)
    expect(stored.status).toBe(200)
    expect(stored.text).toContain('[redacted]')
    expectClean(text + stored.text + gateway.logged())
  })

  it.each([true, false])('generated in the background (stream: %p) contains no secret', async (isStream) => {
    const { gateway, vendor } = await start({ kind: 'chatcompat' })
    vendor.otherwise((wire) =>
      ('stream' in wire.request.json() && wire.request.json().stream ? echoStream() : whole(completion(`Hi ${ECHO}`)))(
        wire,
      ),
    )
    const order = { model: 'v/m', input: 'x', background: true, stream: isStream }
    const { text } = await responseOf(gateway, '/v1/responses', order)
    const id = /"id":"(resp_\w+)"/.exec(text)?.[1]
    const stored = await waitUntilFinished(gateway, `${id}`)
    expect(stored).toContain('[redacted]')
    expectClean(text + stored + gateway.logged())
  })

  it('generated in the background fails on a secret in pieces, and does not contain half of it', async () => {
    const { gateway, vendor } = await start({ kind: 'chatcompat' })
    vendor.otherwise(inPieces(3))
    const { text } = await responseOf(gateway, '/v1/responses', {
      model: 'v/m',
      input: 'x',
      background: true,
      stream: true,
    })
    const id = /"id":"(resp_\w+)"/.exec(text)?.[1]
    const stored = await waitUntilFinished(gateway, `${id}`)
    expect(stored).toContain('"status":"failed"')
    expectClean(text + stored + gateway.logged())
  })

  async function waitUntilFinished(gateway: TestGateway, id: string): Promise<string> {
    for (;;) {
      const { text } = await responseOf(gateway, `/v1/responses/${id}`)
      if (!/"status":"(queued|in_progress)"/.test(text)) return text
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
})

describe('the error of a stream that ends because of a secret', () => {
  const CLIENTS: [string, string, object, RegExp][] = [
    ['chat completions', '/v1/chat/completions', chat(true), /data: \{"error":\{"message":".*credentials/],
    [
      'messages',
      '/v1/messages',
      { ...chat(true), max_tokens: 9 },
      /event: error\ndata: \{"type":"error","error":\{"type":"api_error"/,
    ],
    [
      'responses',
      '/v1/responses',
      { model: 'v/m', input: 'x', stream: true },
      /event: (error|response\.failed)\ndata: /,
    ],
    [
      'contentgen',
      '/v1beta/models/v/m:streamGenerateContent?alt=sse',
      { contents: [{ parts: [{ text: 'x' }] }] },
      /data: \{"error":\{"code":50\d/,
    ],
  ]
  it.each(CLIENTS)('has the format of %s', async (_, path, json, expected) => {
    const { gateway, vendor } = await start({ kind: 'chatcompat' })
    const isRead = Promise.withResolvers<void>()
    const pieces = KEY.match(/.{1,3}/g) ?? []
    vendor.answer(stream([delta('Hi '), isRead.promise, pieces.map((piece) => delta(piece)).join('') + END]))
    const answer = await gateway.call(path, { json })
    let text = ''
    for await (const bytes of answer.body ?? []) {
      text += Buffer.from(bytes)
      isRead.resolve()
    }
    expect(answer.status).toBe(200)
    expect(text).toMatch(expected)
    expect(text).toContain('Hi ')
    expect(text).not.toContain('"finish_reason":"stop"')
    expectClean(text)
  })
})
