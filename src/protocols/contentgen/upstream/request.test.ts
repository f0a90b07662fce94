/** The encoded contentgen request: every rule of the translation, on both sides. */
import { describe, expect, test } from 'bun:test'
import { DEFAULT_TIMEOUTS } from '../../../config/config.ts'
import type { ProviderConfig } from '../../../config/schema/schema.ts'
import { contentgenSettings } from '../../../providers/contentgen-compat/contentgen-settings.ts'
import { createRequestMedia, type Media } from '../../../providers/media.ts'
import type { EndpointFamily } from '../../../spec/endpoint-family.ts'
import type { ContentPart } from '../../../spec/message.ts'
import type { ChatRequest, Message } from '../../shared/canonical.ts'
import { vendorSchema } from './json-schema.ts'
import { createBodyEncoder } from './request.ts'

const HELLO: Message[] = [{ role: 'user', content: 'Hello' }]
const OLD = 'gemini-2.5-flash'
const NEW = 'gemini-3-flash-preview'
const NEVER = new AbortController().signal

/** Fetches nothing: each URL is an image that holds its own name. */
const media: Media = {
  async read(value) {
    return { bytes: Buffer.from(value), content_type: 'image/webp' }
  },
  async check() {},
}

type Where = { model?: string; config?: ProviderConfig; media?: Media | undefined }

const writerOf = ({ config = {}, ...where }: Where) => {
  const whole = { base_url: 'https://vendor.example/v1beta', ...config }
  const settings = contentgenSettings({ id: 'v', config: whole, timeouts: DEFAULT_TIMEOUTS, environment: {} })
  const files = 'media' in where ? where.media : media
  return createBodyEncoder(settings, files && (() => createRequestMedia(files)))
}

const callOf = (requested: Partial<ChatRequest>, model: string) => ({
  model,
  request: { model: `v/${model}`, messages: HELLO, ...requested },
  request_id: 'r',
})

async function bodyOf(requested: Partial<ChatRequest>, { model = OLD, ...where }: Where = {}) {
  return JSON.parse(await writerOf(where).answer(callOf(requested, model), NEVER))
}

const contentsOf = async (messages: Message[], where: Where = {}) => (await bodyOf({ messages }, where)).contents
const partsOf = async (content: ContentPart[], where: Where = {}) =>
  (await contentsOf([{ role: 'user', content }], where))[0].parts
const generationOf = async (requested: Partial<ChatRequest>, where: Where = {}) =>
  (await bodyOf(requested, where)).generationConfig

const refusalOf = (requested: Partial<ChatRequest>, where: Where = {}) =>
  bodyOf(requested, where).then(
    () => undefined,
    (thrown) => ({ code: thrown.code, param: thrown.detail.param }),
  )
const unsupported = (param: string) => ({ code: 'unsupported_parameter', param })

const call = (id: string, name = 'look', text = '{"a":1}') => ({
  id,
  type: 'function' as const,
  function: { name, arguments: text },
})
const result = (id: string, content: string): Message => ({ role: 'tool', tool_call_id: id, content })
const opaque = (value: string, origin: EndpointFamily = 'contentgen-compat') => ({ opaque: { origin, value } })
const FUNCTION = { type: 'function' as const, function: { name: 'look', parameters: { type: 'object' } } }
const SKIP = 'skip_thought_signature_validator'

