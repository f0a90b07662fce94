/** The OpenAPI document describes the API that is there: it is whole, and true of real answers. */
import { afterAll, expect, test } from 'bun:test'
import { readFile } from 'node:fs/promises'
import Type from 'typebox'
import type { Route } from '../src/http/context.ts'
import { openApiDocument } from '../src/openapi.ts'
import { ERRORS } from '../src/spec/error.ts'
import { type Document, type Json, readDocument } from './kit/document.ts'
import { startGateway } from './kit/gateway.ts'

const house = await startGateway()
afterAll(() => house[Symbol.asyncDispose]())
const { document, operations, fits } = await readDocument(house)

const schemaOf = (name: string, status: number): Json =>
  operations.find((operation) => operation.name === name)?.operation.responses[status]?.content?.['application/json']
    ?.schema ?? {}

test('it is an OpenAPI 3.1 document of this version, with the paths of the specification', () => {
  expect(document.openapi).toStartWith('3.1')
  expect(document.info.version).toBe('0.0.0-test')
  expect(operations.map(({ name }) => name).sort()).toEqual([
    'GET /',
    'GET /docs',
    'GET /healthz',
    'GET /openapi.json',
    'GET /readyz',
    'GET /v1/models',
    'GET /v1/models/{model}',
    'POST /v1/chat/completions',
  ])
  expect(document.components.securitySchemes.token).toMatchObject({ type: 'http', scheme: 'bearer' })
})

test('every reference leads somewhere, and every schema can be used', () => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)]
  expect(references.length).toBeGreaterThan(10)
  for (const [, name = ''] of references) expect(Object.keys(document.components.schemas)).toContain(name)
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    expect(Object.keys(schema)).not.toBeEmpty()
    expect([name, typeof fits(schema, {})]).not.toEqual([name, 'undefined'])
  }
})

test('operations have names of their own, known tags, and a parameter for each gap of their path', () => {
  const names = operations.map(({ operation }) => operation.operationId)
  expect(new Set(names).size).toBe(names.length)
  const tags = document.tags.map(({ name }) => name)
  for (const { path, operation } of operations) {
    for (const tag of operation.tags) expect(tags).toContain(tag)
    const gaps = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    expect((operation.parameters ?? []).map(({ name }) => name)).toEqual(gaps as string[])
  }
})

test('every error of the sheet is in it, with its status', () => {
  const { description } = document.info
  for (const [code, { status, type, when }] of Object.entries(ERRORS)) {
    const group = description.split('\n\n**').find((text) => text.startsWith(`${status}** \`${type}\`\n`))
    expect(group).toContain(`\n- \`${code}\`: ${when}`)
  }
})

test('an operation names its errors under their status, each with an example of the right shape', () => {
  let examples = 0
  for (const { operation } of operations) {
    for (const [status, { content }] of Object.entries(operation.responses)) {
      if (status === '200') continue
      const { schema = {}, examples: given = {} } = content?.['application/json'] ?? {}
      for (const [code, { value }] of Object.entries(given)) {
        expect([code, String(ERRORS[code as keyof typeof ERRORS].status)]).toEqual([code, status])
        expect(fits(schema, value)).toBe(true)
        examples++
      }
    }
    expect(Object.keys(operation.responses)).toContainValues(['200', '405', '500', '503'])
    expect('401' in operation.responses).toBe(operation.security === undefined)
  }
  expect(examples).toBeGreaterThan(25)
})

/** Codes that no operation of the document answers with, and why. */
const ANSWERED_NOWHERE = [
  'unknown_url', // is what a path answers that is not in the document
  'client_closed_request', // stands in the log only
  'insufficient_quota', // no token has a budget yet
]

test('every error of the sheet is told of an operation that answers it', () => {
  const told = operations.flatMap(({ operation }) =>
    Object.values(operation.responses).flatMap(({ content }) =>
      Object.keys(content?.['application/json']?.examples ?? {}),
    ),
  )
  expect([...new Set(told), ...ANSWERED_NOWHERE].sort()).toEqual(Object.keys(ERRORS).sort())
})

test.each([
  ['GET /v1/models', ['invalid_api_key', 'rate_limit_exceeded']],
  ['GET /v1/models/{model}', ['invalid_value', 'ambiguous_model', 'model_not_allowed', 'model_not_found']],
  ['POST /v1/chat/completions', ['model_retired', 'request_too_large', 'request_timeout', 'unsupported_media_type']],
  ['GET /healthz', ['method_not_allowed', 'internal_error', 'shutting_down']],
])('%s tells %j among its errors', (name, codes) => {
  const responses = operations.find((operation) => operation.name === name)?.operation.responses ?? {}
  for (const code of codes) {
    const { content } = responses[ERRORS[code as keyof typeof ERRORS].status] ?? {}
    expect(Object.keys(content?.['application/json']?.examples ?? {})).toContain(code)
  }
})

