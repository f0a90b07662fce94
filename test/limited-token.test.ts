/** A token limited to some models sends a vendor only fields that are known not to reach another model. */
import { afterEach, beforeEach, describe, expect, it } from 'bun:test'
import fc from 'fast-check'
import type { EndpointFamily } from '../src/spec/endpoint-family.ts'
import { type AgentId, claudeCode, codex, forModel, PATCHED, recorded } from './kit/agents.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { TINY_PNG_BASE64 } from './kit/tiny-files.ts'
import { type Answer, startVendor, type Vendor, whole } from './kit/vendor.ts'

const BIG = 'a-big-model'
const PNG = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex').toString('base64')

type GatewaySetup = TestGateway & { limited: string; family_limited: string }

/** The response for each path of the vendor. */
const answers: [RegExp, object][] = [
  [/count_tokens|input_tokens/, { input_tokens: 3 }],
  [
    /\/messages$/,
    {
      id: 'msg_v',
      type: 'message',
      role: 'assistant',
      model: 'small',
      content: [{ type: 'text', text: 'Hi' }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 3, output_tokens: 2 },
    },
  ],
  [
    /\/responses$/,
    {
      id: 'resp_v',
      object: 'response',
      status: 'completed',
      model: 'small',
      output: [
        {
          type: 'message',
          id: 'msg_1',
          role: 'assistant',
          content: [{ type: 'output_text', text: 'Hi', annotations: [] }],
        },
      ],
      usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
    },
  ],
  [/:countTokens/, { totalTokens: 3 }],
  [
    /GenerateContent|generateContent/,
    {
      candidates: [{ content: { role: 'model', parts: [{ text: 'Hi' }] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
    },
  ],
  [/\/embeddings$/, { data: [{ index: 0, embedding: [0.5] }], usage: { prompt_tokens: 1 } }],
  [/\/moderations$/, { results: [{ flagged: false, categories: { hate: false }, category_scores: { hate: 0.1 } }] }],
  [/\/rerank$/, { results: [{ index: 0, relevance_score: 0.5 }] }],
  [/\/images/, { data: [{ b64_json: TINY_PNG_BASE64 }] }],
  [/\/videos$/, { id: 'video_1', status: 'queued' }],
  [
    /\/chat\/completions$/,
    {
      id: 'c',
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    },
  ],
]

const answering: Answer = (wire) => {
  const [, body = {}] = answers.find(([path]) => path.test(wire.request.path.split('?')[0] ?? '')) ?? []
  return whole(body)(wire)
}

let vendor: Vendor
let gateway: GatewaySetup
const closing: (() => unknown)[] = []

async function start(passthrough?: {
  applies_to?: 'limited_tokens' | 'all_tokens'
  allow?: string[]
}): Promise<GatewaySetup> {
  const provider = (
    kind: 'messages-compat' | 'responses-compat' | 'contentgen-compat' | 'chatcompat' | 'chatcompat-video',
  ) => ({
    kind,
    base_url: vendor.url,
    key: 'vendor-key',
    ...(kind === 'chatcompat' ? { quirks: { rerank: true } } : {}),
    ...(passthrough ? { passthrough } : {}),
  })
  const chats: EndpointFamily[] = ['chatcompat', 'chatcompat-response', 'messages-compat', 'contentgen-compat']
  const gateway = await startGateway({
    providers: {
      m: provider('messages-compat'),
      r: provider('responses-compat'),
      g: provider('contentgen-compat'),
      c: provider('chatcompat'),
      v: provider('chatcompat-video'),
    },
    models: {
      'm/small': { families: chats },
      'r/small': { families: chats },
      'g/small': { families: chats },
      'c/small': { families: chats },
      'c/embed': { families: ['embeddings'] },
      'c/rank': { families: ['rerank'] },
      'c/judge': { families: ['moderations'] },
      'c/gpt-image-1': { families: ['image-generation'] },
      'v/small': { families: ['video-generation', 'chatcompat-video'] },
    },
  })
  const issue = async (limits: { models?: string[]; families?: EndpointFamily[] }) =>
    (await gateway.instance.tokens.issue({ name: `t${Math.random()}`, ...limits })).secret
  closing.push(() => gateway[Symbol.asyncDispose]())
  return {
    ...gateway,
    limited: await issue({ models: ['*/small', 'c/*'] }),
    family_limited: await issue({ families: [...chats, 'video-generation', 'image-generation'] }),
  }
}

beforeEach(async () => {
  vendor = startVendor()
  vendor.otherwise(answering)
  closing.push(() => vendor.stop())
  gateway = await start()
})
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const post = (path: string, json: unknown, { secret = gateway.limited, headers = {} } = {}) =>
  gateway.call(path, { json, headers: { authorization: `Bearer ${secret}`, ...headers } })

/** All requests that the vendor received. */
const allRequests = (): string =>
  vendor.requests.map(({ path, headers, body }) => `${path} ${JSON.stringify(headers)} ${body}`).join('\n')

const withContent = (content: unknown) => [{ role: 'user', content }]
const messages = (more: object) =>
  ['/v1/messages', { model: 'm/small', max_tokens: 100, messages: withContent('Hi'), ...more }] as const
const responses = (more: object) => ['/v1/responses', { model: 'r/small', input: 'Hi', ...more }] as const
const contents = (more: object) =>
  [
    '/v1beta/models/g/small:generateContent',
    { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }], ...more },
  ] as const
const chat = (more: object, model = 'c/small') =>
  ['/v1/chat/completions', { model, messages: withContent('Hi'), ...more }] as const
const video = (more: object) => ['/v1/video/generations', { model: 'v/small', prompt: 'A kite', ...more }] as const
const image = (more: object) =>
  ['/v1/images/generations', { model: 'c/gpt-image-1', prompt: 'A kite', ...more }] as const

type Case = readonly [path: string, json: object, param: string]
const item = (entry: object) => [{ type: 'message', role: 'user', content: 'Hi' }, entry]
const part = (entry: object) => ({ contents: [{ role: 'user', parts: [entry] }] })

/** Bodies that name another model, or a thing in the operator's account, and the path in the error. */
const REFUSED: Record<string, Case> = {
  'a tool of a router': [
    ...messages({ tools: [{ type: 'openrouter:advisor', parameters: { model: BIG } }] }),
    'tools[0].type',
  ],
  'parameters of a tool of the vendor': [
    ...messages({ tools: [{ type: 'web_search_20250305', name: 'web_search', parameters: { model: BIG } }] }),
    'tools[0].parameters',
  ],
  'model as an object': [...messages({ extra: { model: { id: BIG } } }), 'extra'],
  'a name in another case': [...messages({ Engine: BIG }), 'Engine'],
  'an extra body': [...messages({ extra_body: { model: BIG } }), 'extra_body'],
  'a model within a part': [
    ...messages({ messages: withContent([{ type: 'text', text: 'Hi', engine: BIG }]) }),
    'messages[0].content[0].engine',
  ],
  'a fallback block': [
    ...messages({ messages: withContent([{ type: 'fallback', from: { model: 'small' }, to: { model: BIG } }]) }),
    'messages[0].content[0].type',
  ],
  'a file by its id': [
    ...messages({ messages: withContent([{ type: 'document', source: { type: 'file', file_id: 'file_1' } }]) }),
    'messages[0].content[0].source.type',
  ],
  'a container by its id': [...messages({ container: 'cntr_1' }), 'container'],
  'a tool of a router in responses': [
    ...responses({ tools: [{ type: 'openrouter:advisor', parameters: { model: BIG } }] }),
    'tools[0].type',
  ],
  'the image generation tool': [...responses({ tools: [{ type: 'image_generation' }] }), 'tools[0].type'],
  'a stored prompt in a search': [
    ...responses({ tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] }),
    'tools[0].type',
  ],
  'a container of responses by its id': [
    ...responses({ tools: [{ type: 'code_interpreter', container: 'cntr_1' }] }),
    'tools[0].container',
  ],
  'files in a container': [
    ...responses({ tools: [{ type: 'code_interpreter', container: { type: 'auto', file_ids: ['file_1'] } }] }),
    'tools[0].container.file_ids',
  ],
  'a tool in a namespace': [
    ...responses({
      tools: [{ type: 'namespace', name: 'n', description: 'd', tools: [{ type: 'x:advisor', model_of: BIG }] }],
    }),
    'tools[0].tools[0].type',
  ],
  'a moderation engine': [...responses({ moderation: { engine: BIG } }), 'moderation'],
  'an item of an unknown kind': [...responses({ input: item({ type: 'delegate', to: BIG }) }), 'input[1].type'],
  'an image by its id': [
    ...responses({ input: withContent([{ type: 'input_image', detail: 'auto', file_id: 'file_1' }]) }),
    'input[0].content[0].file_id',
  ],
  'fallbacks in snake case': [...contents({ fallback_models: [BIG] }), 'fallbackModels'],
  'a fallback': [...contents({ fallbackModel: BIG }), 'fallbackModel'],
  'a default model': [...contents({ defaultModel: BIG }), 'defaultModel'],
  'an advisor': [...contents({ advisorModel: BIG }), 'advisorModel'],
  'a model in the settings': [...contents({ generationConfig: { model: BIG } }), 'generationConfig.model'],
  'a cache of the account': [...contents({ cachedContent: 'cachedContents/1' }), 'cachedContent'],
  'a file of the account': [
    ...contents(
      part({
        fileData: { fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/1', mimeType: 'text/plain' },
      }),
    ),
    'contents[0].parts[0].fileData.fileUri',
  ],
  'the same with a user name before it': [
    ...contents(
      part({
        file_data: { file_uri: 'https://x@Generativelanguage.googleapis.com./v1beta/files/1', mime_type: 'text/plain' },
      }),
    ),
    'contents[0].parts[0].file_data.file_uri',
  ],
  'a bucket': [
    ...contents(part({ fileData: { fileUri: 'gs://bucket/x', mimeType: 'text/plain' } })),
    'contents[0].parts[0].fileData.fileUri',
  ],
  'a file store': [...contents({ tools: [{ file_search: { fileSearchStoreNames: ['x'] } }] }), 'tools[0].file_search'],
  'options of the responses kind': [
    ...chat({ provider_options: { 'responses-compat': { models: [BIG], fallbacks: [BIG] } } }, 'r/small'),
    'provider_options.responses-compat.models',
  ],
  'a tool in options of the responses kind': [
    ...chat({ provider_options: { 'responses-compat': { tools: [{ type: 'image_generation' }] } } }, 'r/small'),
    'provider_options.responses-compat.tools[0].type',
  ],
  'options of the contentgen kind': [
    ...chat(
      { provider_options: { 'contentgen-compat': { generationConfig: { imageConfig: { model: BIG } } } } },
      'g/small',
    ),
    'provider_options.contentgen-compat.generationConfig.imageConfig.model',
  ],
  'options of an unknown kind': [
    ...chat({ provider_options: { router: { models: [BIG] } } }),
    'provider_options.router',
  ],
  'a tool of chat': [...chat({ tools: [{ type: 'function', function: { name: 'f' }, model: BIG }] }), 'tools[0].model'],
  'a search of chat': [...chat({ web_search_options: { model: BIG } }), 'web_search_options.model'],
  'a message of chat': [...chat({ messages: [{ role: 'user', content: 'Hi', model: BIG }] }), 'messages[0].model'],
  'metadata of chat': [...chat({ metadata: { router: { model: BIG } } }), 'metadata.router'],
  'a file of chat': [
    ...chat({ messages: withContent([{ type: 'file', file: { file_id: 'file_1' } }]) }),
    'messages[0].content[0].file.file_id',
  ],
  'models of a video': [
    ...video({ metadata: { 'chatcompat-video': { models: [BIG] } } }),
    'metadata.chatcompat-video.models',
  ],
  'a model of a video in another case': [
    ...video({ metadata: { 'chatcompat-video': { Model: BIG } } }),
    'metadata.chatcompat-video.Model',
  ],
  'metadata that is forwarded unchanged': [...video({ metadata: { model_name: BIG } }), 'metadata.model_name'],
  'a file of the account as a video': [...video({ image: 'asset://1' }), 'image'],
  'metadata of an image': [
    ...image({ metadata: { chatcompat: { refiner_model: BIG } } }),
    'metadata.chatcompat.refiner_model',
  ],
}

describe('a limited token', () => {
  it.each(Object.entries(REFUSED))('cannot send %s', async (_, [path, json, param]) => {
    for (const secret of [gateway.limited, gateway.family_limited]) {
      for (const stream of path.includes('/v1beta') || path.includes('/video') ? [{}] : [{}, { stream: true }]) {
        const response = await post(path, { ...json, ...stream }, { secret })
        const text = await response.text()
        expect({ status: response.status, text }).toMatchObject({
          status: 400,
          text: expect.stringContaining(`"${param}`),
        })
        expect(text).toContain('passthrough.allow')
      }
    }
    expect(vendor.requests).toEqual([])
  })

  it.each(Object.entries(REFUSED).filter(([, [path]]) => /messages|responses|v1beta/.test(path)))(
    'cannot count tokens with %s',
    async (_, [path, json]) => {
      const counts = path
        .replace('/v1/messages', '/v1/messages/count_tokens')
        .replace('/v1/responses', '/v1/responses/input_tokens')
      await post(counts.replace(':generateContent', ':countTokens'), { ...json, max_tokens: undefined })
      const known = (place: string) => DATA.test(place) || /\.(text|content)$/.test(place)
      for (const request of vendor.requests) {
        for (const name of [BIG, 'file_1', 'cntr_1', 'vs_1', 'cachedContents', 'files/1', 'gs:']) {
          expect(placesOf(name, request.json()).filter((place) => !known(place))).toEqual([])
        }
      }
    },
  )

  it.each(Object.entries(REFUSED).filter(([, [path]]) => path.includes('v1beta')))(
    'cannot stream contents with %s',
    async (_, [path, json, param]) => {
      const streams = path.replace(':generateContent', ':streamGenerateContent')
      const events = await post(`${streams}?alt=sse`, json)
      expect({ status: events.status, text: await events.text() }).toMatchObject({
        status: 400,
        text: expect.stringContaining(`"${param}`),
      })
      // A JSON list is always translated, which drops unknown fields.
      await (await post(streams, json)).text()
      expect(allRequests()).not.toMatch(/a-big-model|cachedContents|files\/1|gs:|fileSearch/)
    },
  )

  it('cannot do so in the background or with previous_response_id', async () => {
    const first = await (await post('/v1/responses', { model: 'r/small', input: 'Hi' })).json()
    for (const more of [{ background: true }, { previous_response_id: (first as { id: string }).id }]) {
      const json = { model: 'r/small', input: item({ type: 'delegate', to: BIG }), ...more }
      expect((await post('/v1/responses', json)).status).toBe(400)
    }
    expect(allRequests()).not.toContain(BIG)
  })

  it('reaches one model, however often and with whatever escapes a body names others', async () => {
    const bodies = [
      '{"model":"a-big-model","model":"m/small","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}',
      '{"\\u006dodel":"a-big-model","model":"m/small","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}',
      '{"model":"m/small","max_tokens":9,"messages":[{"role":"user","content":"Hi"}],"mode\\u006c ":"a-big-model"}',
      '{"model":"m/small","max_tokens":9,"messages":[{"role":"user","content":"Hi"}],"__proto__":{"model":"a-big-model"}}',
      '{"model":["a-big-model","m/small"],"max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}',
      '{"model":" a-big-model","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}',
      '{"model":"models/a-big-model","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}',
    ]
    for (const name of ['Model', 'MODEL', 'models', 'model_id', 'fallbacks', 'preset', 'plugins']) {
      bodies.push(JSON.stringify({ ...messages({})[1], [name]: BIG }))
    }
    for (const body of bodies) await post('/v1/messages?model=a-big-model', body)
    await post('/v1beta/models/g/small:generateContent?model=a-big-model&key=x', {
      model: 'models/a-big-model',
      contents: [{ parts: [{ text: 'Hi' }] }],
    })
    await post('/v1/embeddings?model=a-big-model', {
      model: 'c/embed',
      input: 'Hi',
      Model: BIG,
      fallbacks: [BIG],
      dimensions: 1,
    })
    await post('/v1/rerank?model=a-big-model', {
      model: 'c/rank',
      query: 'q',
      documents: ['d'],
      Model: BIG,
      fallbacks: [BIG],
    })
    await post('/v1/moderations?model=a-big-model', {
      model: 'c/judge',
      input: [{ type: 'image_url', image_url: { url: 'https://example.com/a.png', Model: BIG }, model: BIG }],
      Model: BIG,
      fallbacks: [BIG],
    })
    expect(vendor.requests.at(-1)?.json()).toEqual({
      model: 'judge',
      input: [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }],
    })
    expect(vendor.requests.length).toBeGreaterThan(3)
    expect(allRequests()).not.toContain(BIG)
  })

  it('reaches one model by a form that names several', async () => {
    const form = new FormData()
    for (const [name, value] of [
      ['model', BIG],
      ['model', 'c/gpt-image-1'],
      ['Model', BIG],
      ['prompt', 'A kite'],
      ['model[]', BIG],
    ] as const)
      form.append(name, value)
    form.append('image', new File([Buffer.from(PNG, 'base64')], 'a.png', { type: 'image/png' }))
    const request = new Request('http://gatehouse.test/v1/images/edits', { method: 'POST', body: form })
    request.headers.set('authorization', `Bearer ${gateway.limited}`)
    await gateway.instance.fetch(request)
    expect(allRequests()).not.toContain(BIG)
  })

  it('sends only known headers', async () => {
    const headers = {
      'anthropic-beta':
        'claude-code-20250219, context-1m-2025-08-07,advisor-tool-2026-03-01,server-side-fallback-2026-06-01',
      'anthropic-version': '2023-06-01; model=a-big-model',
      'x-model': BIG,
      'openai-beta': 'responses=experimental, model=a-big-model',
    }
    await post(...messages({}), { headers })
    await post(...responses({}), { headers })
    await post(...chat({}), { headers })
    expect(vendor.requests.map((entry) => entry.headers['anthropic-beta'])[0]).toBe(
      'claude-code-20250219,context-1m-2025-08-07',
    )
    expect(vendor.requests[1]?.headers['openai-beta']).toBe('responses=experimental')
    expect(allRequests()).not.toMatch(/a-big-model|advisor|fallback/)
  })
})

