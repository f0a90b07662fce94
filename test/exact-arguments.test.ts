/**
 * Arguments of tools through every pair of dialects, whole and streamed, translated and passed through: the client's
 * history reaches the provider, and the provider's call the client, with each number as it was written.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { ProviderKind } from '../src/config/schema/provider-kinds.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { startVendor, stream, type Vendor, whole } from './kit/vendor.ts'

const SEED = 20_261_124
const RUNS = 60

/** How a dialect writes the arguments of a call: as a string of JSON text, or as an object. */
type Form = 'text' | 'object'
type AnyEvent = Record<string, unknown>
type Dialect = {
  kind: ProviderKind
  form: Form
  path(model: string, isStream: boolean): string
  /** A request whose history has a call with these arguments, as JSON text. */
  request(given: { model: string; args: string; isStream: boolean }): string
  /** A whole response with a call, as JSON text. */
  answer(args: string): string
  /** The data of the events of the same response, with the names of the events that have one. */
  events(args: string): { event?: string; data: string }[]
  /** The arguments in a streamed response, if they arrive in pieces of text. */
  streamed?(events: AnyEvent[]): string
}

const head = '"id":"x","object":"chat.completion","created":1,"model":"m"'
const usage = '"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}'
const quoted = (text: string) => JSON.stringify(text)
/** Two pieces, so that a number may be cut. */
const halves = (text: string) => [text.slice(0, text.length >> 1), text.slice(text.length >> 1)]

const CHAT: Dialect = {
  kind: 'chatcompat',
  form: 'text',
  path: () => '/v1/chat/completions',
  request: ({ model, args, isStream }) =>
    `{"model":"${model}","stream":${isStream},"tools":[{"type":"function","function":{"name":"act","parameters":{"type":"object"}}}],` +
    `"messages":[{"role":"user","content":"Go"},{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function",` +
    `"function":{"name":"act","arguments":${quoted(args)}}}]},{"role":"tool","tool_call_id":"call_1","content":"ok"}]}`,
  answer: (args) =>
    `{${head},"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,` +
    `"tool_calls":[{"id":"call_2","type":"function","function":{"name":"act","arguments":${quoted(args)}}}]}}],${usage}}`,
  events: (args) => [
    {
      data: `{${head},"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"call_2","type":"function","function":{"name":"act","arguments":""}}]}}]}`,
    },
    ...halves(args).map((part) => ({
      data: `{${head},"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":${quoted(part)}}}]}}]}`,
    })),
    { data: `{${head},"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],${usage}}` },
    { data: '[DONE]' },
  ],
  streamed: (events) =>
    events
      .flatMap(
        ({ choices }) => (choices as { delta?: { tool_calls?: { function: { arguments?: string } }[] } }[]) ?? [],
      )
      .flatMap(({ delta }) => delta?.tool_calls ?? [])
      .map((call) => call.function.arguments ?? '')
      .join(''),
}

const MESSAGES: Dialect = {
  kind: 'messages-compat',
  form: 'object',
  path: () => '/v1/messages',
  request: ({ model, args, isStream }) =>
    `{"model":"${model}","max_tokens":9,"stream":${isStream},"tools":[{"name":"act","input_schema":{"type":"object"}}],"messages":` +
    `[{"role":"user","content":"Go"},{"role":"assistant","content":[{"type":"tool_use","id":"call_1","name":"act","input":${args}}]},` +
    `{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"ok"}]}]}`,
  answer: (args) =>
    `{"id":"msg_1","type":"message","role":"assistant","model":"m","stop_reason":"tool_use","stop_sequence":null,` +
    `"content":[{"type":"tool_use","id":"call_2","name":"act","input":${args}}],"usage":{"input_tokens":1,"output_tokens":1}}`,
  events: (args) =>
    [
      '{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}',
      '{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"call_2","name":"act","input":{}}}',
      ...halves(args).map(
        (part) =>
          `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":${quoted(part)}}}`,
      ),
      '{"type":"content_block_stop","index":0}',
      '{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":1}}',
      '{"type":"message_stop"}',
    ].map((data) => ({ event: (JSON.parse(data) as { type: string }).type, data })),
  streamed: (events) =>
    events.map(({ delta }) => (delta as { partial_json?: string } | undefined)?.partial_json ?? '').join(''),
}

