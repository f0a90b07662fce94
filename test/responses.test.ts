/** Responses over HTTP: storing, retention, continuing, and a coding agent that stores the conversation itself. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { chunk, completion, failure, startVendor, stream, usageChunk, type Vendor, whole } from './kit/vendor.ts'

type Json = Record<string, unknown>
type Answer = { id: string; status: string; output: Json[]; error: Json; data: Json[]; has_more: boolean } & Json

let vendor: Vendor
let gateway: TestGateway
beforeAll(async () => {
  vendor = startVendor()
  gateway = await startGateway({
    providers: { v: { base_url: vendor.url, key: 'vendor-key' } },
    models: { 'v/m': {}, 'v/blind': { capabilities: { image_input: false } } },
  })
})
beforeEach(() => {
  vendor.requests.length = 0
})
afterAll(async () => {
  await gateway[Symbol.asyncDispose]()
  await vendor.stop()
})

const post = (body: object, headers?: Record<string, string>) =>
  gateway.call('/v1/responses', { json: { model: 'v/m', ...body }, ...(headers ? { headers } : {}) })
const answerOf = async (response: Response | Promise<Response>): Promise<Answer> =>
  (await (await response).json()) as Answer
const get = (path: string, headers?: Record<string, string>) =>
  gateway.call(`/v1/responses/${path}`, headers ? { headers } : {})
const lastMessages = () => vendor.requests.at(-1)?.json().messages as Json[]
/** The data of each event, in order. */
const eventsOf = (text: string): Json[] =>
  [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data) as Json)

const call = (id: string, name: string, text: string, index = 0) => ({
  index,
  id,
  type: 'function',
  function: { name, arguments: text },
})
const SHELL = { type: 'function', name: 'shell', parameters: { type: 'object' }, strict: false }
const PIXEL = 'data:image/png;base64,iVBORw0KGgo='

describe('a coding agent that stores its conversation itself', () => {
  /** What such an agent sends with every turn. */
  const base = {
    instructions: 'You are a coding agent.',
    tools: [SHELL, { type: 'custom', name: 'apply_patch', format: { type: 'text' } }, { type: 'web_search' }],
    tool_choice: 'auto',
    parallel_tool_calls: true,
    reasoning: { effort: 'medium', summary: 'auto' },
    store: false,
    stream: true,
    include: ['reasoning.encrypted_content'],
    prompt_cache_key: 'session-1',
    text: { verbosity: 'low' },
  }

  test('sends the whole history again, and the provider receives it translated', async () => {
    const input: Json[] = [
      { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'The folder is /a.' }] },
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: 'Fix it.' },
          { type: 'input_image', image_url: PIXEL },
        ],
      },
    ]
    vendor.answer(
      stream([
        chunk({ role: 'assistant', reasoning_content: 'I look first.' }),
        chunk({ content: 'Looking.' }),
        chunk({ tool_calls: [call('call_1', 'shell', '{"cmd":'), call('call_2', 'apply_patch', '{"in', 1)] }),
        chunk({ tool_calls: [{ index: 0, function: { arguments: '"ls"}' } }] }),
        chunk({ tool_calls: [{ index: 1, function: { arguments: 'put":"*** P"}' } }] }),
        chunk({}, 'tool_calls'),
        usageChunk(),
      ]),
    )
    const first = eventsOf(await (await post({ ...base, input })).text())
    const done = first.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item as Json)
    expect(done.map(({ type }) => type)).toEqual(['reasoning', 'message', 'function_call', 'custom_tool_call'])
    expect(first.at(-1)).toMatchObject({ type: 'response.completed', response: { store: false } })

    // The items are sent back unchanged, with the results.
    input.push(
      ...done,
      { type: 'function_call_output', call_id: 'call_1', output: 'a.ts' },
      { type: 'custom_tool_call_output', call_id: 'call_2', output: [{ type: 'input_text', text: 'Done' }] },
    )
    await (await post({ ...base, input })).text()
    expect(lastMessages()).toEqual([
      { role: 'system', content: 'You are a coding agent.' },
      { role: 'system', content: 'The folder is /a.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Fix it.' },
          { type: 'image_url', image_url: { url: PIXEL } },
        ],
      },
      {
        role: 'assistant',
        content: 'Looking.',
        reasoning_content: 'I look first.',
        tool_calls: [
          { id: 'call_1', type: 'function', function: { name: 'shell', arguments: '{"cmd":"ls"}' } },
          { id: 'call_2', type: 'function', function: { name: 'apply_patch', arguments: '{"input":"*** P"}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'call_1', content: 'a.ts' },
      { role: 'tool', tool_call_id: 'call_2', content: 'Done' },
    ])
    const { response } = first.at(-1) as { response: Answer }
    expect((await get(response.id)).status).toBe(404)
  })
})