describe('a recorded coding agent', () => {
  const CASES: [AgentId, string][] = [
    ['claude-code', 'm/small'],
    ['codex', 'r/small'],
    ['codex-tool-search', 'r/small'],
    ['codex-code-mode', 'r/small'],
    ['gemini-cli', 'g/small'],
    ['opencode', 'c/small'],
  ]
  it.each(CASES)('can use a limited token: %s', async (agent, model) => {
    for (const request of recorded(agent)) {
      vendor.requests.length = 0
      const { path, body } = forModel(request, model)
      const beta = request.headers['anthropic-beta']
      const { stream: _, stream_options: __, ...json } = body
      const headers = beta === undefined ? {} : { 'anthropic-beta': beta }
      const response = await post(
        path.replace(/:stream(G.*)\?alt=sse/, (_all, name) => `:${name.replace('G', 'g')}`),
        json,
        { headers },
      )
      expect({ status: response.status, text: await response.text() }).toMatchObject({ status: 200 })
      expect(vendor.requests[0]?.headers['anthropic-beta']).toBe(beta as string)
      const sent = vendor.requests[0]?.json() ?? {}
      for (const name of ['tools', 'context_management', 'input']) expect(sent[name]).toEqual(json[name])
    }
  })

  it('can send images, a long history and max_tokens 1 with a limited token, as messages', async () => {
    const use = (id: string, name: string) => ({ type: 'tool_use' as const, id, name, input: { model: 'x' } })
    const uses = [use('t1', 'Read'), use('t2', 'Bash')]
    const turns = [claudeCode.first('Hi'), { role: 'assistant' as const, content: uses }]
    const history = { turns: 3, data: PNG, question: 'Hi', last: 'Go on.' }
    for (const asked of [
      claudeCode.asked('m/small', [...turns, claudeCode.results(uses as never, PNG)]),
      { ...claudeCode.asked('m/small', [claudeCode.first('quota')]), max_tokens: 1, tools: undefined },
      claudeCode.asked('m/small', claudeCode.longHistory(history)),
    ]) {
      const { betas = [], ...json } = asked
      const response = await post('/v1/messages?beta=true', json, { headers: { 'anthropic-beta': betas.join(',') } })
      expect({ status: response.status, text: await response.text() }).toMatchObject({ status: 200 })
    }
  })

  it('can send a patch and an image with a limited token, as responses', async () => {
    const calls = [{ call_id: 'c1' }, { call_id: 'c2' }] as never
    const input = [...codex.first('Hi'), ...PATCHED, ...codex.results(calls, PNG)]
    const response = await post('/v1/responses', codex.asked('r/small', input))
    expect({ status: response.status, text: await response.text() }).toMatchObject({ status: 200 })
    expect(vendor.requests[0]?.json()).toMatchObject({ input: expect.arrayContaining([input[0]]) })
  })

  it('can use a limited token with contentgen', async () => {
    const json = {
      systemInstruction: { role: 'user', parts: [{ text: 'You are a coding agent.' }] },
      contents: [
        { role: 'user', parts: [{ text: 'Hi' }] },
        {
          role: 'model',
          parts: [{ functionCall: { name: 'read_file', args: { model: 'x' } }, thoughtSignature: 'c2ln' }],
        },
        { role: 'user', parts: [{ functionResponse: { id: 'r1', name: 'read_file', response: { output: 'x' } } }] },
      ],
      tools: [
        {
          functionDeclarations: [
            { name: 'read_file', description: 'd', parametersJsonSchema: { properties: { model: {} } } },
          ],
        },
        { googleSearch: {} },
        { url_context: {} },
      ],
      toolConfig: { functionCallingConfig: { mode: 'AUTO' } },
      generationConfig: { temperature: 0, topP: 1, thinkingConfig: { includeThoughts: true, thinking_budget: -1 } },
      labels: { session: 's' },
    }
    const response = await post('/v1beta/models/g/small:generateContent', json)
    expect({ status: response.status, text: await response.text() }).toMatchObject({ status: 200 })
    expect(vendor.requests[0]?.json()).toMatchObject({ tools: json.tools })
  })
})