describe('contentgen contents', () => {
  test('join consecutive messages of one role to one turn, with system messages first', async () => {
    const body = await bodyOf({
      messages: [
        { role: 'system', content: 'S' },
        { role: 'user', content: 'a' },
        { role: 'user', content: '' },
        { role: 'user', content: [{ type: 'text', text: 'b' }] },
        { role: 'developer', content: [{ type: 'text', text: 'T' }] },
        { role: 'assistant', content: 'c' },
        { role: 'assistant', content: '', refusal: 'no' },
      ],
    })
    expect(body).toEqual({
      systemInstruction: { parts: [{ text: 'S' }, { text: 'T' }] },
      contents: [
        { role: 'user', parts: [{ text: 'a' }, { text: 'b' }] },
        { role: 'model', parts: [{ text: 'c' }, { text: 'no' }] },
      ],
    })
  })

  test('hold instructions as user text if the model accepts none, or if there is nothing else', async () => {
    const system: Message = { role: 'system', content: 'S' }
    const model = 'gemma-3-27b-it'
    const asUser = (...texts: string[]) => [{ role: 'user', parts: texts.map((text) => ({ text })) }]
    expect(await bodyOf({ messages: [system, ...HELLO] }, { model })).toEqual({ contents: asUser('S', 'Hello') })
    expect(await bodyOf({ messages: [system] })).toEqual({ contents: asUser('S') })
    const answered: Message[] = [system, { role: 'assistant', content: 'A' }]
    expect((await contentsOf(answered, { model }))[0]).toEqual(asUser('S')[0])
  })

  test('allow only text in a system message', async () => {
    const content: ContentPart[] = [{ type: 'image_url', image_url: { url: 'https://a.example/x.png' } }]
    expect(await refusalOf({ messages: [{ role: 'system', content }] })).toEqual({
      code: 'unsupported_value',
      param: 'messages[0].content[0].type',
    })
  })

  test('hold results of calls in a turn of their own, by the names of the calls', async () => {
    const contents = await contentsOf([
      ...HELLO,
      { role: 'assistant', content: 'I look.', tool_calls: [call('1'), call('2', 'now', '')] },
      result('1', '{"sun":true}'),
      { role: 'tool', tool_call_id: '2', content: [{ type: 'text', text: 'noon' }] },
      { role: 'user', content: 'And?' },
    ])
    expect(contents.slice(1)).toEqual([
      {
        role: 'model',
        parts: [
          { text: 'I look.' },
          { functionCall: { id: '1', name: 'look', args: { a: 1 } } },
          { functionCall: { id: '2', name: 'now', args: {} } },
        ],
      },
      {
        role: 'user',
        parts: [
          { functionResponse: { id: '1', name: 'look', response: { sun: true } } },
          { functionResponse: { id: '2', name: 'now', response: { output: 'noon' } } },
        ],
      },
      { role: 'user', parts: [{ text: 'And?' }] },
    ])
  })

  test.each<[string, boolean | undefined, object]>([
    ['[1]', undefined, { output: '[1]' }],
    ['{"a":{"$ref":"x"}}', undefined, { output: '{"a":{"$ref":"x"}}' }],
    ['{"a"', undefined, { output: '{"a"' }],
    ['', undefined, { output: '' }],
    ['{"a":1}', false, { a: 1 }],
    ['{"a":1}', true, { error: '{"a":1}' }],
  ])('encode the result %j (error: %j) as %j', async (content, is_error, response) => {
    const message: Message = { ...result('1', content), ...(is_error === undefined ? {} : { is_error }) }
    const contents = await contentsOf([{ role: 'assistant', tool_calls: [call('1')] }, message])
    expect(contents[1].parts[0].functionResponse.response).toEqual(response)
  })

  test('use the name of a result without its call, or refuse it', async () => {
    const unknown: Message = { ...result('9', 'x'), name: 'look' }
    expect((await contentsOf([...HELLO, unknown]))[1].parts[0].functionResponse).toMatchObject({
      id: '9',
      name: 'look',
    })
    expect(await refusalOf({ messages: [result('9', 'x')] })).toEqual({
      code: 'invalid_value',
      param: 'messages[0].tool_call_id',
    })
    expect(await refusalOf({ messages: [{ role: 'tool', content: 'x' }] })).toEqual({
      code: 'missing_required_parameter',
      param: 'messages[0].tool_call_id',
    })
  })

  test('hold images of a result inside it, or after it for models without that feature', async () => {
    const content: ContentPart[] = [
      { type: 'text', text: 'seen' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
    ]
    const messages: Message[] = [
      { role: 'assistant', tool_calls: [{ ...call('1'), ...opaque('S') }] },
      { role: 'tool', tool_call_id: '1', content },
    ]
    const image = { inlineData: { mimeType: 'image/png', data: 'AAAA' } }
    const output = { id: '1', name: 'look', response: { output: 'seen' } }
    expect((await contentsOf(messages, { model: NEW }))[1].parts).toEqual([
      { functionResponse: { ...output, parts: [image] } },
    ])
    expect((await contentsOf(messages))[1].parts).toEqual([{ functionResponse: output }, image])
  })

  test('require an object as arguments, and refuse older forms of calls', async () => {
    const param = 'messages[0].tool_calls[0].function.arguments'
    for (const text of ['[]', '{', '"x"']) {
      const messages: Message[] = [{ role: 'assistant', tool_calls: [call('1', 'look', text)] }]
      expect(await refusalOf({ messages })).toEqual({ code: 'invalid_value', param })
    }
    expect(await refusalOf({ messages: [{ role: 'function', name: 'x', content: 'y' }] })).toEqual(
      unsupported('messages[0].role'),
    )
    const function_call = { name: 'x', arguments: '{}' }
    expect(await refusalOf({ messages: [{ role: 'assistant', content: null, function_call }] })).toEqual(
      unsupported('messages[0].function_call'),
    )
  })

  test('have no call ids for the vendor’s cloud', async () => {
    const base_url = 'https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google'
    const contents = await contentsOf([{ role: 'assistant', tool_calls: [call('1')] }, result('1', 'x')], {
      config: { base_url },
    })
    expect(contents[0].parts[0].functionCall).toEqual({ name: 'look', args: { a: 1 } })
    expect(contents[1].parts[0].functionResponse).toEqual({ name: 'look', response: { output: 'x' } })
  })
})

describe('signatures of the vendor', () => {
  test('stay in place: at thoughts, text, calls and images', async () => {
    const url = 'data:image/png;base64,AAAA'
    const [content] = await contentsOf(
      [
        {
          role: 'assistant',
          content: 'Words.',
          reasoning_content: 'A thought.',
          reasoning_details: [{ text: 'A thought.', ...opaque('A') }, opaque('B'), opaque('C')],
          images: [{ type: 'image_url', image_url: { url }, ...opaque('D') }],
          tool_calls: [{ ...call('1'), ...opaque('E') }, call('2')],
        },
      ],
      { model: NEW },
    )
    expect(content.parts).toEqual([
      { text: 'A thought.', thought: true, thoughtSignature: 'A' },
      { text: '', thoughtSignature: 'B' },
      { text: 'Words.', thoughtSignature: 'C' },
      { inlineData: { mimeType: 'image/png', data: 'AAAA' }, thoughtSignature: 'D' },
      { functionCall: { id: '1', name: 'look', args: { a: 1 } }, thoughtSignature: 'E' },
      { functionCall: { id: '2', name: 'look', args: { a: 1 } } },
    ])
  })

  test('go on an empty text if there is no text, and are dropped if unsigned or of another vendor', async () => {
    const [content] = await contentsOf([
      {
        role: 'assistant',
        content: null,
        reasoning_content: 'plain',
        reasoning_details: [{ text: 'x' }, { text: 'y', ...opaque('Z', 'messages-compat') }, opaque('H')],
        tool_calls: [{ ...call('1'), ...opaque('Z', 'chatcompat-response') }],
      },
    ])
    expect(content.parts).toEqual([
      { text: '', thoughtSignature: 'H' },
      { functionCall: { id: '1', name: 'look', args: { a: 1 } } },
    ])
  })

  test('are replaced once per turn for calls from elsewhere, for models that require them', async () => {
    const messages: Message[] = [{ role: 'assistant', tool_calls: [call('1'), call('2')] }]
    const signatures = async (model: string) =>
      (await contentsOf(messages, { model }))[0].parts.map(
        (part: { thoughtSignature?: string }) => part.thoughtSignature,
      )
    expect(await signatures(NEW)).toEqual([SKIP, undefined])
    expect(await signatures(OLD)).toEqual([undefined, undefined])
  })
})

describe('images, audio and files', () => {
  const image = (url: string): ContentPart => ({ type: 'image_url', image_url: { url } })
  const file = (members: object): ContentPart => ({ type: 'file', file: members })
  const inline = (mimeType: string, data: string) => ({ inlineData: { mimeType, data } })
  const link = (fileUri: string, mimeType?: string) => ({ fileData: { ...(mimeType ? { mimeType } : {}), fileUri } })
  const base64 = (text: string) => Buffer.from(text).toString('base64')

  test.each<[string, ContentPart, object]>([
    ['an image', image('data:image/png;base64,AA\nAA'), inline('image/png', 'AAAA')],
    ['an image by another name', image('data:image/jpg;base64,AAAA'), inline('image/jpeg', 'AAAA')],
    ['an image without a type', image('data:;base64,AAAA'), inline('image/png', 'AAAA')],
    ['a drawing', image('data:image/svg+xml,%3Csvg/%3E'), inline('image/svg+xml', base64('<svg/>'))],
    ['an address', image('https://a.example/x'), inline('image/webp', base64('https://a.example/x'))],
    ['a film of theirs', image('https://www.youtube.com/watch?v=1'), link('https://www.youtube.com/watch?v=1')],
    ['a bucket', image('gs://b/x.png'), link('gs://b/x.png', 'image/png')],
    ['sound', { type: 'input_audio', input_audio: { data: 'AAAA', format: 'mp3' } }, inline('audio/mp3', 'AAAA')],
    ['other sound', { type: 'input_audio', input_audio: { data: 'AAAA', format: 'L16' } }, inline('audio/l16', 'AAAA')],
    ['a PDF', file({ file_data: 'data:application/pdf;base64,AAAA' }), inline('application/pdf', 'AAAA')],
    ['bare data', file({ file_data: 'AAAA' }), inline('application/pdf', 'AAAA')],
    ['bare data with a name', file({ file_data: 'AAAA', filename: 'a.CSV' }), inline('text/csv', 'AAAA')],
    ['JSON', file({ file_data: 'data:application/json;base64,AAAA' }), inline('text/plain', 'AAAA')],
    [
      'a file by address',
      file({ file_url: 'https://a.example/x.pdf?y=1' }),
      link('https://a.example/x.pdf?y=1', 'application/pdf'),
    ],
    ['a nameless address', file({ file_url: 'https://a.example/' }), link('https://a.example/')],
    ['a data URI as an address', file({ file_url: 'data:text/plain;base64,AAAA' }), inline('text/plain', 'AAAA')],
    ['their own file', file({ file_id: 'files/abc' }), link('https://vendor.example/v1beta/files/abc')],
    [
      'their own file by address',
      file({ file_id: 'https://v.example/files/abc' }),
      link('https://v.example/files/abc'),
    ],
    ['a refusal', { type: 'refusal', refusal: 'No.' }, { text: 'No.' }],
  ])('%s', async (_, part, output) => {
    expect(await partsOf([part])).toEqual([output])
  })

  test('are sent by URL if nothing is fetched', async () => {
    const parts = await partsOf([image('https://a.example/x.png')], { media: undefined })
    expect(parts).toEqual([link('https://a.example/x.png', 'image/png')])
  })

  test.each<[ContentPart, string, string]>([
    [image('file:///etc/passwd'), 'invalid_value', 'image_url.url'],
    [image('nothing'), 'invalid_value', 'image_url.url'],
    [file({}), 'unsupported_value', 'file'],
    [file({ file_id: 'file-abc' }), 'unsupported_value', 'file.file_id'],
  ])('are refused: %j as %s', async (part, code, member) => {
    const refusal = await refusalOf({ messages: [{ role: 'user', content: [part] }] })
    expect(refusal).toEqual({ code, param: `messages[0].content[0].${member}` })
  })
})

describe('contentgen generation settings', () => {
  test('include names, limits and stop sequences', async () => {
    const config = await generationOf({
      temperature: 2,
      top_p: 0.5,
      top_k: 40,
      max_tokens: 9,
      max_completion_tokens: 10,
      stop: ['a', ''],
      seed: -7,
      n: 2,
      logprobs: true,
      top_logprobs: 3,
    })
    expect(config).toEqual({
      temperature: 2,
      topP: 0.5,
      topK: 40,
      maxOutputTokens: 10,
      stopSequences: ['a'],
      seed: 7,
      candidateCount: 2,
      responseLogprobs: true,
      logprobs: 3,
    })
    expect(await generationOf({ top_k: 0, n: 1, stop: 'x', seed: 2 ** 31 + 5 })).toEqual({
      stopSequences: ['x'],
      seed: 5,
    })
  })

  test('leave out fields that only tune and that the vendor does not support', async () => {
    const requested: Partial<ChatRequest> = {
      user: 'u',
      metadata: { a: 1 },
      store: true,
      logit_bias: { '1': 2 },
      repetition_penalty: 1.1,
      verbosity: 'low',
      prompt_cache_key: 'k',
      service_tier: 'auto',
      stream: true,
      stream_options: { include_usage: true },
    }
    expect(Object.keys(await bodyOf(requested))).toEqual(['contents'])
  })

  test('include penalties only for models that accept them', async () => {
    const requested = { presence_penalty: 1, frequency_penalty: -1 }
    expect(await generationOf(requested)).toBeUndefined()
    expect(await generationOf(requested, { model: NEW })).toEqual({ presencePenalty: 1, frequencyPenalty: -1 })
  })

  test('include service tiers under the vendor’s names', async () => {
    expect((await bodyOf({ service_tier: 'default' })).serviceTier).toBe('standard')
    expect((await bodyOf({ service_tier: 'flex' })).serviceTier).toBe('flex')
  })

  test.each<[string, Partial<ChatRequest>]>([
    ['audio', { audio: { voice: 'x' } }],
    ['modalities', { modalities: ['text', 'audio'] }],
    ['functions', { functions: [{ name: 'x' }] }],
    ['function_call', { function_call: { name: 'x' } }],
  ])('refuse %s by name', async (param, requested) => {
    expect(await refusalOf(requested)).toEqual(unsupported(param))
  })

  test('request images by their modality', async () => {
    expect(await generationOf({ modalities: ['text', 'image'] })).toEqual({ responseModalities: ['TEXT', 'IMAGE'] })
    expect(await generationOf({ modalities: ['text'] })).toBeUndefined()
  })
})

describe('contentgen thinking', () => {
  const shown = { includeThoughts: true }
  test.each<[string, Partial<ChatRequest>, object | undefined]>([
    [OLD, {}, undefined],
    [OLD, { reasoning_effort: 'low' }, { thinkingBudget: 1024, ...shown }],
    [OLD, { reasoning_effort: 'medium' }, { thinkingBudget: 8192, ...shown }],
    [OLD, { reasoning_effort: 'max' }, { thinkingBudget: 24_576, ...shown }],
    [OLD, { reasoning_effort: 'none' }, { thinkingBudget: 0 }],
    [OLD, { reasoning_budget: 0 }, { thinkingBudget: 0 }],
    [OLD, { reasoning_budget: -1 }, { thinkingBudget: -1, ...shown }],
    [OLD, { reasoning_budget: 99_999 }, { thinkingBudget: 24_576, ...shown }],
    [OLD, { thinking_enabled: true }, { thinkingBudget: -1, ...shown }],
    [OLD, { thinking_enabled: false }, { thinkingBudget: 0 }],
    [OLD, { reasoning_summary: 'auto' }, shown],
    ['gemini-2.5-pro', { reasoning_effort: 'none' }, { thinkingBudget: 128 }],
    ['gemini-2.5-pro', { reasoning_budget: 1 }, { thinkingBudget: 128, ...shown }],
    ['gemini-2.5-pro', { reasoning_effort: 'xhigh' }, { thinkingBudget: 32_768, ...shown }],
    ['gemini-2.5-flash-lite', { reasoning_budget: 1 }, { thinkingBudget: 512, ...shown }],
    [NEW, { reasoning_effort: 'minimal' }, { thinkingLevel: 'MINIMAL', ...shown }],
    [NEW, { reasoning_effort: 'xhigh' }, { thinkingLevel: 'HIGH', ...shown }],
    [NEW, { reasoning_effort: 'none' }, { thinkingLevel: 'MINIMAL' }],
    [NEW, { reasoning_budget: -1 }, shown],
    [NEW, { reasoning_budget: 1024 }, { thinkingLevel: 'MINIMAL', ...shown }],
    [NEW, { reasoning_budget: 1025 }, { thinkingLevel: 'LOW', ...shown }],
    [NEW, { reasoning_budget: 99_999 }, { thinkingLevel: 'HIGH', ...shown }],
    ['gemini-3-pro-preview', { reasoning_effort: 'minimal' }, { thinkingLevel: 'LOW', ...shown }],
    ['gemini-3-pro-preview', { reasoning_effort: 'medium' }, { thinkingLevel: 'HIGH', ...shown }],
    ['gemini-3.1-pro-preview', { reasoning_effort: 'medium' }, { thinkingLevel: 'MEDIUM', ...shown }],
    ['gemini-4-hydrogen', { reasoning_effort: 'max' }, { thinkingLevel: 'XHIGH', ...shown }],
    ['gemini-2.0-flash', { reasoning_effort: 'high' }, undefined],
    ['gemma-3-27b-it', { thinking_enabled: true }, undefined],
    ['a-model-of-others', { reasoning_effort: 'low' }, { thinkingBudget: 1024, ...shown }],
  ])('maps for %s the request %j', async (model, requested, thinkingConfig) => {
    expect((await generationOf(requested, { model }))?.thinkingConfig).toEqual(thinkingConfig)
  })

  test('follows the operator’s corrections of the model’s row', async () => {
    const config = { options: { thinking: 'level' } }
    const requested = { reasoning_effort: 'low' as const }
    expect(await generationOf(requested, { model: 'other', config })).toEqual({
      thinkingConfig: { thinkingLevel: 'LOW', ...shown },
    })
  })
})

describe('contentgen tools', () => {
  const mode = async (requested: Partial<ChatRequest>, model = OLD) =>
    (await bodyOf({ tools: [FUNCTION], ...requested }, { model })).toolConfig?.functionCallingConfig

  test('include functions with their schemas', async () => {
    const tools = [
      {
        type: 'function' as const,
        function: { name: 'a', description: 'd', parameters: { type: 'object', $schema: 'x' } },
      },
      { type: 'function' as const, function: { name: 'b' } },
    ]
    expect(await bodyOf({ tools })).toMatchObject({
      tools: [
        {
          functionDeclarations: [
            { name: 'a', description: 'd', parametersJsonSchema: { type: 'object' } },
            { name: 'b' },
          ],
        },
      ],
    })
    expect((await bodyOf({ tools })).tools[0].functionDeclarations[1]).toEqual({ name: 'b' })
    expect((await bodyOf({ tools: [] })).tools).toBeUndefined()
  })

  test('include the tool choice', async () => {
    expect(await mode({})).toBeUndefined()
    expect(await mode({ tool_choice: 'auto' })).toEqual({ mode: 'AUTO' })
    expect(await mode({ tool_choice: 'required' })).toEqual({ mode: 'ANY' })
    expect(await mode({ tool_choice: 'none' }, NEW)).toEqual({ mode: 'NONE' })
    expect((await bodyOf({ tools: [FUNCTION], tool_choice: 'none' })).tools).toBeUndefined()
    const one = { type: 'function' as const, function: { name: 'look' } }
    expect(await mode({ tool_choice: one })).toEqual({ mode: 'ANY', allowedFunctionNames: ['look'] })
    const strict = { type: 'function' as const, function: { ...FUNCTION.function, strict: true } }
    expect(await mode({ tools: [strict] })).toEqual({ mode: 'VALIDATED' })
    expect(await mode({ tools: [strict], tool_choice: 'required' })).toEqual({ mode: 'ANY' })
  })

  test('are reduced to the allowed tools', async () => {
    const other = { type: 'function' as const, function: { name: 'other' } }
    const allowed_tools = { mode: 'required' as const, tools: [{ type: 'function', function: { name: 'look' } }] }
    const body = await bodyOf({ tools: [FUNCTION, other], tool_choice: { type: 'allowed_tools', allowed_tools } })
    expect(body.tools[0].functionDeclarations.map(({ name }: { name: string }) => name)).toEqual(['look'])
    expect(body.toolConfig).toEqual({ functionCallingConfig: { mode: 'ANY' } })
  })

  test('include a search, alone and beside functions', async () => {
    const web_search = { enable: true }
    expect((await bodyOf({ web_search })).tools).toEqual([{ googleSearch: {} }])
    expect((await bodyOf({ web_search: { enable: false } })).tools).toBeUndefined()
    expect((await bodyOf({ web_search_options: {} })).tools).toEqual([{ googleSearch: {} }])
    expect(await refusalOf({ web_search, tools: [FUNCTION] })).toEqual(unsupported('web_search'))
    expect((await bodyOf({ web_search, tools: [FUNCTION], tool_choice: 'none' })).tools).toEqual([{ googleSearch: {} }])
    expect((await bodyOf({ web_search, tools: [FUNCTION] }, { model: NEW })).toolConfig).toEqual({
      functionCallingConfig: { mode: 'VALIDATED' },
      includeServerSideToolInvocations: true,
    })
    expect(await mode({ web_search, tool_choice: 'required' }, NEW)).toEqual({ mode: 'ANY' })
  })
})

describe('the contentgen response format', () => {
  const schema = { type: 'object', properties: { a: { const: 'x' } } }
  const format: ChatRequest['response_format'] = { type: 'json_schema', json_schema: { name: 'n', schema } }
  const JSON_TYPE = { responseMimeType: 'application/json' }

  test('is JSON, with and without a schema', async () => {
    const cleaned = { type: 'object', properties: { a: { enum: ['x'] } } }
    expect(await generationOf({ response_format: format })).toEqual({ ...JSON_TYPE, responseJsonSchema: cleaned })
    expect(await generationOf({ response_format: { type: 'json_object' } })).toEqual(JSON_TYPE)
    expect(await generationOf({ response_format: { type: 'json_schema', json_schema: { name: 'n' } } })).toEqual(
      JSON_TYPE,
    )
    expect(await generationOf({ response_format: { type: 'text' } })).toBeUndefined()
  })

  test('is allowed beside functions only for models that support both, and is dropped for a forced call', async () => {
    const requested = { response_format: format, tools: [FUNCTION] }
    expect(await refusalOf(requested)).toEqual(unsupported('response_format'))
    expect(await generationOf(requested, { model: NEW })).toMatchObject(JSON_TYPE)
    expect(await generationOf({ ...requested, tool_choice: 'none' })).toMatchObject(JSON_TYPE)
    for (const model of [OLD, NEW]) {
      expect(await generationOf({ ...requested, tool_choice: 'required' }, { model })).toBeUndefined()
    }
  })
})

describe('contentgen schemas', () => {
  test.each<[string, unknown, unknown]>([
    ['unknown keywords go', { type: 'object', $schema: 'x', examples: [1], if: {} }, { type: 'object' }],
    [
      'unsupported constraints move to the description',
      { type: 'string', description: 'D', minLength: 2, pattern: '^a' },
      { type: 'string', description: 'D\n\n{minLength: 2, pattern: ^a}' },
    ],
    [
      'bounds that it knows stay',
      { type: 'integer', minimum: 1, maximum: 2 },
      { type: 'integer', minimum: 1, maximum: 2 },
    ],
    ['one number', { const: 3 }, { enum: [3] }],
    ['one truth', { const: true }, { type: 'boolean', description: 'Always true.' }],
    ['nothing', { const: null }, { type: 'null' }],
    [
      'a property may have a keyword’s name',
      { properties: { const: { type: 'string' }, $schema: { type: 'string' } } },
      { properties: { const: { type: 'string' }, $schema: { type: 'string' } } },
    ],
    [
      'definitions and what refers to them',
      { definitions: { a: { const: 1 } }, properties: { b: { $ref: '#/definitions/a', description: 'x' } } },
      { $defs: { a: { enum: [1] } }, properties: { b: { $ref: '#/$defs/a' } } },
    ],
    [
      'a reference at the top',
      { $ref: '#/$defs/a', $defs: { a: { type: 'string' } }, title: 't' },
      { $ref: '#/$defs/a', $defs: { a: { type: 'string' } } },
    ],
    [
      'all at once is one',
      {
        allOf: [
          { properties: { a: {} }, required: ['a'] },
          { properties: { b: true }, required: ['b'] },
        ],
        type: 'object',
      },
      { type: 'object', properties: { a: {}, b: {} }, required: ['a', 'b'] },
    ],
    ['an old tuple', { items: [{ const: 'a' }] }, { prefixItems: [{ enum: ['a'] }] }],
    ['alternatives', { anyOf: [{ const: 'a' }], oneOf: [true] }, { anyOf: [{ enum: ['a'] }], oneOf: [{}] }],
    ['closed objects', { additionalProperties: false }, { additionalProperties: false }],
    ['open objects', { additionalProperties: { const: 'a' } }, { additionalProperties: { enum: ['a'] } }],
  ])('%s', (_, schema, output) => {
    expect(vendorSchema(schema)).toEqual(output)
  })

  test('leave the caller’s own schema unchanged', () => {
    const schema = { type: 'object', properties: { a: { const: 1, minLength: 3 } }, allOf: [{ required: ['a'] }] }
    const before = structuredClone(schema)
    vendorSchema(schema)
    expect(schema).toEqual(before)
  })
})

describe('vendor-specific options', () => {
  const own = (options: Record<string, unknown>) => ({ provider_options: { 'contentgen-compat': options } })
  const safetySettings = [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'OFF' }]

  test('of a caller are merged in place, and the request’s own fields win', async () => {
    const options = { safetySettings, generationConfig: { mediaResolution: 'LOW' }, tools: [{ urlContext: {} }] }
    expect(await bodyOf({ ...own(options), temperature: 1, web_search: { enable: true } })).toMatchObject({
      safetySettings,
      generationConfig: { mediaResolution: 'LOW', temperature: 1 },
      tools: [{ googleSearch: {} }, { urlContext: {} }],
    })
    expect(await bodyOf({ provider_options: { mistral: { safePrompt: true } } })).toEqual(await bodyOf({}))
  })

  test.each<[string, Record<string, unknown>]>([
    ['contents', { contents: [] }],
    ['generationConfig.maxOutputTokens', { generationConfig: { maxOutputTokens: 1e9 } }],
    ['generationConfig.candidateCount', { generationConfig: { candidateCount: 100 } }],
    ['tools.functionDeclarations', { tools: [{ functionDeclarations: [] }] }],
    ['tools', { tools: [1] }],
    ['toString', { toString: 1 }],
  ])('refuse %s from callers', async (path, options) => {
    expect(await refusalOf(own(options))).toEqual(unsupported(`provider_options.contentgen-compat.${path}`))
  })

  test('of the operator: defaults, fields to drop, to rename and to forward', async () => {
    const config: ProviderConfig = {
      request_defaults: { safetySettings, contents: [], generationConfig: { temperature: 0.1, topK: 3 } },
      fields: {
        drop: ['generationConfig.seed', 'contents'],
        rename: { 'generationConfig.topP': 'nucleus' },
        allow: ['x'],
      },
    }
    const requested: Record<string, unknown> = { temperature: 1, seed: 4, top_p: 0.5, x: 'y' }
    expect(await bodyOf(requested, { config })).toEqual({
      contents: [{ role: 'user', parts: [{ text: 'Hello' }] }],
      safetySettings,
      generationConfig: { temperature: 1, topK: 3, nucleus: 0.5 },
      x: 'y',
    })
  })
})

