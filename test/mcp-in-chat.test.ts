/** Responses whose MCP tools the gateway calls itself, as clients of the official SDK see them. */
import { afterEach, beforeEach, describe, expect, it } from 'bun:test'
import OpenAI from 'openai'
import type { Response as OpenAiResponse, ResponseStreamEvent } from 'openai/resources/responses/responses'
import { DEFAULT_MCP, type McpSettings } from '../src/config/config.ts'
import { systemClock } from '../src/kit/clock.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { type McpVendor, say, startMcpVendor, tool } from './kit/mcp-vendor.ts'

let vendor: McpVendor
let gateway: TestGateway
let client: OpenAI
beforeEach(async () => {
  vendor = startMcpVendor()
  vendor.tools = [tool('weather', 'The weather of a city.'), tool('mail', 'Sends a mail.')]
  await start()
})
afterEach(async () => {
  await gateway[Symbol.asyncDispose]()
  await vendor.stop()
})

async function start(settings: Partial<McpSettings> = {}, rest: Parameters<typeof startGateway>[0] = {}) {
  await gateway?.[Symbol.asyncDispose]()
  const servers = { v: { url: vendor.url, tools: { '*': { price: 0.5 } } } }
  const mcp = { ...DEFAULT_MCP, servers, ...settings }
  gateway = await startGateway({ mcp, ...rest }, { clock: systemClock })
  client = new OpenAI({
    apiKey: gateway.token,
    baseURL: 'http://gatehouse.test/v1',
    maxRetries: 0,
    fetch: (url, init) => gateway.instance.fetch(new Request(url as string, init as RequestInit)),
  })
}

/** The error of a request, which is a promise of its own kind. */
const failed = (asking: PromiseLike<unknown>) =>
  asking.then(
    () => undefined,
    (error: unknown) => error,
  )

const model = 'sandbox/general'
const never = { type: 'mcp' as const, server_label: 'v', require_approval: 'never' as const }
const typesOf = ({ output }: Pick<OpenAiResponse, 'output'>) => output.map(({ type }) => type)
const question = 'What is the weather in Paris?'

async function eventsOf(body: object): Promise<ResponseStreamEvent[]> {
  const stream = await client.responses.create({ model, input: question, stream: true, ...body } as never)
  return await Array.fromAsync(stream as unknown as AsyncIterable<ResponseStreamEvent>)
}

