/** Chat completions whose MCP tools the gateway calls itself, as clients of the official SDK see them. */
import { afterEach, beforeEach, describe, expect, it } from 'bun:test'
import OpenAI from 'openai'
import type { ChatCompletion, ChatCompletionChunk } from 'openai/resources/chat/completions'
import { DEFAULT_MCP } from '../src/config/config.ts'
import { systemClock } from '../src/kit/clock.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { type McpVendor, say, startMcpVendor, tool } from './kit/mcp-vendor.ts'

let vendor: McpVendor
let gateway: TestGateway
let client: OpenAI
beforeEach(async () => {
  vendor = startMcpVendor()
  vendor.tools = [tool('weather', 'The weather of a city.'), tool('mail', 'Sends a mail.')]
  const servers = { v: { url: vendor.url, tools: { '*': { price: 0.5 } } } }
  gateway = await startGateway({ mcp: { ...DEFAULT_MCP, servers } }, { clock: systemClock })
  client = new OpenAI({
    apiKey: gateway.token,
    baseURL: 'http://gatehouse.test/v1',
    maxRetries: 0,
    fetch: (url, init) => gateway.instance.fetch(new Request(url as string, init as RequestInit)),
  })
})
afterEach(async () => {
  await gateway[Symbol.asyncDispose]()
  await vendor.stop()
})

const never = { type: 'mcp', server_label: 'v', require_approval: 'never' }
const bodyOf = (more: object, content = 'What is the weather in Paris?') =>
  ({ model: 'sandbox/general', messages: [{ role: 'user', content }], tools: [never], ...more }) as never
const ask = (more: object = {}, content?: string) =>
  client.chat.completions.create(bodyOf(more, content)) as unknown as Promise<ChatCompletion>
const refused = (asking: Promise<unknown>) =>
  asking.then(
    () => undefined,
    (error: unknown) => error,
  )

describe('a chat completion with tools of an MCP server', () => {
  it('is the last answer, with the usage of all rounds, each charged once', async () => {
    let given: unknown
    vendor.answer = (args) => {
      given = args
      return say('It is sunny.')
    }
    const { choices, usage, object } = await ask()
    expect([object, choices[0]?.finish_reason, choices[0]?.message.tool_calls]).toEqual([
      'chat.completion',
      'stop',
      undefined,
    ])
    expect(choices[0]?.message.content).not.toBe('')
    expect([vendor.calls, given]).toEqual([1, expect.anything()])
    await gateway.instance.drain({ deadline_ms: 0 })
    const rows = await gateway.instance.usage({ limit: 9 })
    expect(rows.map(({ model, requests }) => [model, requests]).sort()).toEqual([
      ['mcp/v/weather', 1],
      ['sandbox/general', 2],
    ])
    expect(usage?.prompt_tokens).toBe(rows.find(({ model }) => model === 'sandbox/general')?.input_tokens)
  })

  it('is streamed as chunks of the last answer', async () => {
    const stream = await client.chat.completions.create(
      bodyOf({ stream: true, stream_options: { include_usage: true } }),
    )
    const chunks = await Array.fromAsync(stream as unknown as AsyncIterable<ChatCompletionChunk>)
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1)
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).not.toBe('')
    expect(chunks.flatMap(({ choices }) => choices.map(({ finish_reason }) => finish_reason)).at(-1)).toBe('stop')
    expect(chunks.at(-1)?.usage?.total_tokens).toBeGreaterThan(0)
    expect([vendor.calls, chunks.some(({ choices }) => choices[0]?.delta.tool_calls)]).toEqual([1, false])
  })

  it('leaves functions of the client to the client', async () => {
    const note = { type: 'function', function: { name: 'note', description: 'Writes a note.', parameters: {} } }
    const { choices } = await ask({ tools: [never, note] }, 'Write a note.')
    expect(choices[0]?.message.tool_calls).toMatchObject([{ function: { name: 'note' } }])
    expect([choices[0]?.finish_reason, vendor.calls]).toEqual(['tool_calls', 0])
  })

  it('gives the failure of a tool to the model, and ends with the client', async () => {
    vendor.answer = () => ({ ...say('no such city'), isError: true })
    expect((await ask()).choices[0]?.finish_reason).toBe('stop')
    const leaving = new AbortController()
    const aborted = Promise.withResolvers<void>()
    vendor.answer = (_, signal) => {
      signal.addEventListener('abort', () => aborted.resolve())
      leaving.abort()
      return new Promise(() => {})
    }
    await refused(client.chat.completions.create(bodyOf({}), { signal: leaving.signal }))
    await aborted.promise
  })

  it('is refused where a tool waits for approval, for several choices, and for a server that is not there', async () => {
    const tools = [{ type: 'mcp', server_label: 'v' }]
    expect(await refused(ask({ tools }))).toMatchObject({ status: 400, param: 'tools[0].require_approval' })
    expect(await refused(ask({ n: 2 }))).toMatchObject({ status: 400, param: 'n' })
    const other = [{ ...never, server_label: 'w' }]
    expect(await refused(ask({ tools: other }))).toMatchObject({ status: 400, param: 'tools[0].server_label' })
    expect(vendor.calls).toBe(0)
  })

  it('reports a server that is away before anything is generated', async () => {
    await vendor.stop()
    expect(await refused(ask({ stream: true }))).toMatchObject({ status: 502 })
  })
})