const CONTENTGEN: Dialect = {
  kind: 'contentgen-compat',
  form: 'object',
  path: (model, isStream) =>
    `/v1beta/models/${model}:${isStream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
  request: ({ args }) =>
    `{"tools":[{"functionDeclarations":[{"name":"act","parameters":{"type":"OBJECT"}}]}],"contents":[{"role":"user","parts":[{"text":"Go"}]},` +
    `{"role":"model","parts":[{"functionCall":{"id":"call_1","name":"act","args":${args}}}]},` +
    `{"role":"user","parts":[{"functionResponse":{"id":"call_1","name":"act","response":{"output":"ok"}}}]}]}`,
  answer: (args) =>
    `{"candidates":[{"index":0,"finishReason":"STOP","content":{"role":"model","parts":[{"functionCall":{"id":"call_2","name":"act","args":${args}}}]}}],` +
    `"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2},"modelVersion":"m","responseId":"r"}`,
  events: (args) => [{ data: CONTENTGEN.answer(args) }],
}

const CALL = (args: string) =>
  `{"type":"function_call","id":"fc_1","call_id":"call_2","name":"act","status":"completed","arguments":${quoted(args)}}`
const RESPONSE = (args: string) =>
  `{"id":"resp_1","object":"response","created_at":1,"model":"m","status":"completed","output":[${CALL(args)}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`

const RESPONSES: Dialect = {
  kind: 'responses-compat',
  form: 'text',
  path: () => '/v1/responses',
  request: ({ model, args, isStream }) =>
    `{"model":"${model}","store":false,"stream":${isStream},"tools":[{"type":"function","name":"act","parameters":{"type":"object"},"strict":false}],"input":` +
    `[{"type":"message","role":"user","content":"Go"},{"type":"function_call","call_id":"call_1","name":"act","arguments":${quoted(args)}},` +
    `{"type":"function_call_output","call_id":"call_1","output":"ok"}]}`,
  answer: RESPONSE,
  events: (args) =>
    [
      `{"type":"response.created","response":{"id":"resp_1","object":"response","created_at":1,"model":"m","status":"in_progress","output":[]}}`,
      `{"type":"response.output_item.added","output_index":0,"item":${CALL('')}}`,
      ...halves(args).map(
        (part) =>
          `{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":0,"delta":${quoted(part)}}`,
      ),
      `{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":0,"arguments":${quoted(args)}}`,
      `{"type":"response.output_item.done","output_index":0,"item":${CALL(args)}}`,
      `{"type":"response.completed","response":${RESPONSE(args)}}`,
    ].map((data, sequence_number) => ({
      event: (JSON.parse(data) as { type: string }).type,
      data: `${data.slice(0, -1)},"sequence_number":${sequence_number}}`,
    })),
  streamed: (events) =>
    events
      .filter(({ type }) => type === 'response.function_call_arguments.delta')
      .map(({ delta }) => delta as string)
      .join(''),
}

const DIALECTS = [CHAT, MESSAGES, CONTENTGEN, RESPONSES]

const number = fc.oneof(
  fc.constantFrom('9007199254740993', '-9007199254740993', '1e400', '-1E-400', '1.0', '-0', '1e2', '0.10', '1.5E+3'),
  fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String),
  fc.tuple(fc.integer(), fc.nat(), fc.constantFrom('', 'e5', 'E-7', 'e+30')).map(([a, b, c]) => `${a}.${b}${c}`),
  fc.integer().map(String),
)
const value = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    number,
    fc.string({ unit: fc.constantFrom(...'ab "\\é:,[19.0e') }).map(quoted),
    fc.constantFrom('true', 'null'),
    fc.array(tie('value'), { maxLength: 3 }).map((items) => `[${items.join(',')}]`),
    members(tie('value')),
  ),
})).value
function members(of: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .uniqueArray(fc.tuple(fc.constantFrom('id', 'n', 'input', 'args', 'rawJSON', 'x'), of), {
      maxLength: 4,
      selector: ([name]) => name,
    })
    .map((some) => `{${some.map(([name, one]) => `"${name}":${one}`).join(',')}}`)
}
const args = members(value)

let vendor: Vendor
const gateways: Record<string, TestGateway> = {}
beforeAll(async () => {
  vendor = startVendor()
  for (const passthrough of [true, false]) {
    gateways[String(passthrough)] = await startGateway({
      sandbox: false,
      providers: Object.fromEntries(
        DIALECTS.map(({ kind }) => [kind, { kind, base_url: vendor.url, key: 'k', quirks: { passthrough } }]),
      ),
      models: Object.fromEntries(
        [...DIALECTS.map(({ kind }) => `${kind}/m`), 'messages-compat/claude-opus-5'].map((id) => [id, {}]),
      ),
    } as never)
  }
})
afterAll(async () => {
  for (const gateway of Object.values(gateways)) await gateway[Symbol.asyncDispose]()
  await vendor.stop()
})

