/** Encoding of Responses: whole, and as numbered events. */
import { describe, expect, test } from 'bun:test'
import type { FinishReason } from '../../../spec/chat-completion.ts'
import { GatewayError } from '../../../spec/error.ts'
import { usageFrom } from '../../../spec/usage.ts'
import type { ChatChunk, ChatCompletion, Delta } from '../../shared/canonical.ts'
import { PLAIN } from '../../shared/signed-content.ts'
import { encodeEncrypted } from './items.ts'
import { createResponsesEncoder } from './response.ts'
import type { ResponsesRequest } from './schema.ts'
import { clientTools } from './tools.ts'

const HEAD = { id: 'resp_abc', created: 1_700_000_000, model: 'a/b' }
const USAGE = usageFrom({ input: 9, output: 3 })
const clock = { now: () => 1_700_000_007_000, steady: () => 0, after: () => () => {} }

function writerFor(more: Partial<ResponsesRequest> = {}, keep?: () => Promise<void>) {
  const clientRequest: ResponsesRequest = { model: 'a/b', ...more }
  const { names } = clientTools(clientRequest)
  return createResponsesEncoder({
    head: HEAD,
    clientRequest,
    request: { model: 'a/b', messages: [] },
    names,
    store: keep,
    clock,
  })
}
const chunk = (delta: Delta, finish_reason: FinishReason | null = null, index = 0): ChatChunk => ({
  id: 'x',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index, delta, finish_reason }],
})
const completion = (message: object, finish_reason: FinishReason = 'stop'): ChatCompletion => ({
  id: 'x',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: null, ...message }, finish_reason }],
})

type Event = { type: string; sequence_number: number } & Record<string, unknown>
/** The events of a text, each named by its type. */
function eventsOf(text: string): Event[] {
  const blocks = text.split('\n\n').filter((block) => block !== '')
  return blocks.map((block) => {
    const [name = '', data = ''] = block.split('\n')
    const event = JSON.parse(data.slice('data: '.length)) as Event
    expect(name).toBe(`event: ${event.type}`)
    return event
  })
}
/** A whole stream of these deltas. */
function output(
  deltas: Delta[],
  { finish = 'stop', ...more }: Partial<ResponsesRequest> & { finish?: FinishReason } = {},
) {
  const writer = writerFor(more)
  let text = ''
  for (const delta of deltas) text += writer.encode([chunk(delta)])
  const events = eventsOf(text + writer.encode([chunk({}, finish)]) + writer.end(USAGE))
  expect(events.map((event) => event.sequence_number)).toEqual(events.map((_event, index) => index))
  const { response } = events.at(-1) as unknown as { response: { output: Record<string, unknown>[]; status: string } }
  return { events, types: events.map(({ type }) => type), response }
}
const short = (types: string[]) => types.map((type) => type.replace('response.', ''))

describe('calls of tools in namespaces', () => {
  const tools = [
    {
      type: 'namespace',
      name: 'crm',
      tools: [
        { type: 'function', name: 'list' },
        { type: 'custom', name: 'note' },
      ],
    },
    { type: 'tool_search', execution: 'client', parameters: { type: 'object' } },
  ]
  const call = (index: number, name: string, text: string): Delta => ({
    tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name, arguments: text } }],
  })

  test('have the client’s namespace and name in every event that names them', () => {
    const { events, response } = output([call(0, 'crm__list', '{"of":'), call(0, 'crm__list', '1}')], { tools })
    const named = { type: 'function_call', call_id: 'call_0', namespace: 'crm', name: 'list' }
    expect(events.find(({ type }) => type === 'response.output_item.added')?.item).toMatchObject(named)
    expect(events.find(({ type }) => type === 'response.function_call_arguments.done')).toMatchObject({
      name: 'list',
      arguments: '{"of":1}',
    })
    expect(events.find(({ type }) => type === 'response.output_item.done')?.item).toEqual(response.output[0])
    expect(response.output).toMatchObject([{ ...named, arguments: '{"of":1}', status: 'completed' }])
  })

  test('may be calls of custom tools', () => {
    const { response } = output([call(0, 'crm__note', '{"input":"Hi"}')], { tools })
    expect(response.output).toMatchObject([{ type: 'custom_tool_call', namespace: 'crm', name: 'note', input: 'Hi' }])
  })

  test('have them in a whole response too', () => {
    const { tool_calls } = call(0, 'crm__list', '{}')
    const { output } = writerFor({ tools }).whole(completion({ tool_calls }, 'tool_calls'), USAGE) as {
      output: object[]
    }
    expect(output).toMatchObject([{ type: 'function_call', namespace: 'crm', name: 'list', arguments: '{}' }])
  })

  test('have an item of their own with JSON arguments for the client’s tool search', () => {
    const { types, response } = output([call(0, 'tool_search', '{"query":'), call(0, '', '"notes"}')], { tools })
    expect(short(types).filter((type) => type.includes('item') || type.includes('arguments'))).toEqual([
      'output_item.added',
      'output_item.done',
    ])
    expect(response.output).toEqual([
      {
        type: 'tool_search_call',
        id: 'tsc_abc_0',
        call_id: 'call_0',
        execution: 'client',
        arguments: { query: 'notes' },
        status: 'completed',
      },
    ])
  })
})

