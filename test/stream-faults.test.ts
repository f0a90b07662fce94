/** Faults of vendors in the APIs with passthrough: wrong labels, connections that stay open, answers without content. */
import { describe, expect, it } from 'bun:test'
import { startGateway } from './kit/gateway.ts'
import { type Answer, startVendor, stream, whole } from './kit/vendor.ts'

const events = (...list: { type: string }[]) =>
  list.map((one) => `event: ${one.type}\ndata: ${JSON.stringify(one)}\n\n`).join('')

const MESSAGE = { id: 'msg_v', type: 'message', role: 'assistant', model: 'v', content: [] as object[] }
const START = { type: 'message_start', message: { ...MESSAGE, usage: { input_tokens: 3, output_tokens: 0 } } }
const BLOCK = [
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
  { type: 'content_block_stop', index: 0 },
]
const FINAL = {
  type: 'message_delta',
  delta: { stop_reason: 'end_turn', stop_sequence: null },
  usage: { output_tokens: 2 },
}
const STOP = { type: 'message_stop' }

const TEXT = { type: 'output_text', text: 'Hello', annotations: [] }
const ITEM = { type: 'message', id: 'msg_v', role: 'assistant', status: 'completed', content: [TEXT] }
const RESPONSE = { id: 'resp_v', object: 'response', created_at: 1, model: 'v', status: 'completed', output: [ITEM] }
const COMPLETED = {
  type: 'response.completed',
  sequence_number: 1,
  response: { ...RESPONSE, usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 } },
}

const CANDIDATE = { index: 0, content: { role: 'model', parts: [{ text: 'Hello' }] }, finishReason: 'STOP' }
const CONTENT = { candidates: [CANDIDATE], usageMetadata: { promptTokenCount: 3, totalTokenCount: 5 } }

const messages = [{ role: 'user', content: 'Hi' }]
const APIS = {
  messages: {
    kind: 'messages-compat',
    path: '/v1/messages',
    body: { max_tokens: 9, messages },
    events: events(START, ...BLOCK, FINAL, STOP),
    whole: { ...MESSAGE, content: [{ type: 'text', text: 'Hello' }], stop_reason: 'end_turn' },
  },
  responses: {
    kind: 'responses-compat',
    path: '/v1/responses',
    body: { input: 'Hi', store: false },
    events: events(COMPLETED),
    whole: RESPONSE,
  },
  contentgen: {
    kind: 'contentgen-compat',
    path: '/v1beta/models/v/m:',
    body: { contents: [{ parts: [{ text: 'Hi' }] }] },
    events: `data: ${JSON.stringify(CONTENT)}\n\n`,
    whole: CONTENT,
  },
} as const
type Api = keyof typeof APIS
const NAMES = Object.keys(APIS) as Api[]

/** The client's response to a request in this API, which a provider of the same API answers so. */
async function answered(api: Api, answer: Answer, isStream: boolean, passthrough = true) {
  const { kind, path, body } = APIS[api]
  const vendor = startVendor(answer)
  await using gateway = await startGateway({
    providers: { v: { kind, base_url: vendor.url, key: 'vendor-key', quirks: { passthrough } } },
    models: { 'v/m': {} },
  })
  const inPath = isStream ? 'streamGenerateContent?alt=sse' : 'generateContent'
  const url = api === 'contentgen' ? path + inPath : path
  const json = api === 'contentgen' ? body : { ...body, model: 'v/m', stream: isStream }
  const response = await gateway.call(url, { json })
  const text = await response.text()
  await vendor.stop()
  return { status: response.status, type: response.headers.get('content-type') ?? '', text }
}

const MODES = NAMES.flatMap((api) => [true, false].map((passthrough) => [api, passthrough] as const))