describe('refused Responses requests', () => {
  test.each([
    [{ input: 'x', model: 'v/none' }, 404, 'model_not_found', 'model'],
    [{ input: 'x', previous_response_id: 'resp_none' }, 400, 'previous_response_not_found', 'previous_response_id'],
    [{ input: [{ type: 'item_reference', id: 'msg_none_0' }] }, 400, 'invalid_value', 'input[0].id'],
    [{ input: 'x', tools: [{ type: 'shell' }] }, 400, 'unsupported_parameter', 'tools[0].type'],
    [
      { model: 'v/blind', input: [{ role: 'user', content: [{ type: 'input_image', image_url: PIXEL }] }] },
      400,
      'unsupported_value',
      'input[0].content[0].type',
    ],
  ])('return for %j: %d %s at %s, streamed or not', async (body, status, code, param) => {
    for (const more of [{}, { stream: true }]) {
      const response = await post({ ...body, ...more })
      expect(response.status).toBe(status)
      expect((await answerOf(response)).error).toMatchObject({ code, param, type: 'invalid_request_error' })
    }
    expect(vendor.requests).toEqual([])
  })

  test('of the provider keep their status, and nothing is stored', async () => {
    vendor.answer(failure(400, { error: { message: 'No.' } }))
    expect((await post({ input: 'x' })).status).toBe(400)
  })
})