describe('a Responses stream', () => {
  test('of text has the events that clients wait for, in order', () => {
    const { events, types, response } = output([
      { role: 'assistant', content: '' },
      { content: 'Hel' },
      { content: 'lo' },
    ])
    expect(short(types)).toEqual([
      'created',
      'in_progress',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'completed',
    ])
    expect(events[0]).toMatchObject({
      response: { id: 'resp_abc', created_at: 1_700_000_000, model: 'a/b', output: [] },
    })
    expect(events[3]).toMatchObject({ item_id: 'msg_abc_0', output_index: 0, content_index: 0, part: { text: '' } })
    expect(response).toMatchObject({
      status: 'completed',
      completed_at: 1_700_000_007,
      output: [{ type: 'message', status: 'completed', content: [{ type: 'output_text', text: 'Hello' }] }],
      usage: { input_tokens: 9, output_tokens: 3, total_tokens: 12 },
    })
  })

  test('names interleaved calls by their place, and ends each when it is complete', () => {
    const { events, types, response } = output(
      [
        { tool_calls: [{ index: 0, id: 'c0', type: 'function', function: { name: 'f', arguments: '{"a"' } }] },
        { tool_calls: [{ index: 1, id: 'c1', type: 'function', function: { name: 'g', arguments: '' } }] },
        { tool_calls: [{ index: 0, function: { arguments: ':1}' } }] },
      ],
      { finish: 'tool_calls' },
    )
    const deltas = events.filter(({ type }) => type === 'response.function_call_arguments.delta')
    expect(deltas.map((event) => [event.output_index, event.delta])).toEqual([
      [0, '{"a"'],
      [0, ':1}'],
      [1, '{}'],
    ])
    expect(types.filter((type) => type === 'response.output_item.done')).toHaveLength(2)
    expect(response.output).toEqual([
      { type: 'function_call', id: 'fc_abc_0', call_id: 'c0', name: 'f', status: 'completed', arguments: '{"a":1}' },
      { type: 'function_call', id: 'fc_abc_1', call_id: 'c1', name: 'g', status: 'completed', arguments: '{}' },
    ])
  })

  test('marks its items and itself incomplete after a cut by the limit', () => {
    const { types, response } = output([{ content: 'Ha' }], { finish: 'length' })
    expect(types.at(-1)).toBe('response.incomplete')
    expect(response).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      completed_at: null,
      output: [{ status: 'incomplete' }],
    })
  })

  test('has a part each for text, a refusal and text again', () => {
    const { response } = output([{ content: 'Well' }, { refusal: 'no' }, { content: 'But' }])
    expect(response.output).toMatchObject([
      {
        content: [
          { type: 'output_text', text: 'Well' },
          { type: 'refusal', refusal: 'no' },
          { type: 'output_text', text: 'But' },
        ],
      },
    ])
  })

  test('counts citations from the start of their part', () => {
    const citation = (start_index: number, end_index: number) => ({
      type: 'url_citation' as const,
      url_citation: { start_index, end_index, url: 'https://a.example', title: 'A' },
    })
    const { events, response } = output([
      { content: 'One.' },
      { reasoning_content: 'Hm.' },
      { content: 'Two.' },
      { annotations: [citation(4, 8)] },
    ])
    const annotation = { type: 'url_citation', start_index: 0, end_index: 4, url: 'https://a.example', title: 'A' }
    expect(events.find(({ type }) => type === 'response.output_text.annotation.added')).toMatchObject({
      output_index: 2,
      annotation_index: 0,
      annotation,
    })
    expect(response.output[2]).toMatchObject({ content: [{ annotations: [annotation] }] })
  })

  test('ignores all choices except the first', () => {
    const writer = writerFor()
    const text = writer.encode([chunk({ content: 'B' }, null, 1), chunk({ content: 'A' })])
    expect(eventsOf(text + writer.end(USAGE)).at(-1)).toMatchObject({
      response: { output: [{ content: [{ text: 'A' }] }] },
    })
  })

  test.each([true, false])('reports a failure in two events, also before any output: %p', (hasSpoken) => {
    const writer = writerFor()
    const before = hasSpoken ? writer.encode([chunk({ content: 'Hel' })]) : ''
    const events = eventsOf(before + writer.fail(new GatewayError('rate_limit_exceeded', 'Slow down.')))
    expect(events.map((event) => event.sequence_number)).toEqual(events.map((_event, index) => index))
    expect(events[0]?.type).toBe('response.created')
    const fault = { code: 'rate_limit_exceeded', message: 'Slow down.' }
    expect(events.at(-2)).toMatchObject({
      type: 'error',
      ...fault,
      param: null,
      error: { type: 'rate_limit_error', ...fault },
    })
    expect(events.at(-1)).toMatchObject({
      type: 'response.failed',
      response: { status: 'failed', error: fault, output: hasSpoken ? [{ status: 'incomplete' }] : [] },
    })
  })

  test.each([
    ['upstream_cut', 'server_error'],
    ['context_length_exceeded', 'context_length_exceeded'],
    ['server_is_overloaded', 'server_is_overloaded'],
    ['upstream_invalid_request', 'invalid_prompt'],
  ] as const)('reports %s as %s', (code, word) => {
    expect(eventsOf(writerFor().fail(new GatewayError(code, 'x'))).at(-1)).toMatchObject({
      response: { error: { code: word } },
    })
  })
})

