/** Guards of kind schema through the whole gateway: answers that fit, that are repaired, and that are blocked. */
import { afterEach, describe, expect, it } from 'bun:test'
import type { GuardConfig } from '../src/config/schema/guard-schema.ts'
import { CHAT_APIS, type ChatApi, events } from './kit/chat-apis.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { chunk, completion, failure, startVendor, stream, usageChunk, type Vendor, whole } from './kit/vendor.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string' }, mail: { type: 'string', format: 'email' } },
  required: ['city'],
  additionalProperties: false,
}
const CITY: GuardConfig = { kind: 'schema', schema: SCHEMA }
const FITS = '{"city":"Rome"}'
const MISFITS = ['Rome', '{"town":"Rome"}', '{"city":1}', `${FITS} `.repeat(2), `Here it is: ${FITS}`, '[', 'null', '']
const fenced = (text: string) => `\`\`\`json\n${text}\n\`\`\`\n`

type Setup = { gateway: TestGateway; vendor: Vendor }

async function start(guards: Record<string, GuardConfig>): Promise<Setup> {
  const vendor = startVendor()
  const gateway = await startGateway({
    guards,
    providers: { v: { base_url: vendor.url, key: 'sk-vendor' } },
    models: {
      'v/m': {
        families: ['chatcompat', 'chatcompat-response', 'messages-compat', 'contentgen-compat'],
        targets: [{ provider: 'v', model: 'vendor-model' }],
        guards: Object.keys(guards),
      },
    },
  })
  closing.push(
    () => vendor.stop(),
    () => gateway[Symbol.asyncDispose](),
  )
  return { gateway, vendor }
}

const [CHAT] = CHAT_APIS as [ChatApi]
const ask = async ({ gateway }: Setup, isStream: boolean, api = CHAT) => {
  const response = await gateway.call(api.path(isStream), { json: api.body('Which city?', isStream) })
  expect(response.status).toBe(200)
  return await response.text()
}
const answerOf = (text: string, isStream: boolean) =>
  isStream
    ? stream([...[...text].map((content) => chunk({ content })), chunk({}, 'stop'), usageChunk()])
    : whole(completion(text))
const toolCall = {
  id: 'c',
  type: 'function' as const,
  function: { name: 'f', arguments: '{"a":1}' },
}
const logged = async ({ gateway }: Setup, text: string) => {
  // The call is settled once its tokens are counted, which another thread does.
  while (!gateway.logged().includes(text)) await new Promise((resolve) => setImmediate(resolve))
}

