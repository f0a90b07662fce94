/** A token that may use one model reaches no other, however a passed-through request names it. */
import { afterEach, describe, expect, test } from 'bun:test'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { TINY_PNG_BASE64 } from './kit/tiny-files.ts'
import { startVendor, type Vendor, whole } from './kit/vendor.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

async function start(): Promise<{ gateway: TestGateway; vendor: Vendor }> {
  const vendor = startVendor()
  const limits = { max_tokens: { maximum: 500 } }
  const provider = (kind: 'messages-compat' | 'responses-compat' | 'contentgen-compat') => ({
    kind,
    base_url: vendor.url,
    key: 'vendor-key',
  })
  const gateway = await startGateway({
    providers: {
      m: provider('messages-compat'),
      r: provider('responses-compat'),
      g: provider('contentgen-compat'),
      i: { base_url: vendor.url, key: 'vendor-key' },
    },
    models: {
      'm/small': { families: ['messages-compat'], limits },
      'r/small': { families: ['chatcompat-response'], limits },
      'g/small': { families: ['contentgen-compat'], limits },
      'i/gpt-image-1': { families: ['image-generation'] },
    },
  })
  closing.push(
    () => vendor.stop(),
    () => gateway[Symbol.asyncDispose](),
  )
  return { gateway, vendor }
}

/** All requests that the vendor received, without the JSON in texts. */
const requestsOf = ({ requests }: Vendor): string =>
  requests.map(({ body, path }) => `${path} ${body.replaceAll(/\\"[^"]*\\"/g, '')}`).join('\n')

const image = { type: 'image_generation', model: 'a-big-model' }
const advisor = { type: 'advisor_20260301', name: 'advisor', model: 'a-big-model' }

describe('a messages request cannot name another model', () => {
  const message = {
    id: 'msg_v',
    type: 'message',
    role: 'assistant',
    model: 'small',
    content: [{ type: 'text', text: 'Hi' }],
    stop_reason: 'end_turn',
    usage: { input_tokens: 3, output_tokens: 2 },
  }
  const added = { type: 'tool_addition', tool: { type: 'tool_definition', definition: advisor } }
  const withContent = (content: unknown) => ({ messages: [{ role: 'user', content }] })
  const cases: Record<string, object> = {
    'as a tool': { tools: [advisor] },
    'as a tool that is added during the conversation': withContent([{ type: 'text', text: 'Hi' }, added]),
    'as a tool that a system message adds': {
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'system', content: [added] },
      ],
    },
    'in a compaction': withContent([{ type: 'compaction', content: 'Before.', tool_changes: [added] }]),
    'in `models`, as model routers accept it': { models: ['a-big-model'] },
    'as a fallback': { fallbacks: [{ model: 'a-big-model' }] },
    'in a plugin of a router': { plugins: [{ id: 'fusion', model: 'a-big-model' }] },
  }
  test.each(Object.entries(cases))('%s', async (_, more) => {
    const { gateway, vendor } = await start()
    vendor.otherwise(whole(message))
    const json = { model: 'm/small', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }], ...more }
    await gateway.call('/v1/messages', { json })
    await gateway.call('/v1/messages/count_tokens', { json: { ...json, max_tokens: undefined } })
    expect(requestsOf(vendor)).not.toContain('a-big-model')
  })

  test('but schemas, calls and texts with such names pass', async () => {
    const { gateway, vendor } = await start()
    vendor.otherwise(whole(message))
    const json = {
      model: 'm/small',
      max_tokens: 100,
      messages: [
        { role: 'user', content: 'Hi' },
        {
          role: 'assistant',
          content: [{ type: 'tool_use', id: 't1', name: 'buy', input: { model: 'T', tools: [image] } }],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: 'Done.' }] },
      ],
      tools: [
        {
          name: 'buy',
          input_schema: { type: 'object', properties: { model: { type: 'string' } }, required: ['model'] },
        },
        { type: 'mcp_toolset', mcp_server_name: 's', configs: { model: { enabled: true } } },
      ],
      mcp_servers: [{ type: 'url', url: 'https://mcp.example', name: 's' }],
    }
    const response = await gateway.call('/v1/messages', { json })
    expect(response.status).toBe(200)
    expect(vendor.requests[0]?.json()).toEqual({ ...json, model: 'small' })
  })
})

describe('a responses request cannot name another model', () => {
  const response = {
    id: 'resp_v',
    object: 'response',
    status: 'completed',
    model: 'small',
    output: [{ type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: 'Hi' }] }],
    usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
  }
  const hello = { type: 'message', role: 'user', content: 'Hi' }
  const cases: Record<string, object> = {
    'as a tool': { tools: [image] },
    'in the settings of a tool': { tools: [{ type: 'image_generation', svg: { model: 'a-big-model' } }] },
    'as a tool that is added during the conversation': {
      input: [hello, { type: 'additional_tools', role: 'developer', tools: [image] }],
    },
    'as a tool in the output of a tool search': {
      input: [
        hello,
        { type: 'tool_search_output', call_id: null, execution: 'client', status: 'completed', tools: [image] },
      ],
    },
    'in `models`, as model routers accept it': { models: ['a-big-model'] },
    'in a plugin of a router': { plugins: [{ id: 'fusion', model: 'a-big-model' }] },
  }
  test.each(Object.entries(cases))('%s', async (_, more) => {
    const { gateway, vendor } = await start()
    vendor.otherwise(whole(response))
    const json = { model: 'r/small', input: [hello], ...more }
    await gateway.call('/v1/responses', { json })
    await gateway.call('/v1/responses/input_tokens', { json })
    expect(requestsOf(vendor)).not.toContain('a-big-model')
  })

  test('but data with such names pass', async () => {
    const { gateway, vendor } = await start()
    vendor.otherwise(whole(response))
    const parameters = { type: 'object', properties: { model: { type: 'string', const: 'T' } } }
    const json = {
      model: 'r/small',
      store: false,
      input: [hello, { type: 'brand_new_item', anything: 1 }],
      tools: [
        { type: 'function', name: 'buy', parameters, strict: false },
        { type: 'brand_new_tool', size: 1 },
      ],
    }
    const answer = await gateway.call('/v1/responses', { json })
    expect(answer.status).toBe(200)
    expect(vendor.requests[0]?.json()).toMatchObject({ input: json.input, tools: json.tools })
  })
})