describe('the operator', () => {
  const advisor = messages({ tools: [{ type: 'openrouter:advisor', parameters: { model: BIG } }] })

  it('does not restrict unlimited tokens by default', async () => {
    expect((await post(...advisor, { secret: gateway.token })).status).toBe(200)
    expect(allRequests()).toContain(BIG)
  })

  it('can restrict all tokens to the lists', async () => {
    gateway = await start({ applies_to: 'all_tokens' })
    expect((await post(...advisor, { secret: gateway.token })).status).toBe(400)
    expect((await post(...messages({}), { secret: gateway.token })).status).toBe(200)
    expect(allRequests()).not.toContain(BIG)
  })

  it('can allow limited tokens a tool type, a field, an option and a header value', async () => {
    const allow = [
      'tools.openrouter:advisor',
      'container',
      'metadata.chatcompat-video.models',
      'headers.anthropic-beta.files-api-2025-04-14',
      'provider_options.responses-compat.models',
    ]
    gateway = await start({ allow })
    expect(
      (await post(...advisor, { headers: { 'anthropic-beta': 'files-api-2025-04-14,x-2025-01-01' } })).status,
    ).toBe(200)
    expect(vendor.requests[0]?.headers['anthropic-beta']).toBe('files-api-2025-04-14')
    expect((await post(...messages({ container: 'cntr_1' }))).status).toBe(200)
    expect((await post(...messages({ tools: [{ type: 'openrouter:other' }] }))).status).toBe(400)
    expect(
      (await post(...chat({ provider_options: { 'responses-compat': { models: [BIG] } } }, 'r/small'))).status,
    ).toBe(200)
    expect((await post(...video({ metadata: { 'chatcompat-video': { models: [BIG] } } }))).status).toBe(200)
  })
})

