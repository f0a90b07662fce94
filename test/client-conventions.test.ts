/** Conventions of the vendors' own APIs that their clients rely on. */
import { afterAll, beforeAll, describe, expect, it } from 'bun:test'
import { startGateway, type TestGateway } from './kit/gateway.ts'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway[Symbol.asyncDispose]())

const overloaded = [{ role: 'user', content: '@sandbox status=529' }]

describe('an overloaded provider', () => {
  it('is 529 overloaded_error in the Messages API', async () => {
    const json = { model: 'sandbox/general', max_tokens: 20, messages: overloaded }
    const response = await gateway.call('/v1/messages', { json })
    expect(response.status).toBe(529)
    expect(await response.json()).toMatchObject({
      type: 'error',
      error: { type: 'overloaded_error', details: { error_code: 'server_is_overloaded' } },
    })
  })

  it('is 503 in chat completions', async () => {
    const response = await gateway.chat({ model: 'sandbox/general', messages: overloaded })
    expect(response.status).toBe(503)
  })

  it('is documented with 529 for the Messages API alone', async () => {
    const { paths } = (await (await gateway.call('/openapi.json')).json()) as {
      paths: Record<string, { post: { responses: Record<string, unknown> } }>
    }
    expect(Object.keys(paths['/v1/messages']?.post.responses ?? {})).toContain('529')
    expect(Object.keys(paths['/v1/chat/completions']?.post.responses ?? {})).not.toContain('529')
  })
})

describe('an unknown path below /v1beta or /v1alpha', () => {
  it.each([
    ['GET', '/v1beta/files'],
    ['POST', '/v1beta/cachedContents'],
    ['GET', '/v1alpha/anything/else'],
    ['POST', '/v1beta/models/sandbox/general:dance'],
  ])('%s %s is answered in the error format of Google', async (method, path) => {
    const response = await gateway.call(path, { method })
    expect(response.status).toBe(404)
    expect(await response.json()).toMatchObject({ error: { code: 404, status: 'NOT_FOUND' } })
  })

  it('has the same format for a method that a path lacks', async () => {
    const response = await gateway.call('/v1beta/models', { method: 'DELETE' })
    expect(await response.json()).toMatchObject({ error: { code: 405 } })
  })

  it('leaves paths below /v1 in the format of OpenAI', async () => {
    const response = await gateway.call('/v1/anything', { method: 'POST' })
    expect(await response.json()).toMatchObject({ error: { code: 'unknown_url', type: 'invalid_request_error' } })
  })
})

describe('text/x.enum', () => {
  const values = ['Percussion', 'String', 'Woodwind']
  const json = {
    contents: [{ parts: [{ text: 'What is an oboe?' }] }],
    generationConfig: { responseMimeType: 'text/x.enum', responseSchema: { type: 'STRING', enum: values } },
  }

  it('returns one value as text, whole and streamed', async () => {
    const whole = await gateway.call('/v1beta/models/sandbox/general:generateContent', { json })
    expect(whole.status).toBe(200)
    const { candidates } = (await whole.json()) as { candidates: { content: { parts: { text: string }[] } }[] }
    expect(values).toContain(candidates[0]?.content.parts[0]?.text as string)
    const stream = await gateway.call('/v1beta/models/sandbox/general:streamGenerateContent?alt=sse', { json })
    const events = (await stream.text()).split('\n\n').filter(Boolean)
    const text = events
      .flatMap((event) => JSON.parse(event.slice('data: '.length)).candidates)
      .flatMap(({ content }) => content.parts.map((part: { text?: string }) => part.text ?? ''))
      .join('')
    expect(values).toContain(text)
  })
})

