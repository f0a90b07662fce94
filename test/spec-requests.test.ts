/**
 * Tables 2.2, 2.3 and 8 of the specification, row by row and on both sides of every limit, through the whole gateway:
 * with the sandbox's models A, B and C, and with equal models of a provider that records its requests.
 */
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { SANDBOX_MODELS } from '../packages/sandbox/src/models.ts'
import type { ModelConfig } from '../src/config/schema/schema.ts'
import { startGateway } from './kit/gateway.ts'
import { startVendor } from './kit/vendor.ts'

type Json = { [name: string]: unknown }

/** The columns of table 2.3; it omits B's defaults, which equal A's (docs/manual/reference/sandbox.md). */
const PLAIN = { frequency_penalty: 0, presence_penalty: 0, temperature: 1, top_p: 1 }
const MODELS = [
  { letter: 'A', name: 'general', maximum: 32_768, defaults: { max_tokens: 32_768, ...PLAIN }, hasExtra: false },
  { letter: 'B', name: 'compact', maximum: 65_536, defaults: { max_tokens: 65_536, ...PLAIN }, hasExtra: false },
  { letter: 'C', name: 'vision', maximum: 4096, defaults: {} as Json, hasExtra: true },
]
const EXTRA = ['repetition_penalty', 'thinking_enabled', 'web_search']

const vendor = startVendor()
const twinOf = (name: string): ModelConfig => {
  const { limits = {}, fields = [], capabilities = {} } = SANDBOX_MODELS[`sandbox/${name}`] ?? {}
  return { limits, fields, capabilities }
}
const gateway = await startGateway({
  providers: { v: { base_url: vendor.url, fields: { allow: EXTRA } } },
  models: Object.fromEntries(MODELS.map(({ name }) => [`v/${name}`, twinOf(name)])),
})
afterAll(async () => {
  await gateway[Symbol.asyncDispose]()
  await vendor.stop()
})
beforeEach(() => {
  vendor.requests.length = 0
})

const MESSAGES = [{ role: 'user', content: '@sandbox tokens=2' }]
const requestFor = (model: string, more: Json = {}): Json => ({ model, messages: MESSAGES, ...more })

/** The request that reached the provider, without the fields of every request. */
async function received(name: string, more: Json): Promise<Json> {
  const answer = await gateway.chat(requestFor(`v/${name}`, more))
  expect([answer.status, more]).toEqual([200, more])
  await answer.text()
  const { model: _, messages: __, ...rest } = vendor.requests.at(-1)?.json() ?? {}
  vendor.requests.length = 0
  return rest
}

async function errorOf(model: string, more: Json) {
  const answer = await gateway.chat(requestFor(model, more))
  const { error } = await answer.json()
  return { status: answer.status, code: error?.code, param: error?.param, message: error?.message ?? '' }
}

/** Rejected for the sandbox's model and for its equal alike, before the provider is called. */
async function expectRejected(name: string, more: Json, expected: { code: string; param: string; includes?: string }) {
  for (const model of [`sandbox/${name}`, `v/${name}`]) {
    const { status, code, param, message } = await errorOf(model, more)
    expect({ more, status, code, param }).toEqual({ more, status: 400, code: expected.code, param: expected.param })
    if (expected.includes) expect(message).toContain(expected.includes)
  }
  expect(vendor.requests).toEqual([])
}

async function expectAccepted(name: string, more: Json) {
  const answer = await gateway.chat(requestFor(`sandbox/${name}`, more))
  expect([more, answer.status]).toEqual([more, 200])
  await answer.text()
}

/** Values of every type but those that the caller excludes. */
const NOT_A_NUMBER = ['1', true, [], [1], {}]
const NOT_A_BOOLEAN = ['true', 0, 1, [], {}]
const NOT_A_STRING = [5, true, {}]

