/** The contentgen API of the gateway: its paths, errors and streams, and a provider of the same API behind it. */
import { afterAll, afterEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { DEFAULT_TIMEOUTS } from '../src/config/config.ts'
import { parseContentgen } from '../src/protocols/contentgen/client/request.ts'
import { createBodyEncoder } from '../src/protocols/contentgen/upstream/request.ts'
import { contentgenSettings } from '../src/providers/contentgen-compat/contentgen-settings.ts'
import { ERRORS } from '../src/spec/error.ts'
import { startGateway } from './kit/gateway.ts'
import { chunk, chunks, completion, failure, hang, startVendor, stream, whole } from './kit/vendor.ts'

const chats = startVendor()
const gemini = startVendor()
const gateway = await startGateway({
  providers: {
    v: { base_url: chats.url },
    g: { kind: 'contentgen-compat', base_url: `${gemini.origin}/v1beta`, key: 'vendor-key' },
  },
  models: {
    'v/m': {},
    'v/m:free': {},
    'v/narrow': { capabilities: { image_input: false, tools: false }, limits: { max_tokens: { maximum: 10 } } },
    'v/old': { status: 'retired', replaced_by: 'v/m' },
    'v/film': { families: ['video-generation'] },
    'g/m': { targets: [{ provider: 'g', model: 'gemini-3-flash' }] },
  },
})
afterEach(() => {
  chats.requests.length = 0
  gemini.requests.length = 0
})
afterAll(async () => {
  await gateway[Symbol.asyncDispose]()
  await chats.stop()
  await gemini.stop()
})

const HELLO = { contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] }
const post = (path: string, json: unknown = HELLO, headers: Record<string, string> = {}) =>
  gateway.call(path, { json, headers })
const ask = async (path: string, json: unknown = HELLO, headers: Record<string, string> = {}) => {
  const response = await post(path, json, headers)
  return { status: response.status, body: await response.json() }
}
const piecesOf = (text: string) =>
  text
    .split('\n\n')
    .filter((block) => block.startsWith('data: '))
    .map((block) => JSON.parse(block.slice(6)))

describe('contentgen paths', () => {
  test.each([
    '/v1beta/models/v/m:generateContent',
    '/v1beta/models/v%2Fm:generateContent',
    '/v1beta/v/m:generateContent',
    '/v1/models/v/m:generateContent',
    '/v1/v%2Fm:generateContent',
    '/v1alpha/models/v/m:generateContent',
    '/v1alpha/models%2Fv%2Fm:generateContent/',
  ])('accept %s', async (path) => {
    const { status, body } = await ask(path)
    expect([status, body.modelVersion]).toEqual([200, 'v/m'])
  })

  test('accept a model name with a colon', async () => {
    expect((await ask('/v1beta/models/v/m:free:generateContent')).body.modelVersion).toBe('v/m:free')
    expect((await gateway.call('/v1/models/v/m:free')).status).toBe(200)
    expect((await gateway.call('/v1beta/models/v/m:free')).status).toBe(200)
  })

  test.each(['/v1beta/models/v/m:dance', '/v1/models/v/m:dance', '/v1alpha/v/m:', '/v1beta/x:generatecontent'])(
    'reject %s as an unknown method or path',
    async (path) => {
      const { status, body } = await ask(path)
      expect([status, body.error.code]).toEqual([404, 404])
      if (!path.endsWith(':'))
        expect(body.error.message).toContain('they have generateContent, streamGenerateContent, countTokens')
    },
  )

  test('leave all other paths alone', async () => {
    expect((await ask('/v1/nothing:here')).body.error.code).toBe('unknown_url')
    expect((await ask('/v1/chat:generate/completions')).body.error.code).toBe('unknown_url')
    const missing = await gateway.call('/v1/models/m:latest')
    expect([missing.status, (await missing.json()).error.code]).toEqual([404, 'model_not_found'])
  })

  test.each([
    '/v1beta/models/v/m:generateContent',
    '/v1beta/models/v/m:countTokens',
    '/v1beta/v/m:generateContent',
    '/v1/models/v/m:embedContent',
    '/v1/v/m:streamGenerateContent',
    '/v1alpha/models/v/m:batchEmbedContents',
    '/v1beta1/publishers/google/models/m:generateContent',
  ])('accept only POST and OPTIONS at %s', async (path) => {
    for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE']) {
      const wrong = await gateway.call(path, { method })
      expect([method, wrong.status, wrong.headers.get('allow')]).toEqual([method, 405, 'POST, OPTIONS'])
    }
    const options = await gateway.call(path, { method: 'OPTIONS' })
    expect([options.status, options.headers.get('allow')]).toEqual([204, 'POST, OPTIONS'])
  })

  test('include the methods of embeddings', async () => {
    const { status } = await ask('/v1beta/models/v/m:embedContent', { content: { parts: [{ text: 'x' }] } })
    expect(status).not.toBe(404)
  })
})

