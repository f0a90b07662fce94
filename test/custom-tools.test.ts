/** Custom tools in chat completions, with providers that have them and with providers that get a function instead. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { openPort, type Port } from './kit/served.ts'
import { chunk, startVendor, stream, usageChunk, type Vendor, whole } from './kit/vendor.ts'
import { type ReceivedRequest, respond, type ScriptedResponse } from './matrix/model-script.ts'
import { chatcompatWire } from './matrix/vendors/chatcompat.ts'
import { contentgenWire } from './matrix/vendors/contentgen-compat.ts'
import { messagesWire } from './matrix/vendors/messages-compat.ts'
import { responsesWire } from './matrix/vendors/responses-compat.ts'
import { startWireVendor, type WireVendor } from './matrix/vendors/wire-vendor.ts'

const PATCH = '*** Begin Patch\n*** Add File: "b".txt\n+pätched \\ 😀\n*** End Patch\n'
const GRAMMAR = { definition: 'start: /.+/', syntax: 'lark' } as const
const TOOL: OpenAI.ChatCompletionTool = {
  type: 'custom',
  custom: { name: 'apply_patch', description: 'Edits files.', format: { type: 'grammar', grammar: GRAMMAR } },
}
const LOOK: OpenAI.ChatCompletionTool = {
  type: 'function',
  function: { name: 'look', description: 'Looks.', parameters: { type: 'object', properties: {} } },
}
const USER = { role: 'user', content: 'Please patch it.' } as const
const CALL: OpenAI.ChatCompletionMessageToolCall = {
  id: 'call_1',
  type: 'custom',
  custom: { name: 'apply_patch', input: PATCH },
}
const RESULT = { role: 'tool', tool_call_id: 'call_1', content: 'Done.' } as const
const TURN: OpenAI.ChatCompletionMessageParam[] = [USER, { role: 'assistant', tool_calls: [CALL] }, RESULT]

/** A model that calls the tool once, in small pieces, and then repeats the result. */
function patch({ results, ...received }: ReceivedRequest): ScriptedResponse {
  const [result] = results
  const plain = respond({ ...received, results, tools: [], question: 'Hello' })
  if (result) return { ...plain, text: [`It says: ${result.text}`] }
  const pieces = JSON.stringify({ input: PATCH }).match(/.{1,7}/gsu) ?? []
  return { ...plain, text: [], calls: [{ id: 'call_1', name: 'apply_patch', pieces }], finish: 'tool_calls' }
}

const WIRES = {
  chatcompat: { wire: chatcompatWire, path: '/v1', model: 'm' },
  'messages-compat': { wire: messagesWire, path: '/v1', model: 'claude-sonnet-4-6' },
  'contentgen-compat': { wire: contentgenWire, path: '/v1beta', model: 'gemini-3.5-flash' },
  'responses-compat': { wire: responsesWire, path: '/v1', model: 'gpt-5.5' },
} as const
type Kind = keyof typeof WIRES
const KINDS = Object.keys(WIRES) as Kind[]

const translated = new Map<string, WireVendor>()
let openai: Vendor
let responses: Vendor
let port: Port
beforeAll(async () => {
  for (const kind of KINDS) translated.set(kind, startWireVendor(WIRES[kind].wire, { respond: patch }))
  openai = startVendor()
  responses = startVendor()
  const provider = (kind: Kind) => ({
    kind,
    base_url: `${translated.get(kind)?.origin}${WIRES[kind].path}`,
    key: 'vendor-key',
    ...(kind === 'responses-compat' ? { quirks: { custom_tools: false } } : {}),
  })
  port = await openPort({
    providers: {
      ...Object.fromEntries(KINDS.map((kind) => [kind, provider(kind)])),
      o: { base_url: openai.url, key: 'vendor-key', quirks: { custom_tools: true } },
      r: { kind: 'responses-compat', base_url: responses.url, key: 'vendor-key' },
    },
    models: {
      ...Object.fromEntries(
        KINDS.map((kind) => [`${kind}/m`, { targets: [{ provider: kind, model: WIRES[kind].model }] }]),
      ),
      'o/m': {},
      'r/m': { targets: [{ provider: 'r', model: 'gpt-5.5' }] },
    },
  })
})
beforeEach(() => {
  openai.requests.length = 0
  responses.requests.length = 0
})
afterAll(async () => {
  await port.close()
  for (const vendor of [...translated.values(), openai, responses]) await vendor.stop()
})

