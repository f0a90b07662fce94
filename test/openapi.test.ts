/** The OpenAPI document describes the API that is there: it is whole, and true of real answers. */
import { afterAll, describe, expect, test } from 'bun:test'
import Type from 'typebox'
import type { Route } from '../src/http/context.ts'
import { openApiDocument } from '../src/site/openapi.ts'
import { ERRORS } from '../src/spec/error.ts'
import { type Document, type Json, type Operation, readDocument } from './kit/document.ts'
import { startGateway } from './kit/gateway.ts'
import { startVideoVendor } from './kit/video-vendor.ts'

const vendor = startVideoVendor()
const gateway = await startGateway({
  providers: { v: { kind: 'chatcompat-video', base_url: vendor.url } },
  models: { 'v/film': { families: ['video-generation', 'chatcompat-video'] } },
})
afterAll(async () => {
  await gateway[Symbol.asyncDispose]()
  await vendor.stop()
})
const { document, operations, fits } = await readDocument(gateway)

/** The admin API has tests of its own: test/admin-roles.test.ts. */
const isAdmin = ({ path }: { path: string }): boolean => path.startsWith('/admin/')

/** Unless it is open to everyone; what takes a token or none (a signed link) can be refused for the lack of both. */
const needsToken = ({ security }: Operation): boolean => security === undefined || security.length > 0

/** A video that is ready, for the paths that need one. */
async function finishedVideo(): Promise<string> {
  const answer = await gateway.call('/v1/videos', { json: { model: 'v/film', prompt: 'A boat' } })
  const { id } = (await answer.json()) as { id: string }
  for (let turn = 0; turn < 100; turn++) {
    await gateway.instance.tasks.idle()
    const { status } = (await (await gateway.call(`/v1/videos/${id}`)).json()) as { status: string }
    if (status === 'completed') return id
    gateway.clock.advance(1_000)
  }
  throw new Error('The video was not ready in time.')
}

/** A task of a 3D model, small and quickly made. */
async function finishedSolid(): Promise<string> {
  const json = { model: 'sandbox/text-to-3d', prompt: '@sandbox quick=1\nA boat' }
  const { data } = (await (await gateway.call('/v1/3d/generations', { json })).json()) as { data: { task_id: string } }
  for (let turn = 0; turn < 100; turn++) {
    await gateway.instance.tasks.idle()
    const answer = await gateway.call(`/v1/3d/generations/${data.task_id}`)
    const { status } = ((await answer.json()) as { data: { status: string } }).data
    if (status === 'SUCCESS') return data.task_id
    gateway.clock.advance(1_000)
  }
  throw new Error('The 3D model was not ready in time.')
}

/** A task of images, which are there at once where links to them are asked for. */
async function finishedImage(): Promise<string> {
  const json = { model: 'sandbox/image', prompt: 'A boat', size: '256x256', response_format: 'url' }
  const answer = (await (await gateway.call('/v1/images/generations', { json })).json()) as { data: { url: string }[] }
  return answer.data[0]?.url.split('/').at(-2) ?? ''
}

/** A conversation with an item. */
async function storedConversation(): Promise<{ id: string; item: string }> {
  const json = { items: [{ type: 'message', role: 'user', content: 'Hi' }] }
  const { id } = (await (await gateway.call('/v1/conversations', { json })).json()) as { id: string }
  const items = (await (await gateway.call(`/v1/conversations/${id}/items`)).json()) as { first_id: string }
  return { id, item: items.first_id }
}

async function uploadedFile(purpose = 'user_data'): Promise<string> {
  const form = new FormData()
  form.append('purpose', purpose)
  form.append('file', new File(['Hi'], 'a.txt'))
  return ((await (await gateway.call('/v1/files', { form })).json()) as { id: string }).id
}

