/** Compaction of conversations: by trigger and by `client.responses.compact`, for models without one of their own. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'bun:test'
import OpenAI from 'openai'
import { startGateway } from './kit/gateway.ts'
import { type Served, serve } from './kit/served.ts'
import { chunks, completion, startVendor, stream, whole } from './kit/vendor.ts'

type Json = Record<string, unknown>

let served: Served
let client: OpenAI
beforeAll(async () => {
  served = await serve()
  client = new OpenAI({ baseURL: served.url, apiKey: served.token, maxRetries: 0, logLevel: 'off' })
})
beforeEach(() => {
  served.vendor.requests.length = 0
})
afterAll(() => served.close())

const TRIGGER = { type: 'compaction_trigger' as const }
const user = (content: string) => ({ type: 'message' as const, role: 'user' as const, content })
const assistant = (content: string) => ({ type: 'message' as const, role: 'assistant' as const, content })
const HISTORY = [user('Name: Ann'), assistant('Hello Ann')]
const sent = () =>
  (served.vendor.requests.at(-1)?.json() ?? {}) as Json & { messages: { role: string; content: string }[] }
const refusal = async (json: Json, path = '/v1/responses') => {
  const response = await served.gateway.call(path, { json: { model: 'v/m', ...json } })
  const { error } = (await response.json()) as { error: Json }
  return { status: response.status, code: error.code, param: error.param }
}

describe('compaction_trigger', () => {
  it('asks the model for a summary, which later requests send in place of the items', async () => {
    served.vendor.answer(whole(completion('She is Ann. 😀')))
    const tools = [{ type: 'function' as const, name: 'f', parameters: {}, strict: false }]
    const answer = await client.responses.create({ model: 'v/m', input: [...HISTORY, TRIGGER], tools, store: false })
    expect(answer.output.map(({ type }) => type)).toEqual(['compaction'])
    expect(sent()).toMatchObject({ tool_choice: 'none', tools: [{ function: { name: 'f' } }] })
    expect(sent().messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
    expect(sent().messages.at(-1)?.content).toContain('Write a summary')
    await client.responses.create({ model: 'v/m', input: [...(answer.output as never[]), user('Who?')], store: false })
    expect(sent().messages.map(({ content }) => content)).toEqual([
      'Summary of the conversation before this message:\n\nShe is Ann. 😀',
      'Who?',
    ])
  })

  it('streams exactly one compaction item', async () => {
    served.vendor.answer(stream(chunks('She ', 'is Ann.')))
    const events = await client.responses.create({ model: 'v/m', input: [...HISTORY, TRIGGER], stream: true })
    const items: string[] = []
    const types: string[] = []
    for await (const event of events) {
      types.push(event.type)
      if (event.type === 'response.output_item.done') items.push(event.item.type)
    }
    expect(items).toEqual(['compaction'])
    expect(types).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.output_item.done',
      'response.completed',
    ])
  })

  it('is continued without the items before it', async () => {
    served.vendor.answer(whole(completion('Hello Ann')), whole(completion('She is Ann.')))
    const first = await client.responses.create({ model: 'v/m', input: 'Name: Ann' })
    const compacted = await client.responses.create({ model: 'v/m', input: [TRIGGER], previous_response_id: first.id })
    await client.responses.create({ model: 'v/m', input: 'Who?', previous_response_id: compacted.id })
    expect(sent().messages.map(({ content }) => content)).toEqual([
      'Summary of the conversation before this message:\n\nShe is Ann.',
      'Who?',
    ])
  })

  it('fails without a summary, since the conversation would be lost', async () => {
    served.vendor.answer(whole(completion('')))
    expect(await refusal({ input: [...HISTORY, TRIGGER] })).toMatchObject({
      status: 502,
      code: 'bad_upstream_response',
    })
  })

  it('is refused before other items', async () => {
    expect(await refusal({ input: [TRIGGER, user('Hi')] })).toEqual({
      status: 400,
      code: 'invalid_value',
      param: 'input[0].type',
    })
  })

  it('is refused for a summary that only another provider can read', async () => {
    const foreign = { type: 'compaction', encrypted_content: 'gAAAAABk' }
    expect(await refusal({ input: [foreign, user('Hi')] })).toEqual({
      status: 400,
      code: 'unsupported_value',
      param: 'input[0].encrypted_content',
    })
  })
})

describe('POST /v1/responses/compact', () => {
  it('returns the messages of the user and a summary, to be sent as input', async () => {
    served.vendor.answer(whole(completion('She is Ann.')))
    const compacted = await client.responses.compact({ model: 'v/m', input: HISTORY, instructions: 'Be brief.' })
    expect(compacted).toMatchObject({
      id: expect.stringMatching(/^resp_/),
      object: 'response.compaction',
      created_at: expect.any(Number),
      output: [
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Name: Ann' }] },
        { type: 'compaction' },
      ],
      usage: { total_tokens: 12 },
    })
    await client.responses.create({ model: 'v/m', input: [...(compacted.output as never[]), user('Who?')] })
    expect(sent().messages.map(({ content }) => content)).toEqual([
      'Name: Ann',
      'Summary of the conversation before this message:\n\nShe is Ann.',
      'Who?',
    ])
    expect((await served.gateway.call(`/v1/responses/${compacted.id}`)).status).toBe(404)
  })

  it('compacts what previous_response_id continues', async () => {
    served.vendor.answer(whole(completion('Hello Ann')), whole(completion('She is Ann.')))
    const first = await client.responses.create({ model: 'v/m', input: 'Name: Ann', store: true })
    const compacted = await client.responses.compact({ model: 'v/m', previous_response_id: first.id })
    expect(compacted.output.map(({ type }) => type)).toEqual(['message', 'compaction'])
    expect(sent().messages).toHaveLength(3)
  })

  it('returns 400 without anything to compact, before a provider is called', async () => {
    for (const json of [{}, { input: null }, { input: [] }, { input: [], previous_response_id: null }]) {
      expect(await refusal(json, '/v1/responses/compact')).toEqual({
        status: 400,
        code: 'missing_required_parameter',
        param: 'input',
      })
    }
    expect(served.vendor.requests).toEqual([])
  })

  it('refuses a conversation and input of a wrong type', async () => {
    const path = '/v1/responses/compact'
    expect(await refusal({ conversation: 'conv_x' }, path)).toMatchObject({ status: 400, param: 'conversation' })
    expect(await refusal({ input: 7 }, path)).toMatchObject({ status: 400, param: 'input' })
  })

  it('passes the trigger to a provider of the Responses API, which compacts in its own way', async () => {
    const native = startVendor()
    await using gateway = await startGateway({
      providers: { r: { kind: 'responses-compat', base_url: native.url, key: 'vendor-key' } },
      models: { 'r/m': {} },
    })
    const response = (output: Json[]) => ({
      id: 'resp_v',
      object: 'response',
      created_at: 1,
      status: 'completed',
      model: 'm',
      output,
    })
    const secret = { type: 'compaction', id: 'cmp_1', encrypted_content: 'gAAAAABk' }
    native.answer(whole(response([secret])), whole(response([])))
    const compact = () => gateway.call('/v1/responses/compact', { json: { model: 'r/m', input: HISTORY } })
    const compacted = (await (await compact()).json()) as { output: Json[] }
    expect(native.requests[0]?.json()).toMatchObject({ store: false, input: [...HISTORY, TRIGGER] })
    expect(compacted.output.at(-1)).toEqual(secret)
    const ignored = await compact()
    expect([ignored.status, ((await ignored.json()) as { error: Json }).error.code]).toEqual([
      502,
      'bad_upstream_response',
    ])
    await native.stop()
  })
})