describe('a contentgen request cannot name another model', () => {
  const content = {
    candidates: [{ content: { role: 'model', parts: [{ text: 'Hi' }] }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
  }
  const ranked = { llmRanker: { modelName: 'a-big-model' } }
  const cases: Record<string, object> = {
    'in the settings of a tool': {
      tools: [{ retrieval: { vertexRagStore: { ragRetrievalConfig: { ranking: ranked } } } }],
    },
    'in those settings, in snake case': {
      tools: [
        {
          retrieval: {
            vertex_rag_store: { rag_retrieval_config: { ranking: { llm_ranker: { model_name: 'a-big-model' } } } },
          },
        },
      ],
    },
    'by routing': { generation_config: { routing_config: { manualMode: { modelName: 'a-big-model' } } } },
    'in the body': { model: 'models/a-big-model' },
  }
  test.each(Object.entries(cases))('%s', async (_, more) => {
    const { gateway, vendor } = await start()
    vendor.otherwise(whole(content))
    const json = { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }], ...more }
    await gateway.call('/v1beta/models/g/small:generateContent', { json })
    await gateway.call('/v1beta/models/g/small:countTokens', { json })
    expect(requestsOf(vendor)).not.toContain('a-big-model')
  })

  const SETTINGS: [object, object][] = [
    [{}, { maxOutputTokens: 9000 }],
    [{ maxOutputTokens: 9000 }, {}],
    [{ max_output_tokens: 5 }, { maxOutputTokens: 9000 }],
    [{ max_output_tokens: 9000, maxOutputTokens: 5 }, { max_output_tokens: 9000 }],
  ]
  const CONFIGS = SETTINGS.flatMap(([settings, otherSettings]) => [
    { generationConfig: settings, generation_config: otherSettings },
    { generation_config: settings, generationConfig: otherSettings },
  ])
  test.each(CONFIGS)('and cannot exceed a limit by writing it twice: %j', async (config) => {
    const { gateway, vendor } = await start()
    vendor.otherwise(whole(content))
    const json = { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }], ...config }
    await gateway.call('/v1beta/models/g/small:generateContent', { json })
    expect(requestsOf(vendor)).not.toContain('9000')
  })

  test.each(['g/small%2F..%2Fa-big-model', 'g/small:x/../a-big-model', 'g/..%2fa-big-model', 'g/small%3Fa-big-model'])(
    'by the path %s',
    async (path) => {
      const { gateway, vendor } = await start()
      vendor.otherwise(whole(content))
      const json = { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] }
      const { status } = await gateway.call(`/v1beta/models/${path}:generateContent`, { json })
      expect(status).toBe(404)
      expect(vendor.requests).toEqual([])
    },
  )
})

describe('an image edit, which is sent as a form, cannot name another model', () => {
  const PNG = `data:image/png;base64,${Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex').toString('base64')}`
  const cases: Record<string, [headers: Record<string, string>, more: object]> = {
    'by a prompt that ends its form field, for a client that sets the request id': [
      { 'x-request-id': 'known' },
      { prompt: ending('gatehouse-known') },
    ],
    'by a field name that ends its quotes': [
      {},
      { metadata: { chatcompat: { 'a"\r\ncontent-disposition: form-data; name="model': 'a-big-model' } } },
    ],
  }
  test.each(Object.entries(cases))('%s', async (_, [headers, more]) => {
    const { gateway, vendor } = await start()
    vendor.otherwise(whole({ data: [{ b64_json: TINY_PNG_BASE64 }] }))
    const json = { model: 'i/gpt-image-1', prompt: 'A kite', image: PNG, ...more }
    await gateway.call('/v1/images/edits', { json, headers })
    const [request] = vendor.requests
    const type = request?.headers['content-type'] ?? ''
    expect(type.split('boundary=')[1]?.length ?? 0).toBeLessThan(71) // RFC 2046, section 5.1.1
    const form = await new Response(request?.bytes.slice(), { headers: { 'content-type': type } }).formData()
    expect(form.getAll('model')).toEqual(['gpt-image-1'])
    expect(form.getAll('prompt')).toHaveLength(1)
  })
})

/** The rest of a form field, and another field after it. */
function ending(boundary: string): string {
  return `A kite\r\n--${boundary}\r\ncontent-disposition: form-data; name="model"\r\n\r\na-big-model`
}