describe('a response with tools of an MCP server', () => {
  it('holds the list of the tools, the call with its result, and the answer', async () => {
    vendor.answer = () => say('It is sunny.')
    const response = await client.responses.create({ model, input: question, tools: [never] })
    expect(typesOf(response)).toEqual(['mcp_list_tools', 'mcp_call', 'message'])
    expect(response.output[0]).toMatchObject({ server_label: 'v', tools: [{ name: 'weather' }, { name: 'mail' }] })
    expect(response.output[1]).toMatchObject({
      server_label: 'v',
      name: 'weather',
      output: 'It is sunny.',
      error: null,
      status: 'completed',
      approval_request_id: null,
    })
    expect(response.output_text).not.toBe('')
    expect(vendor.calls).toBe(1)
  })

  it('is streamed with the events of the API, in order and numbered', async () => {
    const events = await eventsOf({ tools: [never] })
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index))
    const types = [...new Set(events.map(({ type }) => type))]
    expect(
      types.filter((type) => !type.startsWith('response.output_text') && !type.startsWith('response.content')),
    ).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.mcp_list_tools.in_progress',
      'response.mcp_list_tools.completed',
      'response.output_item.done',
      'response.mcp_call.in_progress',
      'response.mcp_call_arguments.delta',
      'response.mcp_call_arguments.done',
      'response.mcp_call.completed',
      'response.completed',
    ])
    const last = events.at(-1) as { response: OpenAiResponse }
    expect(typesOf(last.response)).toEqual(['mcp_list_tools', 'mcp_call', 'message'])
    const done = events.filter(({ type }) => type === 'response.output_item.done') as { item: unknown }[]
    expect(done.map(({ item }) => item)).toEqual(last.response.output)
  })

  it('is charged for each round and each call, once', async () => {
    const response = await client.responses.create({ model, input: question, tools: [never] })
    const rows = await usage(3)
    expect(rows).toMatchObject([
      { model: 'mcp/v/weather', requests: 1, cost: 0.5 },
      { model, requests: 2 },
    ])
    expect(response.usage?.input_tokens).toBe(rows[1]?.input_tokens)
    expect(response.usage?.output_tokens).toBe(rows[1]?.output_tokens)
  })

  it('gives the failure of a tool to the model', async () => {
    vendor.answer = () => ({ ...say('no such city'), isError: true })
    const response = await client.responses.create({ model, input: question, tools: [never] })
    expect(response.output[1]).toMatchObject({ status: 'failed', error: 'no such city', output: null })
    expect(typesOf(response).at(-1)).toBe('message')
  })

  it('offers only what the client allows, and what the token may use', async () => {
    const named = { ...never, allowed_tools: ['mail'] }
    const response = await client.responses.create({ model, input: question, tools: [named] })
    expect(response.output[0]).toMatchObject({ tools: [{ name: 'mail' }] })
    expect(vendor.calls).toBe(0)
    const { secret } = await gateway.instance.tokens.issue({ name: 'limited', models: ['sandbox/*'] })
    const limited = client.withOptions({ apiKey: secret })
    const other = await limited.responses.create({ model, input: question, tools: [never] })
    expect(other.output[0]).toMatchObject({ tools: [] })
  })

  it('refuses a server that is none of the token', async () => {
    await start({ servers: { v: { url: vendor.url, tokens: ['tok_other'] } } })
    const asking = client.responses.create({ model, input: question, tools: [never] })
    expect(await failed(asking)).toMatchObject({ status: 400, param: 'tools[0].server_label' })
  })

  it('is refused before a model or a tool is paid for where it must call a tool that is not offered', async () => {
    const one = { ...never, allowed_tools: ['mail'] }
    for (const name of ['weather', 'none']) {
      const tool_choice = { type: 'mcp' as const, server_label: 'v', name }
      const refused = await failed(client.responses.create({ model, input: question, tools: [one], tool_choice }))
      expect(refused).toMatchObject({ status: 400, param: expect.stringContaining('tool_choice') })
    }
    expect([vendor.calls, await usage(0)]).toEqual([0, []])
  })

  it('calls no tool, and charges none, that the client approves and that is not offered or allowed', async () => {
    const one = { ...never, allowed_tools: ['mail'] }
    for (const name of ['weather', 'none']) {
      const input = [
        { role: 'user', content: 'Hello' },
        { type: 'mcp_approval_request', id: 'mcpr_1', server_label: 'v', name, arguments: '{}' },
        { type: 'mcp_approval_response', approval_request_id: 'mcpr_1', approve: true },
      ]
      const response = await client.responses.create({ model, input: input as never, tools: [one] })
      expect(response.output.find(({ type }) => type === 'mcp_call')).toMatchObject({
        status: 'failed',
        error: `There is no tool "${name}".`,
      })
    }
    expect(vendor.calls).toBe(0)
    expect((await usage(2)).map((row) => JSON.stringify(row)).join()).not.toContain('mcp/')
  })

  it('is not generated in the background', async () => {
    for (const stream of [false, true]) {
      const refused = await failed(
        client.responses.create({ model, input: question, tools: [never], background: true, stream } as never),
      )
      expect(refused).toMatchObject({ status: 400, param: 'background', code: 'unsupported_parameter' })
    }
    expect(vendor.calls).toBe(0)
  })

  it('reports a server that is away before anything is generated', async () => {
    await vendor.stop()
    expect(await failed(client.responses.create({ model, input: question, tools: [never] }))).toMatchObject({
      status: 502,
    })
    expect(await usage(0)).toEqual([])
  })

  it('ends after the rounds and the calls that are allowed', async () => {
    await start({ max_chat_calls: 1 })
    const both = 'What is the weather in Paris? Then send a mail.'
    const response = await client.responses.create({ model, input: both, tools: [never] })
    expect(vendor.calls).toBe(1)
    expect(response.output.filter(({ type }) => type === 'mcp_call')).toMatchObject([
      { status: 'completed' },
      { status: 'failed', error: expect.stringContaining('No more than 1') },
    ])
    expect(response.status).toBe('completed')
  })

  it.each([
    [0.4, 1],
    [0.9, 2],
  ])('offers no more tools once its calls have cost %d', async (max_chat_cost, calls) => {
    const answers = Bun.serve({
      port: 0,
      async fetch(request) {
        const { tools, tool_choice } = (await request.json()) as {
          tools?: { function: { name: string } }[]
          tool_choice?: string
        }
        const [{ function: called } = { function: { name: '' } }] = tools ?? []
        const call = { index: 0, id: 'c', type: 'function', function: { name: called.name, arguments: '{}' } }
        const isOver = tool_choice === 'none'
        const delta = isOver ? { content: 'Enough.' } : { tool_calls: [call] }
        const chunk = { id: 'a', choices: [{ index: 0, delta, finish_reason: isOver ? 'stop' : 'tool_calls' }] }
        const text = `data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`
        return new Response(text, { headers: { 'content-type': 'text/event-stream' } })
      },
    })
    const providers = { p: { base_url: `${answers.url}v1`, key: 'k' } } as never
    const models = { greedy: { targets: [{ provider: 'p', model: 'm' }] } } as never
    await start({ max_chat_cost }, { providers, models })
    const response = await client.responses.create({ model: 'greedy', input: question, tools: [never] })
    await answers.stop(true)
    expect([vendor.calls, response.output_text]).toEqual([calls, 'Enough.'])
  })

  it('keeps functions of the client for the client', async () => {
    const own = {
      type: 'function' as const,
      name: 'note',
      description: 'Writes a note.',
      parameters: {},
      strict: false,
    }
    const both = 'What is the weather in Paris? Write a note.'
    const response = await client.responses.create({ model, input: both, tools: [never, own] })
    expect(typesOf(response).toSorted()).toEqual(['function_call', 'mcp_call', 'mcp_list_tools'])
  })

  it('is failed where a later round is refused, and what was done is charged', async () => {
    const { secret } = await gateway.instance.tokens.issue({ name: 'few', rate_limits: { requests_per_hour: 2 } })
    const limited = client.withOptions({ apiKey: secret })
    const body = { model, input: question, tools: [never] }
    expect(await limited.responses.create(body)).toMatchObject({
      status: 'failed',
      error: { code: 'rate_limit_exceeded' },
      output: [{}, { output: 'done' }],
    })
    expect(await failed(limited.responses.create(body))).toMatchObject({ status: 429 })
    expect(await usage(2, secret)).toMatchObject([{ requests: 1, cost: 0.5 }, { requests: 1 }])
  })

  it('ends the call of a tool when its client leaves', async () => {
    const ended = Promise.withResolvers<void>()
    const leaving = new AbortController()
    vendor.answer = (_, signal) => {
      signal.addEventListener('abort', () => ended.resolve())
      leaving.abort()
      return new Promise(() => {})
    }
    const body = { model, input: question, tools: [never], stream: true as const }
    const stream = await client.responses.create(body, { signal: leaving.signal })
    await Array.fromAsync(stream).catch(() => {})
    await ended.promise
    expect(vendor.calls).toBe(1)
  })

  it('ends after max_chat_seconds', async () => {
    await start({ max_chat_seconds: 0.3 })
    vendor.answer = () => new Promise(() => {})
    expect(await failed(eventsOf({ tools: [never] }))).toMatchObject({ message: expect.stringContaining('0.3 s') })
  })

  it('checks arguments and results by guards', async () => {
    const guards = {
      secret: {
        kind: 'patterns' as const,
        patterns: ['falcon'],
        action: 'block' as const,
        when: { models: ['mcp/v/*'] },
      },
    }
    await start({}, { guards })
    vendor.answer = () => say('It is the falcon.')
    const response = await client.responses.create({ model, input: question, tools: [never] })
    expect(response.output[1]).toMatchObject({ status: 'failed', output: null })
    expect(JSON.stringify(response)).not.toContain('falcon')
  })
})