/** A batch, whatever its state, and a message batch that has ended. */
async function someBatches(): Promise<{ batch: string; messages: string }> {
  const input = { input_file_id: await uploadedFile('batch'), endpoint: '/v1/responses', completion_window: '24h' }
  const { id: batch } = (await (await gateway.call('/v1/batches', { json: input })).json()) as { id: string }
  const params = { model: 'sandbox/general', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] }
  const json = { requests: [{ custom_id: 'a', params }] }
  const { id: messages } = (await (await gateway.call('/v1/messages/batches', { json })).json()) as { id: string }
  for (let turn = 0; turn < 10; turn++) {
    await gateway.instance.batches.idle()
    gateway.clock.advance(1_000)
  }
  return { batch, messages }
}

const schemaOf = (name: string, status: number): Json =>
  operations.find((operation) => operation.name === name)?.operation.responses[status]?.content?.['application/json']
    ?.schema ?? {}

test('the document is OpenAPI 3.1, of this version, with the paths of the specification', () => {
  expect(document.openapi).toStartWith('3.1')
  expect(document.info.version).toBe('0.0.0-test')
  const own = operations.filter((one) => !isAdmin(one))
  expect(own.map(({ name }) => name).sort()).toEqual([
    'DELETE /mcp',
    'DELETE /mcp/{server}',
    'DELETE /passthrough/{provider}/{path}',
    'DELETE /v1/conversations/{conversation_id}',
    'DELETE /v1/conversations/{conversation_id}/items/{item_id}',
    'DELETE /v1/files/{file_id}',
    'DELETE /v1/messages/batches/{message_batch_id}',
    'DELETE /v1/responses/{response_id}',
    'DELETE /v1/videos/{video_id}',
    'GET /',
    'GET /.well-known/oauth-protected-resource',
    'GET /.well-known/oauth-protected-resource/mcp',
    'GET /.well-known/oauth-protected-resource/mcp/{server}',
    'GET /console',
    'GET /docs',
    'GET /healthz',
    'GET /llms.txt',
    'GET /manual',
    'GET /mcp',
    'GET /mcp/{server}',
    'GET /metrics',
    'GET /openapi.json',
    'GET /passthrough/{provider}/{path}',
    'GET /readyz',
    'GET /v1/3d/generations',
    'GET /v1/3d/generations/{task_id}',
    'GET /v1/3d/generations/{task_id}/content',
    'GET /v1/batches',
    'GET /v1/batches/{batch_id}',
    'GET /v1/conversations/{conversation_id}',
    'GET /v1/conversations/{conversation_id}/items',
    'GET /v1/conversations/{conversation_id}/items/{item_id}',
    'GET /v1/files',
    'GET /v1/files/{file_id}',
    'GET /v1/files/{file_id}/content',
    'GET /v1/images/generations',
    'GET /v1/images/generations/{task_id}',
    'GET /v1/images/generations/{task_id}/content',
    'GET /v1/limits',
    'GET /v1/messages/batches',
    'GET /v1/messages/batches/{message_batch_id}',
    'GET /v1/messages/batches/{message_batch_id}/results',
    'GET /v1/models',
    'GET /v1/models/{model}',
    'GET /v1/realtime',
    'GET /v1/responses/{response_id}',
    'GET /v1/responses/{response_id}/input_items',
    'GET /v1/usage',
    'GET /v1/video/generations',
    'GET /v1/video/generations/{task_id}',
    'GET /v1/videos',
    'GET /v1/videos/{video_id}',
    'GET /v1/videos/{video_id}/content',
    'GET /v1beta/files/{file}:download',
    'GET /v1beta/models',
    'GET /v1beta/models/{model}',
    'GET /v1beta/models/{model}/operations/{task_id}',
    'GET /ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent',
    'PATCH /passthrough/{provider}/{path}',
    'POST /mcp',
    'POST /mcp/{server}',
    'POST /passthrough/{provider}/{path}',
    'POST /v1/3d/generations',
    'POST /v1/3d/generations/{task_id}/cancel',
    'POST /v1/audio/speech',
    'POST /v1/audio/transcriptions',
    'POST /v1/audio/translations',
    'POST /v1/batches',
    'POST /v1/batches/{batch_id}/cancel',
    'POST /v1/chat/completions',
    'POST /v1/completions',
    'POST /v1/conversations',
    'POST /v1/conversations/{conversation_id}',
    'POST /v1/conversations/{conversation_id}/items',
    'POST /v1/embeddings',
    'POST /v1/feedback',
    'POST /v1/files',
    'POST /v1/images',
    'POST /v1/images/edits',
    'POST /v1/images/generations',
    'POST /v1/images/generations/{task_id}/cancel',
    'POST /v1/images/variations',
    'POST /v1/messages',
    'POST /v1/messages/batches',
    'POST /v1/messages/batches/{message_batch_id}/cancel',
    'POST /v1/messages/count_tokens',
    'POST /v1/moderations',
    'POST /v1/realtime/client_secrets',
    'POST /v1/rerank',
    'POST /v1/responses',
    'POST /v1/responses/compact',
    'POST /v1/responses/input_tokens',
    'POST /v1/responses/{response_id}/cancel',
    'POST /v1/video/generations',
    'POST /v1/video/generations/{task_id}/cancel',
    'POST /v1/videos',
    'POST /v1beta/models/{model}:batchEmbedContents',
    'POST /v1beta/models/{model}:countTokens',
    'POST /v1beta/models/{model}:embedContent',
    'POST /v1beta/models/{model}:fetchPredictOperation',
    'POST /v1beta/models/{model}:generateContent',
    'POST /v1beta/models/{model}:predict',
    'POST /v1beta/models/{model}:predictLongRunning',
    'POST /v1beta/models/{model}:streamGenerateContent',
    'POST /v2/rerank',
    'PUT /passthrough/{provider}/{path}',
  ])
  expect(document.components.securitySchemes.token).toMatchObject({ type: 'http', scheme: 'bearer' })
})