const client = () => new OpenAI({ apiKey: port.token, baseURL: port.url, maxRetries: 0 }).chat.completions
type Params = OpenAI.ChatCompletionCreateParamsNonStreaming
const asked = (more: Partial<Params> & Pick<Params, 'model'>): Params => ({
  messages: [USER],
  tools: [TOOL, LOOK],
  ...more,
})
const streamed = (params: Params) =>
  client()
    .stream({ ...params, stream: true })
    .finalChatCompletion()
const callsOf = ({ choices: [choice] }: OpenAI.ChatCompletion) => choice?.message.tool_calls
const sentTo = (vendor: Vendor | undefined) => vendor?.requests.at(-1)?.json() ?? {}

describe.each(KINDS)('a provider without custom tools, of the kind %s', (kind) => {
  const model = `${kind}/m`

  test('is offered a function; the client gets a custom call, whole and streamed', async () => {
    const complete = await client().create(asked({ model }))
    expect(callsOf(complete)).toMatchObject([{ ...CALL, id: expect.any(String) }])
    expect(complete.choices[0]?.finish_reason).toBe('tool_calls')
    expect(callsOf(await streamed(asked({ model })))).toMatchObject([{ ...CALL, id: expect.any(String) }])
    const sent = JSON.stringify(sentTo(translated.get(kind)))
    expect(sent).not.toContain('"custom"')
    expect(sent).toContain(
      JSON.stringify(`Edits files.\n\nThe input must follow this grammar (lark):\n${GRAMMAR.definition}`),
    )
  })

  test('continues from a custom call and its result', async () => {
    const { choices } = await client().create(asked({ model, messages: TURN }))
    expect(choices[0]?.message.content).toBe('It says: Done.')
    expect(JSON.stringify(sentTo(translated.get(kind)))).not.toContain('"custom')
  })

  test('has the named tool forced on it, and only the allowed tools', async () => {
    const decode = () => WIRES[kind].wire.decode(sentTo(translated.get(kind)), '') as ReceivedRequest
    await client().create(asked({ model, tool_choice: { type: 'custom', custom: { name: 'apply_patch' } } }))
    expect(decode().demanded).toBe('apply_patch')
    const tools = [{ type: 'custom', custom: { name: 'apply_patch' } }]
    await client().create(
      asked({ model, tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'required', tools } } }),
    )
    // The Responses API has the same choice.
    if (kind === 'responses-compat') {
      const choice = { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'apply_patch' }] }
      expect(sentTo(translated.get(kind)).tool_choice).toEqual(choice)
      return
    }
    const received = decode()
    expect([received.tools.map(({ name }) => name), received.demanded]).toEqual([['apply_patch'], true])
  })
})

describe('a chat completions provider with custom tools', () => {
  const delta = (...tool_calls: object[]) => chunk({ tool_calls })
  const pieces = PATCH.match(/.{1,5}/gsu) ?? []
  const events = [
    chunk({ role: 'assistant', content: '' }),
    delta({ index: 0, id: 'call_1', type: 'custom', custom: { name: 'apply_patch', input: '' } }),
    ...pieces.map((input) => delta({ index: 0, custom: { input } })),
    delta({ index: 1, id: 'call_2', type: 'function', function: { name: 'look', arguments: '{}' } }),
    chunk({}, 'tool_calls'),
  ]
  const message = { role: 'assistant', content: null, tool_calls: [CALL] }
  const body = {
    id: 'chatcmpl-v',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: 'v',
    choices: [{ index: 0, message, logprobs: null, finish_reason: 'tool_calls' }],
    usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
  }

  test('receives the tool, its choice and its earlier calls as they are', async () => {
    openai.answer(whole(body), whole(body))
    const tool_choice = { type: 'custom', custom: { name: 'apply_patch' } } as const
    const answer = await client().create(asked({ model: 'o/m', messages: TURN, tool_choice }))
    expect(sentTo(openai)).toMatchObject({ messages: TURN, tools: [TOOL, LOOK], tool_choice })
    expect(callsOf(answer)).toEqual([CALL])
    const tools = [tool_choice, { type: 'function', function: { name: 'look' } }]
    const allowed = { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools } } as const
    await client().create(asked({ model: 'o/m', tool_choice: allowed }))
    expect(sentTo(openai).tool_choice).toEqual(allowed)
  })

  test.each([undefined, 1, 3])('streams each piece as it arrives, in packets of %s bytes', async (chunkBytes) => {
    openai.answer(stream([...events, usageChunk()], chunkBytes ? { chunkBytes } : {}))
    const inputs: string[] = []
    const types: unknown[] = []
    for await (const { choices } of await client().create({ ...asked({ model: 'o/m' }), stream: true })) {
      for (const call of choices[0]?.delta.tool_calls ?? []) {
        types.push(call.type)
        if (call.custom?.input) inputs.push(call.custom.input)
      }
    }
    expect(inputs).toEqual(pieces)
    expect(types.filter((type) => type !== undefined)).toEqual(['custom', 'function'])
  })

  test('is understood by a client of the Responses API, which gets the tool as its own', async () => {
    openai.answer(stream([...events, usageChunk()]))
    const { responses: api } = new OpenAI({ apiKey: port.token, baseURL: port.url, maxRetries: 0 })
    const format = { type: 'grammar', ...GRAMMAR } as const
    const custom = { type: 'custom', name: 'apply_patch', description: 'Edits files.', format } as const
    const running = api.stream({ model: 'o/m', input: 'Patch it.', tools: [custom], store: false })
    const { output } = await running.finalResponse()
    expect(output).toMatchObject([{ type: 'custom_tool_call', name: 'apply_patch', input: PATCH }, { name: 'look' }])
    expect(sentTo(openai)).toMatchObject({ tools: [TOOL] })
  })

  test('has its whole answer passed on where a stream was requested', async () => {
    openai.answer(whole(body))
    expect(callsOf(await streamed(asked({ model: 'o/m' })))).toMatchObject([CALL])
  })
})

