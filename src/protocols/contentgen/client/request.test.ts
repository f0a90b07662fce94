/** Decoding of contentgen requests, and refusals with the client's field and the rule. */
import { describe, expect, test } from 'bun:test'
import { contentgenDialect } from '../../../families/chat/dialects/contentgen.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { Opaque } from '../../shared/canonical.ts'
import { OWN, REFUSED, RENAMED } from './fields.ts'
import { parseContentgen, parseCount } from './request.ts'
import { encodeSignature } from './signed-content.ts'

const HELLO = { role: 'user', parts: [{ text: 'Hello' }] }
const parse = (more: object) => parseContentgen({ contents: [HELLO], ...more }, 'a/b')
const configured = (generationConfig: object) => parse({ generationConfig })
const messagesOf = (...contents: object[]) => parse({ contents }).messages
const user = (...parts: object[]) => ({ role: 'user', parts })
const model = (...parts: object[]) => ({ role: 'model', parts })
const call = (name = 'look', more: object = {}) => ({ functionCall: { name, args: {}, ...more } })
const result = (name = 'look', more: object = {}) => ({
  functionResponse: { name, response: { output: 'ok' }, ...more },
})
const refusalOf = (body: unknown): unknown => {
  try {
    parseContentgen(body, 'a/b')
  } catch (error) {
    return error
  }
}
const refusal = (more: object) => refusalOf({ contents: [HELLO], ...more })
const isRefused = (code: string, param: string) => ({
  code,
  detail: { param },
  message: expect.stringContaining(`"${param}"`),
})
const home = (value: string) => ({ origin: 'contentgen-compat' as const, value })
const foreign = (value: string) => ({ origin: 'messages-compat' as const, value })