test('every reference resolves, and every schema compiles', () => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)]
  expect(references.length).toBeGreaterThan(10)
  for (const [, name = ''] of references) expect(Object.keys(document.components.schemas)).toContain(name)
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    expect(Object.keys(schema)).not.toBeEmpty()
    expect([name, typeof fits(schema, {})]).not.toEqual([name, 'undefined'])
  }
})

/** Every name that a schema gives to a member, at any depth. */
function memberNames(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  const { properties = {} } = value as { properties?: object }
  return [...Object.keys(properties), ...Object.values(value).flatMap(memberNames)]
}

test('members that only translation between protocols needs are not in the document', () => {
  const names = memberNames(document)
  expect(names).toContainValues(['reasoning_details', 'tool_calls', 'images'])
  for (const inner of ['opaque', 'origin', 'provider_options']) expect(names).not.toContain(inner)
  const chat = schemaOf('POST /v1/chat/completions', 200)
  const schema = document.components.schemas[String(chat.$ref).split('/').at(-1) ?? '']
  expect(memberNames(schema)).toContain('finish_reason')
  expect(memberNames(schema)).not.toContain('stop_sequence')
})

test('operations have unique names, known tags, and a parameter for each placeholder of their path', () => {
  const names = operations.map(({ operation }) => operation.operationId)
  expect(new Set(names).size).toBe(names.length)
  const tags = document.tags.map(({ name }) => name)
  for (const { path, operation } of operations) {
    for (const tag of operation.tags) expect(tags).toContain(tag)
    const gaps = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    const inPath = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path')
    expect(inPath.map(({ name }) => name)).toEqual(gaps as string[])
  }
})

test('every error of the specification is in the document, with its status', () => {
  const { description } = document.info
  for (const [code, { status, type, when }] of Object.entries(ERRORS)) {
    const group = description.split('\n\n**').find((text) => text.startsWith(`${status}** \`${type}\`\n`))
    expect(group).toContain(`\n- \`${code}\`: ${when}`)
  }
})

