/** Guards through the whole gateway: what they block, replace and restore, in each chat API, whole and streamed. */
import { afterEach, describe, expect, it } from 'bun:test'
import type { GuardConfig } from '../src/config/schema/guard-schema.ts'
import { CHAT_APIS as APIS, type ChatApi as Api, events, type Json } from './kit/chat-apis.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { chunk, completion, startVendor, stream, usageChunk, type Vendor, whole } from './kit/vendor.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const SECRET = 'project-falcon'
const NO_SECRETS: GuardConfig = { kind: 'patterns', on: ['input'], patterns: [SECRET], action: 'block' }
const NO_LEAKS: GuardConfig = { ...NO_SECRETS, on: ['output'] }
const PRIVATE: GuardConfig = { kind: 'redact', restore: true }

type Setup = { gateway: TestGateway; vendor: Vendor }

async function start(guards: Record<string, GuardConfig>, named = Object.keys(guards)): Promise<Setup> {
  const vendor = startVendor()
  const gateway = await startGateway({
    guards,
    providers: { v: { base_url: vendor.url, key: 'sk-vendor' } },
    models: {
      'v/m': {
        families: ['chatcompat', 'chatcompat-response', 'messages-compat', 'contentgen-compat', 'embeddings'],
        targets: [{ provider: 'v', model: 'vendor-model' }],
        guards: named,
      },
      'sandbox/rerank': { families: ['rerank'], guards: named },
      'v/free': { targets: [{ provider: 'v', model: 'vendor-model' }] },
    },
  })
  closing.push(
    () => vendor.stop(),
    () => gateway[Symbol.asyncDispose](),
  )
  return { gateway, vendor }
}

const ask = ({ gateway }: Setup, api: Api, text: string, isStream: boolean) =>
  gateway.call(api.path(isStream), { json: api.body(text, isStream) })

/** A streamed answer of these texts. */
const streamed = (...texts: string[]) =>
  stream([...texts.map((content) => chunk({ content })), chunk({}, 'stop'), usageChunk()])