describe('contentgen request fields', () => {
  test('converts every known field', () => {
    const request = parse({
      systemInstruction: { role: 'system', parts: [{ text: 'Be brief.' }, { text: '' }, { text: 'Be kind.' }] },
      generationConfig: {
        temperature: 0.5,
        topP: 0.9,
        topK: 40,
        maxOutputTokens: 100,
        stopSequences: ['1', '2', '3', '4', '5'],
        candidateCount: 2,
        seed: 7,
        presencePenalty: 1,
        frequencyPenalty: -1,
        responseLogprobs: true,
        logprobs: 3,
        responseModalities: ['TEXT', 'IMAGE'],
        thinkingConfig: { includeThoughts: true, thinkingBudget: 2048 },
        mediaResolution: 'MEDIA_RESOLUTION_LOW',
        ofTomorrow: 1,
      },
      serviceTier: 'standard',
      safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }],
      toolConfig: { retrievalConfig: { languageCode: 'de' } },
      model: 'models/other',
      ofTomorrow: 1,
    })
    expect(request).toEqual({
      model: 'a/b',
      messages: [
        { role: 'system', content: 'Be brief.\n\nBe kind.' },
        { role: 'user', content: 'Hello' },
      ],
      temperature: 0.5,
      top_p: 0.9,
      top_k: 40,
      max_tokens: 100,
      stop: ['1', '2', '3', '4', '5'],
      n: 2,
      seed: 7,
      presence_penalty: 1,
      frequency_penalty: -1,
      logprobs: true,
      top_logprobs: 3,
      modalities: ['text', 'image'],
      thinking_enabled: true,
      reasoning_budget: 2048,
      reasoning_summary: 'auto',
      service_tier: 'default',
      provider_options: {
        'contentgen-compat': {
          safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }],
          generationConfig: { mediaResolution: 'MEDIA_RESOLUTION_LOW' },
          toolConfig: { retrievalConfig: { languageCode: 'de' } },
        },
      },
    })
  })

  test.each(['__proto__', 'constructor'])('accepts the string %s like any other', (word) => {
    expect(parse({ serviceTier: word }).service_tier).toBe(word)
  })

  test('accepts snake_case, null for absent, and one value for a list of one', () => {
    const request = parseContentgen(
      {
        contents: { role: null, parts: { text: 'Look', thought_signature: null } },
        system_instruction: { parts: { text: 'Be brief.' } },
        generation_config: {
          max_output_tokens: 5,
          stop_sequences: 'x',
          top_p: null,
          response_mime_type: 'application/json',
        },
        tools: {
          function_declarations: {
            name: 'look_up',
            parameters: { type: 'OBJECT', properties: { from_city: { type: 'STRING', max_length: '9' } } },
          },
        },
        tool_config: { function_calling_config: { mode: 'ANY', allowed_function_names: 'look_up' } },
        safety_settings: null,
      },
      'm',
    )
    expect(request).toEqual({
      model: 'm',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Look' },
      ],
      max_tokens: 5,
      stop: ['x'],
      response_format: { type: 'json_object' },
      tools: [
        {
          type: 'function',
          function: {
            name: 'look_up',
            parameters: { type: 'object', properties: { from_city: { type: 'string', maxLength: 9 } } },
          },
        },
      ],
      tool_choice: { type: 'function', function: { name: 'look_up' } },
    })
  })

  test("keeps the client's own data unchanged", () => {
    const own = { a_b: null, list: [null, { c_d: 1 }] }
    const messages = messagesOf(
      user({ text: 'x' }),
      model({ function_call: { name: 'f', args: own } }),
      user({ function_response: { name: 'f', response: own } }),
    )
    expect(messages[1]?.tool_calls?.[0]?.function.arguments).toBe(JSON.stringify(own))
    expect(messages[2]?.content).toBe(JSON.stringify(own))
    const schema = { type: 'object', properties: { a_b: { type: 'null', default: null } } }
    expect(configured({ response_json_schema: schema }).response_format).toMatchObject({ json_schema: { schema } })
  })

  test.each(Object.entries(RENAMED))('refuses %s out of range under its own name', (member) => {
    const error = refusal({ generationConfig: { [member]: 'a lot' } })
    expect(error).toMatchObject(isRefused('invalid_type', `generationConfig.${member}`))
  })

  test.each(Object.keys(REFUSED))('refuses %s, which would change the response', (path) => {
    const [name = '', member] = path.split('.')
    const body = member === undefined ? { [name]: 'x' } : { [name]: { [member]: {} } }
    expect(refusal(body)).toMatchObject(isRefused('unsupported_parameter', path))
    expect(refusal(member === undefined ? { [name]: null } : { [name]: { [member]: null } })).toBeUndefined()
  })

  test.each(Object.entries(OWN))('forwards %p to providers of this API, because it only tunes', (holder, members) => {
    for (const member of members) {
      const value = { a: 'b' }
      const own = holder === '' ? { [member]: value } : { [holder]: { [member]: value } }
      const given = member === 'safetySettings' ? { safetySettings: [value] } : own
      expect(parse(given).provider_options).toEqual({ 'contentgen-compat': given })
    }
  })

  test.each<[object, object]>([
    [{ thinkingBudget: 0 }, { thinking_enabled: false, reasoning_budget: 0 }],
    [
      { thinkingBudget: 0, includeThoughts: true },
      { thinking_enabled: false, reasoning_budget: 0 },
    ],
    [{ thinkingBudget: -1 }, { thinking_enabled: true, reasoning_budget: -1 }],
    [{ thinkingLevel: 'LOW' }, { thinking_enabled: true, reasoning_effort: 'low' }],
    [{ thinkingLevel: 'high' }, { thinking_enabled: true, reasoning_effort: 'high' }],
    [{ includeThoughts: true }, { thinking_enabled: true, reasoning_summary: 'auto' }],
    [{ thinkingLevel: 'THINKING_LEVEL_UNSPECIFIED', includeThoughts: false }, {}],
  ])('maps thinking %j to %j', (thinkingConfig, expected) => {
    const { model: _, messages: __, ...rest } = configured({ thinkingConfig })
    expect(rest).toEqual(expected)
  })

  test('the response format: JSON by either kind of schema, or text', () => {
    const formatOf = (config: object) => configured(config).response_format
    const json = { responseMimeType: 'application/json' }
    expect(formatOf({ responseMimeType: 'text/plain' })).toBeUndefined()
    expect(formatOf(json)).toEqual({ type: 'json_object' })
    const open = { type: 'object', properties: { a: { type: 'string' } } }
    expect(formatOf({ ...json, responseJsonSchema: open })).toEqual({
      type: 'json_schema',
      json_schema: { name: 'answer', schema: open },
    })
    const closed = { ...open, required: ['a'], additionalProperties: false }
    expect(formatOf({ ...json, responseJsonSchema: closed })).toMatchObject({ json_schema: { strict: true } })
    const enumeration = { responseMimeType: 'text/x.enum', responseSchema: { type: 'STRING', enum: ['a'] } }
    expect(formatOf(enumeration)).toEqual({
      type: 'json_schema',
      json_schema: {
        name: 'enum_value',
        schema: {
          type: 'object',
          properties: { value: { type: 'string', enum: ['a'] } },
          required: ['value'],
          additionalProperties: false,
        },
        strict: true,
      },
    })
    const noEnum = { responseMimeType: 'text/x.enum', responseSchema: { type: 'STRING' } }
    expect(refusal({ generationConfig: noEnum })).toMatchObject(
      isRefused('invalid_value', 'generationConfig.responseSchema'),
    )
    const at = 'generationConfig.responseMimeType'
    expect(refusal({ generationConfig: { responseMimeType: 'image/png' } })).toMatchObject(
      isRefused('invalid_value', at),
    )
  })

  test.each<[string, object, string]>([
    ['invalid_value', { thinkingConfig: { thinkingLevel: 'SOME' } }, 'thinkingConfig.thinkingLevel'],
    ['invalid_value', { thinkingConfig: { thinkingBudget: -2 } }, 'thinkingConfig.thinkingBudget'],
    ['unsupported_parameter', { responseModalities: ['TEXT', 'AUDIO'] }, 'responseModalities[1]'],
    ['invalid_value', { stopSequences: ['1', '2', '3', '4', '5', '6'] }, 'stopSequences'],
    ['invalid_value', { temperature: 2.1 }, 'temperature'],
    ['invalid_value', { maxOutputTokens: 0 }, 'maxOutputTokens'],
  ])('%s: %j', (code, generationConfig, param) => {
    expect(refusal({ generationConfig })).toMatchObject(isRefused(code, `generationConfig.${param}`))
  })

  test("converts a schema in the vendor's format to a JSON Schema", () => {
    const parameters = {
      type: 'OBJECT',
      nullable: true,
      properties: {
        b: { type: 'ARRAY', items: { type: 'NUMBER', format: 'double' }, minItems: '1', maxItems: 3 },
        a: { type: 'STRING', enum: ['x', 'y'], nullable: true, example: 'x' },
        c: { anyOf: [{ type: 'INTEGER' }, { type: 'TYPE_UNSPECIFIED' }], nullable: true },
        type: { type: 'BOOLEAN', default: false },
      },
      propertyOrdering: ['a', 'nobody', 'b'],
      required: ['a'],
    }
    const { tools } = parse({ tools: [{ functionDeclarations: [{ name: 'f', parameters }] }] })
    expect(JSON.stringify(tools?.[0]?.function.parameters)).toBe(
      JSON.stringify({
        type: ['object', 'null'],
        properties: {
          a: { type: ['string', 'null'], enum: ['x', 'y', null], examples: ['x'] },
          b: { type: 'array', items: { type: 'number', format: 'double' }, minItems: 1, maxItems: 3 },
          c: { anyOf: [{ type: 'integer' }, {}, { type: 'null' }] },
          type: { type: 'boolean', default: false },
        },
        required: ['a'],
      }),
    )
  })

  test('keeps a JSON Schema in place of the vendor’s format, in lower case', () => {
    const parameters = {
      type: 'object',
      properties: { a: { type: ['string', 'null'] }, b: { $ref: '#/$defs/some_name' } },
      additionalProperties: { type: 'STRING' },
      $defs: { some_name: { oneOf: [{ type: 'STRING' }, { type: 'NULL' }] } },
    }
    const { tools } = parse({ tools: [{ functionDeclarations: [{ name: 'f', parameters }] }] })
    expect(tools?.[0]?.function.parameters).toEqual({
      ...parameters,
      additionalProperties: { type: 'string' },
      $defs: { some_name: { oneOf: [{ type: 'string' }, { type: 'null' }] } },
    })
  })
})

