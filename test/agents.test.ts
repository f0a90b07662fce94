/** Coding agents by their recorded requests: Claude Code with a chatcompat provider, Codex with a messages provider. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import Anthropic0 from 'anthropic-sdk-0'
import OpenAI from 'openai'
import { claudeCode, codex, PATCHED } from './kit/agents.ts'
import { openPort, type Port, watchUnhandled } from './kit/served.ts'
import { chunk, chunks, failure, stream, usageChunk } from './kit/vendor.ts'
import { PIXEL } from './matrix/inputs.ts'
import { THOUGHT } from './matrix/model-script.ts'
import { chatcompatWire } from './matrix/vendors/chatcompat.ts'
import { messagesWire } from './matrix/vendors/messages-compat.ts'
import { startWireVendor, type WireVendor } from './matrix/vendors/wire-vendor.ts'

let plain: WireVendor
let thinking: WireVendor
let port: Port
let unhandled: ReturnType<typeof watchUnhandled>
beforeAll(async () => {
  unhandled = watchUnhandled()
  plain = startWireVendor(chatcompatWire)
  thinking = startWireVendor(messagesWire)
  port = await openPort({
    providers: {
      plain: { base_url: plain.url, key: 'vendor-key' },
      thinking: { kind: 'messages-compat', base_url: thinking.url, key: 'vendor-key' },
    },
    models: {
      'plain/m': { context_tokens: 200_000, limits: { max_tokens: { maximum: 32_000 } } },
      'thinking/m': { targets: [{ provider: 'thinking', model: 'claude-sonnet-4-6' }] },
    },
  })
})
beforeEach(() => {
  plain.requests.length = 0
  thinking.requests.length = 0
})
afterAll(async () => {
  await port.close()
  await Promise.all([plain.stop(), thinking.stop()])
  expect(unhandled.stop()).toEqual([])
})

/** Questions that name two tools: the scripted providers and the sandbox then call both. */
const LOOK = 'Please use Read and Bash to look around.'
const CALL = 'Please call exec_command and view_image.'

/** The texts of a message, those of its results among them. */
const textsOf = ({ content }: Anthropic0.Beta.BetaMessageParam): string[] =>
  (typeof content === 'string' ? [] : content).flatMap((block) => {
    if (block.type === 'text') return [block.text]
    if (block.type !== 'tool_result' || block.content === undefined) return []
    return typeof block.content === 'string' ? [block.content] : textsOf({ role: 'user', content: block.content as [] })
  })

const origin = () => port.url.replace(/\/v1$/, '')

async function errorOf(answer: PromiseLike<unknown>): Promise<unknown> {
  try {
    await answer
  } catch (error) {
    return error
  }
  throw new Error('It was answered.')
}