describe('contentgen authentication', () => {
  const path = '/v1beta/models/v/m:generateContent'
  const unauthorized = { authorization: '' }

  test.each<[string, string, Record<string, string>]>([
    ['a header', path, { 'x-goog-api-key': gateway.token }],
    ['the query', `${path}?key=${gateway.token}`, {}],
    ['a bearer', path, { authorization: `Bearer ${gateway.token}` }],
  ])('accepts %s', async (_, url, headers) => {
    expect((await ask(url, HELLO, { ...unauthorized, ...headers })).status).toBe(200)
  })

  test.each(['generateContent', 'streamGenerateContent', 'countTokens', 'predict'])(
    'returns an error of this API without a valid token: %s',
    async (method) => {
      const response = await post(`/v1beta/models/v/m:${method}`, HELLO, unauthorized)
      expect([response.status, response.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
      expect((await response.json()).error).toMatchObject({ code: 401, status: 'UNAUTHENTICATED' })
    },
  )

  test('rejects a token for other models', async () => {
    const { secret } = await gateway.instance.tokens.issue({ name: 'narrow', models: ['g/*'] })
    const { status, body } = await ask(path, HELLO, { authorization: `Bearer ${secret}` })
    expect([status, body.error.status]).toEqual([403, 'PERMISSION_DENIED'])
  })
})

describe('errors in the format of this API', () => {
  const at = (name: string) => `/v1beta/models/${name}:generateContent`
  const violation = (field: string) =>
    expect.arrayContaining([expect.objectContaining({ fieldViolations: [{ field, description: expect.any(String) }] })])

  test.each<[string, string, unknown, number, string, string | undefined]>([
    ['no JSON', 'v/m', '{', 400, 'INVALID_JSON', undefined],
    ['no contents', 'v/m', {}, 400, 'MISSING_REQUIRED_PARAMETER', 'contents'],
    [
      'a wrong type',
      'v/m',
      { ...HELLO, generationConfig: { topK: 'x' } },
      400,
      'INVALID_TYPE',
      'generationConfig.topK',
    ],
    ['a retired model', 'v/old', HELLO, 410, 'MODEL_RETIRED', 'model'],
    ['a model of another family', 'v/film', HELLO, 400, 'UNSUPPORTED_ENDPOINT', 'model'],
    [
      'a limit of the model',
      'v/narrow',
      { ...HELLO, generationConfig: { maxOutputTokens: 11 } },
      400,
      'INVALID_VALUE',
      'generationConfig.maxOutputTokens',
    ],
    [
      'an image for a model that sees none',
      'v/narrow',
      { contents: [{ parts: [{ text: 'x' }, { inlineData: { mimeType: 'image/png', data: 'iVBO' } }] }] },
      400,
      'UNSUPPORTED_VALUE',
      'contents[0].parts[1]',
    ],
    [
      'a tool for a model that has none',
      'v/narrow',
      { ...HELLO, tools: [{ functionDeclarations: [{ name: 'f' }] }] },
      400,
      'UNSUPPORTED_PARAMETER',
      'tools',
    ],
    [
      'what the vendor cannot express',
      'g/m',
      { ...HELLO, generationConfig: { candidateCount: 0 } },
      400,
      'INVALID_VALUE',
      'generationConfig.candidateCount',
    ],
  ])('%s', async (_, name, body, status, reason, field) => {
    const answer = await ask(at(name), body)
    expect([answer.status, answer.body.error.code]).toEqual([status, status])
    expect(answer.body.error.details[0]).toMatchObject({ reason, domain: 'gatehouse' })
    if (field !== undefined) expect(answer.body.error.details).toEqual(violation(field))
  })

  test.each([429, 500, 503])('include a provider’s %i', async (status) => {
    chats.answer(failure(status, {}, { 'retry-after': '3' }))
    const answer = await ask(at('v/m'))
    expect(answer.body.error.code).toBe(answer.status)
    expect(answer.status).toBe(status === 500 ? 502 : status)
  })

  test("never report a provider's 401 as the caller's", async () => {
    chats.answer(failure(401))
    expect((await ask(at('v/m'))).status).toBe(502)
  })
})

describe('contentgen streams', () => {
  const path = '/v1beta/models/v/m:streamGenerateContent'

  test('have no event names, comments or [DONE]', async () => {
    chats.answer(stream(chunks('Hel', 'lo')))
    const response = await post(`${path}?alt=sse`)
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    const text = await response.text()
    for (const block of text.slice(0, -2).split('\n\n')) expect(block).toMatch(/^data: \{[^\n]+\}$/)
    const pieces = piecesOf(text)
    expect(pieces.map(({ candidates: [one] }) => one.content.parts[0].text).join('')).toBe('Hello')
    expect(pieces.at(-1)).toMatchObject({
      candidates: [{ finishReason: 'STOP' }],
      usageMetadata: { totalTokenCount: 12 },
    })
  })

  test.each(['?alt=xml', '?$alt=SSE', '?alt='])('reject %s', async (query) => {
    const response = await post(`${path}${query}`)
    expect(response.status).toBe(400)
    expect((await response.json()).error.message).toBe('"alt" must be "sse" or "json".')
  })

  test('are one array without alt=sse', async () => {
    chats.answer(stream(chunks('Hel', 'lo')))
    const response = await post(path)
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
    const pieces = await response.json()
    expect(
      pieces
        .map(
          (piece: { candidates: { content: { parts: { text: string }[] } }[] }) =>
            piece.candidates[0]?.content.parts[0]?.text,
        )
        .join(''),
    ).toBe('Hello')
  })

  test.each<[string, string]>([
    ['?alt=sse', ': keep-alive\n\n'],
    ['', '\n'],
  ])('are kept open while the provider is silent: %p', async (query, sign) => {
    const held = Promise.withResolvers<void>()
    chats.answer(stream([held.promise, ...chunks('Hi')]))
    const asking = post(path + query)
    await chats.request()
    gateway.clock.advance(14_999)
    await new Promise((resolve) => setImmediate(resolve))
    expect(Bun.peek.status(asking)).toBe('pending')
    gateway.clock.advance(1)
    const reader = (await asking).body?.getReader()
    expect(new TextDecoder().decode((await reader?.read())?.value)).toBe(sign)
    held.resolve()
    let text = ''
    for (let next = await reader?.read(); next && !next.done; next = await reader?.read()) {
      text += new TextDecoder().decode(next.value)
    }
    expect(text).toContain('"text":"Hi"')
    if (query === '') expect(JSON.parse(sign + text)).toHaveLength(2)
  })

  test('end in an error with its number after a failure', async () => {
    for (const query of ['?alt=sse', '']) {
      const held = Promise.withResolvers<void>()
      const [role = {}, word = {}, ...rest] = chunks('Hel', 'lo')
      chats.answer(stream([role, word, held.promise, ...rest], { cutAfter: 2 }))
      const response = await post(path + query) // with the first text
      held.resolve()
      const text = await response.text()
      const last = query === '' ? JSON.parse(text).at(-1) : piecesOf(text).at(-1)
      expect(last.error).toMatchObject({ code: 502, status: 'UNAVAILABLE' })
    }
  })

  test('are ended at the provider when the client disconnects', async () => {
    chats.answer(hang())
    const control = new AbortController()
    const asking = gateway.call(path, { json: HELLO, signal: control.signal }).catch(() => undefined)
    const request = await chats.request()
    control.abort()
    await request.aborted
    await asking
  })

  test('return prompt feedback for a blocked prompt, and the log has the reason', async () => {
    const refused = failure(400, { code: 'content_policy_violation', message: 'Not that.' })
    chats.answer(refused, refused, refused)
    const feedback = { promptFeedback: { blockReason: 'SAFETY' }, modelVersion: 'v/m' }
    expect((await ask('/v1beta/models/v/m:generateContent')).body).toMatchObject(feedback)
    expect((await ask(path)).body).toMatchObject([feedback])
    const response = await post(`${path}?alt=sse`)
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
    expect(piecesOf(await response.text())).toMatchObject([feedback])
    expect(gateway.logged().match(/"error":"content_policy_violation"/g)).toHaveLength(3)
  })
})

test('a stream that fails before its first text leaves nothing of it in the stream of the next target', async () => {
  const [broken, works] = [startVendor(), startVendor()]
  const call = (text: string) =>
    chunk({
      role: 'assistant',
      tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: text } }],
    })
  broken.otherwise(stream([call('{"city":"Par')], { cutAfter: 1 }))
  works.otherwise(stream([call('{"city":"Oslo"}'), chunk({}, 'tool_calls')]))
  const targets = ['broken', 'works'].map((provider) => ({ provider, model: 'm' }))
  await using gateway = await startGateway({
    providers: { broken: { base_url: broken.url }, works: { base_url: works.url } },
    models: { 'v/m': { targets } },
  })
  const json = { ...HELLO, tools: [{ functionDeclarations: [{ name: 'f', parameters: { type: 'OBJECT' } }] }] }
  const response = await gateway.call('/v1beta/models/v/m:streamGenerateContent?alt=sse', { json })
  expect(await response.text()).toContain('"args":{"city":"Oslo"}')
  expect([broken.requests.length, works.requests.length]).toEqual([1, 1])
  await Promise.all([broken.stop(), works.stop()])
})