describe('contentgen tools', () => {
  const functions = { functionDeclarations: [{ name: 'a' }, { name: 'b', parametersJsonSchema: { type: 'object' } }] }
  const choiceOf = (functionCallingConfig: object) =>
    parse({ tools: [functions], toolConfig: { functionCallingConfig } }).tool_choice
  const allowed = (mode: string, ...names: string[]) => ({
    type: 'allowed_tools',
    allowed_tools: { mode, tools: names.map((name) => ({ type: 'function', function: { name } })) },
  })

  test.each<[object, unknown]>([
    [{}, undefined],
    [{ mode: 'MODE_UNSPECIFIED' }, undefined],
    [{ mode: 'AUTO' }, 'auto'],
    [{ mode: 'ANY' }, 'required'],
    [{ mode: 'NONE' }, 'none'],
    [{ mode: 'VALIDATED' }, 'auto'],
    [
      { mode: 'ANY', allowedFunctionNames: ['a'] },
      { type: 'function', function: { name: 'a' } },
    ],
    [{ mode: 'ANY', allowedFunctionNames: ['a', 'b'] }, allowed('required', 'a', 'b')],
    [{ mode: 'VALIDATED', allowedFunctionNames: ['a'] }, allowed('auto', 'a')],
  ])('maps %j to %j', (config, expected) => {
    expect(choiceOf(config)).toEqual(expected as ReturnType<typeof choiceOf>)
  })

  test('converts the web search, and drops a choice without functions', () => {
    const clientRequest = parse({
      tools: [{ googleSearch: { excludeDomains: ['a.example'] } }],
      toolConfig: { functionCallingConfig: { mode: 'AUTO' } },
    })
    expect(clientRequest.web_search_options).toEqual({ filters: { blocked_domains: ['a.example'] } })
    expect([clientRequest.tools, clientRequest.tool_choice]).toEqual([undefined, undefined])
    expect(parse({ tools: [{ googleSearchRetrieval: {} }] }).web_search_options).toEqual({})
  })

  test.each(['codeExecution', 'urlContext', 'googleMaps', 'computerUse', 'fileSearch', 'mcpServers', 'of_tomorrow'])(
    "refuses the vendor's tool %s with its place",
    (name) => {
      const known = name.replace('_t', 'T')
      const error = refusal({ tools: [functions, { [name]: {} }] })
      expect(error).toMatchObject(isRefused('unsupported_parameter', `tools[1].${known}`))
    },
  )
})