for (const { letter, name, maximum, defaults, hasExtra } of MODELS) {
  /** Field, a value just below the range, its ends, the range in the message, a value just above it. */
  const ranges: [string, number[], number[], string, number[]][] = [
    ['frequency_penalty', [-2.01, -3], [-2, 0, 0.5, 2], 'from -2 to 2', [2.01, 3]],
    ['presence_penalty', [-2.01, -3], [-2, 0, 0.5, 2], 'from -2 to 2', [2.01, 3]],
    ['temperature', [-0.01, -1], [0, 0.7, 2], 'from 0 to 2', [2.01, 3]],
    ['top_p', [-0.01, -1], [0, 0.9, 1], 'from 0 to 1', [1.01, 2]],
  ]

  describe(`2.2 and 8, chat model ${letter}`, () => {
    test.each(ranges)(
      '%s: numbers of its range reach the provider, others are rejected',
      async (field, below, inside, includes, above) => {
        for (const value of inside) {
          await expectAccepted(name, { [field]: value })
          expect(await received(name, { [field]: value })).toMatchObject({ [field]: value })
        }
        for (const value of [...below, ...above]) {
          await expectRejected(name, { [field]: value }, { code: 'invalid_value', param: field, includes })
        }
        for (const value of NOT_A_NUMBER) {
          await expectRejected(name, { [field]: value }, { code: 'invalid_type', param: field, includes: 'a number' })
        }
      },
    )

    test(`max_tokens: 1 to ${maximum}, a whole number`, async () => {
      for (const value of [1, 2, maximum - 1, maximum]) {
        await expectAccepted(name, { max_tokens: value })
        expect(await received(name, { max_tokens: value })).toMatchObject({ max_tokens: value })
      }
      const param = 'max_tokens'
      for (const value of [0, -1]) {
        await expectRejected(name, { max_tokens: value }, { code: 'invalid_value', param, includes: 'at least 1' })
      }
      for (const value of [maximum + 1, 10 ** 9]) {
        const includes = `from 1 to ${maximum}`
        await expectRejected(name, { max_tokens: value }, { code: 'invalid_value', param, includes })
      }
      for (const value of [1.5, '1', true, [], {}]) {
        await expectRejected(name, { max_tokens: value }, { code: 'invalid_type', param, includes: 'an integer' })
      }
    })

    test('messages: required, an array of at least 1 item', async () => {
      await expectAccepted(name, { messages: MESSAGES })
      await expectAccepted(name, { messages: Array(200).fill(MESSAGES[0]) })
      const param = 'messages'
      await expectRejected(name, { messages: [] }, { code: 'invalid_value', param, includes: 'at least 1 item' })
      for (const messages of [undefined, null]) {
        await expectRejected(name, { messages }, { code: 'missing_required_parameter', param })
      }
      for (const messages of ['hi', {}, 1, true]) {
        await expectRejected(name, { messages }, { code: 'invalid_type', param, includes: 'an array' })
      }
      for (const item of [null, 'hi', 1, []]) {
        const messages = [...MESSAGES, item]
        await expectRejected(name, { messages }, { code: 'invalid_type', param: 'messages[1]', includes: 'an object' })
      }
    })

    test('model: the id of this model, in full or without its prefix, is returned in full', async () => {
      const { secret } = await gateway.instance.tokens.issue({ name: `only-${name}`, models: [`sandbox/${name}`] })
      const headers = { authorization: `Bearer ${secret}` }
      for (const model of [`sandbox/${name}`, name]) {
        const answer = await gateway.chat(requestFor(model), { headers })
        expect((await answer.json()).model).toBe(`sandbox/${name}`)
      }
      for (const model of [`sandbox/${name}x`, `sandbox/${name.toUpperCase()}`, `sandbox%2F${name}`, ` ${name}`, '/']) {
        expect(await errorOf(model, {})).toMatchObject({ status: 404, code: 'model_not_found', param: 'model' })
      }
      for (const model of [undefined, null]) {
        const expected = { status: 400, code: 'missing_required_parameter', param: 'model' }
        expect(await errorOf(name, { model })).toMatchObject(expected)
      }
      for (const model of NOT_A_STRING) {
        expect(await errorOf(name, { model })).toMatchObject({ status: 400, code: 'invalid_type', param: 'model' })
      }
    })

    test('stream: true is a stream; false, null and none are not; other values are rejected', async () => {
      const typeOf = async (more: Json) => {
        const answer = await gateway.chat(requestFor(`sandbox/${name}`, more))
        await answer.text()
        return answer.headers.get('content-type')?.split(';')[0]
      }
      expect(await typeOf({ stream: true })).toBe('text/event-stream')
      for (const more of [{ stream: false }, { stream: null }, {}]) expect(await typeOf(more)).toBe('application/json')
      for (const stream of NOT_A_BOOLEAN) {
        await expectRejected(name, { stream }, { code: 'invalid_type', param: 'stream', includes: 'a boolean' })
      }
    })

    test('the role of a message: required; system, user or assistant', async () => {
      for (const role of ['system', 'user', 'assistant']) {
        await expectAccepted(name, { messages: [{ role, content: 'Hello' }] })
        await gateway.chat(requestFor(`v/${name}`, { messages: [{ role, content: 'Hello' }] }))
        expect(vendor.requests.at(-1)?.json().messages).toEqual([{ role, content: 'Hello' }])
      }
      vendor.requests.length = 0
      const param = 'messages[0].role'
      for (const role of ['robot', 'User', '']) {
        const includes = '"system", "developer", "user", "assistant"'
        await expectRejected(name, { messages: [{ role, content: 'x' }] }, { code: 'invalid_value', param, includes })
      }
      for (const role of [undefined, null]) {
        await expectRejected(
          name,
          { messages: [{ role, content: 'x' }] },
          { code: 'missing_required_parameter', param },
        )
      }
      for (const role of NOT_A_STRING) {
        await expectRejected(name, { messages: [{ role, content: 'x' }] }, { code: 'invalid_type', param })
      }
    })

    test('the content of a message: required, a string (or parts)', async () => {
      for (const content of ['', 'Hello', 'x'.repeat(100_000), [{ type: 'text', text: 'Hello' }]]) {
        await expectAccepted(name, { messages: [{ role: 'user', content }, ...MESSAGES] })
      }
      const param = 'messages[0].content'
      for (const role of ['system', 'user']) {
        for (const content of [undefined, null]) {
          await expectRejected(name, { messages: [{ role, content }] }, { code: 'missing_required_parameter', param })
        }
      }
      await expectRejected(name, { messages: [{ role: 'assistant' }] }, { code: 'missing_required_parameter', param })
      for (const content of NOT_A_STRING) {
        const includes = 'a string or an array'
        await expectRejected(name, { messages: [{ role: 'user', content }] }, { code: 'invalid_type', param, includes })
      }
    })

    test('the body is a JSON object', async () => {
      for (const body of [[], [requestFor(name)], 'hi', 1, null]) {
        const answer = await gateway.chat(JSON.stringify(body))
        expect([answer.status, (await answer.json()).error.code]).toEqual([400, 'invalid_type'])
      }
    })
  })

  describe(`2.3, chat model ${letter}`, () => {
    test(`defaults: ${JSON.stringify(defaults)} and stream false reach the provider`, async () => {
      expect(await received(name, {})).toEqual(defaults)
      const { stream, stream_options, ...rest } = await received(name, { stream: true })
      expect([stream, stream_options, rest]).toEqual([true, { include_usage: true }, defaults])
    })

    test('a requested value replaces the default, and null requests nothing', async () => {
      for (const field of ['max_tokens', 'frequency_penalty', 'presence_penalty', 'temperature', 'top_p']) {
        expect(await received(name, { [field]: 1 })).toEqual({ ...defaults, [field]: 1 })
        expect(await received(name, { [field]: null })).toEqual(defaults)
      }
    })

    const given = { repetition_penalty: 1.3, thinking_enabled: true, web_search: { enable: true, unheard_of: [1] } }

    test(`extra fields: ${hasExtra ? 'repetition_penalty, thinking_enabled and web_search' : 'none'}`, async () => {
      await expectAccepted(name, given)
      expect(await received(name, given)).toEqual(hasExtra ? { ...defaults, ...given } : defaults)
      const answer = await gateway.chat({
        ...requestFor(`sandbox/${name}`, given),
        messages: [{ role: 'user', content: 'Why?' }],
      })
      const [{ message }] = (await answer.json()).choices
      expect(['reasoning_content' in message, 'annotations' in message]).toEqual([hasExtra, hasExtra])
      for (const field of EXTRA) expect(await received(name, { [field]: null })).toEqual(defaults)
    })

    /** Field, a rejected value, the code, the param. */
    const wrong: [string, unknown, string, string][] = [
      ['repetition_penalty', -0.01, 'invalid_value', 'repetition_penalty'],
      ['repetition_penalty', -1, 'invalid_value', 'repetition_penalty'],
      ...NOT_A_NUMBER.map((value): [string, unknown, string, string] => [
        'repetition_penalty',
        value,
        'invalid_type',
        'repetition_penalty',
      ]),
      ...NOT_A_BOOLEAN.map((value): [string, unknown, string, string] => [
        'thinking_enabled',
        value,
        'invalid_type',
        'thinking_enabled',
      ]),
      ['web_search', true, 'invalid_type', 'web_search'],
      ['web_search', 'on', 'invalid_type', 'web_search'],
      ['web_search', { enable: 'yes' }, 'invalid_type', 'web_search.enable'],
      ['web_search', { enable: 1 }, 'invalid_type', 'web_search.enable'],
    ]

    if (hasExtra) {
      test('repetition_penalty: a number, 0 or greater, without an upper bound', async () => {
        for (const repetition_penalty of [0, 0.5, 1, 2, 1e6]) {
          await expectAccepted(name, { repetition_penalty })
          expect(await received(name, { repetition_penalty })).toMatchObject({ repetition_penalty })
        }
      })

      test('thinking_enabled: false by default; true makes the model reason', async () => {
        for (const [more, thinks] of [
          [{}, false],
          [{ thinking_enabled: false }, false],
          [{ thinking_enabled: true }, true],
        ] as const) {
          const answer = await gateway.chat({
            ...requestFor(`sandbox/${name}`),
            ...more,
            messages: [{ role: 'user', content: 'Why?' }],
          })
          const { choices, usage } = await answer.json()
          expect('reasoning_content' in choices[0].message).toBe(thinks)
          expect(usage.completion_tokens_details.reasoning_tokens > 0).toBe(thinks)
        }
      })

      test('web_search: off unless its `enable` is true', async () => {
        for (const [web_search, searches] of [
          [{ enable: true }, true],
          [{ enable: false }, false],
          [{}, false],
        ] as const) {
          const messages = [{ role: 'user', content: 'What is new?' }]
          const answer = await gateway.chat({ model: `sandbox/${name}`, messages, web_search })
          expect('annotations' in (await answer.json()).choices[0].message).toBe(searches)
        }
      })

      test('an invalid value of an extra field returns an error that names the field', async () => {
        for (const [field, value, code, param] of wrong) await expectRejected(name, { [field]: value }, { code, param })
      })
    } else {
      test('the extra fields of model C are unknown, and ignored whatever their value', async () => {
        for (const [field, value] of wrong) {
          await expectAccepted(name, { [field]: value })
          expect(await received(name, { [field]: value })).toEqual(defaults)
        }
      })
    }

    test('an unknown field is ignored, whatever its value', async () => {
      for (const value of [1, 'x', null, { a: [] }]) {
        await expectAccepted(name, { frobnicate: value })
        expect(await received(name, { frobnicate: value })).toEqual(defaults)
      }
    })

    test(letter === 'B' ? 'text only: an image is refused by its place' : 'takes images', async () => {
      const content = [
        { type: 'text', text: 'Look.' },
        { type: 'image_url', image_url: { url: 'data:image/gif;base64,R0lGODlhAQABAAAAACw=' } },
      ]
      const messages = [{ role: 'user', content }]
      if (letter !== 'B') return expectAccepted(name, { messages })
      await expectRejected(name, { messages }, { code: 'unsupported_value', param: 'messages[0].content[1].type' })
    })
  })
}
