/** Conversations that leave a provider nothing to answer: refused with the client's path, before anything is sent. */
import { afterAll, beforeAll, describe, expect, it } from 'bun:test'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { startVendor, type Vendor, whole } from './kit/vendor.ts'

/** The kinds whose APIs take instructions apart from the conversation, or leave out what is empty. */
const KINDS = ['messages-compat', 'contentgen-compat', 'responses-compat', 'google-vertex', 'amazon-bedrock']
const OPTIONS: Record<string, object> = {
  'google-vertex': { options: { project: 'p', location: 'l' } },
  'amazon-bedrock': { options: { region: 'us-east-1' } },
}

let vendor: Vendor
let gateway: TestGateway
beforeAll(async () => {
  vendor = startVendor()
  vendor.otherwise(whole('{}'))
  const kinds = [...KINDS, 'chatcompat']
  gateway = await startGateway({
    sandbox: false,
    providers: Object.fromEntries(
      kinds.map((kind) => [kind, { kind, base_url: vendor.url, key: 'k', quirks: {}, ...OPTIONS[kind] }]),
    ),
    models: Object.fromEntries(kinds.map((kind) => [`${kind}/m`, {}])),
  } as never)
})
afterAll(async () => {
  await gateway[Symbol.asyncDispose]()
  await vendor.stop()
})

type Requested = { path: string; body: (model: string) => object }

const chat = (...messages: object[]): Requested => ({
  path: '/v1/chat/completions',
  body: (model) => ({ model, messages }),
})
const user = (content: unknown) => ({ role: 'user', content })
const messages = (...list: object[]): Requested => ({
  path: '/v1/messages',
  body: (model) => ({ model, max_tokens: 9, messages: list }),
})
const responses = (input: unknown): Requested => ({
  path: '/v1/responses',
  body: (model) => ({ model, store: false, input }),
})
const contents = (...list: object[]): Requested => ({
  path: '/v1beta/models/MODEL:generateContent',
  body: () => ({ contents: list }),
})

/** The status, the path in the error, and whether the provider received a request. */
async function outcomeOf(kind: string, { path, body }: Requested) {
  const before = vendor.requests.length
  const model = `${kind}/m`
  const response = await gateway.call(path.replace('MODEL', model), { json: body(model) })
  const text = await response.text()
  const [, param] = /\\"([^"]+)\\" must/.exec(text) ?? []
  return { status: response.status, param, isSent: vendor.requests.length > before }
}
const refused = (param: string) => ({ status: 400, param, isSent: false })
const SENT = { param: undefined, isSent: true }

const SYSTEM = { role: 'system', content: 'Be brief.' }
const EMPTY_TEXTS = [
  ['an empty string', ''],
  ['an empty list', []],
  ['one empty text', [{ type: 'text', text: '' }]],
] as const

describe('a user message without content', () => {
  for (const kind of KINDS.filter((one) => one !== 'responses-compat')) {
    for (const [what, content] of EMPTY_TEXTS) {
      it(`is refused for ${kind} where it is ${what}`, async () => {
        expect(await outcomeOf(kind, chat(user(content)))).toEqual(refused('messages[0].content'))
        expect(await outcomeOf(kind, chat(SYSTEM, user(content)))).toEqual(refused('messages[1].content'))
        const later = [user('Hello'), { role: 'assistant', content: 'Hi' }, user(content)]
        expect(await outcomeOf(kind, chat(...later))).toEqual(refused('messages[2].content'))
      })
    }

    it(`is refused for ${kind} with the path of the client's API`, async () => {
      expect(await outcomeOf(kind, responses(''))).toEqual(refused('input'))
      expect(await outcomeOf(kind, responses([user('')]))).toEqual(refused('input[0].content'))
      if (kind !== 'messages-compat')
        expect(await outcomeOf(kind, messages(user('')))).toEqual(refused('messages[0].content'))
      if (kind !== 'contentgen-compat')
        expect(await outcomeOf(kind, contents({ role: 'user', parts: [{ text: '' }] }))).toEqual(refused('contents[0]'))
    })

    it(`is sent to ${kind} once it has a text`, async () => {
      expect(await outcomeOf(kind, chat(SYSTEM, user('x')))).toMatchObject(SENT)
      const later = [user(''), { role: 'assistant', content: 'Hi' }, user('x')]
      expect(await outcomeOf(kind, chat(...later))).toMatchObject(SENT)
      expect(await outcomeOf(kind, chat(user('x'), user('')))).toMatchObject(SENT)
    })
  }

  it('is refused for messages-compat where it is only white space, which that API refuses', async () => {
    expect(await outcomeOf('messages-compat', chat(user(' \n')))).toEqual(refused('messages[0].content'))
    expect(await outcomeOf('contentgen-compat', chat(user(' \n')))).toMatchObject(SENT)
  })

  it('is sent to providers whose API takes it', async () => {
    for (const kind of ['chatcompat', 'responses-compat'])
      for (const [, content] of EMPTY_TEXTS) expect(await outcomeOf(kind, chat(user(content)))).toMatchObject(SENT)
  })
})

describe('a request with instructions only', () => {
  for (const kind of ['messages-compat', 'google-vertex', 'amazon-bedrock']) {
    it(`is refused for ${kind}`, async () => {
      expect(await outcomeOf(kind, chat(SYSTEM))).toEqual(refused('messages'))
      expect(await outcomeOf(kind, responses([{ role: 'developer', content: 'Be brief.' }]))).toEqual(refused('input'))
    })
  }

  it('is sent where the instructions can be part of the conversation', async () => {
    for (const kind of ['chatcompat', 'contentgen-compat', 'responses-compat'])
      expect(await outcomeOf(kind, chat(SYSTEM))).toMatchObject(SENT)
  })
})

describe('a conversation of which nothing is left', () => {
  const empty = { role: 'assistant', content: '' }

  for (const kind of KINDS) {
    it(`is refused for ${kind}`, async () => {
      expect(await outcomeOf(kind, chat(empty))).toEqual(refused('messages[0].content'))
    })
  }

  it('is refused where a contentgen client sends no content of any kind', async () => {
    for (const contentless of [{ role: 'model', parts: [{ text: '' }] }, { parts: [{ text: 'a', thought: true }] }])
      expect(await outcomeOf('chatcompat', contents(contentless))).toEqual(refused('contents'))
  })
})
