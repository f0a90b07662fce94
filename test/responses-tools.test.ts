/**
 * Tools in namespaces through the whole gateway: stored, in the background, and with a provider of the same protocol.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { openPort, type Port } from './kit/served.ts'
import { chunk, chunks, startVendor, stream, usageChunk, type Vendor, whole } from './kit/vendor.ts'

let vendor: Vendor
let open: Vendor
let port: Port
beforeAll(async () => {
  vendor = startVendor()
  open = startVendor()
  port = await openPort({
    providers: {
      v: { base_url: vendor.url, key: 'vendor-key' },
      r: { kind: 'responses-compat', base_url: open.url, key: 'vendor-key' },
    },
    models: { 'v/m': {}, 'r/m': { targets: [{ provider: 'r', model: 'gpt-5.5' }] } },
  })
})
beforeEach(() => {
  vendor.requests.length = 0
  open.requests.length = 0
})
afterAll(async () => {
  await port.close()
  await vendor.stop()
  await open.stop()
})
const client = () => new OpenAI({ apiKey: port.token, baseURL: port.url, maxRetries: 0 }).responses

type Params = OpenAI.Responses.ResponseCreateParamsNonStreaming
const CRM: OpenAI.Responses.Tool = {
  type: 'namespace',
  name: 'crm',
  description: 'The customers.',
  tools: [{ type: 'function', name: 'list', parameters: { type: 'object', properties: {} } }],
}
const requested = (more: Partial<Params> = {}): Params => ({
  model: 'v/m',
  input: 'Who is there?',
  tools: [CRM],
  ...more,
})
/** The provider calls the tool by its own name for it. */
const calling = () => {
  const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'crm__list', arguments: '{}' } }
  return stream([chunk({ role: 'assistant', tool_calls: [call] }), chunk({}, 'tool_calls'), usageChunk()])
}
const CALL = { type: 'function_call', call_id: 'call_1', namespace: 'crm', name: 'list', arguments: '{}' }
const OUTPUT = { type: 'function_call_output', call_id: 'call_1', output: 'Ada' } as const
const sent = (at: number) =>
  vendor.requests[at]?.json() as { messages: object[]; tools: { function: { name: string } }[] }

test('a stored response is continued with the client’s tool names, also for tools that its input added', async () => {
  vendor.answer(calling(), stream(chunks('Ada is.')))
  const added: OpenAI.Responses.ResponseInputItem = { type: 'additional_tools', role: 'developer', tools: [CRM] }
  const first = await client()
    .stream({ ...requested({ tools: [], input: [added, { role: 'user', content: 'Who is there?' }] }), stream: true })
    .finalResponse()
  expect(first.output).toMatchObject([CALL])
  const stored = await client().retrieve(first.id)
  expect(stored.output).toMatchObject([CALL])
  const items = await client().inputItems.list(first.id, { order: 'asc' })
  expect(items.data).toMatchObject([{ type: 'additional_tools', tools: [CRM] }, { role: 'user' }])

  const next = { model: 'v/m', input: [OUTPUT], previous_response_id: first.id }
  const second = await client()
    .stream({ ...next, stream: true })
    .finalResponse()
  expect(second.output_text).toBe('Ada is.')
  expect(sent(1).tools.map(({ function: { name } }) => name)).toEqual(['crm__list'])
  expect(sent(1).messages.slice(1)).toMatchObject([
    { role: 'assistant', tool_calls: [{ id: 'call_1', function: { name: 'crm__list' } }] },
    { role: 'tool', tool_call_id: 'call_1', content: 'Ada' },
  ])
})

test('a background response calls tools by namespace and name, stored and streamed', async () => {
  vendor.answer(calling(), calling())
  const types: string[] = []
  let item: unknown
  for await (const event of await client().create({ ...requested({ background: true }), stream: true })) {
    types.push(event.type)
    if (event.type === 'response.output_item.done') item = event.item
  }
  expect([types.at(-1), item]).toEqual(['response.completed', expect.objectContaining(CALL)])
  let response = await client().create(requested({ background: true }))
  while (response.status === 'queued' || response.status === 'in_progress') {
    response = await client().retrieve(response.id)
  }
  expect(response.output).toMatchObject([CALL])
})

test('a forced tool has the provider’s name for it', async () => {
  vendor.answer(calling())
  const tool_choice = { type: 'function', name: 'list', namespace: 'crm' } as Params['tool_choice'] & object
  await client()
    .stream({ ...requested({ tool_choice }), stream: true })
    .finalResponse()
  expect(sent(0)).toMatchObject({ tool_choice: { type: 'function', function: { name: 'crm__list' } } })
})

describe('a provider of the same protocol', () => {
  test('receives namespaces, searches and tool items unchanged, and so does the client its calls', async () => {
    const input = [
      { type: 'additional_tools', role: 'developer', tools: [CRM] },
      { role: 'user', content: 'Who is there?' },
      { ...CALL, call_id: 'call_0' },
      { ...OUTPUT, call_id: 'call_0' },
      { type: 'tool_search_call', call_id: 'call_s', execution: 'client', arguments: { query: 'x' } },
      { type: 'tool_search_output', call_id: 'call_s', execution: 'client', tools: [CRM] },
      { type: 'configuration_update', reasoning: { effort: 'low' } },
    ] as OpenAI.Responses.ResponseInputItem[]
    const tools: OpenAI.Responses.Tool[] = [CRM, { type: 'tool_search' }]
    const call = { ...CALL, id: 'fc_1', status: 'completed' }
    open.answer(
      whole({ id: 'resp_v', object: 'response', created_at: 1, status: 'completed', model: 'gpt-5.5', output: [call] }),
    )
    const { output } = await client().create(requested({ model: 'r/m', input, tools, store: false }))
    expect(open.requests[0]?.json()).toEqual({ ...requested({ input, tools, store: false }), model: 'gpt-5.5' })
    expect(output).toEqual([call as OpenAI.Responses.ResponseFunctionToolCall])
  })
})
