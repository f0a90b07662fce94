/** The OpenAPI document describes the API that is there: it is whole, and true of real answers. */
import { afterAll, expect, test } from 'bun:test'
import Ajv2020 from 'ajv/dist/2020'
import Type from 'typebox'
import type { Route } from '../src/http/context.ts'
import { openApiDocument } from '../src/openapi.ts'
import { ERRORS } from '../src/spec/error.ts'
import { startGateway } from './kit/gateway.ts'

type Json = { [name: string]: unknown }
type Media = { schema: Json; example?: unknown; examples?: Record<string, { value: unknown }> }
type Reply = { description: string; headers: Json; content?: Record<string, Media> }
type Operation = {
  operationId: string
  tags: string[]
  security?: unknown[]
  parameters?: { name: string; in: string; required: boolean }[]
  requestBody?: { content: Record<string, Media> }
  responses: Record<string, Reply>
}
type Document = {
  openapi: string
  info: { version: string; description: string }
  tags: { name: string }[]
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Json>; securitySchemes: Record<string, Json> }
}

const house = await startGateway()
afterAll(() => house[Symbol.asyncDispose]())

const document = (await (await house.call('/openapi.json', { headers: { authorization: '' } })).json()) as Document
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, path, operation })),
)

/** A check by an independent reader of JSON Schema, against a schema of the document. */
const ajv = new Ajv2020({ strict: false, allErrors: true }).addSchema(document, 'api')
function fits(schema: Json, value: unknown): true | string {
  const whole = JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"api#/components/'))
  return ajv.validate(whole, value) || ajv.errorsText()
}

const schemaOf = (name: string, status: number): Json =>
  operations.find((operation) => operation.name === name)?.operation.responses[status]?.content?.['application/json']
    ?.schema ?? {}

test('it is an OpenAPI 3.1 document of this version, with the paths of the specification', () => {
  expect(document.openapi).toStartWith('3.1')
  expect(document.info.version).toBe('0.0.0-test')
  expect(operations.map(({ name }) => name).sort()).toEqual([
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
  for (const [code, { status, type }] of Object.entries(ERRORS)) {
    expect(document.info.description).toContain(`| \`${code}\` | ${status} | \`${type}\` |`)
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
    expect(Object.keys(operation.responses)).toContainValues(['200', '401', '405', '500', '503'])
  }
  expect(examples).toBeGreaterThan(25)
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