describe('an agent of the Messages API with a chat completions provider', () => {
  const client = () => new Anthropic0({ authToken: port.token, apiKey: null, baseURL: origin(), maxRetries: 0 })
  const say = (params: Anthropic0.Beta.MessageCreateParamsNonStreaming) =>
    client().beta.messages.stream(params).finalMessage()
  type Sent = { messages: Record<string, unknown>[]; tools: unknown[] } & Record<string, unknown>
  const sent = (at = -1) => plain.requests.at(at)?.json() as unknown as Sent

  test('finds its model by name with an encoded or raw slash, and gets a JSON error when there is none', async () => {
    const found = await client().models.retrieve('plain/m')
    expect(found).toMatchObject({ type: 'model', id: 'plain/m', display_name: expect.any(String) })
    expect([found.max_input_tokens, found.max_tokens]).toEqual([200_000, 32_000])
    const headers = { authorization: `Bearer ${port.token}`, 'anthropic-version': '2023-06-01' }
    const raw = await fetch(`${port.url}/models/plain/m?beta=true`, { headers })
    expect([raw.status, ((await raw.json()) as { id: string }).id]).toEqual([200, 'plain/m'])
    const none = await fetch(`${port.url}/models/claude-none`, { headers })
    expect(none.headers.get('content-type')).toContain('application/json')
    expect([none.status, await none.json()]).toMatchObject([404, { type: 'error', error: { type: 'not_found_error' } }])
  })

  test('checks its quota with one token', async () => {
    const { stop_reason, usage } = await client().beta.messages.create({
      model: 'plain/m',
      max_tokens: 1,
      messages: [{ role: 'user', content: 'quota' }],
      metadata: { user_id: claudeCode.user_id },
    })
    expect([stop_reason, usage.output_tokens]).toEqual(['max_tokens', 1])
    expect(sent()).toMatchObject({ max_tokens: 1, messages: [{ role: 'user', content: 'quota' }] })
  })

  test('counts its prompt with images and tools before it sends it', async () => {
    const { max_tokens: _, metadata: __, ...prompt } = claudeCode.asked('plain/m', [claudeCode.first(LOOK)])
    const few = await client().beta.messages.countTokens(prompt)
    const many = await client().beta.messages.countTokens({
      ...prompt,
      messages: claudeCode.longHistory({ turns: 5, data: PIXEL.data, question: LOOK, last: 'Go on.' }),
    })
    expect(few.input_tokens).toBeGreaterThan(60)
    expect(many.input_tokens).toBeGreaterThan(few.input_tokens + 5 * 1000)
    expect(plain.requests).toEqual([])
  })

  test('receives two tool calls after reasoning and text, as blocks', async () => {
    plain.answer(stream(manyThings()))
    const events: string[] = []
    const running = client().beta.messages.stream(claudeCode.asked('plain/m', [claudeCode.first(LOOK)]))
    running.on('streamEvent', (event) => events.push(event.type))
    const message = await running.finalMessage()
    expect(message.content).toMatchObject([
      { type: 'thinking', thinking: 'Two things.' },
      { type: 'text', text: 'Let me look.' },
      { type: 'tool_use', id: 'call_a', name: 'Read', input: { file_path: '/src/main.ts' } },
      { type: 'tool_use', id: 'call_b', name: 'Bash', input: { command: 'ls -la' } },
    ])
    expect([message.stop_reason, message.usage.input_tokens, message.usage.output_tokens]).toEqual(['tool_use', 9, 3])
    expect(events.filter((type) => type === 'content_block_start').length).toBe(4)
    expect([events[0], ...events.slice(-2)]).toEqual(['message_start', 'message_delta', 'message_stop'])
  })

  test('has its whole request sent, without fields that the provider does not know', async () => {
    await say(claudeCode.asked('plain/m', [claudeCode.first(LOOK)]))
    const { tools, ...body } = sent()
    expect(body).toEqual({
      model: 'm',
      max_tokens: 32_000,
      reasoning_effort: 'high',
      stream: true,
      stream_options: { include_usage: true },
      user: claudeCode.user_id,
      messages: [
        { role: 'system', content: claudeCode.prompt.map(({ text }) => text).join('\n\n') },
        {
          role: 'user',
          content: textsOf(claudeCode.first(LOOK)).join('\n'),
        },
      ],
    })
    expect(tools).toEqual(
      claudeCode.tools.map(({ name, description, input_schema: parameters }) => ({
        type: 'function',
        function: { name, description, parameters },
      })),
    )
    expect(plain.requests[0]?.headers).not.toHaveProperty('anthropic-beta')
  })

  test.each(['plain/m', 'sandbox/general'])('works with %s until it has its response', async (model) => {
    const first = await say(claudeCode.asked(model, [claudeCode.first(LOOK)]))
    const uses = first.content.filter((block) => block.type === 'tool_use')
    const called = Object.fromEntries(uses.map(({ name, input }) => [name, input]))
    expect(uses.length).toBe(2)
    // A copy: `toMatchObject` writes its matchers into the object that it compares.
    expect(structuredClone(called)).toMatchObject({
      Read: { file_path: expect.any(String) },
      Bash: { command: expect.any(String) },
    })
    const results = claudeCode.results(uses, PIXEL.data)
    const [succeeded, failed, reminder] = textsOf(results)
    const history: Anthropic0.Beta.BetaMessageParam[] = [
      claudeCode.first(LOOK),
      { role: 'assistant', content: first.content },
      results,
    ]
    const second = await say({ ...claudeCode.asked(model, history), tool_choice: { type: 'none' } })
    expect([second.stop_reason, second.content.at(-1)?.type]).toEqual(['end_turn', 'text'])
    if (model !== 'plain/m') return
    expect(sent().messages.slice(2)).toEqual([
      {
        role: 'assistant',
        content: null,
        reasoning_content: THOUGHT,
        tool_calls: uses.map(({ id, name, input }) => ({
          id,
          type: 'function',
          function: { name, arguments: JSON.stringify(input) },
        })),
      },
      { role: 'tool', tool_call_id: uses[0]?.id, content: succeeded },
      { role: 'tool', tool_call_id: uses[1]?.id, content: failed },
      {
        role: 'user',
        content: [
          { type: 'text', text: `Other output of the tool call ${uses[0]?.id}:` },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL.data}` } },
        ],
      },
      { role: 'user', content: reminder },
    ])
  })

  test('continues a long history with images; reasoning of other providers is omitted', async () => {
    const turns = 60
    const large = Buffer.alloc(60_000, 7).toString('base64')
    const message = await say(
      claudeCode.asked(
        'plain/m',
        claudeCode.longHistory({ turns, data: large, question: LOOK, last: 'Now say it in a word.' }),
      ),
    )
    expect(message.content).toMatchObject([
      { type: 'thinking', thinking: THOUGHT },
      { type: 'text', text: expect.stringContaining('Now say it in a word.') },
    ])
    const said = sent().messages
    expect(said.length).toBe(2 + turns * 4 + 2)
    for (let turn = 0; turn < turns; turn++) {
      const [answer, ...after] = said.slice(2 + turn * 4, 6 + turn * 4)
      const ids = [`toolu_${turn}_a`, `toolu_${turn}_b`]
      expect(answer).toMatchObject({ content: `Part ${turn}.`, tool_calls: ids.map((id) => ({ id })) })
      expect(after.slice(0, 2)).toEqual([
        { role: 'tool', tool_call_id: ids[0], content: '' },
        { role: 'tool', tool_call_id: ids[1], content: `${turn} lines` },
      ])
      expect(JSON.stringify(after[2])).toContain(large)
    }
    expect(JSON.stringify(said)).not.toMatch(/RW5jcnlwdGVkIGVsc2V3aGVyZQ|cache_control|I look at it|"signature"/)
  })

  test('receives each failure with its error type', async () => {
    const kinds: [number, string][] = [
      [503, 'overloaded_error'],
      [429, 'rate_limit_error'],
      [401, 'api_error'],
      [500, 'api_error'],
    ]
    for (const [status, type] of kinds) {
      plain.answer(failure(status))
      const error = await errorOf(say(claudeCode.asked('plain/m', [claudeCode.first(LOOK)])))
      expect(error).toMatchObject({ error: { type: 'error', error: { type } }, requestID: expect.any(String) })
    }
  })

  test('recognises a prompt that is too long by the message, whatever the provider returns', async () => {
    plain.answer(
      failure(400, { code: 'context_length_exceeded', message: "This model's maximum context length is 8192 tokens." }),
    )
    const error = await errorOf(say(claudeCode.asked('plain/m', [claudeCode.first(LOOK)])))
    expect(error).toMatchObject({ status: 400, error: { error: { type: 'invalid_request_error' } } })
    expect(String(error)).toContain('prompt is too long')
    expect(String(error)).toContain('8192')
  })

  test('gets an error when a stream breaks, and stops the provider when it disconnects', async () => {
    plain.answer(stream(chunks('Hel', 'lo'), { cutAfter: 3 }))
    expect(await errorOf(say(claudeCode.asked('plain/m', [claudeCode.first(LOOK)])))).toBeInstanceOf(Error)
    plain.answer(stream(chunks('Hel', 'lo'), { hangAfter: 3 }))
    const coming = plain.request(2)
    const running = client().beta.messages.stream(claudeCode.asked('plain/m', [claudeCode.first(LOOK)]))
    running.on('text', () => running.abort())
    expect(await errorOf(running.finalMessage())).toBeInstanceOf(Anthropic0.APIUserAbortError)
    await (await coming).aborted
  })

  function manyThings() {
    const call = (index: number, more: object) => chunk({ tool_calls: [{ index, ...more }] })
    const named = (id: string, name: string) => ({ id, type: 'function', function: { name, arguments: '' } })
    const says = (text: string) => ({ function: { arguments: text } })
    return [
      chunk({ role: 'assistant', content: '' }),
      chunk({ reasoning_content: 'Two ' }),
      chunk({ reasoning_content: 'things.' }),
      chunk({ content: 'Let me ' }),
      chunk({ content: 'look.' }),
      call(0, named('call_a', 'Read')),
      call(1, named('call_b', 'Bash')),
      call(0, says('{"file_path":')),
      call(1, says('{"command":"ls')),
      call(0, says('"/src/main.ts"}')),
      call(1, says(' -la"}')),
      chunk({}, 'tool_calls'),
      usageChunk(),
    ]
  }
})

describe('an agent of the Responses API with a Messages provider', () => {
  const client = () => new OpenAI({ apiKey: port.token, baseURL: port.url, maxRetries: 0, logLevel: 'off' })
  const say = (params: OpenAI.Responses.ResponseCreateParamsNonStreaming) =>
    client()
      .responses.stream({ ...params, stream: true })
      .finalResponse()
  /** The recorded request without the tools that only their own provider runs. */
  const codexRequest = (model: string, input: OpenAI.Responses.ResponseInputItem[]) => ({
    ...codex.asked(model, input),
    tools: codex.tools.filter(({ type }) => type === 'function' || type === 'custom'),
  })
  type Turn = { role: string; content: Record<string, unknown>[] }
  const sent = () => thinking.requests.at(-1)?.json() as { messages: Turn[] } & Record<string, unknown>
  const callsOf = ({ output }: OpenAI.Responses.Response) => output.filter((item) => item.type === 'function_call')

  test.each(['thinking/m', 'sandbox/vision'])('works with %s until it has its response', async (model) => {
    const first = await say(codexRequest(model, codex.first(CALL)))
    const calls = callsOf(first)
    expect(calls.map(({ name, arguments: said }) => [name, JSON.parse(said)])).toMatchObject([
      ['exec_command', { cmd: expect.any(String) }],
      ['view_image', { path: expect.any(String) }],
    ])
    const history = [
      ...codex.first(CALL),
      ...(first.output as OpenAI.Responses.ResponseInputItem[]),
      ...codex.results(calls, PIXEL.data),
    ]
    const second = await say(codexRequest(model, history))
    expect([second.status, second.output.at(-1)?.type]).toEqual(['completed', 'message'])
    expect(second.output_text).toContain(codex.output)
  })

  test('receives signed reasoning and sends it back', async () => {
    const first = await say(codexRequest('thinking/m', codex.first(CALL)))
    const [thought] = first.output
    if (thought?.type !== 'reasoning') throw new Error('There is no thought.')
    expect([thought.summary.map(({ text }) => text).join(''), typeof thought.encrypted_content]).toEqual([
      THOUGHT,
      'string',
    ])
    const calls = callsOf(first)
    const input = [
      ...codex.first(CALL),
      ...(first.output as OpenAI.Responses.ResponseInputItem[]),
      ...codex.results(calls, PIXEL.data),
    ]
    // The vendor refuses a turn of calls whose thought or signature is lost.
    expect((await say(codexRequest('thinking/m', input))).status).toBe('completed')
    const { messages: said, ...body } = sent()
    expect(said.map(({ role, content }) => [role, ...content.map(({ type }) => type)])).toEqual([
      ['user', 'text', 'text'],
      ['assistant', 'thinking', 'tool_use', 'tool_use'],
      ['user', 'tool_result', 'tool_result'],
    ])
    expect(said[2]?.content).toMatchObject([
      { tool_use_id: calls[0]?.call_id, content: codex.output },
      { tool_use_id: calls[1]?.call_id, content: [{ type: 'image', source: { data: PIXEL.data } }] },
    ])
    expect(body).toMatchObject({
      stream: true,
      system: codex.developerTexts.map((text) => ({ text })),
      tool_choice: { type: 'auto', disable_parallel_tool_use: false },
    })
    expect(body.thinking).toMatchObject({ type: expect.stringMatching(/adaptive|enabled/) })
    expect(Object.keys(body)).not.toContain('prompt_cache_key')
  })

  test('has its custom tool sent as a function, and an earlier patch as a call', async () => {
    const first = codex.first(CALL)
    const input = [...first.slice(0, -1), ...PATCHED, ...first.slice(-1)]
    const { status } = await say(codexRequest('thinking/m', input))
    expect(status).toBe('completed')
    const { messages: said, tools } = sent()
    expect((tools as { name: string }[]).map(({ name }) => name)).toEqual(
      codexRequest('thinking/m', []).tools.map((tool) => ('name' in tool ? tool.name : tool.type)),
    )
    expect(tools).toContainEqual(expect.objectContaining({ name: 'apply_patch', input_schema: expect.anything() }))
    const blocks = said.flatMap(({ content }) => content)
    const use = blocks.find(({ type, name }) => type === 'tool_use' && name === 'apply_patch')
    expect(JSON.stringify(use?.input)).toContain('*** Add File: b.ts')
    expect(blocks).toContainEqual(expect.objectContaining({ type: 'tool_result', content: 'Done: A b.ts' }))
    expect(JSON.stringify(said)).not.toContain('of_another_vendor')
  })

  test('receives a patch as streamed free text', async () => {
    const ask = 'Please call apply_patch.'
    const running = client().responses.stream({
      ...codexRequest('thinking/m', [{ role: 'user', content: ask }]),
      stream: true,
    })
    let text = ''
    for await (const event of running) if (event.type === 'response.custom_tool_call_input.delta') text += event.delta
    const { output } = await running.finalResponse()
    const call = output.find((item) => item.type === 'custom_tool_call')
    expect([call?.name, call?.input, text]).toEqual(['apply_patch', 'Paris', 'Paris'])
  })

  test('receives a failure as a status before the stream, and as the last event within it', async () => {
    const failing = (words: string) => codexRequest('thinking/m', [{ role: 'user', content: words }])
    expect(await errorOf(say(failing('x\n@sandbox status=429')))).toBeInstanceOf(OpenAI.RateLimitError)
    const events = await client().responses.create({ ...failing('x\n@sandbox tokens=9 error_after=5'), stream: true })
    const types: string[] = []
    const reading = (async () => {
      for await (const event of events) {
        types.push(event.type)
        if (event.type.endsWith('.delta')) thinking.breakStream()
      }
    })()
    const ended = await reading.catch((error: unknown) => error)
    expect(ended instanceof Error || types.at(-1) === 'response.failed').toBe(true)
    expect(types).not.toContain('response.completed')
  })
})
