/** The sandbox simulates a vendor with batches: a model with `batch: native` works without a key. */
import { expect, test } from 'bun:test'
import { streamOf } from '../src/kit/stream-of.ts'
import { createSimulatedBatches } from '../src/providers/batches/simulated-batches.ts'
import { createLazySandbox, simulatedErrors } from '../src/providers/sandbox.ts'
import { chatLine, createBatch, endOf, openai, resultsOf, runUntil } from './kit/batches.ts'
import { manualClock } from './kit/clock.ts'
import { startGateway } from './kit/gateway.ts'

const MODELS = {
  'sandbox/ordered': { targets: [{ provider: 'sandbox', model: 'general' }], batch: 'native' as const },
  'sandbox/vectors': {
    targets: [{ provider: 'sandbox', model: 'embedding' }],
    families: ['embeddings' as const],
    batch: 'native' as const,
  },
}

test('a simulated order ends after some seconds, with one result for each line', async () => {
  await using gateway = await startGateway({ models: MODELS })
  const client = openai(gateway)
  const lines = ['plain', '@sandbox status=503'].map((text, at) => chatLine(`line-${at}`, text, 'sandbox/ordered'))
  const { id } = await createBatch(client, lines)
  await gateway.instance.batches.idle()
  expect((await client.batches.retrieve(id)).status).toBe('in_progress')
  const batch = await endOf(gateway, client, id)
  expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 2, completed: 1, failed: 1 } })
  const [plain] = await resultsOf(client, batch.output_file_id)
  const response = { status_code: 200, body: { model: 'sandbox/ordered', object: 'chat.completion' } }
  expect(plain).toMatchObject({ custom_id: 'line-0', response })
  const [error] = await resultsOf(client, batch.error_file_id)
  expect(error).toMatchObject({ custom_id: 'line-1', response: { status_code: 503 } })
})

test('embeddings are lines of simulated orders too, and an order that is cancelled has no results', async () => {
  await using gateway = await startGateway({ models: MODELS })
  const client = openai(gateway)
  const line = { custom_id: 'a', method: 'POST', url: '/v1/embeddings', body: { model: 'sandbox/vectors', input: 'A' } }
  const endpoint = { endpoint: '/v1/embeddings' }
  const ended = await endOf(gateway, client, (await createBatch(client, [line], endpoint)).id)
  const [result] = await resultsOf(client, ended.output_file_id)
  expect(result?.response?.body).toMatchObject({ object: 'list', data: [{ object: 'embedding', index: 0 }] })
  const { id } = await createBatch(client, [line], endpoint)
  await gateway.instance.batches.idle()
  await client.batches.cancel(id)
  await runUntil(gateway, async () => (await client.batches.retrieve(id)).status === 'cancelled')
  const [error] = await resultsOf(client, (await client.batches.retrieve(id)).error_file_id)
  expect(error).toMatchObject({ custom_id: 'a', error: { code: 'batch_cancelled' } })
})

test('a line that hangs expires after a second', async () => {
  const clock = manualClock()
  const { batches, asLines } = createSimulatedBatches({
    clock,
    errors: simulatedErrors({ id: 'sandbox', clock }),
    load() {},
  })
  asLines('/chat', (_: { model: string }, signal) => {
    const { promise, reject } = Promise.withResolvers<never>()
    signal.addEventListener('abort', () => reject(signal.reason))
    return promise
  })
  const line = Buffer.from(`${batches.line({ id: 'm_1', path: '/chat', body: '{"model":"general"}' })}\n`)
  async function* bytes() {
    yield line.subarray(0, 9)
    yield line.subarray(9)
  }
  const { signal } = new AbortController()
  const result = batches.results('sandbox-m-0', signal, async () => streamOf(bytes())).next()
  let isRead = false
  void result.then(() => {
    isRead = true
  })
  while (!isRead) {
    await new Promise((resolve) => setImmediate(resolve))
    clock.advance(100)
  }
  expect((await result).value).toMatchObject({ id: 'm_1', is: 'not executed', why: 'expired' })
})

test('an order is executed by a gateway that was started after its creation', async () => {
  const { batches } = createLazySandbox({
    id: 'sandbox',
    clock: manualClock(),
    manual: async () => [],
    media: undefined,
  })
  const body = JSON.stringify({ model: 'general', request: { messages: [{ role: 'user', content: 'Hi' }] } })
  async function* bytes() {
    yield Buffer.from(`${batches?.line({ id: 'm_1', path: '/chat', body })}\n`)
  }
  const results = batches?.results('sandbox-m_-0', new AbortController().signal, async () => streamOf(bytes()))
  expect((await results?.next())?.value).toMatchObject({ id: 'm_1', is: 'answered', status: 200 })
})