test('an operation names its errors under their status, each with an example of the right format', () => {
  let examples = 0
  for (const { name, path, operation } of operations) {
    for (const [status, { content }] of Object.entries(operation.responses)) {
      if (status === '200') continue
      const { schema = {}, examples: given = {} } = content?.['application/json'] ?? {}
      for (const [code, { value }] of Object.entries(given)) {
        const isOverloaded = /^\/v1\/messages(\/batches.*)?$/.test(path) && code === 'server_is_overloaded'
        const expected = isOverloaded ? 529 : ERRORS[code as keyof typeof ERRORS].status
        expect([code, String(expected)]).toEqual([code, status])
        expect(fits(schema, value)).toBe(true)
        examples++
      }
    }
    expect(Object.keys(operation.responses)).toContainValues(['200', '405', '500', '503'])
    // A login takes a link in place of a token.
    expect('401' in operation.responses).toBe(needsToken(operation) || name === 'POST /admin/v1/login')
  }
  expect(examples).toBeGreaterThan(25)
})

/** Codes that no operation of the document answers with, and why. */
const ANSWERED_NOWHERE = [
  'client_closed_request', // stands in the log only
  'invalid_stream_id', // a message of a WebSocket, as are the next two
  'websocket_stream_limit_reached',
  'websocket_connection_limit_reached',
  'insufficient_quota', // no token has a budget yet
  'input_media_invalid', // ends a task, as do the next two
  'output_gone',
  'output_refused',
]

test('every error of the specification is documented at an operation that returns it', () => {
  const told = operations.flatMap(({ operation }) =>
    Object.values(operation.responses).flatMap(({ content }) =>
      Object.keys(content?.['application/json']?.examples ?? {}),
    ),
  )
  expect([...new Set(told), ...ANSWERED_NOWHERE].sort()).toEqual(Object.keys(ERRORS).sort())
})

test.each([
  ['GET /v1/models', ['invalid_api_key', 'address_not_allowed', 'project_disabled', 'rate_limit_exceeded']],
  ['GET /v1/models/{model}', ['invalid_value', 'ambiguous_model', 'model_not_allowed', 'model_not_found']],
  ['POST /v1/chat/completions', ['model_retired', 'request_too_large', 'request_timeout', 'unsupported_media_type']],
  ['GET /healthz', ['method_not_allowed', 'internal_error', 'shutting_down']],
])('%s lists %j among its errors', (name, codes) => {
  const responses = operations.find((operation) => operation.name === name)?.operation.responses ?? {}
  for (const code of codes) {
    const { content } = responses[ERRORS[code as keyof typeof ERRORS].status] ?? {}
    expect(Object.keys(content?.['application/json']?.examples ?? {})).toContain(code)
  }
})

