/** Every example of the documentation runs as shown and gets the documented response. */
import { afterAll, expect, test } from 'bun:test'
import { systemClock } from '../src/kit/clock.ts'
import { loadManual } from '../src/site/manual/load-manual.ts'
import { OWNER } from './kit/admin.ts'
import { type Json, readDocument } from './kit/document.ts'
import { startGateway } from './kit/gateway.ts'

const gateway = await startGateway({ admin_token: OWNER }, { clock: systemClock, manual: loadManual })
afterAll(() => gateway[Symbol.asyncDispose]())
const { document, fits } = await readDocument(gateway)

const created = await gateway.call('/v1/conversations', { json: {} })
const { id: conversation }: { id: string } = await created.json()
// The request that the example of POST /v1/feedback names.
await gateway.chat(
  { model: 'sandbox/general', messages: [{ role: 'user', content: 'Hello' }] },
  {
    headers: { 'x-request-id': 'req_0123456789abcdefghijABCD' },
  },
)

const form = new FormData()
form.append('purpose', 'batch')
form.append('file', new File(['{}'], 'a.jsonl'))
const { id: input_file_id }: { id: string } = await (await gateway.call('/v1/files', { form })).json()

const taking = Object.entries(document.paths).flatMap(([path, methods]) => {
  const body = methods.post?.requestBody?.content['application/json']
  const answer = methods.post?.responses[200]?.content?.['application/json']
  return body ? [{ path, schema: body.schema ?? {}, example: body.example, answer: answer?.schema ?? {} }] : []
})

test('every family has an example', () => {
  const texts = ['chat/completions', 'responses', 'messages', 'embeddings', 'rerank', 'moderations']
  const families = [...texts, 'images', '3d', 'video']
  for (const family of families) expect(taking.map(({ path }) => path).join(' ')).toContain(`/v1/${family}`)
})

/** The model of a method that chat models lack. */
const MODELS: Record<string, string> = {
  embedContent: 'embedding',
  batchEmbedContents: 'embedding',
  predict: 'image',
  predictLongRunning: 'text-to-video',
}

test.each(taking)('POST $path', async ({ path, schema, example, answer }) => {
  expect(example).toBeDefined()
  expect(fits(schema, example)).toBe(true)
  // Those that need an object, a one-time link, a person or a configuration file have tests of their own.
  if (
    path.startsWith('/admin/') &&
    (path.includes('{') || /\/(login|credit|provider-drafts\/apply|tools\/approve|mcp\/connections)$/.test(path))
  )
    return
  if (path.endsWith(':fetchPredictOperation')) return
  // The model is in the path only if the family follows from the rest of the path.
  const model = MODELS[path.split(':')[1] ?? ''] ?? 'general'
  const url = path
    .replace('{model}', `sandbox%2F${model}`)
    .replace('{conversation_id}', conversation)
    .replace('/mcp/{server}', '/mcp/sandbox')
  const headers: Record<string, string> = path.startsWith('/admin/') ? { authorization: `Bearer ${OWNER}` } : {}
  const json = { ...(example as Json), ...(path === '/v1/batches' && { input_file_id }) }
  const response = await gateway.call(url, { json, headers })
  if (path === '/v1/audio/speech') {
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'audio/mpeg'])
    return
  }
  const body = await response.json()
  expect([response.status, body.error ?? null]).toEqual([200, null])
  expect(fits(answer, body)).toBe(true)
})