describe('a guard of kind schema', () => {
  for (const api of CHAT_APIS)
    for (const isStream of [false, true]) {
      const name = `${api.name}${isStream ? ', streamed' : ''}`

      it(`passes an answer that fits, and takes off a code fence, of ${name}`, async () => {
        const setup = await start({ city: CITY })
        setup.vendor.answer(answerOf(FITS, isStream), answerOf(fenced(FITS), isStream))
        expect(api.textOf(await ask(setup, isStream, api))).toBe(FITS)
        expect(api.textOf(await ask(setup, isStream, api))).toBe(FITS)
        await logged(setup, '"guards":"city output replaced"')
      })

      it(`blocks an answer that does not fit, of which nothing is sent, of ${name}`, async () => {
        const setup = await start({ city: CITY })
        for (const text of MISFITS) {
          setup.vendor.answer(answerOf(text, isStream))
          const body = await ask(setup, isStream, api)
          expect(api.textOf(body)).toBe('')
          expect(body).not.toContain('Rome')
          expect(body).toMatch(api.end)
        }
        await logged(setup, '"guards":"city output blocked"')
        expect(setup.vendor.requests).toHaveLength(MISFITS.length)
      })

      it(`asks once for an answer that fits, of ${name}`, async () => {
        const setup = await start({ city: { ...CITY, repair: true } })
        setup.vendor.answer(answerOf('{"town":"Rome"}', isStream), answerOf(fenced(FITS), false))
        expect(api.textOf(await ask(setup, isStream, api))).toBe(FITS)
        await logged(setup, '"guards":"city output replaced"')
        const { messages, stream: isStreamed } = JSON.parse(setup.vendor.requests[1]?.body ?? '')
        expect(isStreamed ?? false).toBe(false)
        expect(messages).toMatchObject([
          { role: 'user', content: 'Which city?' },
          { role: 'assistant', content: '{"town":"Rome"}' },
          { role: 'user', content: expect.stringContaining('must have required properties city') },
        ])
        setup.vendor.answer(answerOf('Rome', isStream), answerOf('Rome, I said', false))
        expect(await ask(setup, isStream, api)).toMatch(api.end)
        expect(setup.vendor.requests).toHaveLength(4)
        await logged(setup, '"guards":"city output blocked"')
      })
    }

  for (const isStream of [false, true]) {
    const how = isStream ? ' in a stream' : ''

    it(`does not check an answer that calls a tool${how}`, async () => {
      const setup = await start({ city: CITY })
      const delta = chunk({ content: 'Let me see.', tool_calls: [{ index: 0, ...toolCall }] })
      setup.vendor.answer(
        isStream
          ? stream([chunk({ content: 'Well. ' }), delta, chunk({}, 'tool_calls')])
          : whole({
              ...completion('x'),
              choices: [
                {
                  index: 0,
                  finish_reason: 'tool_calls',
                  message: { role: 'assistant', content: 'Well. Let me see.', tool_calls: [toolCall] },
                },
              ],
            }),
      )
      const body = await ask(setup, isStream)
      expect(CHAT.textOf(body)).toBe('Well. Let me see.')
      expect(body).toContain('"finish_reason":"tool_calls"')
    })

    it(`changes nothing in mode observe${how}`, async () => {
      const setup = await start({ city: { ...CITY, mode: 'observe', repair: true } })
      for (const text of [fenced(FITS), 'Rome', `a${'b'.repeat(1_000_001)}`]) {
        setup.vendor.answer(isStream ? stream([chunk({ content: text }), chunk({}, 'stop')]) : whole(completion(text)))
        expect(CHAT.textOf(await ask(setup, isStream))).toBe(text)
      }
      await logged(setup, '"guards":"city output would_replace"')
      await logged(setup, '"guards":"city output would_block"')
      expect(setup.vendor.requests).toHaveLength(3)
    })

    it(`holds back no more than a million characters${how}`, async () => {
      const setup = await start({ city: { ...CITY, repair: true } })
      const text = JSON.stringify({ city: 'x'.repeat(1_000_000) })
      setup.vendor.answer(isStream ? stream([chunk({ content: text }), chunk({}, 'stop')]) : whole(completion(text)))
      expect(await ask(setup, isStream)).toMatch(CHAT.end)
      expect(setup.vendor.requests).toHaveLength(1)
    })

    it(`checks values in place of placeholders, and asks without them${how}`, async () => {
      const setup = await start({ private: { kind: 'redact', restore: true }, city: { ...CITY, repair: true } })
      setup.vendor.answer(
        answerOf('{"city":"Rome","mail":"[EMAIL_1]"}', isStream),
        answerOf('{"mail":"[EMAIL_1]"}', isStream),
        answerOf('{"city":"Rome","mail":"[EMAIL_1]"}', false),
      )
      for (const _ of [1, 2]) {
        const json = { model: 'v/m', stream: isStream, messages: [{ role: 'user', content: 'ann@example.com' }] }
        const body = await (await setup.gateway.chat(json)).text()
        expect(CHAT.textOf(body)).toBe('{"city":"Rome","mail":"ann@example.com"}')
      }
      for (const { body } of setup.vendor.requests) expect(body).not.toContain('example.com')
    })

    it(`blocks where the model cannot be asked, or another guard blocks what it answers${how}`, async () => {
      const setup = await start({
        city: { ...CITY, repair: true },
        leaks: { kind: 'patterns', on: ['output'], patterns: ['falcon'] },
      })
      setup.vendor.answer(answerOf('Rome', isStream), failure(400))
      expect(await ask(setup, isStream)).toMatch(CHAT.end)
      setup.vendor.answer(answerOf('Rome', isStream), answerOf('{"city":"falcon"}', false))
      const body = await ask(setup, isStream)
      expect(body).toMatch(CHAT.end)
      expect(body).not.toContain('falcon')
    })

    it(`charges the repair to the same token${how}`, async () => {
      const setup = await start({ city: { ...CITY, repair: true } })
      const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
      setup.vendor.answer(
        isStream
          ? stream([chunk({ content: 'Rome' }), chunk({}, 'stop'), usageChunk(usage)])
          : whole(completion('Rome', { usage })),
        whole(completion(FITS, { usage })),
      )
      await ask(setup, isStream)
      const used = async () => (await setup.gateway.instance.usage({ limit: 1 }))[0]
      let sum = await used()
      while (sum?.requests !== 2) {
        setup.gateway.clock.advance(60) // the ledger appends in batches
        await new Promise((resolve) => setImmediate(resolve))
        sum = await used()
      }
      expect(sum).toMatchObject({ input_tokens: 20, output_tokens: 10 })
    })
  }

  it('sends what precedes a held text at once', async () => {
    const setup = await start({ city: CITY })
    setup.vendor.answer(stream([chunk({ reasoning_content: 'Hm.' }), chunk({ content: FITS }), chunk({}, 'stop')]))
    const deltas = events(await ask(setup, true)).flatMap(({ choices }) =>
      choices.map(({ delta }: { delta: object }) => delta),
    )
    expect(deltas).toMatchObject([{ role: 'assistant' }, { reasoning_content: 'Hm.' }, { content: FITS }])
  })

  it('checks a stream that ends without a finish reason', async () => {
    const setup = await start({ city: CITY })
    setup.vendor.answer(stream([chunk({ content: 'Rome' })]))
    expect(await ask(setup, true)).not.toContain('Rome')
  })

  it('is no slower by the patterns of a schema', async () => {
    const pattern = { type: 'object', properties: { city: { type: 'string', pattern: '^(a+)+$' } } }
    const setup = await start({ city: { kind: 'schema', schema: pattern } })
    setup.vendor.answer(whole(completion(JSON.stringify({ city: `${'a'.repeat(100_000)}b` }))))
    expect(await ask(setup, false)).toMatch(CHAT.end)
  })
})