describe('approval', () => {
  const asking = { ...never, require_approval: 'always' as const }

  it('is asked for, and the call is made once it is given', async () => {
    const first = await client.responses.create({ model, input: question, tools: [asking] })
    expect(typesOf(first)).toEqual(['mcp_list_tools', 'mcp_approval_request'])
    expect(vendor.calls).toBe(0)
    const approval_request_id = first.output[1]?.id ?? ''
    const answer = { type: 'mcp_approval_response' as const, approval_request_id, approve: true }
    const second = await client.responses.create({
      model,
      previous_response_id: first.id,
      input: [answer],
      tools: [asking],
    })
    expect(typesOf(second)).toEqual(['mcp_call', 'message'])
    expect(second.output[0]).toMatchObject({ approval_request_id, output: 'done', name: 'weather' })
    expect(vendor.calls).toBe(1)
    await client.responses.create({ model, previous_response_id: second.id, input: 'Thanks.', tools: [asking] })
    expect(vendor.calls).toBe(1)
  })

  it('leads to one call whose result is returned also where the model is refused afterwards', async () => {
    const { secret } = await gateway.instance.tokens.issue({ name: 'few', rate_limits: { requests_per_hour: 2 } })
    const limited = client.withOptions({ apiKey: secret })
    const first = await limited.responses.create({ model, input: question, tools: [asking] })
    const approval_request_id = first.output[1]?.id ?? ''
    const answer = { type: 'mcp_approval_response' as const, approval_request_id, approve: true }
    const body = { model, previous_response_id: first.id, input: [answer], tools: [asking] }
    expect(await limited.responses.create(body)).toMatchObject({
      status: 'failed',
      error: { code: 'rate_limit_exceeded' },
      output: [{ type: 'mcp_call', output: 'done' }],
    })
    expect(vendor.calls).toBe(1)
  })

  it('makes the same round trip in a stream, and with items that the client keeps itself', async () => {
    const itemsOf = (events: ResponseStreamEvent[]) => {
      const last = events.at(-1) as { type: string; response: OpenAiResponse }
      expect(last.type).toBe('response.completed')
      const done = events.filter(({ type }) => type === 'response.output_item.done') as { item: unknown }[]
      expect(done.map(({ item }) => item)).toEqual(last.response.output)
      return last.response
    }
    const first = itemsOf(await eventsOf({ tools: [asking], store: false }))
    expect(typesOf(first)).toEqual(['mcp_list_tools', 'mcp_approval_request'])
    expect(vendor.calls).toBe(0)
    const approval_request_id = first.output[1]?.id ?? ''
    const answer = { type: 'mcp_approval_response', approval_request_id, approve: true }
    const input = [{ role: 'user', content: question }, ...first.output, answer]
    const second = itemsOf(await eventsOf({ input, tools: [asking], store: false }))
    expect(typesOf(second)).toEqual(['mcp_call', 'message'])
    expect(second.output[0]).toMatchObject({ approval_request_id, output: 'done', name: 'weather' })
    const whole = await client.responses.create({ model, input, tools: [asking], store: false } as never)
    expect(typesOf(whole as OpenAiResponse)).toEqual(['mcp_call', 'message'])
    const denied = [...input.slice(0, -1), { ...answer, approve: false }]
    expect(typesOf(itemsOf(await eventsOf({ input: denied, tools: [asking], store: false })))).toEqual(['message'])
    expect(vendor.calls).toBe(2)
  })

  it('can be denied, and the model learns it', async () => {
    const first = await client.responses.create({ model, input: question, tools: [asking] })
    const approval_request_id = first.output[1]?.id ?? ''
    const answer = { type: 'mcp_approval_response' as const, approval_request_id, approve: false }
    const second = await client.responses.create({
      model,
      previous_response_id: first.id,
      input: [answer],
      tools: [asking],
    })
    expect(typesOf(second)).toEqual(['message'])
    expect(vendor.calls).toBe(0)
  })

  it('is the default, and cannot be given to a request that there is not', async () => {
    const { require_approval: _, ...plain } = never
    const first = await client.responses.create({ model, input: question, tools: [plain as typeof never] })
    expect(typesOf(first)).toEqual(['mcp_list_tools', 'mcp_approval_request'])
    const answer = { type: 'mcp_approval_response' as const, approval_request_id: 'mcpr_invented', approve: true }
    const given = client.responses.create({ model, input: [answer], tools: [asking] })
    expect(await failed(given)).toMatchObject({ status: 400, param: 'input[0].approval_request_id' })
  })
})

describe('what a response keeps to itself', () => {
  it('are the headers and the authorization of a server', async () => {
    const tools = [{ ...never, authorization: 'a-secret', headers: { 'x-key': 'b-secret' } }]
    const response = await client.responses.create({ model, input: question, tools })
    const stored = await client.responses.retrieve(response.id)
    expect(JSON.stringify([response, stored])).not.toContain('secret')
  })
})

type Row = { model: string; requests: number; cost: number; input_tokens: number; output_tokens: number }

/** The ledger appends in batches. */
async function usage(requests: number, token = gateway.token): Promise<Row[]> {
  const headers = { authorization: `Bearer ${token}` }
  for (;;) {
    const { data } = (await (await gateway.call('/v1/usage?by=model', { headers })).json()) as { data: Row[] }
    if (data.reduce((sum, row) => sum + row.requests, 0) >= requests)
      return data.toSorted((a, b) => (a.model < b.model ? -1 : 1))
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
