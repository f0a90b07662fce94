/** No text of operators, clients or providers in a response header makes a paid response fail. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { headerValue } from '../src/kit/header-value.ts'
import { hostileString } from './kit/bodies.ts'
import { startGateway } from './kit/gateway.ts'

const NAMES = ['modèle-suivant', '模型', 'a\r\nset-cookie: x', '😀', '\ud800', ' ', '100%', 'x'.repeat(3_000)]
const name = fc
  .oneof(fc.constantFrom(...NAMES), hostileString, fc.string({ unit: 'binary', minLength: 1 }))
  .filter((text) => text !== '')

const FAMILIES: Record<
  string,
  { served: string; families: string[]; body(model: string): unknown; path(model: string): string }
> = {
  chat: {
    served: 'general',
    families: ['chatcompat'],
    path: () => '/v1/chat/completions',
    body: (model) => ({ model, messages: [{ role: 'user', content: 'x' }], max_tokens: 1 }),
  },
  stream: {
    served: 'general',
    families: ['chatcompat'],
    path: () => '/v1/chat/completions',
    body: (model) => ({ model, messages: [{ role: 'user', content: 'x' }], max_tokens: 1, stream: true }),
  },
  messages: {
    served: 'general',
    families: ['messages-compat'],
    path: () => '/v1/messages',
    body: (model) => ({ model, max_tokens: 1, messages: [{ role: 'user', content: 'x' }] }),
  },
  count: {
    served: 'general',
    families: ['messages-compat'],
    path: () => '/v1/messages/count_tokens',
    body: (model) => ({ model, messages: [{ role: 'user', content: 'x' }] }),
  },
  responses: {
    served: 'general',
    families: ['chatcompat-response'],
    path: () => '/v1/responses',
    body: (model) => ({ model, input: 'x', max_output_tokens: 16, store: false }),
  },
  background: {
    served: 'general',
    families: ['chatcompat-response'],
    path: () => '/v1/responses',
    body: (model) => ({ model, input: 'x', max_output_tokens: 16, background: true }),
  },
  embeddings: {
    served: 'embedding',
    families: ['embeddings'],
    path: () => '/v1/embeddings',
    body: (model) => ({ model, input: 'x' }),
  },
  rerank: {
    served: 'rerank',
    families: ['rerank'],
    path: () => '/v1/rerank',
    body: (model) => ({ model, query: 'x', documents: ['x'] }),
  },
  moderations: {
    served: 'moderation',
    families: ['moderations'],
    path: () => '/v1/moderations',
    body: (model) => ({ model, input: 'x' }),
  },
  contentgen: {
    served: 'general',
    families: ['contentgen-compat'],
    path: (model) => `/v1beta/models/${encodeURIComponent(model.toWellFormed())}:generateContent`,
    body: () => ({ contents: [{ parts: [{ text: 'x' }] }] }),
  },
  video: {
    served: 'text-to-video',
    families: ['video-generation'],
    path: () => '/v1/video/generations',
    body: (model) => ({ model, prompt: 'x' }),
  },
  image: {
    served: 'image',
    families: ['image-generation'],
    path: () => '/v1/images/generations',
    body: (model) => ({ model, prompt: 'x', size: '256x256' }),
  },
}

const names = [...new Set([...NAMES, ...fc.sample(name, { seed: 42, numRuns: 30 })])]

/** All names as successors in one gateway: each of a deprecated model and of a retired one that redirects. */
async function gatewayFor({ served, families }: (typeof FAMILIES)[string]) {
  const model = (more: object) => ({ families, targets: [{ provider: 'sandbox', model: served }], ...more })
  const entries = names.flatMap((replaced_by, at): [string, object][] => [
    [`deprecated/${at}`, model({ status: 'deprecated', deprecated_at: 1, retired_at: 32_503_680_000, replaced_by })],
    [`retired/${at}`, model({ status: 'retired', when_retired: 'redirect', replaced_by })],
    [replaced_by, model({})],
  ])
  return await startGateway({ models: Object.fromEntries(entries) as never })
}

for (const [family, described] of Object.entries(FAMILIES)) {
  test(`${family}: any successor is named in a header, and the call succeeds`, async () => {
    await using gateway = await gatewayFor(described)
    const { path, body } = described
    for (const [at, name] of names.entries()) {
      for (const model of [`deprecated/${at}`, `retired/${at}`]) {
        const response = await gateway.call(path(model), { json: body(model) })
        const text = await response.text()
        expect([name, response.status, text.includes('internal_error')]).toEqual([name, 200, false])
        expect(response.headers.get('link')).toContain('successor-version')
        expect(response.headers.get('set-cookie')).toBeNull()
        const served = response.headers.get('x-model-served')
        expect(served).toBe(model.startsWith('retired') ? headerValue(name).trim() : null)
      }
    }
  })
}

test('no model name that a client sends causes a 500', async () => {
  await using gateway = await startGateway()
  await fc.assert(
    fc.asyncProperty(name, fc.constantFrom(...Object.keys(FAMILIES)), async (model, family) => {
      const { path, body } = FAMILIES[family] ?? (FAMILIES.chat as never)
      const response = await gateway.call(path(model), { json: body(model) })
      expect(response.status).toBeLessThan(500)
      expect(await response.text()).not.toContain('internal_error')
    }),
    { numRuns: 200 },
  )
})