describe('Responses reasoning', () => {
  const opaque = { origin: 'messages-compat', value: 'SIG' } as const
  const include = ['reasoning.encrypted_content']

  test('is a summary with its own events', () => {
    const { types, response } = output([{ reasoning_content: 'Hm' }, { reasoning_content: 'm.' }, { content: 'A' }])
    expect(short(types).slice(2, 9)).toEqual([
      'output_item.added',
      'reasoning_summary_part.added',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.done',
      'reasoning_summary_part.done',
      'output_item.done',
    ])
    expect(response.output[0]).toEqual({
      type: 'reasoning',
      id: 'rs_abc_0',
      summary: [{ type: 'summary_text', text: 'Hmm.' }],
      status: 'completed',
    })
  })

  test('includes encrypted content only on request', () => {
    const deltas: Delta[] = [{ reasoning_content: 'Hm.' }, { reasoning_details: [{ text: 'Hm.', opaque }] }]
    expect(output(deltas).response.output[0]?.encrypted_content).toBeUndefined()
    expect(output(deltas, { include }).response.output).toMatchObject([
      { summary: [{ text: 'Hm.' }], encrypted_content: encodeEncrypted({ opaque }, 'rs_abc_0') },
    ])
  })

  test('is an item without text if hidden, under the vendor`s id if it is not stored', () => {
    const own = { origin: 'chatcompat-response', value: 'ENC', id: 'rs_own' } as const
    const { response } = output([{ reasoning_details: [{ opaque: own }] }], { include })
    expect(response.output).toEqual([
      { type: 'reasoning', id: 'rs_own', summary: [], status: 'completed', encrypted_content: 'ENC' },
    ])
  })

  test('has a marker if unsigned, for clients that send it back', () => {
    expect(output([{ reasoning_content: 'Hm.' }], { include }).response.output).toMatchObject([
      { encrypted_content: PLAIN },
    ])
  })

  test('holds a call`s signature in an item before the call', () => {
    const call = { index: 0, id: 'c1', type: 'function' as const, function: { name: 'f', arguments: '{}' }, opaque }
    expect(output([{ tool_calls: [call] }], { include }).response.output).toMatchObject([
      { type: 'reasoning', encrypted_content: encodeEncrypted({ opaque, owner: 'c1' }, 'rs_abc_0') },
      { type: 'function_call', call_id: 'c1' },
    ])
  })
})