test('the page of the manual on errors has a row for every code, as the sheet has it', async () => {
  const manual = await readFile(new URL('../docs/manual/errors.md', import.meta.url), 'utf8')
  const rows = [...manual.matchAll(/^\| `(\w+)` \|.*$/gm)]
  expect(rows.map(([, code]) => code)).toEqual(Object.keys(ERRORS))
  for (const [row, code] of rows) {
    const { status, type, when } = ERRORS[code as keyof typeof ERRORS]
    expect(row).toStartWith(`| \`${code}\` | ${status} | \`${type}\` |`)
    expect(row).toEndWith(`| ${when} |`)
  }
})

test('what is in the document is there, for HEAD too; what needs no token says so and needs none', async () => {
  for (const { name, path, method, operation } of operations) {
    const url = path.replace('{model}', 'sandbox%2Fgeneral')
    const isOpen = operation.security !== undefined
    const given = isOpen ? { authorization: '' } : {}
    const answer = await house.call(url, { method, headers: given })
    expect([name, answer.status]).toEqual([name, method === 'GET' ? 200 : 415])
    const asked = await house.call(url, { method, headers: { authorization: '' } })
    expect([name, asked.status === 401]).toEqual([name, !isOpen])
    if (method !== 'GET') continue
    const head = await house.call(url, { method: 'HEAD', headers: given })
    expect([name, head.status, head.body]).toEqual([name, 200, null])
    const type = answer.headers.get('content-type')?.split(';')[0] ?? ''
    expect(Object.keys(operation.responses[200]?.content ?? {})).toContain(type)
    if (type === 'application/json') expect(fits(schemaOf(name, 200), await answer.json())).toBe(true)
  }
})

test('a refusal that is no error stands beside the errors of its status', () => {
  const schema = schemaOf('GET /readyz', 503)
  expect(fits(schema, { status: 'not ready', reason: 'x' })).toBe(true)
  expect(fits(schema, { error: { message: 'x', type: 'x', param: null, code: 'shutting_down' } })).toBe(true)
  expect(fits(schema, { status: 'ready' })).not.toBe(true)
})

test('the home page names every path of the API, to programs and to people', async () => {
  const paths = Object.keys(document.paths).filter((path) => path.startsWith('/v1/'))
  const { endpoints } = await (await house.call('/')).json()
  expect(endpoints).toEqual(paths)
  const page = await (await house.call('/', { headers: { accept: 'text/html' } })).text()
  for (const { name, path } of operations) if (paths.includes(path)) expect(page).toContain(`<code>${name}</code>`)
})

test('the headers of errors are told where they are sent', () => {
  const responses = document.paths['/v1/chat/completions']?.post?.responses ?? {}
  expect(responses['401']?.headers).toHaveProperty('www-authenticate')
  expect(responses['405']?.headers).toHaveProperty('allow')
  expect(responses['429']?.headers).toHaveProperty('retry-after')
  expect(responses['502']?.headers).toHaveProperty('x-should-retry')
  expect(responses['400']?.headers).not.toHaveProperty('retry-after')
})

test('the example of a request is a good one, and is answered as described, whole and streamed', async () => {
  const operation = document.paths['/v1/chat/completions']?.post
  const { schema = {}, example } = operation?.requestBody?.content['application/json'] ?? {}
  expect(fits(schema, example)).toBe(true)
  expect(fits(schema, { model: 'm', messages: [] })).not.toBe(true)

  const answer = await house.chat(example)
  expect(answer.status).toBe(200)
  expect(fits(schemaOf('POST /v1/chat/completions', 200), await answer.json())).toBe(true)

  const chunkSchema = operation?.responses['200']?.content?.['text/event-stream']?.schema.contentSchema as Json
  const stream = await (await house.chat({ ...(example as Json), stream: true })).text()
  const chunks = stream.split('\n\n').filter((event) => event.startsWith('data: {'))
  expect(chunks.length).toBeGreaterThan(2)
  for (const chunk of chunks) expect(fits(chunkSchema, JSON.parse(chunk.slice(6)))).toBe(true)
})

test('what the catalogue and an error really look like is what it says', async () => {
  const list = await (await house.call('/v1/models')).json()
  expect(fits(schemaOf('GET /v1/models', 200), list)).toBe(true)
  const model = await (await house.call('/v1/models/sandbox/general')).json()
  expect(fits(schemaOf('GET /v1/models/{model}', 200), model)).toBe(true)
  expect(fits(schemaOf('GET /v1/models/{model}', 200), list)).not.toBe(true)
  const missing = await (await house.call('/v1/models/nobody')).json()
  expect(fits(schemaOf('GET /v1/models/{model}', 404), missing)).toBe(true)
})

test('a hidden route is left out, a public one asks for no token, a titled schema stands once', () => {
  const Thing = Type.Object(
    { name: Type.String(), inner: Type.Optional(Type.Array(Type.Object({}))) },
    { title: 'Thing' },
  )
  const route = (path: string, more: Partial<Route>): Route => ({
    method: 'GET',
    path,
    operation: { summary: path, tag: path, response: Thing },
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
  expect(tags.map(({ name }) => name)).toEqual(['/open/:part{.+}/end'])
  expect(paths['/open/{part}/end']?.get?.security).toEqual([])
  expect(paths['/open/{part}/end']?.delete?.security).toBeUndefined()
  expect(Object.keys(components.schemas).sort()).toEqual(['Error', 'Thing'])
})
