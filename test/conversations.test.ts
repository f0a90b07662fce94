/** Conversations over HTTP, with the `openai` package: their items, and the responses that continue them. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'bun:test'
import OpenAI from 'openai'
import { type Served, serve } from './kit/served.ts'
import { chunk, chunks, completion, failure, hang, stream, whole } from './kit/vendor.ts'

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

const message = (content: string, role: 'user' | 'assistant' = 'user') => ({ type: 'message' as const, role, content })
const ask = (conversation: string | { id: string }, input: string, more: Json = {}) =>
  client.responses.create({ model: 'v/m', input, conversation, ...more })
const rejection = async (promise: Promise<unknown>) =>
  promise.then(
    () => {
      throw new Error('nothing was refused')
    },
    (error: { status?: number; code?: string; param?: string }) => ({
      status: error.status,
      code: error.code,
      param: error.param,
    }),
  )
const sentMessages = () => (served.vendor.requests.at(-1)?.json().messages ?? []) as Json[]
async function textsOf(conversation_id: string): Promise<string[]> {
  const texts: string[] = []
  for await (const item of client.conversations.items.list(conversation_id, { order: 'asc' })) {
    if (item.type !== 'message') texts.push(item.type)
    else for (const part of item.content) texts.push(`${item.role}: ${'text' in part ? part.text : part.type}`)
  }
  return texts
}
const other = async () =>
  new OpenAI({ baseURL: served.url, apiKey: await served.tokenFor(['*']), maxRetries: 0, logLevel: 'off' })

describe('a conversation', () => {
  it('is created, retrieved, updated and deleted', async () => {
    const made = await client.conversations.create({ metadata: { topic: 'demo' } })
    expect(made).toEqual({
      id: expect.stringMatching(/^conv_\w{24}$/),
      object: 'conversation',
      created_at: expect.any(Number),
      metadata: { topic: 'demo' },
    } as never)
    expect(await client.conversations.retrieve(made.id)).toEqual(made)
    const updated = await client.conversations.update(made.id, { metadata: { topic: 'other' } })
    expect(updated).toEqual({ ...made, metadata: { topic: 'other' } })
    expect(await client.conversations.retrieve(made.id)).toEqual(updated)
    const deleted = await client.conversations.delete(made.id)
    expect(deleted).toEqual({ id: made.id, object: 'conversation.deleted', deleted: true })
    const gone = { status: 404, code: 'conversation_not_found' }
    expect(await rejection(client.conversations.retrieve(made.id))).toMatchObject(gone)
    expect(await rejection(client.conversations.delete(made.id))).toMatchObject(gone)
    expect(await rejection(ask(made.id, 'Hi'))).toMatchObject({ ...gone, param: 'conversation' })
  })

  it('is created without a body', async () => {
    expect((await client.conversations.create()).metadata).toEqual({})
  })

  it('belongs to its token in every request', async () => {
    const { id } = await client.conversations.create({ items: [message('Hi')] })
    const { data } = await client.conversations.items.list(id)
    const item_id = (data[0] as { id: string }).id
    const stranger = await other()
    const gone = { status: 404, code: 'conversation_not_found' }
    const place = { conversation_id: id }
    for (const attempt of [
      () => stranger.conversations.retrieve(id),
      () => stranger.conversations.update(id, { metadata: {} }),
      () => stranger.conversations.delete(id),
      () => stranger.conversations.items.list(id).then((page) => page.data),
      () => stranger.conversations.items.create(id, { items: [message('x')] }),
      () => stranger.conversations.items.retrieve(item_id, place),
      () => stranger.conversations.items.delete(item_id, place),
      () => stranger.responses.create({ model: 'v/m', input: 'x', conversation: id }),
      () => stranger.responses.create({ model: 'v/m', input: 'x', conversation: id, background: true }),
      () => stranger.responses.inputTokens.count({ model: 'v/m', input: 'x', conversation: id }),
    ])
      expect(await rejection(attempt())).toMatchObject(gone)
    expect(await textsOf(id)).toEqual(['user: Hi'])
  })

  it('lists its items by pages, and adds, returns and deletes them', async () => {
    const { id } = await client.conversations.create({ items: [message('one')] })
    const place = { conversation_id: id }
    const added = await client.conversations.items.create(id, {
      items: [message('two', 'assistant'), { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' }],
    })
    expect(added.data.map((item) => item.type)).toEqual(['message', 'function_call'])
    expect([added.first_id, added.last_id, added.has_more]).toEqual([
      (added.data[0] as { id: string }).id,
      (added.data[1] as { id: string }).id,
      false,
    ])
    expect(await textsOf(id)).toEqual(['user: one', 'assistant: two', 'function_call'])
    const page = await client.conversations.items.list(id, { limit: 2 })
    expect([page.data.map(({ type }) => type), page.has_more]).toEqual([['function_call', 'message'], true])
    const all: string[] = []
    for await (const item of client.conversations.items.list(id, { limit: 1 })) all.push(item.type)
    expect(all).toHaveLength(3)
    const item = await client.conversations.items.retrieve(added.first_id, place)
    expect(item).toMatchObject({
      id: added.first_id,
      role: 'assistant',
      content: [{ type: 'output_text', text: 'two' }],
    })
    expect(await client.conversations.items.delete(added.first_id, place)).toMatchObject({ id, object: 'conversation' })
    expect(await textsOf(id)).toEqual(['user: one', 'function_call'])
    const gone = { status: 404, code: 'conversation_item_not_found' }
    expect(await rejection(client.conversations.items.retrieve(added.first_id, place))).toMatchObject(gone)
    expect(await rejection(client.conversations.items.delete(added.first_id, place))).toMatchObject(gone)
  })

  it.each([
    ['21 items', { items: Array(21).fill(message('x')) }, 'invalid_value', 'items'],
    ['an item of an unknown type', { items: [{ type: 'nothing' }] }, 'unsupported_parameter', 'items[0].type'],
    [
      'an invalid item',
      { items: [{ type: 'message', role: 'nobody', content: 'x' }] },
      'invalid_value',
      'items[0].role',
    ],
    ['items that are text', { items: 'x' }, 'invalid_type', 'items'],
    ['an item that refers to none', { items: [{ type: 'item_reference', id: 'x' }] }, 'invalid_value', 'items[0].id'],
    ['metadata of 17 pairs', { metadata: pairs(17) }, 'invalid_value', 'metadata'],
    ['a name of 65 characters', { metadata: { ['n'.repeat(65)]: 'x' } }, 'invalid_value', 'metadata'],
    ['a value of 513 characters', { metadata: { a: 'x'.repeat(513) } }, 'invalid_value', 'metadata'],
    ['a value that is a number', { metadata: { a: 1 } }, 'invalid_type', 'metadata.a'],
  ])('refuses %s', async (_, body, code, param) => {
    const response = await served.gateway.call('/v1/conversations', { json: body })
    const { error } = (await response.json()) as { error: Json }
    expect({ status: response.status, code: error.code, param: error.param }).toEqual({ status: 400, code, param })
  })

  it('accepts 20 items and metadata at its limits', async () => {
    const metadata = { ...pairs(15), ['n'.repeat(64)]: 'x'.repeat(512) }
    const { id } = await client.conversations.create({ items: Array(20).fill(message('x')), metadata })
    expect(await textsOf(id)).toHaveLength(20)
  })

  it('refuses an update without metadata, items that are missing, and unknown cursors', async () => {
    const { id } = await client.conversations.create()
    const post = (path: string) => served.gateway.call(`/v1/conversations/${id}${path}`, { json: {} })
    for (const [path, param] of [
      ['', 'metadata'],
      ['/items', 'items'],
    ] as const) {
      const { error } = (await (await post(path)).json()) as { error: Json }
      expect(error).toMatchObject({ code: 'missing_required_parameter', param })
    }
    const list = client.conversations.items.list(id, { after: 'msg_nothing' })
    expect(await rejection(list)).toMatchObject({ status: 400, param: 'after' })
  })

  it('names the path with /v1 to a client that leaves it out', async () => {
    const response = await served.gateway.call('/conversations', { json: {} })
    expect([response.status, await response.text()]).toEqual([404, expect.stringContaining('/v1/conversations')])
  })
})

function pairs(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`name${index}`, 'value']))
}

describe('a response with a conversation', () => {
  it('gets the items before it, and appends its input and output', async () => {
    const { id } = await client.conversations.create({ items: [message('Name: Ann')] })
    served.vendor.answer(whole(completion('Hello Ann')), whole(completion('You are Ann')))
    const first = await ask(id, 'Hi')
    expect(first.conversation).toEqual({ id })
    expect(sentMessages()).toEqual([
      { role: 'user', content: 'Name: Ann' },
      { role: 'user', content: 'Hi' },
    ])
    await ask({ id }, 'Who am I?')
    expect(sentMessages().map(({ content }) => content)).toEqual(['Name: Ann', 'Hi', 'Hello Ann', 'Who am I?'])
    expect(await textsOf(id)).toEqual([
      'user: Name: Ann',
      'user: Hi',
      'assistant: Hello Ann',
      'user: Who am I?',
      'assistant: You are Ann',
    ])
    expect((await client.responses.retrieve(first.id)).conversation).toEqual({ id })
  })

  it('appends a streamed response before the client sees its end', async () => {
    const { id } = await client.conversations.create()
    served.vendor.answer(stream(chunks('Hel', 'lo')))
    const events = await client.responses.create({ model: 'v/m', input: 'Hi', conversation: id, stream: true })
    for await (const event of events) {
      if (event.type === 'response.completed') expect(event.response.conversation).toEqual({ id })
    }
    served.vendor.answer(whole(completion('Again')))
    await ask(id, 'Next')
    expect(await textsOf(id)).toEqual(['user: Hi', 'assistant: Hello', 'user: Next', 'assistant: Again'])
  })

  it('keeps items with ids that the conversation has, under new ids', async () => {
    const { id } = await client.conversations.create()
    await ask(id, 'Hi')
    const { data } = await client.conversations.items.list(id, { order: 'asc' })
    await client.responses.create({ model: 'v/m', conversation: id, input: [data[0] as never] })
    const ids: string[] = []
    for await (const item of client.conversations.items.list(id)) ids.push((item as { id: string }).id)
    expect([ids.length, new Set(ids).size]).toEqual([4, 4])
  })

  it('counts the tokens of the items before it, without a lock', async () => {
    const { id } = await client.conversations.create({ items: [message('a b c d e f g h')] })
    const alone = await client.responses.inputTokens.count({ model: 'sandbox/general', input: 'x' })
    const both = await client.responses.inputTokens.count({ model: 'sandbox/general', input: 'x', conversation: id })
    expect(both.input_tokens).toBeGreaterThan(alone.input_tokens)
    await ask(id, 'Hi')
  })

  it('is refused while another one continues the conversation, which then continues as before', async () => {
    const { id } = await client.conversations.create()
    const held = Promise.withResolvers<void>()
    served.vendor.answer(
      stream([chunk({ role: 'assistant', content: '' }), chunk({ content: 'A' }), held.promise, chunk({}, 'stop')]),
    )
    const slow = await client.responses.create({ model: 'v/m', input: 'one', conversation: id, stream: true })
    const busy = { status: 409, code: 'conversation_locked', param: 'conversation' }
    expect(await rejection(ask(id, 'two'))).toEqual(busy)
    expect(await rejection(ask(id, 'two', { background: true }))).toEqual(busy)
    expect(await rejection(client.conversations.items.create(id, { items: [message('x')] }))).toEqual(busy)
    expect(served.vendor.requests).toHaveLength(1)
    held.resolve()
    for await (const _ of slow);
    await ask(id, 'three')
    expect(await textsOf(id)).toEqual(['user: one', 'assistant: A', 'user: three', 'assistant: Hello'])
  })

  it('lets one of two win that start at once', async () => {
    const { id } = await client.conversations.create()
    const results = await Promise.allSettled([ask(id, 'one'), ask(id, 'two')])
    const failed = results.filter(({ status }) => status === 'rejected')
    // Both may succeed, one after the other; they are never mixed.
    const texts = await textsOf(id)
    expect(texts).toHaveLength(2 * (2 - failed.length))
    expect(texts.filter((_, at) => at % 2 === 1)).toEqual(Array(2 - failed.length).fill('assistant: Hello'))
  })

  it('appends nothing and frees the conversation when the provider fails', async () => {
    const { id } = await client.conversations.create()
    served.vendor.answer(failure(400, { error: { message: 'No', type: 'invalid_request_error' } }))
    expect(await rejection(ask(id, 'one'))).toMatchObject({ status: 400 })
    served.vendor.answer(stream(chunks('x', 'y'), { cutAfter: 2 }))
    const response = await served.gateway.call('/v1/responses', {
      json: { model: 'v/m', input: 'two', conversation: id, stream: true },
    })
    await response.text()
    await freed(id)
    expect(await textsOf(id)).toEqual(['user: three', 'assistant: Hello'])
  })

  it('frees the conversation when the client leaves', async () => {
    const { id } = await client.conversations.create()
    served.vendor.answer(hang())
    const control = new AbortController()
    const left = client.responses.create({ model: 'v/m', input: 'one', conversation: id }, { signal: control.signal })
    left.catch(() => {})
    await served.vendor.request(1)
    control.abort()
    await served.vendor.requests[0]?.aborted
    await freed(id)
    expect(await textsOf(id)).toEqual(['user: three', 'assistant: Hello'])
  })

  /** Asks until the lock is released, which happens after the client has seen the failure. */
  async function freed(id: string): Promise<void> {
    for (let attempt = 0; attempt < 3_000; attempt++) {
      const outcome = await ask(id, 'three').catch((error: { code?: string }) => error.code)
      if (outcome !== 'conversation_locked') return
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    throw new Error('The conversation stays locked.')
  }

  it.each([
    ['with previous_response_id', { previous_response_id: 'resp_x' }, 'conversation'],
    ['with store: false', { store: false }, 'store'],
  ])('is refused %s', async (_, fields, param) => {
    const { id } = await client.conversations.create()
    expect(await rejection(ask(id, 'Hi', fields))).toEqual({ status: 400, code: 'invalid_value', param })
  })

  it('is deleted without the items that it appended', async () => {
    const { id } = await client.conversations.create()
    const response = await ask(id, 'Hi')
    await client.responses.delete(response.id)
    expect(await textsOf(id)).toEqual(['user: Hi', 'assistant: Hello'])
  })
})

