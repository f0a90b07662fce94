/** The server that the official conformance suite of MCP asks: its tools, resources and prompts are those of its specification. */
import { Server } from '@modelcontextprotocol/server'
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio'

const IMAGE = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='
const AUDIO = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA='
const text = (value: string) => ({ type: 'text' as const, text: value })
const image = { type: 'image' as const, data: IMAGE, mimeType: 'image/png' }
const resource = (uri: string, mimeType: string, value: string) => ({
  type: 'resource' as const,
  resource: { uri, mimeType, text: value },
})
const user = (content: object) => ({ role: 'user' as const, content })

const CONTENTS: Record<string, object[]> = {
  test_simple_text: [text('This is a simple text response for testing.')],
  test_image_content: [image],
  test_audio_content: [{ type: 'audio', data: AUDIO, mimeType: 'audio/wav' }],
  test_embedded_resource: [resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')],
  test_multiple_content_types: [
    text('Multiple content types test:'),
    image,
    resource('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
  ],
}

const choices = (...names: string[]) => names.map((name) => ({ const: name, title: `Title of ${name}` }))
const FORMS: Record<string, object> = {
  test_elicitation: { response: { type: 'string', description: "User's response" } },
  test_elicitation_sep1034_defaults: {
    name: { type: 'string', default: 'John Doe' },
    age: { type: 'integer', default: 30 },
    score: { type: 'number', default: 95.5 },
    status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
    verified: { type: 'boolean', default: true },
  },
  test_elicitation_sep1330_enums: {
    untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
    titledSingle: { type: 'string', oneOf: choices('value1', 'value2', 'value3') },
    legacyEnum: { type: 'string', enum: ['opt1', 'opt2'], enumNames: ['Option One', 'Option Two'] },
    untitledMulti: { type: 'array', minItems: 1, maxItems: 3, items: { type: 'string', enum: ['option1', 'option2'] } },
    titledMulti: { type: 'array', minItems: 1, maxItems: 3, items: { anyOf: choices('value1', 'value2') } },
  },
}

const NAMES = [
  ...Object.keys(CONTENTS),
  ...Object.keys(FORMS),
  'test_tool_with_logging',
  'test_tool_with_progress',
  'test_error_handling',
  'test_sampling',
  'test_reconnection',
]
const SCHEMA = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object' as const,
  $defs: { address: { type: 'object', properties: { street: { type: 'string' }, city: { type: 'string' } } } },
  properties: { name: { type: 'string' }, address: { $ref: '#/$defs/address' } },
  additionalProperties: false,
}

const server = new Server(
  { name: 'conformance', version: '1' },
  { capabilities: { tools: {}, logging: {}, prompts: {}, completions: {}, resources: { subscribe: true } } },
)

server.setRequestHandler('tools/list', () => ({
  tools: [
    ...NAMES.map((name) => ({ name, description: `Tests ${name}.`, inputSchema: { type: 'object' as const } })),
    { name: 'json_schema_2020_12_tool', description: 'Has a schema of 2020-12.', inputSchema: SCHEMA },
  ],
}))
server.setRequestHandler('tools/call', async ({ params: { name, arguments: given = {} } }, { mcpReq }) => {
  const content = CONTENTS[name]
  if (content) return { content } as never
  const properties = FORMS[name]
  if (properties) {
    const requestedSchema = { type: 'object', properties }
    const { action, content: answer = {} } = await mcpReq.elicitInput({
      message: String(given.message ?? 'Please fill in.'),
      requestedSchema,
    } as never)
    return { content: [text(`User response: action=${action}, content=${JSON.stringify(answer)}`)] }
  }
  if (name === 'test_sampling') {
    const messages = [user(text(String(given.prompt)))]
    const answer = await mcpReq.requestSampling({ messages, maxTokens: 100 } as never)
    return { content: [text(`LLM response: ${JSON.stringify(answer.content)}`)] }
  }
  if (name === 'test_tool_with_logging') {
    for (const part of ['started', 'processing data', 'completed']) await mcpReq.log('info', `Tool execution ${part}`)
    return { content: [text('Tool with logging executed successfully')] }
  }
  if (name === 'test_tool_with_progress') {
    const progressToken = mcpReq._meta?.progressToken ?? 0
    for (const progress of [0, 50, 100]) {
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } })
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    return { content: [text(String(progressToken))] }
  }
  if (name === 'test_reconnection') return { content: [text('The client has reconnected.')] }
  return { content: [text('This tool intentionally returns an error for testing')], isError: true }
})

const RESOURCES: Record<string, object> = {
  'test://static-text': { mimeType: 'text/plain', text: 'This is the content of the static text resource.' },
  'test://static-binary': { mimeType: 'image/png', blob: IMAGE },
  'test://watched-resource': { mimeType: 'text/plain', text: 'Watched resource content' },
}
server.setRequestHandler('resources/list', () => ({
  resources: Object.keys(RESOURCES).map((uri) => ({ uri, name: uri.slice(7), description: 'A resource.' })),
}))
server.setRequestHandler('resources/templates/list', () => ({
  resourceTemplates: [{ uriTemplate: 'test://template/{id}/data', name: 'template', mimeType: 'application/json' }],
}))
server.setRequestHandler('resources/read', ({ params: { uri } }) => {
  const [, id] = /^test:\/\/template\/(.+)\/data$/.exec(uri) ?? []
  const data = { id, templateTest: true, data: `Data for ID: ${id}` }
  const one = id === undefined ? RESOURCES[uri] : { mimeType: 'application/json', text: JSON.stringify(data) }
  return { contents: one ? [{ uri, ...one }] : [] } as never
})
server.setRequestHandler('resources/subscribe', () => ({}))
server.setRequestHandler('resources/unsubscribe', () => ({}))

const argument = (name: string) => ({ name, required: true, description: 'A text.' })
const PROMPTS: Record<string, { asks: string[]; messages(given: Record<string, string>): object[] }> = {
  test_simple_prompt: { asks: [], messages: () => [user(text('This is a simple prompt for testing.'))] },
  test_prompt_with_arguments: {
    asks: ['arg1', 'arg2'],
    messages: ({ arg1, arg2 }) => [user(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))],
  },
  test_prompt_with_embedded_resource: {
    asks: ['resourceUri'],
    messages: ({ resourceUri = '' }) => [
      user(resource(resourceUri, 'text/plain', 'Embedded resource content for testing.')),
      user(text('Please process the embedded resource above.')),
    ],
  },
  test_prompt_with_image: { asks: [], messages: () => [user(image), user(text('Please analyze the image above.'))] },
}
server.setRequestHandler('prompts/list', () => ({
  prompts: Object.entries(PROMPTS).map(([name, { asks }]) => ({
    name,
    description: `Tests ${name}.`,
    arguments: asks.map(argument),
  })),
}))
server.setRequestHandler('prompts/get', ({ params: { name, arguments: given = {} } }) => {
  return { messages: PROMPTS[name]?.messages(given) ?? [] } as never
})
server.setRequestHandler('completion/complete', () => ({ completion: { values: [], total: 0, hasMore: false } }))
await server.connect(new StdioServerTransport())