describe('contentgen conversation', () => {
  test('converts parts of every kind', () => {
    const [message] = messagesOf(
      user(
        { text: 'See:' },
        { inlineData: { mimeType: 'image/png', data: '-_8=' } },
        { inlineData: { mimeType: 'audio/wav', data: 'AAAA' } },
        { inlineData: { mimeType: 'application/pdf', data: 'JVBE', displayName: 'a.pdf' } },
        { inlineData: { mimeType: 'video/mp4', data: 'AAAA' }, videoMetadata: { fps: 1 } },
        { inlineData: { mimeType: 'text/csv; charset=utf-8', data: 'YSxi' } },
        { fileData: { fileUri: 'https://a.example/x', mimeType: 'image/webp' } },
        { fileData: { fileUri: 'https://a.example/x.JPG?y=1' } },
        { fileData: { fileUri: 'gs://bucket/a.pdf', mimeType: 'application/pdf', displayName: 'b.pdf' } },
        { executableCode: { language: 'PYTHON', code: 'print(1)' } },
        { text: 'a thought', thought: true },
      ),
    )
    expect(message).toEqual({
      role: 'user',
      content: [
        { type: 'text', text: 'See:' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,+/8=' } },
        { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
        { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBE', filename: 'a.pdf' } },
        { type: 'file', file: { file_data: 'data:video/mp4;base64,AAAA', filename: 'file.mp4' } },
        { type: 'text', text: 'a,b' },
        { type: 'image_url', image_url: { url: 'https://a.example/x' } },
        { type: 'image_url', image_url: { url: 'https://a.example/x.JPG?y=1' } },
        { type: 'file', file: { file_url: 'gs://bucket/a.pdf', filename: 'b.pdf' } },
        { type: 'text', text: '\n```python\nprint(1)\n```\n' },
      ],
    })
  })

  test('converts text alone to one string', () => {
    expect(messagesOf(user({ text: 'a' }, { text: 'b' }))).toEqual([{ role: 'user', content: 'a\nb' }])
  })

  test('joins the pieces of one response to one message, and drops an empty one', () => {
    const streamed = [model({ text: 'Good' }), model({ text: ' day' }), model({ text: '' })]
    expect(
      messagesOf(user({ text: 'x' }), ...streamed, user({ text: 'y' }), { role: 'model' }, user({ text: 'z' })),
    ).toEqual([
      { role: 'user', content: 'x' },
      { role: 'assistant', content: 'Good day' },
      { role: 'user', content: 'y' },
      { role: 'user', content: 'z' },
    ])
  })

  test('assigns stable ids to calls without one, and matches results by name', () => {
    const turns = [
      user({ text: 'x' }),
      model(call('a', { args: { n: 1 } }), call('b'), call('a', { id: '' })),
      { role: 'function', parts: [result('a'), result('b'), result('a', { response: { error: 'no' } })] },
      model(call('a', { id: 'own' })),
      user(result('other', { id: 'own' }), { text: 'and?' }),
    ]
    const messages = messagesOf(...turns)
    expect(messages).toEqual([
      { role: 'user', content: 'x' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: 'call_no_1', type: 'function', function: { name: 'a', arguments: '{"n":1}' } },
          { id: 'call_no_2', type: 'function', function: { name: 'b', arguments: '{}' } },
          { id: 'call_no_3', type: 'function', function: { name: 'a', arguments: '{}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'call_no_1', content: 'ok' },
      { role: 'tool', tool_call_id: 'call_no_2', content: 'ok' },
      { role: 'tool', tool_call_id: 'call_no_3', content: 'no', is_error: true },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'own', type: 'function', function: { name: 'a', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'own', content: 'ok' },
      { role: 'user', content: 'and?' },
    ])
    expect(messagesOf(...turns)).toEqual(messages)
  })

  test.each<[object, string]>([
    [{ output: 'x' }, 'x'],
    [{ output: { a: 1 } }, '{"a":1}'],
    [{ output: 'x', more: 1 }, '{"output":"x","more":1}'],
    [{ result: 'x' }, '{"result":"x"}'],
    [{ name: 'look', content: 'x' }, 'x'],
    [{ name: 'other', content: 'x' }, '{"name":"other","content":"x"}'],
    [{}, '{}'],
  ])('converts a result %j to %p', (response, content) => {
    const messages = messagesOf(user({ text: 'x' }), model(call()), user(result('look', { response })))
    expect(messages[2]?.content).toBe(content)
  })

  test('accepts media in a result', () => {
    const parts = [{ inlineData: { mimeType: 'image/png', data: 'iVBO' } }]
    const messages = messagesOf(user({ text: 'x' }), model(call()), user(result('look', { parts })))
    expect(messages[2]?.content).toEqual([
      { type: 'text', text: 'ok' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO' } },
    ])
  })

  test('joins thoughts up to their signature, and unwraps hidden ones from the next part', () => {
    const signed = (own: Opaque) => encodeSignature({ own })
    expect(
      messagesOf(
        user({ text: 'x' }),
        model({ text: 'Let ', thought: true }),
        model({ text: 'me see', thought: true }, { text: '', thought: true, thoughtSignature: signed(foreign('S1')) }),
        model({ text: 'Then', thoughtSignature: encodeSignature({ before: [{ opaque: foreign('S2') }] }) }),
        model({
          ...call(),
          thoughtSignature: encodeSignature({ own: home('S4'), before: [{ text: 'hm', opaque: foreign('S3') }] }),
        }),
      ),
    ).toEqual([
      { role: 'user', content: 'x' },
      {
        role: 'assistant',
        content: 'Then',
        reasoning_content: 'Let me see',
        reasoning_details: [{ text: 'Let me see', opaque: foreign('S1') }, { opaque: foreign('S2') }],
      },
      {
        role: 'assistant',
        content: null,
        reasoning_content: 'hm',
        reasoning_details: [{ text: 'hm', opaque: foreign('S3') }],
        tool_calls: [
          { id: 'call_no_1', type: 'function', function: { name: 'look', arguments: '{}' }, opaque: home('S4') },
        ],
      },
    ])
  })

  test("keeps signatures of the API's own models on any part", () => {
    const [, message] = messagesOf(
      user({ text: 'x' }),
      model(
        { text: 'hm', thought: true, thoughtSignature: 'A' },
        { text: 'Words', thoughtSignature: 'B' },
        { inlineData: { mimeType: 'image/png', data: 'iVBO' }, thoughtSignature: 'C' },
        { ...call(), thoughtSignature: 'D' },
      ),
    )
    expect(message).toMatchObject({
      content: 'Words',
      reasoning_details: [{ text: 'hm', opaque: home('A') }, { opaque: home('B') }],
      images: [{ opaque: home('C') }],
      tool_calls: [{ opaque: home('D') }],
    })
  })

  test('converts unsigned reasoning to plain text', () => {
    const [, message] = messagesOf(user({ text: 'x' }), model({ text: 'hm', thought: true }, { text: 'Yes.' }))
    expect(message).toEqual({ role: 'assistant', content: 'Yes.', reasoning_content: 'hm' })
  })

  test('reads thoughts that were shown from the call, if the client sent none since the call before', () => {
    const held = (text: string) => ({ ...call(), thoughtSignature: encodeSignature({ shown: [{ text }] }) })
    const thought = (text: string) => ({ text, thought: true })
    const reasoningOf = (...parts: object[]) => {
      const [, message] = messagesOf(user({ text: 'x' }), model(...parts))
      return [message?.reasoning_content, message?.tool_calls?.length]
    }
    expect(reasoningOf(held('a'))).toEqual(['a', 1])
    expect(reasoningOf(thought('a'), held('a'))).toEqual(['a', 1])
    expect(reasoningOf(thought('a'), held('a'), thought('b'), held('b'))).toEqual(['ab', 2])
    expect(reasoningOf(held('a'), held('b'))).toEqual(['ab', 2])
  })

  test('adds unsigned reasoning that a call holds to the text before it', () => {
    const messages = messagesOf(
      user({ text: 'x' }),
      model({ text: 'One moment.' }, { ...call(), thoughtSignature: encodeSignature({ before: [{ text: 'hm' }] }) }),
    )
    expect(messages.slice(1)).toMatchObject([
      { content: 'One moment.', reasoning_content: 'hm', tool_calls: [{ id: 'call_no_1' }] },
    ])
  })

  test("ignores calls of the vendor's own tools, except for executed code", () => {
    const [, message] = messagesOf(
      user({ text: 'x' }),
      model({ toolCall: { id: 'a' } }, { codeExecutionResult: { output: '1\n' } }, { text: 'one', ofTomorrow: 1 }),
    )
    expect(message).toEqual({ role: 'assistant', content: '\n```\n1\n```\none' })
  })

  test.each<[string, string, object[]]>([
    ['invalid_value', 'contents[0].role', [{ role: 'system', parts: [{ text: 'x' }] }]],
    ['missing_required_parameter', 'contents[0].parts', [{ role: 'user', parts: [] }]],
    ['invalid_value', 'contents[0].parts[1]', [user({ text: 'x' }, { ofTomorrow: 1 })]],
    ['invalid_value', 'contents[0].parts[0].functionCall', [user(call())]],
    ['invalid_value', 'contents[1].parts[0].functionResponse', [HELLO, user(result())]],
    ['invalid_value', 'contents[2].parts[1].functionResponse', [HELLO, model(call()), user(result(), result())]],
    ['invalid_value', 'contents[1].parts[0].fileData', [HELLO, model({ fileData: { fileUri: 'x' } })]],
    ['invalid_value', 'contents[1].parts[0].inlineData', [HELLO, model({ inlineData: { mimeType: 'a/b', data: '' } })]],
    ['missing_required_parameter', 'contents[0].parts[0].inlineData.mimeType', [user({ inlineData: { data: '' } })]],
    ['invalid_type', 'contents[0].parts[0].text', [user({ text: 1 })]],
    [
      'unsupported_parameter',
      'contents[0].parts[0].videoMetadata.startOffset',
      [user({ fileData: { fileUri: 'https://a.example' }, videoMetadata: { startOffset: '1s' } })],
    ],
  ])('%s: %s', (code, param, contents) => {
    expect(refusal({ contents })).toMatchObject(isRefused(code, param))
  })

  test('refuses a body that is not a request', () => {
    expect(refusalOf([])).toMatchObject({
      code: 'invalid_type',
      message: 'The body must be a JSON object, not an empty array.',
    })
    expect(refusalOf({})).toMatchObject(isRefused('missing_required_parameter', 'contents'))
    expect(refusalOf({ contents: [] })).toMatchObject(isRefused('invalid_value', 'contents'))
    expect(refusal({ systemInstruction: { parts: [call()] } })).toMatchObject(
      isRefused('invalid_value', 'systemInstruction.parts[0]'),
    )
    let deep: object = {}
    for (let depth = 0; depth < 100; depth++) deep = { items: deep }
    expect(refusal({ generationConfig: { responseSchema: deep } })).toMatchObject({ code: 'invalid_value' })
    expect(refusalOf(JSON.parse('{"__proto__":{"contents":[]},"a_b":1}'))).toMatchObject({
      code: 'missing_required_parameter',
    })
  })
})

test('accepts contents or a whole request for a token count', () => {
  const all = { model: 'models/x', contents: [HELLO], systemInstruction: { parts: [{ text: 'Brief.' }] } }
  const model = 'a/b'
  expect(parseCount({ generateContentRequest: all }, model).messages).toHaveLength(2)
  expect(
    parseCount({ contents: [HELLO], tools: [{ functionDeclarations: [{ name: 'f' }] }] }, model).tools,
  ).toHaveLength(1)
  expect(() => parseCount({}, model)).toThrow('"contents" is required.')
})

describe('errors with canonical fields', () => {
  const dialect = contentgenDialect('generateContent')
  const request = dialect.parse({
    contents: [
      user({ text: 'a' }, { inlineData: { mimeType: 'image/png', data: 'iVBO' } }),
      model(call()),
      user(result()),
    ],
    systemInstruction: { parts: [{ text: 'x' }] },
    tools: [{ googleSearch: {} }, { functionDeclarations: [{ name: 'look' }] }],
  })
  test.each([
    ['messages[0].content', 'systemInstruction'],
    ['messages[1].content[1].type', 'contents[0].parts[1]'],
    ['messages[1].content', 'contents[0]'],
    ['messages[2].tool_calls[0].function.name', 'contents[1].parts[0]'],
    ['messages[3].tool_call_id', 'contents[2].parts[0]'],
    ['tools[0].function.name', 'tools[1].functionDeclarations[0].name'],
    ['max_tokens', 'generationConfig.maxOutputTokens'],
    ['tool_choice.function', 'toolConfig.functionCallingConfig'],
    ['provider_options.contentgen-compat.safetySettings', 'safetySettings'],
    ['model', 'model'],
  ])('translate the place %s to %s', (param, known) => {
    const error = new GatewayError('invalid_value', `"${param}" must not be "image_url".`, { param })
    const output = dialect.errorForClient?.(error, request)
    expect(output?.detail.param).toBe(known)
    expect(output?.message).toStartWith(`"${known}" must not be `)
  })
})
