/** The header that warns of a misspelt field, in every API that takes a JSON body. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { startGateway, type TestGateway } from './kit/gateway.ts'

const HEADER = 'x-gatehouse-warning'
let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway[Symbol.asyncDispose]())

const messages = [{ role: 'user', content: 'Hello' }]
const contents = [{ role: 'user', parts: [{ text: 'Hello' }] }]

describe('a misspelt field is named in a header by', () => {
  test.each([
    ['/v1/chat/completions', { model: 'sandbox/general', messages, temprature: 1 }, 'temperature'],
    ['/v1/chat/completions', { model: 'sandbox/general', messages, stream: true, temprature: 1 }, 'temperature'],
    ['/v1/completions', { model: 'sandbox/general', prompt: 'Hello', temprature: 1 }, 'temperature'],
    ['/v1/responses', { model: 'sandbox/general', input: 'Hello', temprature: 1 }, 'temperature'],
    ['/v1/responses', { model: 'sandbox/general', input: 'Hello', background: true, temprature: 1 }, 'temperature'],
    ['/v1/messages', { model: 'sandbox/general', max_tokens: 9, messages, stop_sequence: ['a'] }, 'stop_sequences'],
    ['/v1/messages/count_tokens', { model: 'sandbox/general', messages, sistem: 'a' }, 'system'],
    ['/v1beta/models/sandbox/general:generateContent', { contents, generation_confg: {} }, 'generation_config'],
    ['/v1beta/models/sandbox/general:generateContent', { contents, generationConfg: {} }, 'generationConfig'],
    ['/v1/embeddings', { model: 'sandbox/embedding', input: 'Hello', dimension: 64 }, 'dimensions'],
    ['/v1/rerank', { model: 'sandbox/rerank', query: 'a', documents: ['b'], topn: 1 }, 'top_n'],
    ['/v1/moderations', { input: 'Hello', modle: 'sandbox/moderation' }, 'model'],
    ['/v1/images/generations', { model: 'sandbox/image', prompt: 'A tree', sise: '1024x1024' }, 'size'],
    ['/v1/video/generations', { model: 'sandbox/text-to-video', prompt: 'A kite', duratoin: 4 }, 'duration'],
    ['/v1/videos', { model: 'sandbox/text-to-video', prompt: 'A kite', second: '4' }, 'seconds'],
    ['/v1/3d/generations', { model: 'sandbox/text-to-3d', prompt: 'A pot', formt: 'glb' }, 'format'],
  ])('POST %s', async (path, json, meant) => {
    const response = await gateway.call(path, { json })
    expect(response.headers.get(HEADER)).toContain(`did you mean "${meant}"?`)
    expect(response.status).toBeLessThan(300)
    await response.text()
  })
})

test.each([
  ['/v1/chat/completions', { model: 'sandbox/general', mesages: messages }, 'messages'],
  [
    '/v1/batches',
    { input_file_id: 'file-1', endpoint: '/v1/embeddings', completion_windw: '24h' },
    'completion_window',
  ],
])('an error of %s names it too, as where a required field is misspelt', async (path, json, meant) => {
  const response = await gateway.call(path, { json })
  expect(response.status).toBe(400)
  expect(response.headers.get(HEADER)).toContain(`did you mean "${meant}"?`)
})

test('a request without unknown fields gets no such header', async () => {
  const response = await gateway.call('/v1/chat/completions', { json: { model: 'sandbox/general', messages } })
  expect(response.headers.has(HEADER)).toBe(false)
})