describe('a response in the background with a conversation', () => {
  async function ended(id: string): Promise<OpenAI.Responses.Response> {
    for (let attempt = 0; attempt < 3_000; attempt++) {
      const response = await client.responses.retrieve(id)
      if (response.status !== 'queued' && response.status !== 'in_progress') return response
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    throw new Error('It did not end.')
  }

  it('holds the conversation until it ends, and appends its items', async () => {
    const { id } = await client.conversations.create({ items: [message('Name: Ann')] })
    const held = Promise.withResolvers<void>()
    served.vendor.answer(
      stream([chunk({ role: 'assistant', content: '' }), held.promise, chunk({ content: 'A' }), chunk({}, 'stop')]),
    )
    const queued = await ask(id, 'one', { background: true })
    expect(queued).toMatchObject({ status: 'queued', conversation: { id } })
    expect(await rejection(ask(id, 'two'))).toMatchObject({ status: 409, code: 'conversation_locked' })
    await served.vendor.request(1)
    expect(sentMessages().map(({ content }) => content)).toEqual(['Name: Ann', 'one'])
    held.resolve()
    expect(await ended(queued.id)).toMatchObject({ status: 'completed', conversation: { id } })
    await ask(id, 'two')
    expect(await textsOf(id)).toEqual(['user: Name: Ann', 'user: one', 'assistant: A', 'user: two', 'assistant: Hello'])
  })

  it('frees the conversation when it is canceled', async () => {
    const { id } = await client.conversations.create()
    served.vendor.answer(hang())
    const queued = await ask(id, 'one', { background: true })
    await served.vendor.request(1)
    await client.responses.cancel(queued.id)
    await ask(id, 'two')
    expect(await textsOf(id)).toEqual(['user: two', 'assistant: Hello'])
  })

  it('fails, and calls no model, when the conversation was deleted meanwhile', async () => {
    const { id } = await client.conversations.create()
    served.vendor.answer(failure(500, { error: { message: 'No' } }))
    const queued = await ask(id, 'one', { background: true })
    await client.conversations.delete(id)
    expect((await ended(queued.id)).status).toBe('failed')
  })
})
