/** `/v1/messages/batches` with Anthropic's SDK: its requests, states and results, against the sandbox. */
import { describe, expect, test } from 'bun:test'
import type Anthropic from '@anthropic-ai/sdk'
import { anthropic, runUntil } from './kit/batches.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'

const request = (custom_id: string, text = 'Hello', model = 'sandbox/general') => ({
  custom_id,
  params: { model, max_tokens: 50, messages: [{ role: 'user' as const, content: text }] },
})

async function ended(gateway: TestGateway, client: Anthropic, id: string) {
  await runUntil(gateway, async () => (await client.messages.batches.retrieve(id)).processing_status === 'ended')
  return client.messages.batches.retrieve(id)
}

async function resultsOf(client: Anthropic, id: string) {
  const results = []
  for await (const result of await client.messages.batches.results(id)) results.push(result)
  return results
}

describe('POST /v1/messages/batches', () => {
  test('executes each request once, and returns the results by custom_id', async () => {
    await using gateway = await startGateway()
    const client = anthropic(gateway)
    const requests = Array.from({ length: 25 }, (_, at) => request(`line-${at}`, `Say ${at}`))
    const created = await client.messages.batches.create({ requests })
    expect(created).toMatchObject({
      type: 'message_batch',
      processing_status: 'in_progress',
      request_counts: { processing: 25, succeeded: 0, errored: 0, canceled: 0, expired: 0 },
      results_url: null,
      ended_at: null,
    })
    const batch = await ended(gateway, client, created.id)
    expect(batch.request_counts).toEqual({ processing: 0, succeeded: 25, errored: 0, canceled: 0, expired: 0 })
    const results = await resultsOf(client, created.id)
    expect(results.map(({ custom_id }) => custom_id).sort()).toEqual(requests.map(({ custom_id }) => custom_id).sort())
    const [first] = results
    expect(first?.result).toMatchObject({ type: 'succeeded', message: { type: 'message', role: 'assistant' } })
  })

  test('returns the error of a request in the form of the Messages API', async () => {
    await using gateway = await startGateway()
    const client = anthropic(gateway)
    const bad = { custom_id: 'bad', params: { ...request('bad').params, messages: 'none' as never } }
    const created = await client.messages.batches.create({ requests: [request('good'), bad] })
    const batch = await ended(gateway, client, created.id)
    expect(batch.request_counts).toMatchObject({ succeeded: 1, errored: 1 })
    const results = await resultsOf(client, created.id)
    expect(results.find(({ custom_id }) => custom_id === 'bad')?.result).toMatchObject({
      type: 'errored',
      error: { type: 'error', error: { type: 'invalid_request_error' } },
    })
  })

  test('is cancelled: requests that were not executed are canceled', async () => {
    await using gateway = await startGateway({ rate_limits: { requests_per_minute: 3 } })
    const client = anthropic(gateway)
    const requests = Array.from({ length: 9 }, (_, at) => request(`line-${at}`))
    const created = await client.messages.batches.create({ requests })
    await gateway.instance.batches.idle()
    const canceled = await client.messages.batches.cancel(created.id)
    expect(canceled.processing_status).toBe('canceling')
    expect(canceled.cancel_initiated_at).not.toBeNull()
    await expect(client.messages.batches.delete(created.id).asResponse()).rejects.toMatchObject({ status: 409 })
    const { request_counts: counts } = await ended(gateway, client, created.id)
    expect(counts.succeeded + counts.canceled).toBe(9)
    expect(counts.canceled).toBeGreaterThan(0)
    const results = await resultsOf(client, created.id)
    expect(results.filter(({ result }) => result.type === 'canceled')).toHaveLength(counts.canceled)
  })

  test('lists in both directions, and is deleted with its results', async () => {
    await using gateway = await startGateway()
    const client = anthropic(gateway)
    const ids: string[] = []
    for (let at = 0; at < 3; at++) {
      ids.unshift((await client.messages.batches.create({ requests: [request('one')] })).id)
      gateway.clock.advance(1_000)
    }
    const found: string[] = []
    for await (const { id } of client.messages.batches.list({ limit: 1 })) found.push(id)
    expect(found).toEqual(ids)
    const [newest = '', , oldest = ''] = ids
    const before = await client.messages.batches.list({ before_id: oldest })
    expect(before.data.map(({ id }) => id)).toEqual(ids.slice(0, 2))
    await ended(gateway, client, newest)
    expect(await client.messages.batches.delete(newest)).toMatchObject({ id: newest, type: 'message_batch_deleted' })
    await expect(client.messages.batches.retrieve(newest).asResponse()).rejects.toMatchObject({ status: 404 })
  })

  test.each([
    ['no requests', '{"requests":[]}', 'invalid_value', 'requests'],
    ['no member', '{"other":[{}]}', 'missing_required_parameter', 'requests'],
    ['an element that is no object', '{"requests":[1]}', 'invalid_value', 'requests[0]'],
    ['a body that is no JSON', '{"requests":[{}}', 'invalid_json', undefined],
    ['a body that ends early', `{"requests":[${JSON.stringify(request('a'))}`, 'invalid_json', undefined],
    [
      'a custom_id twice',
      JSON.stringify({ requests: [request('a'), request('a')] }),
      'invalid_value',
      'requests[1].custom_id',
    ],
    [
      'a stream',
      JSON.stringify({ requests: [{ custom_id: 'a', params: { ...request('a').params, stream: true } }] }),
      'invalid_value',
      'requests[0].params.stream',
    ],
    [
      'an unknown model',
      JSON.stringify({ requests: [request('a', 'Hello', 'sandbox/none')] }),
      'model_not_found',
      'requests[0].params.model',
    ],
  ])('rejects %s', async (_, body, code, param) => {
    await using gateway = await startGateway()
    const response = await gateway.instance.fetch(
      new Request('http://gateway.test/v1/messages/batches', {
        method: 'POST',
        headers: { 'x-api-key': gateway.token, 'content-type': 'application/json' },
        body,
      }),
    )
    const { error } = (await response.json()) as { error: { details: { error_code: string; param?: string } } }
    expect(error.details).toEqual({ error_code: code, ...(param !== undefined && { param }) })
    expect((await anthropic(gateway).messages.batches.list()).data).toEqual([])
  })
})
