/** A request for a model that the caller may not use costs no more than reading its body as JSON. */
import { afterAll, beforeAll, describe, expect, it } from 'bun:test'
import { configOf, startGateway, type TestGateway } from './kit/gateway.ts'

/** Each body is also invalid in another place, so an error about the model shows that nothing else was checked before. */
const BODIES: Record<string, (model: string) => [path: string, body: object]> = {
  'chat completions': (model) => ['/v1/chat/completions', { model, messages: 7 }],
  messages: (model) => ['/v1/messages', { model, messages: 7 }],
  responses: (model) => ['/v1/responses', { model, input: 7 }],
  'responses that continue another one': (model) => [
    '/v1/responses',
    { model, input: 'x', previous_response_id: 'resp_unknown' },
  ],
  'responses in the background': (model) => ['/v1/responses', { model, input: 7, background: true }],
  contentgen: (model) => [`/v1beta/models/${model}:generateContent`, { contents: 7 }],
  'contentgen streams': (model) => [`/v1/models/${model}:streamGenerateContent?alt=sse`, { contents: 7 }],
  'counts of messages': (model) => ['/v1/messages/count_tokens', { model, messages: 7 }],
  'counts of responses': (model) => ['/v1/responses/input_tokens', { model, input: 7 }],
  'counts of contents': (model) => [`/v1beta/models/${model}:countTokens`, { contents: 7 }],
  embeddings: (model) => ['/v1/embeddings', { model, input: {} }],
  'contentgen embeddings': (model) => [`/v1beta/models/${model}:embedContent`, { content: 7 }],
  rerank: (model) => ['/v2/rerank', { model, documents: 7 }],
  images: (model) => ['/v1/images/generations', { model, n: 'x' }],
  'images as tasks': (model) => ['/v1/images/generations', { model, n: 'x', async: true }],
  'image edits': (model) => ['/v1/images/edits', { model, image: 7 }],
  videos: (model) => ['/v1/video/generations', { model, duration: 'x' }],
  'chat-compatible videos': (model) => ['/v1/videos', { model, seconds: [] }],
  '3D models': (model) => ['/v1/3d/generations', { model, prompt: [] }],
}

let gateway: TestGateway
let limited: string

beforeAll(async () => {
  gateway = await startGateway()
  const { secret } = await gateway.instance.tokens.issue({ name: 'limited', models: ['sandbox/general'] })
  limited = secret
})
afterAll(() => gateway[Symbol.asyncDispose]())

const textOf = async (path: string, { json, form }: { json?: object; form?: FormData }) => {
  const headers = { authorization: `Bearer ${limited}`, ...(json ? { 'content-type': 'application/json' } : {}) }
  const body = form ?? JSON.stringify(json)
  const response = await gateway.instance.fetch(
    new Request(`http://gatehouse.test${path}`, { method: 'POST', headers, body }),
  )
  return [response.status, await response.text()]
}

for (const [family, bodyOf] of Object.entries(BODIES)) {
  describe(`POST of ${family}`, () => {
    it('answers 403 for a forbidden model before it validates the body', async () => {
      const [path, json] = bodyOf('sandbox/embedding')
      expect(await textOf(path, { json })).toEqual([403, expect.stringContaining('may not use the model')])
    })

    it('answers 404 for an unknown model before it validates the body', async () => {
      const [path, json] = bodyOf('nobody/nothing')
      expect(await textOf(path, { json })).toEqual([404, expect.stringContaining('There is no model')])
    })

    it('validates the body for a model that the caller may use', async () => {
      const [path, json] = bodyOf('sandbox/general')
      const [status] = await textOf(path, { json })
      expect([400, 404]).toContain(status as number)
    })
  })
}

it('reads the model of a form', async () => {
  const form = new FormData()
  form.set('model', 'sandbox/embedding')
  form.set('n', 'x')
  expect(await textOf('/v1/images/edits', { form })).toEqual([403, expect.stringContaining('may not use the model')])
})

it('leaves a model that is not a string to the validation', async () => {
  for (const model of [7, {}, ['sandbox/embedding'], null, undefined]) {
    const [status] = await textOf('/v1/chat/completions', { json: { model, messages: [] } })
    expect(status).toBe(400)
  }
})

it('responds to a repeated order although its model no longer exists', async () => {
  await using before = await startGateway()
  const order = { json: { model: 'sandbox/text-to-video', prompt: 'x' }, headers: { 'idempotency-key': 'key-1' } }
  const first = await before.call('/v1/video/generations', order)
  const { task_id } = (await first.json()) as { task_id: string }
  await before.instance.reload(configOf({ sandbox: false }))
  const again = await before.call('/v1/video/generations', order)
  expect([again.status, ((await again.json()) as { task_id: string }).task_id]).toEqual([200, task_id])
  const another = await before.call('/v1/video/generations', { ...order, headers: { 'idempotency-key': 'key-2' } })
  expect(another.status).toBe(404)
})
