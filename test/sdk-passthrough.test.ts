/** Paths by name as the clients of vendors call them: what has no family here, with errors, forms, files, streams and prices. */
import { afterEach, describe, expect, it } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI, { toFile } from 'openai'
import type { ProviderConfig } from '../src/config/schema/schema.ts'
import { openPort, type Port } from './kit/served.ts'
import { type Answer, chunk, startVendor, stream, usageChunk, whole } from './kit/vendor.ts'

type Paths = NonNullable<ProviderConfig['passthrough_paths']>
type Json = Record<string, unknown>

const KEY = 'sk-key-of-the-vendor'
const PATHS: Paths = [
  { path: '/vector_stores/**', methods: ['GET', 'POST', 'DELETE'] },
  { path: '/vector_stores', methods: ['GET', 'POST'] },
  { path: '/uploads/**', methods: ['POST'] },
  { path: '/containers/*/files/*/content', methods: ['GET'] },
  {
    path: '/chat/completions',
    methods: ['POST'],
    prices: { input: 100, output: 1_000, request: 0.5 },
    usage: { input_tokens: '/usage/prompt_tokens', output_tokens: '/usage/completion_tokens' },
    most: { input_tokens: 1_000, output_tokens: 1_000 },
  },
]

const started: { stop(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const one of started.splice(0).reverse()) await one.stop()
})

async function serve(answers: Answer[], provider: object = {}) {
  const vendor = startVendor(...answers)
  started.push(vendor)
  const port = await openPort({
    providers: { acme: { base_url: vendor.url, key: KEY, passthrough_paths: PATHS, ...provider } },
  })
  started.push({ stop: () => port.close() })
  const baseURL = `${port.url.replace(/\/v1$/, '')}/passthrough/acme`
  return { vendor, port, baseURL, client: new OpenAI({ apiKey: port.token, baseURL, maxRetries: 0 }) }
}

async function charged(port: Port): Promise<Json | undefined> {
  while ((await port.gateway.instance.usage({ limit: 1 })).length === 0) await new Promise(setImmediate)
  const { data } = (await (await port.gateway.call('/v1/usage?by=model')).json()) as { data: Json[] }
  return data.find(({ model }) => model === 'passthrough/acme')
}

describe('the openai client at a path by name', () => {
  it('makes, lists page by page, and deletes what has no family here', async () => {
    const store = { id: 'vs_1', object: 'vector_store', name: 'books' }
    const page = (data: Json[], has_more: boolean) =>
      whole({ object: 'list', data, has_more, last_id: data.at(-1)?.id })
    const { client, vendor } = await serve([
      whole(store),
      page([store], true),
      page([{ ...store, id: 'vs_2' }], false),
      whole({ id: 'vs_1', object: 'vector_store.deleted', deleted: true }),
    ])
    expect((await client.vectorStores.create({ name: 'books' })).id).toBe('vs_1')
    const ids: string[] = []
    for await (const { id } of client.vectorStores.list({ limit: 1 })) ids.push(id)
    expect(ids).toEqual(['vs_1', 'vs_2'])
    expect((await client.vectorStores.delete('vs_1')).deleted).toBe(true)
    expect(vendor.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /v1/vector_stores',
      'GET /v1/vector_stores?limit=1',
      'GET /v1/vector_stores?limit=1&after=vs_1',
      'DELETE /v1/vector_stores/vs_1',
    ])
    for (const { headers } of vendor.requests) expect(headers.authorization).toBe(`Bearer ${KEY}`)
  })

  it('sends a form, and reads a file', async () => {
    const bytes = Buffer.from(Array.from({ length: 3_000 }, (_, at) => at % 256))
    const binary: Answer = async (wire) => {
      await wire.write(
        `HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-length: ${bytes.length}\r\n\r\n`,
      )
      await wire.write(bytes)
    }
    const { client, vendor } = await serve([whole({ id: 'part_1', object: 'upload.part' }), binary])
    await client.uploads.parts.create('upload_1', { data: await toFile(bytes, 'a.bin') })
    const { bytes: sent = new Uint8Array(), headers = {} } = vendor.requests[0] ?? {}
    const form = await new Response(new Uint8Array(sent), {
      headers: { 'content-type': headers['content-type'] ?? '' },
    }).formData()
    expect(Buffer.from(await (form.get('data') as File).arrayBuffer())).toEqual(bytes)
    const content = await client.containers.files.content.retrieve('file_1', { container_id: 'c_1' })
    expect(Buffer.from(await content.arrayBuffer())).toEqual(bytes)
  })

  it('reads a stream, which is charged by the usage at its end, once', async () => {
    const { client, port } = await serve([
      stream([chunk({ content: 'Hel' }), chunk({ content: 'lo' }), chunk({}, 'stop'), usageChunk()]),
    ])
    const options = { stream: true, stream_options: { include_usage: true } } as const
    const messages = [{ role: 'user' as const, content: 'Hi' }]
    let text = ''
    for await (const { choices } of await client.chat.completions.create({ model: 'm', messages, ...options })) {
      text += choices[0]?.delta.content ?? ''
    }
    expect(text).toBe('Hello')
    // 9 and 3 tokens, and the price of a request.
    expect(await charged(port)).toMatchObject({ requests: 1, input_tokens: 9, output_tokens: 3, cost: 0.5039 })
  })

  it("throws the vendor's error as it is, and the gateway's for what is not allowed", async () => {
    const { client, vendor } = await serve([
      whole({ error: { message: 'No such store.', code: 'no_store' } }, { status: 422 }),
    ])
    const refused = await client.vectorStores.retrieve('vs_9').catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(OpenAI.UnprocessableEntityError)
    expect(refused).toMatchObject({ status: 422, code: 'no_store' })
    const unknown = await client.fineTuning.jobs.list().catch((error: unknown) => error)
    expect(unknown).toMatchObject({ status: 404, code: 'unknown_url' })
    expect(vendor.requests).toHaveLength(1)
  })
})

it('the Anthropic client sends its own headers, of which the listed ones pass, and the key of the vendor', async () => {
  const { vendor, port, baseURL } = await serve([whole({ data: [], has_more: false, next_page: null })], {
    kind: 'messages-compat',
    passthrough_paths: [
      { path: '/skills', methods: ['GET'], request_headers: ['anthropic-version', 'anthropic-beta'] },
    ],
  })
  const base = new URL(vendor.url).pathname
  const fetchBelow: typeof fetch = Object.assign(
    // The client appends `/v1`, which the address of the provider has already.
    (url: string | URL | Request, init?: RequestInit) => fetch(String(url).replace('/acme/v1', '/acme'), init),
    { preconnect: fetch.preconnect },
  )
  const client = new Anthropic({ apiKey: port.token, baseURL, maxRetries: 0, fetch: fetchBelow })
  for await (const _ of client.beta.skills.list({ betas: ['skills-2025-10-02'] })) throw new Error('There are none.')
  const [{ path = '', headers = {} } = {}] = vendor.requests
  expect(path).toStartWith(`${base}/skills`)
  expect(headers).toMatchObject({ 'x-api-key': KEY, 'anthropic-version': '2023-06-01' })
  expect(headers['anthropic-beta']).toContain('skills')
  expect(JSON.stringify(headers)).not.toContain(port.token)
})