describe('a Responses provider', () => {
  const item = { type: 'custom_tool_call', id: 'ctc_1', call_id: 'call_1', name: 'apply_patch', input: PATCH }
  const response = {
    id: 'resp_v',
    object: 'response',
    created_at: 1,
    status: 'completed',
    model: 'gpt-5.5',
    output: [{ ...item, status: 'completed' }],
    usage: { input_tokens: 9, output_tokens: 3, total_tokens: 12 },
  }
  const sse = (event: { type: string } & Record<string, unknown>) =>
    `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
  const place = { item_id: 'ctc_1', output_index: 0 }

  test('gets custom tools, calls and results in its own form', async () => {
    responses.answer(whole(response))
    const tool_choice = { type: 'custom', custom: { name: 'apply_patch' } } as const
    expect(callsOf(await client().create(asked({ model: 'r/m', messages: TURN, tool_choice })))).toEqual([CALL])
    expect(sentTo(responses)).toMatchObject({
      input: [
        { type: 'message', role: 'user' },
        { type: 'custom_tool_call', call_id: 'call_1', name: 'apply_patch', input: PATCH },
        { type: 'custom_tool_call_output', call_id: 'call_1', output: 'Done.' },
      ],
      tools: [
        { type: 'custom', name: 'apply_patch', description: 'Edits files.', format: { type: 'grammar', ...GRAMMAR } },
        { type: 'function', name: 'look' },
      ],
      tool_choice: { type: 'custom', name: 'apply_patch' },
    })
  })

  test('streams the input of its custom calls', async () => {
    const pieces = PATCH.match(/.{1,9}/gsu) ?? []
    responses.answer(
      stream(
        [
          sse({ type: 'response.created', response: { ...response, status: 'in_progress', output: [] } }),
          sse({ type: 'response.output_item.added', output_index: 0, item: { ...item, input: '' } }),
          ...pieces.map((delta) => sse({ type: 'response.custom_tool_call_input.delta', ...place, delta })),
          sse({ type: 'response.custom_tool_call_input.done', ...place, input: PATCH }),
          sse({ type: 'response.output_item.done', output_index: 0, item }),
          sse({ type: 'response.completed', response }),
        ],
        { done: false },
      ),
    )
    const inputs: string[] = []
    for await (const { choices } of await client().create({ ...asked({ model: 'r/m' }), stream: true })) {
      for (const call of choices[0]?.delta.tool_calls ?? []) if (call.custom?.input) inputs.push(call.custom.input)
    }
    expect(inputs).toEqual(pieces)
  })
})

test('the sandbox calls a custom tool with text', async () => {
  const answer = await client().create(
    asked({ model: 'sandbox/general', messages: [{ role: 'user', content: 'Please call apply_patch.' }] }),
  )
  const [call] = callsOf(answer) ?? []
  expect(call).toMatchObject({ type: 'custom', custom: { name: 'apply_patch', input: expect.any(String) } })
})
