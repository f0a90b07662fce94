/** The file of a batch is checked while it is uploaded: its problems are known when the batch is created, and its limits hold on both sides. */
import { describe, expect, test } from 'bun:test'
import { chatLine, createBatch, endOf, openai, upload } from './kit/batches.ts'
import { startGateway } from './kit/gateway.ts'

const WRONG = [chatLine('a'), '{"custom_id": ', chatLine('a'), chatLine('b', 'Hello', 'sandbox/unknown')]
const PROBLEMS = [
  [2, 'invalid_json_line', null],
  [3, 'duplicate_custom_id', 'custom_id'],
  [4, 'model_not_found', 'body.model'],
]

describe('a file of purpose batch', () => {
  test('has its problems when its batch is created', async () => {
    await using gateway = await startGateway()
    const client = openai(gateway)
    const batch = await createBatch(client, WRONG)
    expect(batch).toMatchObject({ status: 'failed', request_counts: { total: 4, completed: 0, failed: 0 } })
    expect(batch.failed_at).toBeNumber()
    expect(batch.errors?.data?.map(({ line, code, param }) => [line, code, param])).toEqual(PROBLEMS as never)
    expect(await client.batches.retrieve(batch.id)).toEqual(batch)
    await gateway.instance.batches.idle()
    expect(await client.batches.retrieve(batch.id)).toEqual(batch)
  })

  test('says so itself, whatever stands first in its form', async () => {
    await using gateway = await startGateway()
    const client = openai(gateway)
    const text = WRONG.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n')
    const form = new FormData()
    form.append('purpose', 'batch')
    form.append('file', new File([text], 'wrong.jsonl'))
    const created = (await (await gateway.call('/v1/files', { form })).json()) as { id: string }
    const status_details =
      'A batch of this file would fail. Line 2: This line is not a JSON object. Line 3: The custom_id "a" stands in an earlier line too.'
    expect(created).toMatchObject({ status: 'error', status_details: expect.stringContaining(status_details) })
    const last = await client.files.retrieve(await upload(client, WRONG))
    expect(last).toMatchObject({ status: 'error', status_details: expect.stringContaining(status_details) })
    await upload(client, [chatLine('a')])
    await client.files.create({ file: new File([text], 'data.jsonl'), purpose: 'user_data' })
    const { data } = await client.files.list()
    expect(data.map(({ status, status_details: details }) => [status, details]).sort()).toEqual([
      ['error', undefined],
      ['error', undefined],
      ['processed', undefined],
      ['processed', undefined],
    ])
  })

  test('is read again for another endpoint than its lines have', async () => {
    await using gateway = await startGateway()
    const client = openai(gateway)
    const created = await createBatch(client, WRONG, { endpoint: '/v1/completions' })
    expect(created.status).toBe('validating')
    const batch = await endOf(gateway, client, created.id)
    expect(batch.errors?.data?.map(({ line, code }) => [line, code])).toEqual([
      [1, 'url_mismatch'],
      [2, 'invalid_json_line'],
      [3, 'duplicate_custom_id'],
      [4, 'url_mismatch'],
    ])
  })
})

describe('the limits of a batch', () => {
  const tiny = (count: number) =>
    Array.from(
      { length: count },
      (_, at) =>
        `{"custom_id":"${at}","method":"POST","url":"/v1/chat/completions","body":{"model":"sandbox/general"}}`,
    )

  test('are 50,000 lines', async () => {
    await using gateway = await startGateway()
    const client = openai(gateway)
    const failed = await createBatch(client, tiny(50_001))
    expect(failed).toMatchObject({ status: 'failed', request_counts: { total: 0 } })
    expect(failed.errors?.data).toMatchObject([{ code: 'too_many_tasks', line: null }])
    const { id } = await createBatch(client, tiny(50_000))
    await client.batches.cancel(id)
    const batch = await endOf(gateway, client, id)
    expect(batch).toMatchObject({ status: 'cancelled', request_counts: { total: 50_000 } })
    expect(batch.request_counts?.failed).toBe(50_000)
  }, 180_000)

  test('are 200 MB', async () => {
    await using gateway = await startGateway()
    const MOST = 200 * 1024 * 1024
    const found = []
    for (const size of [MOST, MOST + 1]) {
      const response = await gateway.instance.fetch(formOf(size, gateway.token))
      found.push([response.status, await response.json()])
    }
    expect(found).toMatchObject([
      [200, { bytes: MOST, status: 'processed' }],
      [413, { error: { code: 'request_too_large', param: 'file' } }],
    ])
  }, 180_000)
})

/** A form with a file of this size, made while it is sent: lines of 40 kB. */
function formOf(size: number, token: string): Request {
  const LINE = 40_000
  const head =
    '--b\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--b\r\ncontent-disposition: form-data; name="file"; filename="b.jsonl"\r\n\r\n'
  function* pieces() {
    yield head
    for (let left = size, at = 0; left > 0; at++) {
      const length = left < 2 * LINE ? left : LINE
      const start = `{"custom_id":"${at}","method":"POST","url":"/v1/chat/completions","body":{"model":"sandbox/general","user":"`
      yield `${start}${'x'.repeat(length - start.length - 4)}"}}\n`
      left -= length
    }
    yield '\r\n--b--\r\n'
  }
  const encoder = new TextEncoder()
  const source = pieces()
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const { done, value } = source.next()
      if (done) controller.close()
      else controller.enqueue(encoder.encode(value))
    },
  })
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'multipart/form-data; boundary=b' }
  return new Request('http://gateway.test/v1/files', { method: 'POST', headers, body })
}