describe('a stored response', () => {
  test('is continued without its instructions, with the calls and their results', async () => {
    const tool = completion('', {
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: null, tool_calls: [call('call_1', 'shell', '{}')] },
          finish_reason: 'tool_calls',
        },
      ],
    })
    vendor.answer(whole(tool))
    const first = await answerOf(post({ input: 'Go.', instructions: 'Once.', tools: [SHELL] }))
    const next = { tools: [SHELL], input: [{ type: 'function_call_output', call_id: 'call_1', output: 'ok' }] }
    const second = await answerOf(post({ ...next, previous_response_id: first.id, instructions: 'Now.' }))
    expect(lastMessages()).toMatchObject([
      { role: 'system', content: 'Now.' },
      { role: 'user', content: 'Go.' },
      { role: 'assistant', tool_calls: [{ id: 'call_1' }] },
      { role: 'tool', tool_call_id: 'call_1', content: 'ok' },
    ])
    expect(second.previous_response_id).toBe(first.id)

    // If one of the earlier responses was deleted, a later one cannot be continued.
    await gateway.call(`/v1/responses/${first.id}`, { method: 'DELETE' })
    const third = await post({ input: 'x', previous_response_id: second.id })
    expect([third.status, (await answerOf(third)).error.code]).toEqual([400, 'previous_response_not_found'])
  })

  test('can be referred to by the ids of its items', async () => {
    const first = await answerOf(post({ input: 'One' }))
    const [{ id } = {}] = first.output
    await post({
      input: [
        { role: 'user', content: 'One' },
        { type: 'item_reference', id },
        { role: 'user', content: 'Two' },
      ],
    })
    expect(lastMessages()).toEqual([
      { role: 'user', content: 'One' },
      { role: 'assistant', content: 'Hello' },
      { role: 'user', content: 'Two' },
    ])
  })

  test('does not exist with store: false, streamed or not', async () => {
    const one = await answerOf(post({ input: 'x', store: false }))
    const events = eventsOf(await (await post({ input: 'x', store: false, stream: true })).text())
    const { id } = (events.at(-1) as { response: Answer }).response
    expect([(await get(one.id)).status, (await get(id)).status, one.store]).toEqual([404, 404, false])
  })

  test('exists when the end of its stream was sent', async () => {
    const events = eventsOf(await (await post({ input: 'x', stream: true })).text())
    const { response } = events.at(-1) as { response: Answer }
    expect(await answerOf(get(response.id))).toEqual(response)
  })

  test('does not exist after an interruption', async () => {
    const received = Promise.withResolvers<void>()
    vendor.answer(stream([chunk({ content: 'Hel' }), received.promise], { cutAfter: 1 }))
    const { body } = await post({ input: 'x', stream: true })
    let text = ''
    for await (const piece of body ?? []) {
      text += Buffer.from(piece).toString()
      if (text.includes('Hel')) received.resolve()
    }
    const { type, response } = eventsOf(text).at(-1) as { type: string; response: Answer }
    expect([type, response.status, response.error.code]).toEqual(['response.failed', 'failed', 'server_error'])
    expect((await get(response.id)).status).toBe(404)
  })

  test('belongs to its token', async () => {
    const { id } = await answerOf(post({ input: 'x' }))
    const { secret } = await gateway.instance.tokens.issue({ name: 'other', models: ['*'] })
    const authorization = `Bearer ${secret}`
    for (const path of [id, `${id}/input_items`]) {
      const response = await get(path, { authorization })
      expect([response.status, (await answerOf(response)).error.code]).toEqual([404, 'response_not_found'])
    }
    const removed = await gateway.call(`/v1/responses/${id}`, { method: 'DELETE', headers: { authorization } })
    expect([removed.status, (await get(id)).status]).toEqual([404, 200])
  })

  test('is deleted after 30 days, unless a later response continues it', async () => {
    const first = await answerOf(post({ input: 'One' }))
    gateway.clock.advance(20 * 86_400_000)
    const second = await answerOf(post({ input: 'Two', previous_response_id: first.id }))
    gateway.clock.advance(29 * 86_400_000)
    expect((await post({ input: 'Three', previous_response_id: second.id })).status).toBe(200)
    gateway.clock.advance(32 * 86_400_000)
    expect([(await get(first.id)).status, (await get(second.id)).status]).toEqual([404, 404])
  }, 120_000) // 81 days of timers

  test('includes encrypted content on request', async () => {
    vendor.answer(
      stream([chunk({ reasoning_content: 'Hm.' }), chunk({ content: 'A' }), chunk({}, 'stop'), usageChunk()]),
    )
    const include = ['reasoning.encrypted_content']
    const events = eventsOf(await (await post({ input: 'x', stream: true, include })).text())
    const { id } = (events.at(-1) as { response: Answer }).response
    const reasoning = async (query: string) => (await answerOf(get(`${id}${query}`))).output[0]
    expect(await reasoning('')).not.toHaveProperty('encrypted_content')
    for (const query of ['?include=reasoning.encrypted_content', '?include[]=reasoning.encrypted_content']) {
      expect(await reasoning(query)).toHaveProperty('encrypted_content')
    }
  })

  test('lists its input items page by page, newest first by default', async () => {
    const input = [1, 2, 3].map((n) => ({ role: 'user', content: `Word ${n}` }))
    const { id } = await answerOf(post({ input }))
    const texts = ({ data }: Answer) => data.map(({ content }) => (content as Json[])[0]?.text)
    const page = await answerOf(get(`${id}/input_items?limit=2`))
    expect([texts(page), page.has_more]).toEqual([['Word 3', 'Word 2'], true])
    const rest = await answerOf(get(`${id}/input_items?limit=2&after=${page.last_id}`))
    expect([texts(rest), rest.has_more]).toEqual([['Word 1'], false])
    expect(texts(await answerOf(get(`${id}/input_items?order=asc`)))).toEqual(['Word 1', 'Word 2', 'Word 3'])
    for (const query of ['limit=0', 'limit=101', 'limit=x', 'limit=0x10', 'order=up', 'after=none']) {
      const response = await get(`${id}/input_items?${query}`)
      expect([query, response.status]).toEqual([query, 400])
      expect((await answerOf(response)).error.param).toBe(query.split('=')[0])
    }
    for (const query of ['limit=100', 'after=']) expect((await get(`${id}/input_items?${query}`)).status).toBe(200)
  })
})