test('every documented operation exists, for HEAD too; public operations are marked and need no token', async () => {
  const video = await finishedVideo()
  const image = await finishedImage()
  const solid = await finishedSolid()
  const kept = await gateway.call('/v1/responses', {
    json: { model: 'sandbox/general', input: 'Hi', background: true },
  })
  const { id: response } = (await kept.json()) as { id: string }
  const { id: conversation, item } = await storedConversation()
  const file = await uploadedFile()
  const { batch, messages } = await someBatches()
  // A conversation is deleted after its items.
  const last = ({ method, path }: { method: string; path: string }) =>
    method === 'DELETE' ? (path.endsWith('{conversation_id}') ? 2 : 1) : 0
  for (const { name, path, method, operation } of operations
    // Who needs a token for the metrics is said by test/metrics.test.ts; streams of MCP need a session, as test/mcp.test.ts says.
    .filter(
      (one) =>
        !isAdmin(one) &&
        one.path !== '/metrics' &&
        !one.path.startsWith('/.well-known/') && // test/mcp-oauth.test.ts
        !one.path.startsWith('/passthrough/') && // there where a provider is configured to have them
        !/^\/v1\/realtime$|^\/ws\//.test(one.path) && // WebSockets: test/realtime.test.ts
        !(one.path.startsWith('/mcp') && one.method !== 'POST'),
    )
    .toSorted((left, right) => last(left) - last(right))) {
    const url = path
      .replace('{model}/operations', 'v%2Ffilm/operations')
      .replace('{model}', 'sandbox%2Fgeneral')
      .replace('/mcp/{server}', '/mcp/sandbox')
      .replace('{response_id}', response)
      .replace('{file_id}', file)
      .replace('{message_batch_id}', messages)
      .replace('{batch_id}', batch)
      .replace('{conversation_id}', conversation)
      .replace('{item_id}', item)
      .replace(/(?<=^\/v1\/images\/.*)\{task_id\}/, image)
      .replace(/(?<=^\/v1\/3d\/.*)\{task_id\}/, solid)
      .replace(/\{(task|video)_id\}/, video)
      .replace('{file}', `${Buffer.from(video).toString('hex')}x0`)
    const isOpen = !needsToken(operation)
    const given = isOpen ? { authorization: '' } : {}
    const asked = await gateway.call(url, { method, headers: { authorization: '' } })
    expect([name, asked.status === 401]).toEqual([name, !isOpen])
    const answer = await gateway.call(url, { method, headers: given })
    expect([name, answer.status]).toEqual([name, operation.requestBody?.required ? 415 : 200])
    if (operation.requestBody?.required) continue
    const type = answer.headers.get('content-type')?.split(';')[0] ?? ''
    expect(Object.keys(operation.responses[200]?.content ?? {})).toContain(type)
    if (type === 'application/json') expect(fits(schemaOf(name, 200), await answer.json())).toBe(true)
    if (method !== 'GET') continue
    const head = await gateway.call(url, { method: 'HEAD', headers: given })
    expect([name, head.status, head.body]).toEqual([name, 200, null])
    expect(head.headers.get('content-type')).toBe(answer.headers.get('content-type'))
  }
})

test.each(Object.keys(document.paths))(
  '%s reports its methods: to OPTIONS, and in the error of other methods',
  async (path) => {
    const documented = Object.keys(document.paths[path] ?? {}).map((method) => method.toUpperCase())
    const methods = [...documented, ...(documented.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].sort()
    const url = path.replaceAll(/\{\w+\}/g, 'x')
    const options = await gateway.call(url, { method: 'OPTIONS', headers: { authorization: '' } })
    expect([options.status, options.headers.get('allow')?.split(', ').sort()]).toEqual([204, methods])
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((one) => !methods.includes(one))) {
      const { status, headers } = await gateway.call(url, { method })
      expect([method, status, headers.get('allow')?.split(', ').sort()]).toEqual([method, 405, methods])
    }
  },
)

type Links = Record<string, { operationId: string; parameters: Record<string, string> }>
const linksOf = ({ responses }: Operation): Links => (responses[200] as { links?: Links } | undefined)?.links ?? {}

test('every link of a response leads to a parameter of an operation of the document', () => {
  const links = operations.flatMap(({ operation }) => Object.entries(linksOf(operation)))
  expect(links.length).toBeGreaterThan(40)
  for (const [name, { operationId, parameters }] of links) {
    const target = operations.find(({ operation }) => operation.operationId === operationId)?.operation
    expect([name, target?.operationId]).toEqual([operationId, operationId])
    const known = (target?.parameters ?? []).map(({ name: parameter }) => parameter)
    expect(known).toContainValues(Object.keys(parameters))
  }
})