test('fields for providers of this API only are not sent to others', async () => {
  chats.answer(whole(completion('x')))
  const own = {
    safetySettings: [{ category: 'c', threshold: 't' }],
    generationConfig: { mediaResolution: 'MEDIA_RESOLUTION_LOW' },
  }
  await ask('/v1beta/models/v/m:generateContent', { ...HELLO, ...own })
  expect(chats.requests[0]?.json()).toEqual({ model: 'm', messages: [{ role: 'user', content: 'Hello' }] })
  const answer = {
    candidates: [{ content: { parts: [{ text: 'x' }] }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 1, totalTokenCount: 2 },
  }
  gemini.answer(whole(answer))
  expect((await ask('/v1beta/models/g/m:generateContent', { ...HELLO, ...own })).status).toBe(200)
  expect(gemini.requests[0]?.json()).toEqual({ ...HELLO, ...own })
})

test('the token count comes from a provider that supports it', async () => {
  gemini.answer(whole({ totalTokens: 31 }))
  expect((await ask('/v1/models/g/m:countTokens')).body).toEqual({ totalTokens: 31 })
  const rest = { systemInstruction: { parts: [{ text: 'Be very brief.' }] } }
  const { body } = await ask('/v1beta/models/v/m:countTokens', { generateContentRequest: { ...HELLO, ...rest } })
  expect(body.totalTokens).toBeGreaterThan((await ask('/v1beta/models/v/m:countTokens')).body.totalTokens)
})

test('a model declares that it supports this API', async () => {
  const { supported_endpoint_types } = await (await gateway.call('/v1/models/v/m')).json()
  expect(supported_endpoint_types).toContain('contentgen-compat')
})

describe('a provider of the same API loses nothing', () => {
  const texts = fc.string({ minLength: 1, maxLength: 12 }).map((text) => `w${text}w`)
  const data = fc.base64String({ minLength: 4, maxLength: 16 }).filter((text) => text !== '')
  const json = fc.dictionary(texts, fc.oneof(fc.integer(), texts, fc.constant(null), fc.array(fc.boolean())))
  const text = texts.map((summary) => ({ text: summary }))
  const media = fc.oneof(
    data.map((bytes) => ({ inlineData: { mimeType: 'image/png', data: bytes } })),
    data.map((bytes) => ({ inlineData: { mimeType: 'application/pdf', data: bytes } })),
    data.map((bytes) => ({ inlineData: { mimeType: 'video/mp4', data: bytes } })),
    fc.webPath().map((path) => ({ fileData: { fileUri: `gs://bucket${path}/a.pdf`, mimeType: 'application/pdf' } })),
  )
  const thought = fc.record({ text: texts, thought: fc.constant(true), thoughtSignature: data.map((sig) => `S${sig}`) })
  const signed = fc.record({ text: texts, thoughtSignature: data.map((sig) => `T${sig}`) })
  const response = fc.oneof(
    texts.map((output) => ({ output })),
    texts.map((error) => ({ error })),
    json.map((value) => ({ value, more: 1 })),
  )
  const round = fc
    .record({
      thoughts: fc.array(thought, { maxLength: 2 }),
      summary: fc.array(fc.oneof(text, signed), { maxLength: 1 }),
      calls: fc.array(fc.record({ name: texts, args: json, response }), { maxLength: 3 }),
      signature: data,
      next: fc.oneof(text, media),
    })
    .map(({ thoughts, summary, calls, signature, next }) => {
      const generated = calls.map(({ name, args }, index) => ({
        functionCall: { id: `id${index}`, name, args },
        ...(index === 0 ? { thoughtSignature: `C${signature}` } : {}),
      }))
      const parts = [...thoughts, ...summary, ...generated]
      const results = calls.map((one, index) => ({
        functionResponse: { id: `id${index}`, name: one.name, response: one.response },
      }))
      return [
        { role: 'model', parts: parts.length > 0 ? parts : [{ text: 'Yes.' }] },
        ...(results.length > 0 ? [{ role: 'user', parts: results }] : [{ role: 'user', parts: [next] }]),
      ]
    })
  const conversation = fc
    .tuple(fc.oneof(text, media), fc.array(round, { maxLength: 3 }))
    .map(([first, rounds]) => [{ role: 'user', parts: [first] }, ...rounds.flat()])

  test('in a conversation of contents', async () => {
    const settings = contentgenSettings({
      id: 'v',
      config: { kind: 'contentgen-compat', base_url: 'https://v.example/v1beta' },
      timeouts: DEFAULT_TIMEOUTS,
      environment: {},
    })
    const writer = createBodyEncoder(settings, undefined)
    const signal = new AbortController().signal
    const property = fc.asyncProperty(conversation, texts, async (contents, system) => {
      const requested = {
        contents,
        systemInstruction: { parts: [{ text: system }] },
        generationConfig: {
          temperature: 0.5,
          topP: 0.5,
          topK: 5,
          maxOutputTokens: 9,
          stopSequences: [system],
          candidateCount: 2,
          seed: 5,
          responseMimeType: 'application/json',
          responseJsonSchema: { type: 'object' },
          thinkingConfig: { includeThoughts: true, thinkingLevel: 'HIGH' },
        },
        tools: [{ functionDeclarations: [{ name: 'look', parametersJsonSchema: { type: 'object' } }] }],
        toolConfig: { functionCallingConfig: { mode: 'AUTO' } },
        serviceTier: 'flex',
      }
      const request = parseContentgen(structuredClone(requested), 'v/m')
      const sent = JSON.parse(await writer.answer({ model: 'gemini-3-flash', request }, signal))
      expect(sent).toEqual(requested)
    })
    await fc.assert(property, { numRuns: 200 })
  })

  test.each(['?alt=sse', ''])('in a stream, part by part, with its signatures: %p', async (query) => {
    const parts = [
      { text: 'Let me see', thought: true },
      { text: 'Größe', thoughtSignature: 'A' },
      { functionCall: { id: 'id0', name: 'look', args: { a: [1] } }, thoughtSignature: 'B' },
      { functionCall: { id: 'id1', name: 'look', args: {} } },
    ]
    const pieces = parts.map((part) => ({
      candidates: [{ content: { role: 'model', parts: [part] }, index: 0 }],
      responseId: 'r',
    }))
    const end = {
      candidates: [{ finishReason: 'STOP', index: 0 }],
      usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 2, thoughtsTokenCount: 3, totalTokenCount: 14 },
    }
    gemini.answer(stream([...pieces, end], { done: false, chunkBytes: 11 }))
    const json = { ...HELLO, generationConfig: { thinkingConfig: { includeThoughts: true } } }
    const body = await (await post(`/v1beta/models/g/m:streamGenerateContent${query}`, json)).text()
    const output = query === '' ? JSON.parse(body) : piecesOf(body)
    const received = output.flatMap(
      (piece: { candidates: { content?: { parts: object[] } }[] }) => piece.candidates[0]?.content?.parts ?? [],
    )
    expect(received.filter((part: object) => JSON.stringify(part) !== '{"text":""}')).toEqual(parts)
    expect(output.at(-1).usageMetadata).toMatchObject(end.usageMetadata)
  })
})

test('every error code has a status name of this API', async () => {
  const { contentgenErrorBody } = await import('../src/spec/contentgen-error.ts')
  const { GatewayError } = await import('../src/spec/error.ts')
  for (const code of Object.keys(ERRORS) as (keyof typeof ERRORS)[]) {
    const { error } = contentgenErrorBody(new GatewayError(code, 'x'))
    expect([code, error.code, /^[A-Z_]+$/.test(error.status)]).toEqual([code, ERRORS[code].status, true])
  }
})