test('does not exist if the operator turned storing off', async () => {
  await using none = await startGateway({ responses: { keep_days: 0, store_default: true } })
  const ask = (more: object) => none.call('/v1/responses', { json: { model: 'sandbox/general', input: 'x', ...more } })
  const { id, store } = await answerOf(ask({ store: true }))
  expect([store, (await none.call(`/v1/responses/${id}`)).status]).toEqual([false, 404])
  const refused = await ask({ background: true })
  expect([refused.status, (await answerOf(refused)).error.param]).toEqual([400, 'background'])
})

describe('with responses.store_default: false', () => {
  let quiet: TestGateway
  beforeAll(async () => {
    quiet = await startGateway({ responses: { keep_days: 30, store_default: false } })
  })
  afterAll(() => quiet[Symbol.asyncDispose]())
  const ask = async (more: object) => {
    const json = { model: 'sandbox/general', input: 'x', ...more }
    const response = await answerOf(quiet.call('/v1/responses', { json }))
    const { status } = await quiet.call(`/v1/responses/${response.id}`)
    return { id: response.id, stored: status === 200, store: response.store }
  }

  test('a response is not stored without store, streamed or not', async () => {
    expect(await ask({})).toMatchObject({ stored: false, store: false })
    const text = await (
      await quiet.call('/v1/responses', { json: { model: 'sandbox/general', input: 'x', stream: true } })
    ).text()
    const { response } = eventsOf(text).at(-1) as { response: Json }
    expect([response.store, (await quiet.call(`/v1/responses/${response.id}`)).status]).toEqual([false, 404])
  })

  test('a response is stored with store: true, and so is one that continues it, unless it says otherwise', async () => {
    const first = await ask({ store: true })
    expect(first).toMatchObject({ stored: true, store: true })
    const next = await ask({ previous_response_id: first.id })
    expect(next).toMatchObject({ stored: true, store: true })
    expect(await ask({ previous_response_id: next.id, store: false })).toMatchObject({ stored: false, store: false })
  })

  test('a response with a conversation or in the background is stored', async () => {
    const made = await quiet.call('/v1/conversations', { json: {} })
    const { id: conversation } = (await made.json()) as { id: string }
    expect(await ask({ conversation })).toMatchObject({ stored: true, store: true })
    expect(await ask({ background: true })).toMatchObject({ stored: true, store: true })
  })
})

test('without stored responses there are no conversations', async () => {
  await using none = await startGateway({ responses: { keep_days: 0, store_default: true } })
  const made = await none.call('/v1/conversations', { json: {} })
  expect([made.status, (await answerOf(made)).error.code]).toEqual([400, 'unsupported_parameter'])
  const json = { model: 'sandbox/general', input: 'x', conversation: 'conv_x' }
  const refused = await none.call('/v1/responses', { json })
  expect([refused.status, (await answerOf(refused)).error.param]).toEqual([400, 'conversation'])
})