async function send(dialect: Dialect, body: string, at: { model: string; isStream: boolean; passthrough: boolean }) {
  const gateway = gateways[String(at.passthrough)] as TestGateway
  const response = await gateway.call(dialect.path(at.model, at.isStream), { json: body })
  const text = await response.text()
  expect([response.status, response.ok ? '' : text]).toEqual([200, ''])
  return text
}

const written = ({ form }: Dialect, given: string) => (form === 'text' ? quoted(given) : given)

/** The arguments that a client receives; for a client of text the text itself. */
function receivedBy(client: Dialect, text: string, isStream: boolean): string {
  if (!isStream || !client.streamed) return text
  const data = text.split('\n').filter((line) => line.startsWith('data: {'))
  return client.streamed(data.map((line) => JSON.parse(line.slice('data: '.length))))
}

describe('the arguments of a tool', () => {
  for (const client of DIALECTS) {
    for (const provider of DIALECTS) {
      test(`keep their digits between a client of ${client.kind} and a provider of ${provider.kind}`, async () => {
        const model = `${provider.kind}/m`
        await fc.assert(
          fc.asyncProperty(args, args, fc.boolean(), fc.boolean(), async (sent, called, isStream, passthrough) => {
            vendor.otherwise(
              isStream
                ? stream(
                    provider
                      .events(called)
                      .map(({ event, data }) => `${event ? `event: ${event}\n` : ''}data: ${data}\n\n`),
                    { done: false },
                  )
                : whole(provider.answer(called)),
            )
            const body = client.request({ model, args: sent, isStream })
            const text = await send(client, body, { model, isStream, passthrough })
            expect(vendor.requests.at(-1)?.body).toContain(written(provider, sent))
            const received = receivedBy(client, text, isStream)
            if (isStream && client.streamed) expect(received).toBe(called)
            else expect(received).toContain(written(client, called))
          }),
          { seed: SEED, numRuns: RUNS },
        )
      }, 120_000)
    }
  }
})