describe('a stream that is labelled as JSON', () => {
  const headers = { 'content-type': 'application/json' }

  it.each(MODES)('of %s is a stream, with passthrough %p', async (api, passthrough) => {
    for (const before of ['', ': comment\n\n', '\r\n', '\uFEFF']) {
      const { status, type, text } = await answered(
        api,
        stream([before + APIS[api].events], { done: false, headers }),
        true,
        passthrough,
      )
      expect([status, type]).toEqual([200, 'text/event-stream; charset=utf-8'])
      expect(text).toContain('Hello')
      expect(text).not.toMatch(/event: error|"error":\{/)
    }
  })

  it.each(MODES)('of %s is a whole answer where it is JSON, with passthrough %p', async (api, passthrough) => {
    for (const before of ['', ' \n']) {
      const answer = whole(before + JSON.stringify(APIS[api].whole))
      const { status, text } = await answered(api, answer, true, passthrough)
      expect(status).toBe(200)
      expect(text).toContain('Hello')
    }
  })
})

describe('a whole answer with a content-length on a connection that stays open', () => {
  it.each(MODES)('of %s ends by its length, with passthrough %p', async (api, passthrough) => {
    for (const isStream of [false, true]) {
      for (const type of ['application/json', 'text/event-stream']) {
        const open: Answer = async (wire) => {
          const headers = { 'content-type': type, connection: 'close' } // it says so, and does not
          await whole(APIS[api].whole, { headers })(wire)
          await wire.aborted
        }
        const { status, text } = await answered(api, open, isStream, passthrough)
        expect(status).toBe(200)
        expect(text).toContain('Hello')
      }
    }
  })
})

describe('an answer without content', () => {
  const EMPTY = { ...RESPONSE, output: [] }
  const usage = (output_tokens: number) => ({ usage: { input_tokens: 3, output_tokens, total_tokens: 3 } })
  const completed = (response: object) => events({ type: 'response.completed', sequence_number: 1, response } as never)

  it.each([
    ['messages', MESSAGE, events(START, STOP)],
    ['messages', { ...MESSAGE, stop_reason: null }, events(STOP)],
    ['responses', EMPTY, completed(EMPTY)],
    ['responses', { ...EMPTY, ...usage(0) }, completed({ ...EMPTY, ...usage(0) })],
  ] as const)('of %s is not complete: %j', async (api, body, source) => {
    for (const passthrough of [true, false]) {
      expect((await answered(api, whole(body), false, passthrough)).status).toBe(502)
      const { status, text } = await answered(api, stream([source], { done: false }), true, passthrough)
      expect(status === 502 || text.includes('event: error')).toBe(true)
      expect(text).not.toContain('message_stop')
      expect(text).not.toContain('response.completed')
    }
  })

  it.each([
    ['messages', { ...MESSAGE, stop_reason: 'end_turn' }, events(START, FINAL, STOP)],
    ['responses', { ...EMPTY, ...usage(1) }, completed({ ...EMPTY, ...usage(1) })],
    [
      'responses',
      { ...EMPTY, status: 'incomplete' },
      events({
        type: 'response.incomplete',
        sequence_number: 1,
        response: { ...EMPTY, status: 'incomplete' },
      } as never),
    ],
  ] as const)('of %s is complete where the vendor says why, or what it cost: %j', async (api, body, source) => {
    for (const passthrough of [true, false]) {
      expect((await answered(api, whole(body), false, passthrough)).status).toBe(200)
      const { status, text } = await answered(api, stream([source], { done: false }), true, passthrough)
      expect(status).toBe(200)
      expect(text).not.toContain('event: error')
    }
  })
})

describe('a final that a Messages vendor repeats', () => {
  it.each([true, false])('reaches the client once, with passthrough %p', async (passthrough) => {
    const again = { ...FINAL, usage: { output_tokens: 9 } }
    const source = events(START, ...BLOCK, FINAL, again, FINAL, STOP)
    const { text } = await answered('messages', stream([source], { done: false }), true, passthrough)
    expect(text.split('event: message_delta').length - 1).toBe(1)
    expect(text.split('event: message_stop').length - 1).toBe(1)
  })
})