/** Paths of the client's own data, which no vendor reads as fields. */
const DATA =
  /\.(input|input_schema|input_examples|parameters|output_schema|arguments|args|response|schema|parametersJsonSchema|responseJsonSchema|metadata|client_metadata|labels|operation|action|actions|annotations|logprobs|tabs)\b/
const NAMES = [
  'model',
  'models',
  'Model',
  'MODEL',
  'model_name',
  'modelName',
  'fallbacks',
  'fallback_model',
  'engine',
  'advisor',
  'route',
  'plugins',
  'extra_body',
  'preset',
  'router',
  'x_y',
  'agent',
  'to',
  '__proto__',
  'toJSON',
  'constructor',
]

describe('a forbidden name at any path of a body', () => {
  // Schemas are data: with those of all tools, names would rarely be inserted anywhere else.
  const messagesOf = (model: string) => ({
    ...claudeCode.asked(model, claudeCode.longHistory({ turns: 1, data: PNG, question: 'Hi', last: 'Go on.' })),
    tools: claudeCode.tools.slice(0, 3).map((tool) => ({ ...tool, input_schema: { type: 'object' } })),
    betas: undefined,
  })
  const responsesOf = (model: string) => ({
    ...codex.asked(model, [...codex.first('Hi'), ...PATCHED]),
    tools: codex.tools.map((tool) => ('parameters' in tool ? { ...tool, parameters: { type: 'object' } } : tool)),
  })
  const BODIES: Record<string, readonly [string, object]> = {
    messages: ['/v1/messages', messagesOf('m/small')],
    responses: ['/v1/responses', responsesOf('r/small')],
    contents: contents({
      generationConfig: { thinkingConfig: { includeThoughts: true }, imageConfig: { aspectRatio: '1:1' } },
      tools: [{ functionDeclarations: [{ name: 'f', parameters: { type: 'OBJECT' } }] }, { googleSearch: {} }],
      safetySettings: [{ category: 'x', threshold: 'y' }],
    }),
    chat: chat({
      messages: withContent([
        { type: 'text', text: 'Hi' },
        { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } },
      ]),
      tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }],
      tool_choice: { type: 'function', function: { name: 'f' } },
      response_format: { type: 'json_schema', json_schema: { name: 's', schema: {} } },
      provider_options: { 'responses-compat': { text: { format: { type: 'text' } } } },
      stream_options: { include_usage: true },
    }),
    'chat in another dialect': chat(
      { provider_options: { 'responses-compat': { reasoning: { effort: 'low' } } }, metadata: { a: 'b' } },
      'r/small',
    ),
    'messages in another dialect': ['/v1/messages', messagesOf('c/small')],
    video: video({
      metadata: { 'chatcompat-video': { fps: 1 }, kling: { camera_control: { type: 'x', config: { zoom: 1 } } } },
    }),
    image: image({ metadata: { chatcompat: { steps: 4 } } }),
  }

  it.each(Object.entries(BODIES))('never reaches the vendor as a field: %s', async (_, [path, body]) => {
    const text = JSON.stringify(body)
    expect((await post(path, text)).status).toBeLessThan(300)
    const holders = objectsIn(JSON.parse(text)).length
    // An order contains no data of the client.
    const isOrder = /video|image/.test(path)
    const value = fc.constantFrom<unknown>(BIG, [BIG], { id: BIG }, { model: BIG }, [{ name: BIG }], [[BIG]])
    await fc.assert(
      fc.asyncProperty(
        fc.nat(holders - 1),
        fc.constantFrom(...NAMES),
        value,
        fc.boolean(),
        async (at, name, inserted, first) => {
          const whole = JSON.parse(text)
          const holder = objectsIn(whole)[at] ?? {}
          const members = Object.entries(holder).filter(([entry]) => entry !== name || holder !== whole)
          for (const entry of Object.keys(holder)) delete holder[entry]
          const insertedMember: [string, unknown] = [holder === whole && name === 'model' ? 'models' : name, inserted]
          for (const [entry, member] of first ? [insertedMember, ...members] : [...members, insertedMember]) {
            Object.defineProperty(holder, entry, {
              value: member,
              enumerable: true,
              configurable: true,
              writable: true,
            })
          }
          vendor.requests.length = 0
          await post(path, JSON.stringify(whole))
          for (const request of vendor.requests) {
            expect(request.path).not.toContain(BIG)
            const places = request.body.startsWith('{') ? placesOf(BIG, request.json()) : []
            expect(places.filter((place) => isOrder || !DATA.test(place))).toEqual([])
          }
        },
      ),
      { numRuns: 60 },
    )
  })
})

type Holder = Record<string, unknown>

function objectsIn(value: unknown): Holder[] {
  if (Array.isArray(value)) return value.flatMap(objectsIn)
  if (typeof value !== 'object' || value === null) return []
  return [value as Holder, ...Object.values(value).flatMap(objectsIn)]
}

function placesOf(text: string, value: unknown, at = ''): string[] {
  if (typeof value === 'string') return value.includes(text) ? [at] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) => placesOf(text, member, `${at}.${name}`))
}