describe('a path that is not served', () => {
  it.each([
    ['/chat/completions', '/v1/chat/completions'],
    ['/models', '/v1/models'],
    ['/v1/v1/messages', '/v1/messages'],
    ['//v1/chat/completions', '/v1/chat/completions'],
    ['/v1//images/generations', '/v1/images/generations'],
    ['/openai/v1/chat/completions', '/v1/chat/completions'],
    ['/openai/v1/responses/resp_1', '/v1/responses/resp_1'],
    ['/openai/deployments/general/chat/completions', '/v1/chat/completions'],
    ['/api/v1/videos/video_1/content', '/v1/videos/video_1/content'],
    ['/gemini/v1beta/models/general:generateContent', '/v1beta/models/general:generateContent'],
    ['/rerank', '/v1/rerank'],
    ['/x/v2/rerank', '/v2/rerank'],
  ])('%s is answered with the right path', async (path, right) => {
    const response = await gateway.call(path, { json: {} })
    expect(response.status).toBe(404)
    const { error } = (await response.json()) as { error: { code: string; message: string } }
    expect(error.code).toBe('unknown_url')
    expect(error.message).toEndWith(`; the path here is ${right}`)
  })

  it.each([
    ['/nowhere', ''],
    ['/v1/chat/completion', '; did you mean /v1/chat/completions?'],
    ['/v1/chat/complete', ''],
    ['/admin/v1/tokens/x/y/z', ''],
    ['/x/admin/v1/me', ''],
    ['//admin/v1/me', ''],
    ['/x/metrics', ''],
    [`/${'x'.repeat(190)}/v1/models`, ''],
    [`/${'x'.repeat(189)}/v1/models`, '; the path here is /v1/models'],
    ['/a/b/c/d/e/v1/models', '; the path here is /v1/models'],
    ['/a/b/c/d/e/f/v1/models', ''],
    ['/v1/audio', ''],
    ['/openai/v1/audio/transcriptions', '; the path here is /v1/audio/transcriptions'],
    ['/v1/file', '; did you mean /v1/files?'],
    ['/upload/v1beta/files', '; the path here is /v1/files'],
    ['/v1beta/cachedContents', '; Gatehouse does not serve cached contents yet'],
    ['/v1/batch', '; did you mean /v1/batches?'],
    ['/v1/constructor', ''],
  ])('%s gets 404 and "%s"', async (path, hint) => {
    const response = await gateway.call(path, { json: {} })
    expect(response.status).toBe(404)
    const { error } = (await response.json()) as { error: { message: string } }
    expect(error.message).toBe(`Invalid URL (POST ${path.length > 200 ? `${path.slice(0, 200)}...` : path})${hint}`)
  })

  it('gets 426 if it asks for a WebSocket', async () => {
    const headers = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' }
    for (const path of ['/v1/embeddings', '/v1/nowhere', '/nowhere']) {
      const response = await gateway.call(path, { headers })
      expect(response.status).toBe(426)
      expect(response.headers.get('upgrade')).toBeTruthy()
      expect(await response.json()).toMatchObject({ error: { code: 'upgrade_required' } })
    }
  })
})

describe('the paths of Vertex AI', () => {
  const contents = [{ parts: [{ text: 'Hello' }] }]

  it.each([
    '/v1beta1/publishers/google/models/general',
    '/v1beta1/publishers/google/models/sandbox/general',
    '/v1beta1/publishers/sandbox/models/general',
    '/v1/publishers/sandbox/models/general',
    '/v1beta/publishers/sandbox/models/general',
    '/v1beta1/projects/p/locations/europe-west1/publishers/google/models/general',
    '/v1beta1/projects/p/locations/global/publishers/sandbox/models/general',
    '/v1/projects/p/locations/global/publishers/sandbox/models/general',
    '/v1beta1/models/sandbox/general',
  ])('serve the methods of models: %s', async (path) => {
    const response = await gateway.call(`${path}:generateContent`, { json: { contents } })
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ modelVersion: 'sandbox/general' })
  })

  it('name a model that does not exist by the provider and the model', async () => {
    const path = '/v1beta1/publishers/sandbox/models/nothing:generateContent'
    const response = await gateway.call(path, { json: { contents } })
    expect(response.status).toBe(404)
    expect(await response.json()).toMatchObject({ error: { message: expect.stringContaining('"sandbox/nothing"') } })
  })

  it.each(['/v1beta1', '/v1', '/v1beta1/projects/p/locations/l'])(
    'report an unknown method below %s in the error format of Google',
    async (place) => {
      const path = `${place}/publishers/google/models/general:dance`
      const response = await gateway.call(path, { json: { contents } })
      expect(await response.json()).toMatchObject({ error: { code: 404, status: 'NOT_FOUND' } })
    },
  )
})