describe('a contentgen token count', () => {
  const requested: Partial<ChatRequest> = {
    messages: [{ role: 'system', content: 'S' }, ...HELLO],
    tools: [FUNCTION],
    temperature: 1,
  }
  const count = async (config: ProviderConfig = {}) =>
    JSON.parse(await writerOf({ config }).count(callOf(requested, OLD), NEVER))
  const prompt = {
    contents: [{ role: 'user', parts: [{ text: 'Hello' }] }],
    systemInstruction: { parts: [{ text: 'S' }] },
    tools: [{ functionDeclarations: [{ name: 'look', parametersJsonSchema: { type: 'object' } }] }],
  }

  test('has the whole prompt and nothing else', async () => {
    expect(await count()).toEqual({ generateContentRequest: { model: `models/${OLD}`, ...prompt } })
    expect(await count({ base_url: 'https://aiplatform.googleapis.com/v1/publishers/google' })).toEqual(prompt)
  })
})

describe('contentgen settings', () => {
  const settings = (config: ProviderConfig, environment: Record<string, string> = {}) =>
    contentgenSettings({ id: 'v', config, timeouts: DEFAULT_TIMEOUTS, environment })
  const HOME = 'https://generativelanguage.googleapis.com/v1beta'

  test('put the key into its header, never into a URL', () => {
    expect(settings({ key: 'AIza-key' })).toMatchObject({ base_url: HOME, headers: { 'x-goog-api-key': 'AIza-key' } })
    expect(settings({}, { GEMINI_API_KEY: 'AIza-env' }).headers).toEqual({ 'x-goog-api-key': 'AIza-env' })
    const bearer = settings({ key: 'ya29', options: { auth: 'bearer' } })
    expect(bearer.headers).toEqual({ authorization: 'Bearer ya29' })
    const own = settings({ key: 'AIza-key', headers: { 'x-goog-api-key': 'own' } })
    expect(own.headers).toEqual({ 'x-goog-api-key': 'own' })
  })

  test('refuse a base URL without a version or with the path of another vendor', () => {
    expect(settings({ base_url: 'https://v.example/' }).base_url).toBe('https://v.example/v1beta')
    expect(settings({ base_url: 'https://v.example/v1' }).base_url).toBe('https://v.example/v1')
    expect(settings({ base_url: `${HOME}/openai` }).base_url).toBe(HOME)
  })

  test.each([
    [{ auth: 'query' }, 'providers.v.options.auth must be x-goog-api-key or bearer'],
    [{ thinking: 'much' }, 'providers.v.options.thinking must be one of none, budget, level'],
    [{ sound: true }, 'providers.v.options has no "sound"'],
  ])('explain how to correct the options %j', (options, message) => {
    expect(() => settings({ options })).toThrow(message)
  })
})