describe('a guard that blocks a request', () => {
  for (const api of APIS)
    for (const isStream of [false, true])
      it(`refuses it in the form of ${api.name}${isStream ? ', streamed' : ''}, and nothing is sent`, async () => {
        const setup = await start({ 'no-secrets': NO_SECRETS })
        const response = await ask(setup, api, `What is Project-Falcon about?`, isStream)
        const body = await response.text()
        expect(setup.vendor.requests).toHaveLength(0)
        expect(body).not.toMatch(/falcon/i)
        if (api.name === 'contentgen') {
          expect(response.status).toBe(200)
          expect(body).toContain('"blockReason":"BLOCKLIST"')
        } else {
          expect(response.status).toBe(400)
          expect(body).toContain('The guard \\"no-secrets\\" blocked the content of the request.')
        }
      })

  it('returns content_blocked, and settles the call without a charge', async () => {
    const setup = await start({ 'no-secrets': NO_SECRETS })
    const response = await setup.gateway.chat({ model: 'v/m', messages: [{ role: 'user', content: SECRET }] })
    expect(response.status).toBe(400)
    expect(response.headers.get('x-should-retry')).toBe('false')
    expect(await response.json()).toEqual({
      error: {
        message: 'The guard "no-secrets" blocked the content of the request.',
        type: 'invalid_request_error',
        param: null,
        code: 'content_blocked',
      },
    })
    expect(setup.gateway.logged()).toContain('"guards":"no-secrets input blocked"')
    expect(setup.gateway.logged()).not.toContain(SECRET)
  })

  it('lets other requests pass, and those of models that do not name it', async () => {
    const setup = await start({ 'no-secrets': NO_SECRETS })
    const ok = await setup.gateway.chat({ model: 'v/m', messages: [{ role: 'user', content: 'Hello' }] })
    expect(ok.status).toBe(200)
    const free = await setup.gateway.chat({ model: 'v/free', messages: [{ role: 'user', content: SECRET }] })
    expect(free.status).toBe(200)
    expect(setup.vendor.requests).toHaveLength(2)
  })

  const texts: [string, object][] = [
    [
      'the system prompt',
      {
        messages: [
          { role: 'system', content: SECRET },
          { role: 'user', content: 'Hi' },
        ],
      },
    ],
    ['a part of a message', { messages: [{ role: 'user', content: [{ type: 'text', text: `a ${SECRET}` }] }] }],
    [
      'the description of a tool',
      {
        messages: [{ role: 'user', content: 'Hi' }],
        tools: [{ type: 'function', function: { name: 'f', description: SECRET, parameters: { type: 'object' } } }],
      },
    ],
    [
      'escaped arguments of a tool',
      {
        messages: [
          { role: 'user', content: 'Hi' },
          {
            role: 'assistant',
            content: null,
            tool_calls: [
              { id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":"project\\u002dfalcon"}' } },
            ],
          },
          { role: 'tool', tool_call_id: 'c', content: 'ok' },
        ],
      },
    ],
    [
      'the result of a tool',
      {
        messages: [
          { role: 'user', content: 'Hi' },
          {
            role: 'assistant',
            content: null,
            tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
          },
          { role: 'tool', tool_call_id: 'c', content: `found ${SECRET}` },
        ],
      },
    ],
    [
      'the address of an image',
      {
        messages: [
          { role: 'user', content: [{ type: 'image_url', image_url: { url: `https://x.test/${SECRET}.png` } }] },
        ],
      },
    ],
  ]
  for (const [where, body] of texts)
    it(`finds the text in ${where}`, async () => {
      const setup = await start({ 'no-secrets': NO_SECRETS })
      const response = await setup.gateway.chat({ model: 'v/m', ...body })
      expect(response.status).toBe(400)
      expect(setup.vendor.requests).toHaveLength(0)
    })

  it('checks embeddings, rerank, text completions and counts of tokens', async () => {
    const setup = await start({ 'no-secrets': NO_SECRETS })
    const calls: [string, object][] = [
      ['/v1/embeddings', { model: 'v/m', input: ['one', `two ${SECRET}`] }],
      ['/v1/rerank', { model: 'sandbox/rerank', query: 'q', documents: ['one', { text: SECRET }] }],
      ['/v1/completions', { model: 'v/m', prompt: ['one', SECRET] }],
      ['/v1/messages/count_tokens', { model: 'v/m', messages: [{ role: 'user', content: SECRET }] }],
    ]
    for (const [path, json] of calls) {
      const response = await setup.gateway.call(path, { json })
      expect([path, response.status, await response.text()]).toEqual([path, 400, expect.stringContaining('no-secrets')])
    }
    const tokens = await setup.gateway.call('/v1/embeddings', { json: { model: 'v/m', input: [[1, 2, 3]] } })
    expect(await tokens.json()).toMatchObject({ error: { code: 'unsupported_value', param: 'input' } })
    expect(setup.vendor.requests).toHaveLength(0)
  })

  it('only records in mode observe', async () => {
    const setup = await start({ watch: { ...NO_SECRETS, mode: 'observe' } })
    const response = await setup.gateway.chat({ model: 'v/m', messages: [{ role: 'user', content: SECRET }] })
    expect(response.status).toBe(200)
    expect(setup.vendor.requests[0]?.body).toContain(SECRET)
    expect(setup.gateway.logged()).toContain('"guards":"watch input would_block"')
  })
})

describe('a guard that blocks an answer', () => {
  const answer = `The name is ${SECRET}, as you know.`
  for (const api of APIS) {
    it(`ends a whole answer of ${api.name} as a content filter does`, async () => {
      const setup = await start({ leaks: NO_LEAKS })
      setup.vendor.answer(whole(completion(answer)))
      const response = await ask(setup, api, 'Hello', false)
      const body = await response.text()
      expect(response.status).toBe(200)
      expect(body).not.toContain('falcon')
      expect(body).toMatch(api.end)
    })

    it(`never sends a part of it in ${api.name}, wherever the stream is cut`, async () => {
      const setup = await start({ leaks: NO_LEAKS })
      const from = answer.indexOf(SECRET)
      for (let cut = from - 1; cut <= from + SECRET.length + 1; cut++) {
        setup.vendor.answer(streamed(answer.slice(0, cut), answer.slice(cut)))
        const body = await (await ask(setup, api, 'Hello', true)).text()
        expect('The name is ').toStartWith(api.textOf(body))
        expect(body).not.toMatch(/project|falcon/)
        expect(body).toMatch(api.end)
      }
      setup.vendor.answer(streamed(...answer))
      expect(api.textOf(await (await ask(setup, api, 'Hello', true)).text())).toBe('The name is ')
    })

    it(`passes an answer of ${api.name} that only begins like it`, async () => {
      const setup = await start({ leaks: NO_LEAKS })
      for (const text of ['a project-', 'a project-falco', 'project-falco project-fal', 'no match 😀']) {
        setup.vendor.answer(streamed(...text), whole(completion(text)))
        expect(api.textOf(await (await ask(setup, api, 'Hello', true)).text())).toBe(text)
        expect(api.textOf(await (await ask(setup, api, 'Hello', false)).text())).toBe(text)
      }
    })
  }

  it('counts what the provider has sent until then', async () => {
    const setup = await start({ leaks: NO_LEAKS })
    setup.vendor.answer(streamed('The name is ', SECRET, ', as you know.'))
    const body = { model: 'v/m', stream: true, messages: [{ role: 'user', content: 'Hi' }] }
    const text = await (await setup.gateway.chat({ ...body, stream_options: { include_usage: true } })).text()
    const usage = events(text).at(-1)?.usage
    expect(usage.completion_tokens).toBeGreaterThan(0)
    // The call is settled once its tokens are counted, which another thread does.
    const isLogged = () => setup.gateway.logged().includes('"guards":"leaks output blocked"')
    while (!isLogged()) await new Promise((resolve) => setImmediate(resolve))
  })

  it('finds it in arguments of tools, also where they are escaped, and never sends a part', async () => {
    const setup = await start({ leaks: NO_LEAKS })
    const args = '{"note":"say \\"project\\u002dfal\\u0063on\\"","n":1}'
    const call = (text: string, more: object = {}) =>
      chunk({ tool_calls: [{ index: 0, ...more, function: { name: 'f', arguments: text } }] })
    for (let cut = 1; cut < args.length; cut++) {
      setup.vendor.answer(
        stream([
          call(args.slice(0, cut), { id: 'c', type: 'function' }),
          call(args.slice(cut)),
          chunk({}, 'tool_calls'),
        ]),
      )
      const response = await setup.gateway.chat({
        model: 'v/m',
        stream: true,
        messages: [{ role: 'user', content: 'x' }],
      })
      const sent = events(await response.text()).flatMap(({ choices }) => choices)
      const text = sent
        .flatMap(({ delta }) => delta.tool_calls ?? [])
        .map((one: Json) => one.function.arguments ?? '')
        .join('')
      expect('{"note":"say \\"').toStartWith(text)
      expect(sent.at(-1).finish_reason).toBe('content_filter')
    }
  })

  it('replaces instead where it is told to', async () => {
    const setup = await start({ mask: { ...NO_LEAKS, action: 'replace', replacement: '***' } })
    setup.vendor.answer(streamed(...answer), whole(completion(answer)))
    const api = APIS[0] as Api
    const expected = 'The name is ***, as you know.'
    expect(api.textOf(await (await ask(setup, api, 'Hello', true)).text())).toBe(expected)
    expect(api.textOf(await (await ask(setup, api, 'Hello', false)).text())).toBe(expected)
  })
})

describe('a guard that redacts and restores', () => {
  const prompt =
    'Mail jane.doe@example.com and bob@example.org, then jane.doe@example.com again. My card: 4111 1111 1111 1111.'
  const redacted = 'Mail [EMAIL_1] and [EMAIL_2], then [EMAIL_1] again. My card: [CARD_1].'
  for (const api of APIS)
    it(`keeps values from the provider, and puts them back into answers of ${api.name}`, async () => {
      const setup = await start({ private: PRIVATE })
      const reply = 'I wrote to [EMAIL_1], [EMAIL_2] and [EMAIL_3] with [CARD_1][CARD_1'
      const expected = 'I wrote to jane.doe@example.com, bob@example.org and [EMAIL_3] with 4111 1111 1111 1111[CARD_1'
      setup.vendor.answer(whole(completion(reply)), streamed(...reply))
      expect(api.textOf(await (await ask(setup, api, prompt, false)).text())).toBe(expected)
      expect(api.textOf(await (await ask(setup, api, prompt, true)).text())).toBe(expected)
      for (const { body } of setup.vendor.requests) {
        expect(body).toContain(redacted)
        expect(body).not.toMatch(/jane|bob|4111/)
      }
      expect(setup.gateway.logged()).not.toMatch(/jane|bob@|4111/)
    })

  it('does not use a placeholder that the client has written', async () => {
    const setup = await start({ private: PRIVATE })
    setup.vendor.answer(whole(completion('[EMAIL_1] [EMAIL_2]')))
    const response = await setup.gateway.chat({
      model: 'v/m',
      messages: [{ role: 'user', content: 'Explain [EMAIL_1] to a@example.com' }],
    })
    expect(setup.vendor.requests[0]?.body).toContain('Explain [EMAIL_1] to [EMAIL_2]')
    expect(await response.json()).toMatchObject({ choices: [{ message: { content: '[EMAIL_1] a@example.com' } }] })
  })
})