describe('an integer beyond 2^53', () => {
  const BIG = '9007199254740993'
  const isStream = false

  async function sent(dialect: Dialect, body: string, to: { model: string; passthrough: boolean }): Promise<string> {
    const provider = DIALECTS.find(({ kind }) => to.model.startsWith(`${kind}/`)) as Dialect
    vendor.otherwise(whole(provider.answer('{}')))
    await send(dialect, body, { ...to, isStream })
    return vendor.requests.at(-1)?.body ?? ''
  }

  for (const passthrough of [true, false]) {
    const how = passthrough ? 'passed through' : 'translated'

    test(`arrives as the seed of chat completions, ${how}`, async () => {
      const body = `{"model":"chatcompat/m","seed":${BIG},"temperature":1.0,"messages":[{"role":"user","content":"Go"}]}`
      expect(await sent(CHAT, body, { model: 'chatcompat/m', passthrough })).toContain(`"seed":${BIG}`)
    })

    test(`arrives as the seed of a contentgen client, ${how}`, async () => {
      const body = `{"generationConfig":{"seed":${BIG}},"contents":[{"parts":[{"text":"Go"}]}]}`
      expect(await sent(CONTENTGEN, body, { model: 'chatcompat/m', passthrough })).toContain(`"seed":${BIG}`)
      const own = await sent(CONTENTGEN, body, { model: 'contentgen-compat/m', passthrough })
      // Where the gateway writes the seed itself, it writes one of the vendor's 32 bits.
      expect(own).toContain(`"seed":${passthrough ? BIG : String(BigInt(BIG) % 2n ** 31n)}`)
    })

    test(`arrives in the schema of a tool, ${how}`, async () => {
      const schema = `{"type":"object","properties":{"id":{"type":"integer","maximum":${BIG},"enum":[${BIG}]}}}`
      const body = (model: string) =>
        `{"model":"${model}","messages":[{"role":"user","content":"Go"}],"tools":[{"type":"function","function":{"name":"act","parameters":${schema}}}]}`
      for (const { kind } of DIALECTS) {
        const model = `${kind}/m`
        expect(await sent(CHAT, body(model), { model, passthrough })).toContain(`"enum":[${BIG}]`)
      }
    })
  }

  test('arrives in the description of a schema whose bounds the provider does not support', async () => {
    const most = '9223372036854775807'
    const body = (model: string) =>
      `{"model":"${model}","messages":[{"role":"user","content":"Go"}],"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"object","properties":{"id":{"type":"integer","exclusiveMaximum":${most}}}}}}}`
    for (const model of ['messages-compat/claude-opus-5', 'contentgen-compat/m']) {
      expect(await sent(CHAT, body(model), { model, passthrough: false })).toContain(`{exclusiveMaximum: ${most}}`)
    }
  })

  test('arrives in a member that only the provider knows', async () => {
    const body = `{"model":"messages-compat/m","max_tokens":9,"own":{"id":${BIG}},"messages":[{"role":"user","content":"Go"}]}`
    const to = { model: 'messages-compat/m', passthrough: true }
    expect(await sent(MESSAGES, body, to)).toContain(`"own":{"id":${BIG}}`)
  })

  test('arrives in the result of a function', async () => {
    const result = `{"id":${BIG},"ratio":1.0}`
    const body = CONTENTGEN.request({ model: '', args: '{}', isStream }).replace('{"output":"ok"}', result)
    const to = (kind: string) => ({ model: `${kind}/m`, passthrough: false })
    expect(await sent(CONTENTGEN, body, to('chatcompat'))).toContain(quoted(result))
    expect(await sent(CONTENTGEN, body, to('contentgen-compat'))).toContain(`"response":${result}`)
  })

  test('arrives in arguments that a Messages provider sends with the start of a block', async () => {
    const events = MESSAGES.events('{}')
      .filter(({ event }) => event !== 'content_block_delta')
      .map(({ event, data }) => `event: ${event}\ndata: ${data.replace('"input":{}', `"input":{"id":${BIG}}`)}\n\n`)
    for (const client of [CHAT, CONTENTGEN]) {
      vendor.otherwise(stream(events, { done: false }))
      const at = { model: 'messages-compat/m', isStream: true, passthrough: false }
      const text = await send(client, client.request({ ...at, args: '{}' }), at)
      expect(receivedBy(client, text, true)).toContain(`{"id":${BIG}}`)
    }
  })

  test('arrives in arguments that a chat provider sends as an object', async () => {
    vendor.otherwise(whole(CHAT.answer('{}').replace('"{}"', `{"id":${BIG}}`)))
    for (const passthrough of [true, false]) {
      const at = { model: 'chatcompat/m', isStream, passthrough }
      expect(await send(CHAT, CHAT.request({ ...at, args: '{}' }), at)).toContain(quoted(`{"id":${BIG}}`))
    }
  })

  const REFUSED: [string, Dialect, string, string][] = [
    [
      'max_tokens',
      CHAT,
      'max_tokens',
      `{"model":"chatcompat/m","max_tokens":N,"messages":[{"role":"user","content":"Go"}]}`,
    ],
    [
      'max_tokens',
      MESSAGES,
      'max_tokens',
      `{"model":"messages-compat/m","max_tokens":N,"messages":[{"role":"user","content":"Go"}]}`,
    ],
    [
      'max_output_tokens',
      RESPONSES,
      'max_output_tokens',
      `{"model":"responses-compat/m","max_output_tokens":N,"input":"Go"}`,
    ],
    [
      'maxOutputTokens',
      CONTENTGEN,
      'generationConfig.maxOutputTokens',
      `{"generationConfig":{"maxOutputTokens":N},"contents":[{"parts":[{"text":"Go"}]}]}`,
    ],
  ]
  for (const [field, dialect, param, body] of REFUSED) {
    test(`is refused as ${field} of ${dialect.kind}, and 2^53 - 1 is not`, async () => {
      vendor.otherwise(whole(dialect.answer('{}')))
      const call = (number: string) =>
        (gateways.true as TestGateway).call(dialect.path(`${dialect.kind}/m`, false), {
          json: body.replace('N', number),
        })
      const before = vendor.requests.length
      for (const large of [BIG, '1e20', '1e400']) {
        const response = await call(large)
        const text = await response.text()
        expect([response.status, text]).toEqual([
          400,
          expect.stringContaining(`\\"${param}\\" must be from 1 to 9007199254740991`),
        ])
        expect(text).toContain(large)
      }
      expect(vendor.requests.length).toBe(before)
      expect((await call('9007199254740991')).status).toBe(200)
    })
  }
})
