/** A token that may use one model reaches no other, however its request names it to a vendor that takes it as it is. */
import { afterEach, describe, expect, test } from 'bun:test'
import { startGateway, type TestGateway } from './kit/gateway.ts'
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

/** What the vendor was told, of all requests; JSON that stands in a text is a text. */
const heardBy = ({ requests }: Vendor): string =>
  requests.map(({ body, path }) => `${path} ${body.replaceAll(/\\"[^"]*\\"/g, '')}`).join('\n')

const image = { type: 'image_generation', model: 'a-big-model' }
const advisor = { type: 'advisor_20260301', name: 'advisor', model: 'a-big-model' }

describe('of messages', () => {
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
  const said = (content: unknown) => ({ messages: [{ role: 'user', content }] })
  const cases: Record<string, object> = {
    'as a tool': { tools: [advisor] },
    'as a tool that is added on the way': said([{ type: 'text', text: 'Hi' }, added]),
    'as a tool that is added by the system': {
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'system', content: [added] },
      ],
    },
    'within what was compacted': said([{ type: 'compaction', content: 'Before.', tool_changes: [added] }]),
    'as one of several, as routers of models take them': { models: ['a-big-model'] },
    'as what to fall back to': { fallbacks: [{ model: 'a-big-model' }] },
    'in a plugin of a router': { plugins: [{ id: 'fusion', model: 'a-big-model' }] },
  }
  test.each(Object.entries(cases))('%s', async (_, more) => {
    const { gateway, vendor } = await start()
    vendor.otherwise(whole(message))
    const json = { model: 'm/small', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }], ...more }
    await gateway.call('/v1/messages', { json })
    await gateway.call('/v1/messages/count_tokens', { json: { ...json, max_tokens: undefined } })
    expect(heardBy(vendor)).not.toContain('a-big-model')
  })

  test('words of the client that look like it pass: schemas, calls, texts', async () => {
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

describe('of responses', () => {
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
    'as a tool that is added on the way': {
      input: [hello, { type: 'additional_tools', role: 'developer', tools: [image] }],
    },
    'as a tool that was found': {
      input: [
        hello,
        { type: 'tool_search_output', call_id: null, execution: 'client', status: 'completed', tools: [image] },
      ],
    },
    'as one of several, as routers of models take them': { models: ['a-big-model'] },
    'in a plugin of a router': { plugins: [{ id: 'fusion', model: 'a-big-model' }] },
  }
  test.each(Object.entries(cases))('%s', async (_, more) => {
    const { gateway, vendor } = await start()
    vendor.otherwise(whole(response))
    const json = { model: 'r/small', input: [hello], ...more }
    await gateway.call('/v1/responses', { json })
    await gateway.call('/v1/responses/input_tokens', { json })
    expect(heardBy(vendor)).not.toContain('a-big-model')
  })

  test('words of the client that look like it pass', async () => {
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

describe('of contents', () => {
  const content = {
    candidates: [{ content: { role: 'model', parts: [{ text: 'Hi' }] }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
  }
  const ranked = { llmRanker: { modelName: 'a-big-model' } }
  const cases: Record<string, object> = {
    'in the settings of a tool': {
      tools: [{ retrieval: { vertexRagStore: { ragRetrievalConfig: { ranking: ranked } } } }],
    },
    'in those settings, spelled otherwise': {
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
    expect(heardBy(vendor)).not.toContain('a-big-model')
  })

  test('a limit that is said in two spellings is one', async () => {
    for (const [first, second] of [
      ['generationConfig', 'generation_config'],
      ['generation_config', 'generationConfig'],
    ] as const) {
      for (const [one, other] of [
        [{}, { maxOutputTokens: 9000 }],
        [{ maxOutputTokens: 9000 }, {}],
        [{ max_output_tokens: 5 }, { maxOutputTokens: 9000 }],
        [{ max_output_tokens: 9000, maxOutputTokens: 5 }, { max_output_tokens: 9000 }],
      ]) {
        const { gateway, vendor } = await start()
        vendor.otherwise(whole(content))
        const json = { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }], [first]: one, [second]: other }
        await gateway.call('/v1beta/models/g/small:generateContent', { json })
        expect(heardBy(vendor)).not.toContain('9000')
      }
    }
  })

  test('a path names one model of the vendor, whatever stands in it', async () => {
    const { gateway, vendor } = await start()
    vendor.otherwise(whole(content))
    const json = { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] }
    for (const path of [
      'g/small%2F..%2Fa-big-model',
      'g/small:x/../a-big-model',
      'g/..%2fa-big-model',
      'g/small%3Fa-big-model',
    ]) {
      const { status } = await gateway.call(`/v1beta/models/${path}:generateContent`, { json })
      expect(status).toBe(404)
    }
    expect(vendor.requests).toEqual([])
  })
})

describe('of images that are changed, which vendors take as forms', () => {
  const PNG = `data:image/png;base64,${Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex').toString('base64')}`
  const cases: Record<string, [headers: Record<string, string>, more: object]> = {
    'by a prompt that ends its field, for a client that gives its request an id': [
      { 'x-request-id': 'known' },
      { prompt: ending('gatehouse-known') },
    ],
    "by a name of the vendor's own that ends its quotes": [
      {},
      { metadata: { chatcompat: { 'a"\r\ncontent-disposition: form-data; name="model': 'a-big-model' } } },
    ],
  }
  test.each(Object.entries(cases))('%s', async (_, [headers, more]) => {
    const { gateway, vendor } = await start()
    vendor.otherwise(whole({ data: [{ b64_json: 'iVBORw0KGgo=' }] }))
    const json = { model: 'i/gpt-image-1', prompt: 'A kite', image: PNG, ...more }
    await gateway.call('/v1/images/edits', { json, headers })
    const [asked] = vendor.requests
    const type = asked?.headers['content-type'] ?? ''
    expect(type.split('boundary=')[1]?.length ?? 0).toBeLessThan(71) // RFC 2046, section 5.1.1
    const form = await new Response(asked?.bytes.slice(), { headers: { 'content-type': type } }).formData()
    expect(form.getAll('model')).toEqual(['gpt-image-1'])
    expect(form.getAll('prompt')).toHaveLength(1)
  })
})

/** The rest of a field, and another one after it. */
function ending(boundary: string): string {
  return `A kite\r\n--${boundary}\r\ncontent-disposition: form-data; name="model"\r\n\r\na-big-model`
}