test('encodes a generated image as a call of its own, with its data', () => {
  const opaque = { origin: 'contentgen-compat', value: 'SIG' } as const
  const image = { type: 'image_url' as const, image_url: { url: 'data:image/webp;base64,AA==' }, opaque }
  const { types, response } = output([{ content: 'See:' }, { images: [image] }], {
    include: ['reasoning.encrypted_content'],
  })
  expect(short(types)).toContain('image_generation_call.completed')
  expect(response.output.slice(1)).toEqual([
    {
      type: 'reasoning',
      id: 'rs_abc_1',
      summary: [],
      status: 'completed',
      encrypted_content: encodeEncrypted({ opaque, owner: 'ig_abc_2' }, 'rs_abc_1'),
    },
    { type: 'image_generation_call', id: 'ig_abc_2', status: 'completed', result: 'AA==', output_format: 'webp' },
  ])
})

test('returns the text of a custom tool, or all text of a model that did not produce JSON', () => {
  const tools = [{ type: 'custom', name: 'say' }]
  const call = (text: string): Delta => ({
    tool_calls: [{ index: 0, id: 'c1', type: 'function', function: { name: 'say', arguments: text } }],
  })
  const { events, response } = output([call('{"input":"a\\nb"}')], { tools })
  expect(events.find(({ type }) => type === 'response.custom_tool_call_input.done')).toMatchObject({ input: 'a\nb' })
  expect(response.output).toEqual([
    { type: 'custom_tool_call', id: 'ctc_abc_0', call_id: 'c1', name: 'say', status: 'completed', input: 'a\nb' },
  ])
  for (const text of ['a b', '{"input":1}', 'null']) {
    expect(output([call(text)], { tools }).response.output).toMatchObject([{ input: text }])
  }
})

describe('a whole Responses response', () => {
  test('has reasoning, text and calls like its stream', () => {
    const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }
    const message = { reasoning_content: 'Hm.', content: 'I look.', tool_calls: [call] }
    const { response } = output([
      { reasoning_content: 'Hm.' },
      { content: 'I look.' },
      { tool_calls: [{ index: 0, ...call, type: 'function' }] },
    ])
    expect(writerFor().whole(completion(message, 'tool_calls'), USAGE)).toEqual(response)
  })

  test('has each piece of reasoning once', () => {
    const message = { reasoning_content: 'Hm.', reasoning_details: [{ text: 'Hm.' }], content: 'A' }
    expect(writerFor().whole(completion(message), USAGE)).toMatchObject({
      output: [{ type: 'reasoning', summary: [{ text: 'Hm.' }] }, { type: 'message' }],
    })
  })

  test('is incomplete after a content filter', () => {
    expect(writerFor().whole(completion({ content: '' }, 'content_filter'), USAGE)).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'content_filter' },
      output: [],
    })
  })

  test('is stored with encrypted content even if the client did not request it', async () => {
    const opaque = { origin: 'messages-compat', value: 'SIG' } as const
    const storedResponses: unknown[] = []
    const keep = async (...args: unknown[]) => void storedResponses.push(args[0])
    const writer = writerFor({}, keep)
    const body = writer.whole(completion({ content: 'A', reasoning_details: [{ text: 'Hm.', opaque }] }), USAGE)
    await writer.store?.()
    expect(storedResponses).toMatchObject([
      { id: 'resp_abc', store: true, output: [{ encrypted_content: expect.any(String) }, {}] },
    ])
    expect(JSON.stringify(body)).not.toContain('encrypted_content')
  })
})

test('echoes the request, with defaults for absent fields', () => {
  const schema = { type: 'object' }
  const tools = [{ type: 'function', name: 'look', parameters: schema }]
  const text = { verbosity: 'low', format: { type: 'json_schema' as const, name: 'n', schema } }
  const clientRequest = { tools, text, instructions: 'Be brief.', metadata: { a: 'b' }, truncation: 'auto' as const }
  expect(writerFor(clientRequest).whole(completion({ content: 'A' }), USAGE)).toMatchObject({
    tools: [{ type: 'function', name: 'look', parameters: schema, description: null, strict: null }],
    text: { verbosity: 'low', format: { type: 'json_schema', name: 'n', schema, description: null, strict: false } },
    instructions: 'Be brief.',
    metadata: { a: 'b' },
    truncation: 'disabled',
    temperature: 1,
    top_p: 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    service_tier: 'default',
    background: false,
    max_output_tokens: null,
    previous_response_id: null,
  })
})
