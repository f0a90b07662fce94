/** Errors in every dialect: they name the invalid field by its path in the client's request. */
import { afterAll, describe, expect, test } from 'bun:test'
import { startGateway } from './kit/gateway.ts'

const gateway = await startGateway()
afterAll(() => gateway[Symbol.asyncDispose]())

const CONTENTS = [{ role: 'user', parts: [{ text: 'Hello' }] }]
const CONTENT_PATH = '/v1beta/models/sandbox/general:generateContent'

describe("a request that no target supports gets an error with the path in the client's body", () => {
  test.each([
    ['/v1/messages', { messages: [{ role: 'user', content: [{ type: 'riddle' }] }] }, 'messages[0].content[0].type'],
    ['/v1/messages', { messages: [{ role: 'user', content: [{ text: 'x' }] }] }, 'messages[0].content[0].type'],
    [CONTENT_PATH, { contents: CONTENTS, tools: [{ functionDeclarations: 0 }] }, 'tools[0].functionDeclarations'],
    [
      CONTENT_PATH,
      { contents: CONTENTS, tools: [{ functionDeclarations: [{ name: 3 }] }] },
      'tools[0].functionDeclarations[0].name',
    ],
  ])('%s %j', async (path, body, field) => {
    const json = { model: 'sandbox/general', max_tokens: 16, system: 'Be brief.', ...body }
    const answer = await gateway.call(path, { json: path === CONTENT_PATH ? body : json })
    expect(answer.status).toBe(400)
    const { error } = (await answer.json()) as { error: { message: string } }
    expect(error.message).toStartWith(`"${field}" `)
  })
})

describe('a body that is not an object gets 400', () => {
  const PATHS = ['/v1/chat/completions', '/v1/responses', '/v1/messages', '/v1/messages/count_tokens', CONTENT_PATH]
  const cases = PATHS.flatMap((path) => [null, [], '"x"', 1].map((json) => [path, json] as const))
  test.each(cases)('%s: %j', async (path, json) => {
    const answer = await gateway.call(path, { json })
    expect(answer.status).toBe(400)
    const { error } = (await answer.json()) as { error: { message: string } }
    expect(error.message).toStartWith('The body must be a JSON object, not ')
  })
})

describe('a tool choice', () => {
  const tool = { name: 'look', parameters: { type: 'object' } }
  const CHAT = {
    model: 'sandbox/general',
    max_tokens: 16,
    messages: [{ role: 'user', content: 'Hello' }],
    tools: [
      { type: 'function', function: tool },
      { type: 'custom', custom: { name: 'patch' } },
    ],
  }
  const chat = (tool_choice: unknown) => ['/v1/chat/completions', { ...CHAT, tool_choice }] as const
  const allowed = (...tools: unknown[]) => chat({ type: 'allowed_tools', allowed_tools: { mode: 'auto', tools } })
  const older = (name: string) =>
    ['/v1/chat/completions', { ...CHAT, functions: [tool], function_call: { name } }] as const
  const messages = (tool_choice: unknown) => {
    const tools = [
      { name: 'look', input_schema: { type: 'object' } },
      { type: 'web_search_20250305', name: 'web_search' },
    ]
    return ['/v1/messages', { ...CHAT, tools, tool_choice }] as const
  }
  const responses = (tool_choice: unknown) => {
    const nested = { type: 'namespace', name: 'crm', tools: [{ type: 'function', name: 'list', parameters: {} }] }
    const tools = [{ type: 'function', ...tool }, { type: 'custom', name: 'patch' }, nested]
    return ['/v1/responses', { model: 'sandbox/general', input: 'Hello', store: false, tools, tool_choice }] as const
  }
  const contents = (mode: string, ...allowedFunctionNames: string[]) => {
    const toolConfig = { functionCallingConfig: { mode, allowedFunctionNames } }
    return [CONTENT_PATH, { contents: CONTENTS, tools: [{ functionDeclarations: [tool] }], toolConfig }] as const
  }

  test.each([
    [chat({ type: 'function', function: { name: 'lok' } }), 'tool_choice.function.name'],
    [chat({ type: 'custom', custom: { name: 'pitch' } }), 'tool_choice.custom.name'],
    [
      allowed({ type: 'function', function: { name: 'look' } }, { type: 'function', function: { name: 'lok' } }),
      'tool_choice.allowed_tools.tools[1].function.name',
    ],
    [allowed({ type: 'function', name: 'lok' }), 'tool_choice.allowed_tools.tools[0].name'],
    [older('lok'), 'function_call.name'],
    [messages({ type: 'tool', name: 'lok' }), 'tool_choice.name'],
    [responses({ type: 'function', name: 'lok' }), 'tool_choice.name'],
    [responses({ type: 'function', name: 'list', namespace: 'erp' }), 'tool_choice.name'],
    [
      responses({ type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'lok' }] }),
      'tool_choice.tools[0].name',
    ],
    [contents('ANY', 'lok'), 'toolConfig.functionCallingConfig.allowedFunctionNames[0]'],
    [contents('ANY', 'look', 'lok'), 'toolConfig.functionCallingConfig.allowedFunctionNames[1]'],
  ])('%j that names an absent tool gets 400', async ([path, json], field) => {
    const answer = await gateway.call(path, { json })
    expect(answer.status).toBe(400)
    const { error } = (await answer.json()) as { error: { message: string } }
    expect(error.message).toStartWith(`"${field}" must be the name of an entry of "`)
  })

  test.each([
    [chat({ type: 'function', function: { name: 'look' } })],
    [chat({ type: 'custom', custom: { name: 'patch' } })],
    [allowed({ type: 'function', name: 'look' }, { type: 'custom', custom: { name: 'patch' } })],
    [older('look')],
    [messages({ type: 'tool', name: 'look' })],
    [responses({ type: 'function', name: 'look' })],
    [responses({ type: 'function', name: 'list' })],
    [responses({ type: 'function', name: 'list', namespace: 'crm' })],
    [contents('ANY', 'look')],
    [contents('NONE', 'lok')],
  ])('%j that names a tool of the request is accepted', async ([path, json]) => {
    expect((await gateway.call(path, { json })).status).toBe(200)
  })
})

describe('a tool message of chat completions', () => {
  const answered = (more: object) => ({
    model: 'sandbox/general',
    messages: [
      { role: 'user', content: 'Hello' },
      { role: 'assistant', tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }] },
      { role: 'tool', content: 'done', ...more },
    ],
  })

  test.each([{}, { tool_call_id: null }])('%j without tool_call_id gets 400', async (more) => {
    const answer = await gateway.call('/v1/chat/completions', { json: answered(more) })
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({
      error: { code: 'missing_required_parameter', param: 'messages[2].tool_call_id' },
    })
  })

  test('with tool_call_id is accepted', async () => {
    const answer = await gateway.call('/v1/chat/completions', { json: answered({ tool_call_id: 'a' }) })
    expect(answer.status).toBe(200)
  })
})