test('a created task and a stored response are found through the links of their responses', async () => {
  const bodies = {
    'POST /v1/video/generations': { model: 'v/film', prompt: 'A boat' },
    'POST /v1/videos': { model: 'v/film', prompt: 'A boat' },
    'POST /v1/3d/generations': { model: 'sandbox/text-to-3d', prompt: 'A pot' },
    'POST /v1/images/generations': { model: 'sandbox/image', prompt: 'A boat', async: true },
    'POST /v1/responses': { model: 'sandbox/general', input: 'Hi' },
  }
  for (const [name, json] of Object.entries(bodies)) {
    const { path = '', operation } = operations.find((one) => one.name === name) ?? {}
    const answer = await (await gateway.call(path, { json })).json()
    const links = operation ? Object.values(linksOf(operation)) : []
    const found = links.find(({ operationId }) => operationId.startsWith('get') && !operationId.endsWith('Content'))
    const [[parameter = '', pointer = ''] = []] = Object.entries(found?.parameters ?? {})
    const keys = pointer.replace('$response.body#/', '').split('/')
    const value = keys.reduce((part: unknown, key) => (part as Json)?.[key], answer)
    const target = operations.find((one) => one.operation.operationId === found?.operationId)
    const response = await gateway.call(target?.path.replace(`{${parameter}}`, String(value)) ?? '')
    expect([name, response.status]).toEqual([name, 200])
  }
})

test('queries, headers, forms and byte ranges are documented where they are supported', () => {
  const of = (path: string, method: string) => document.paths[path]?.[method]
  const told = (path: string, method: string, place: string) =>
    (of(path, method)?.parameters ?? []).filter((one) => one.in === place).map(({ name }) => name)
  expect(told('/v1/video/generations', 'get', 'query')).toEqual(['status', 'after', 'limit', 'order'])
  expect(told('/v1/video/generations/{task_id}', 'get', 'query')).toEqual(['wait'])
  expect(told('/v1/video/generations', 'post', 'header')).toEqual(['Idempotency-Key'])
  expect(told('/v1/videos/{video_id}/content', 'get', 'header')).toContain('Range')
  for (const path of ['/v1/videos', '/v1/video/generations']) {
    expect(Object.keys(of(path, 'post')?.requestBody?.content ?? {})).toEqual([
      'application/json',
      'multipart/form-data',
    ])
  }
  const file = of('/v1/videos/{video_id}/content', 'get')
  expect(Object.keys(file?.responses ?? {})).toContainValues(['200', '206', '302', '304', '416'])
  expect(Object.keys(file?.responses[206]?.content ?? {})).toEqual(['video/mp4'])
  expect(file?.responses[416]?.headers).toHaveProperty('content-range')
  expect(file?.security).toEqual([{ token: [] }, {}])
})

test('a failure response that is not an error object is documented beside the errors of its status', () => {
  const schema = schemaOf('GET /readyz', 503)
  expect(fits(schema, { status: 'not ready', reason: 'x' })).toBe(true)
  expect(fits(schema, { error: { message: 'x', type: 'x', param: null, code: 'shutting_down' } })).toBe(true)
  expect(fits(schema, { status: 'ready' })).not.toBe(true)
})

test('the home page names every path of the API, in JSON and in HTML', async () => {
  const paths = Object.keys(document.paths).filter((path) => path.startsWith('/v1/'))
  const { endpoints } = await (await gateway.call('/')).json()
  expect(endpoints).toEqual(paths)
  const page = await (await gateway.call('/', { headers: { accept: 'text/html' } })).text()
  for (const { name, path } of operations) if (paths.includes(path)) expect(page).toContain(`<code>${name}</code>`)
})

test('the headers of errors are documented where they are sent', () => {
  const responses = document.paths['/v1/chat/completions']?.post?.responses ?? {}
  expect(responses['401']?.headers).toHaveProperty('www-authenticate')
  expect(responses['405']?.headers).toHaveProperty('allow')
  expect(responses['429']?.headers).toHaveProperty('retry-after')
  for (const status of ['400', '401', '403', '404', '502']) {
    expect([status, Object.keys(responses[status]?.headers ?? {})]).toEqual([
      status,
      expect.arrayContaining(['x-should-retry']),
    ])
  }
  expect(responses['503']?.headers).not.toHaveProperty('x-should-retry')
  expect(responses['400']?.headers).not.toHaveProperty('retry-after')
})

test('the example of a chat request is valid, and its response is as documented, complete and streamed', async () => {
  const operation = document.paths['/v1/chat/completions']?.post
  const { schema = {}, example } = operation?.requestBody?.content['application/json'] ?? {}
  expect(fits(schema, example)).toBe(true)
  expect(fits(schema, { model: 'm', messages: [] })).not.toBe(true)

  const answer = await gateway.chat(example)
  expect(answer.status).toBe(200)
  expect(fits(schemaOf('POST /v1/chat/completions', 200), await answer.json())).toBe(true)

  const chunkSchema = operation?.responses['200']?.content?.['text/event-stream']?.schema.contentSchema as Json
  const stream = await (await gateway.chat({ ...(example as Json), stream: true })).text()
  const chunks = stream.split('\n\n').filter((event) => event.startsWith('data: {'))
  expect(chunks.length).toBeGreaterThan(2)
  for (const chunk of chunks) expect(fits(chunkSchema, JSON.parse(chunk.slice(6)))).toBe(true)
})

test.each(['/v1/video/generations', '/v1/videos', '/v1/3d/generations'])(
  'the example of %s is valid, and its response is as documented',
  async (path) => {
    const { schema = {}, example } = document.paths[path]?.post?.requestBody?.content['application/json'] ?? {}
    expect(fits(schema, example)).toBe(true)
    const answer = await gateway.call(path, { json: example })
    expect(answer.status).toBe(200)
    expect(fits(schemaOf(`POST ${path}`, 200), await answer.json())).toBe(true)
    const refused = await gateway.call(path, { json: { ...(example as Json), size: '1p', format: 'step' } })
    expect(fits(schemaOf(`POST ${path}`, 400), await refused.json())).toBe(true)
    expect(
      fits(schemaOf(`POST ${path}`, 400), { error: { message: 'x', type: 'x', param: null, code: 'x' } }),
    ).not.toBe(true)
  },
)

test('the real catalogue and a real error match the document', async () => {
  const list = await (await gateway.call('/v1/models')).json()
  expect(fits(schemaOf('GET /v1/models', 200), list)).toBe(true)
  const model = await (await gateway.call('/v1/models/sandbox/general')).json()
  expect(fits(schemaOf('GET /v1/models/{model}', 200), model)).toBe(true)
  expect(fits(schemaOf('GET /v1/models/{model}', 200), list)).not.toBe(true)
  const missing = await (await gateway.call('/v1/models/nobody')).json()
  expect(fits(schemaOf('GET /v1/models/{model}', 404), missing)).toBe(true)
})

describe('schemas of requests', () => {
  type Fields = { properties: Record<string, Json>; required: string[] }
  const requests = operations.flatMap(({ name, operation }) => {
    const { schema } = operation.requestBody?.content['application/json'] ?? {}
    const component = document.components.schemas[String(schema?.$ref).replace('#/components/schemas/', '')]
    return component === undefined
      ? []
      : [{ name, ...(component as Fields), required: (component.required ?? []) as string[] }]
  })

  test('there is one of each POST with a body', () => {
    expect(requests.length).toBeGreaterThan(15)
  })

  test.each(requests)('$name: a member that is not required may be null, and has no default', (request) => {
    for (const [field, schema] of Object.entries(request.properties)) {
      if (request.required.includes(field)) continue
      expect([field, fits(schema, null)]).toEqual([field, true])
      // Generators of types would require it.
      expect([field, schema]).toEqual([field, expect.not.objectContaining({ default: expect.anything() })])
    }
  })

  test.each([
    ['generateContent', 'ContentgenGenerationConfig', { thinkingConfig: { thinkingLevel: null }, temperature: null }],
    ['generateContent', 'ContentgenContent', { role: null, parts: [{ text: 'Hi', inlineData: null }] }],
    ['chat completions', 'Message', { role: 'user', content: 'Hi', name: null }],
  ])('null stands for an absent member at any depth of %s: %s', (_api, name, value) => {
    expect(fits(document.components.schemas[name] ?? {}, value)).toBe(true)
  })

  test('no component is part of a request and of a response, since null means something else there', () => {
    const namesIn = (value: unknown, seen = new Set<string>()): Set<string> => {
      for (const [, name = ''] of JSON.stringify(value ?? {}).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
        if (seen.has(name)) continue
        seen.add(name)
        namesIn(document.components.schemas[name], seen)
      }
      return seen
    }
    const requested = namesIn(operations.map(({ operation }) => operation.requestBody))
    const returned = namesIn(operations.map(({ operation }) => operation.responses))
    expect([requested.size > 20, [...requested].filter((name) => returned.has(name))]).toEqual([true, []])
  })

  test('a form has the fields and the requirements of the JSON body, with files', () => {
    const content = document.paths['/v1/images/edits']?.post?.requestBody?.content ?? {}
    const form = content['multipart/form-data']?.schema as Fields
    expect(form.required).toEqual(['model'])
    expect(form.properties.prompt).toMatchObject({ type: 'string' })
    expect(form.properties.mask).toMatchObject({ contentMediaType: 'application/octet-stream' })
    expect(form.properties.image?.anyOf).toContainEqual(expect.objectContaining({ type: 'array' }))
  })
})

test('an asynchronous image is a task, a synchronous one is not', async () => {
  const schema = schemaOf('POST /v1/images/generations', 200)
  const json = { model: 'sandbox/image', prompt: 'A boat', size: '256x256' }
  const images = await (await gateway.call('/v1/images/generations', { json })).json()
  const task = await (await gateway.call('/v1/images/generations', { json: { ...json, async: true } })).json()
  expect(task.data.task_id).toBeString()
  for (const body of [images, task]) expect(fits(schema, body)).toBe(true)
  expect(fits(schema, { data: {} })).not.toBe(true)
})

test('the lists of the contentgen API are as described', async () => {
  const list = await (await gateway.call('/v1beta/models?pageSize=2')).json()
  expect(list.models).toHaveLength(2)
  expect(list.nextPageToken).toBeString()
  expect(fits(schemaOf('GET /v1beta/models', 200), list)).toBe(true)
  const model = await (await gateway.call('/v1beta/models/sandbox/general')).json()
  expect(fits(schemaOf('GET /v1beta/models/{model}', 200), model)).toBe(true)
  expect(fits(schemaOf('GET /v1beta/models', 200), { data: [] })).not.toBe(true)
  for (const path of ['/v1beta/models?pageSize=0', '/v1beta/models/nobody']) {
    const refused = await gateway.call(path)
    const name = refused.status === 404 ? 'GET /v1beta/models/{model}' : 'GET /v1beta/models'
    expect(fits(schemaOf(name, refused.status), await refused.json())).toBe(true)
  }
})

test('a hidden route is omitted, a public one requires no token, a titled schema occurs once', () => {
  const Thing = Type.Object(
    { name: Type.String(), inner: Type.Optional(Type.Array(Type.Object({}))) },
    { title: 'Thing' },
  )
  const route = (path: string, more: Partial<Route>): Route => ({
    method: 'GET',
    path,
    operation: { summary: path, tag: 'Gateway', response: Thing },
    handle: () => new Response(),
    ...more,
  })
  const { paths, tags, components } = openApiDocument({
    version: '1',
    routes: [
      route('/hidden', { hidden: true }),
      route('/open/:part{.+}/end', { public: true }),
      route('/open/:part{.+}/end', { method: 'DELETE' }),
    ],
  }) as unknown as Document
  expect(Object.keys(paths)).toEqual(['/open/{part}/end'])
  expect(Object.keys(paths['/open/{part}/end'] ?? {})).toEqual(['get', 'delete'])
  expect(tags.map(({ name }) => name)).toEqual(['Gateway'])
  expect(paths['/open/{part}/end']?.get?.security).toEqual([])
  expect(paths['/open/{part}/end']?.delete?.security).toBeUndefined()
  expect(Object.keys(components.schemas).sort()).toEqual(['Error', 'Thing'])
})
