/** `/v1/batches` with OpenAI's SDK: states, results, problems, cancellation, expiry, limits and revoked tokens. */
import { describe, expect, test } from 'bun:test'
import { DEFAULT_METRICS, DEFAULT_TASKS } from '../src/config/config.ts'
import { chatLine, createBatch, endOf, openai, resultsOf, runUntil, upload } from './kit/batches.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'

/** In the ledger. */
const requestsOf = async (gateway: TestGateway) =>
  (await gateway.instance.usage({ limit: 100 })).reduce((sum, { requests }) => sum + requests, 0)

const lines = (count: number) => Array.from({ length: count }, (_, at) => chatLine(`line-${at}`, `Say ${at}`))

describe('POST /v1/batches', () => {
  test('executes each line once and returns the results in a file', async () => {
    await using gateway = await startGateway()
    const client = openai(gateway)
    const created = await createBatch(client, lines(30), { metadata: { run: '7' } })
    expect(created).toMatchObject({
      object: 'batch',
      status: 'validating',
      metadata: { run: '7' },
      output_file_id: null,
    })
    const batch = await endOf(gateway, client, created.id)
    expect(batch).toMatchObject({
      status: 'completed',
      model: 'sandbox/general',
      request_counts: { total: 30, completed: 30, failed: 0 },
      error_file_id: null,
      errors: null,
    })
    expect(batch.usage?.output_tokens).toBeGreaterThan(0)
    const results = await resultsOf(client, batch.output_file_id)
    expect(results.map(({ custom_id }) => custom_id).sort()).toEqual(
      lines(30)
        .map(({ custom_id }) => custom_id)
        .sort(),
    )
    expect(results[0]).toMatchObject({
      response: { status_code: 200, body: { object: 'chat.completion' } },
      error: null,
    })
    const file = await client.files.retrieve(batch.output_file_id ?? '')
    expect(file).toMatchObject({ purpose: 'batch_output', filename: `${batch.id}_output.jsonl` })
    await runUntil(gateway, async () => {
      await new Promise((resolve) => setTimeout(resolve, 5))
      return (await requestsOf(gateway)) >= 30
    })
    expect(await requestsOf(gateway)).toBe(30)
  })

  test('puts requests that fail into the error file, and the others into the output file', async () => {
    await using gateway = await startGateway()
    const client = openai(gateway)
    const bad = { ...chatLine('bad'), body: { model: 'sandbox/general', messages: 'none' } }
    const created = await createBatch(client, [chatLine('good'), bad])
    const batch = await endOf(gateway, client, created.id)
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 2, completed: 1, failed: 1 } })
    const [error] = await resultsOf(client, batch.error_file_id)
    expect(error).toMatchObject({
      custom_id: 'bad',
      response: { status_code: 400, body: { error: { param: 'messages' } } },
      error: null,
    })
    expect(await resultsOf(client, batch.output_file_id)).toHaveLength(1)
  })

  test('fails with the line of each problem, and executes nothing', async () => {
    await using gateway = await startGateway()
    const client = openai(gateway)
    const created = await createBatch(client, [
      chatLine('a'),
      '{"custom_id": ',
      chatLine('a'),
      { ...chatLine('b'), url: '/v1/embeddings' },
      { ...chatLine('c'), method: 'GET' },
      { ...chatLine('d'), body: { ...chatLine('d').body, stream: true } },
      chatLine('e', 'Hello', 'sandbox/unknown'),
      { ...chatLine('f'), custom_id: undefined },
      chatLine('x'.repeat(129)),
      { custom_id: 'g', method: 'POST', url: '/v1/chat/completions' },
    ])
    const batch = await endOf(gateway, client, created.id)
    expect(batch).toMatchObject({ status: 'failed', output_file_id: null, request_counts: { total: 10, completed: 0 } })
    expect(batch.errors?.data?.map(({ line, code, param }) => [line, code, param])).toEqual([
      [2, 'invalid_json_line', null],
      [3, 'duplicate_custom_id', 'custom_id'],
      [4, 'url_mismatch', 'url'],
      [5, 'invalid_value', 'method'],
      [6, 'invalid_value', 'body.stream'],
      [7, 'model_not_found', 'body.model'],
      [8, 'missing_required_parameter', 'custom_id'],
      [9, 'invalid_value', 'custom_id'],
      [10, 'missing_required_parameter', 'body'],
    ])
    expect(await gateway.instance.usage({ limit: 10 })).toEqual([])
  })

  test('executes the lines of a file with a byte order mark', async () => {
    await using gateway = await startGateway()
    const client = openai(gateway)
    const created = await createBatch(client, [`\uFEFF${JSON.stringify(chatLine('a'))}`, chatLine('b')])
    const batch = await endOf(gateway, client, created.id)
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 2, completed: 2 } })
  })

  test('a line that cannot be read when it is called ends with an error, and the others are executed', async () => {
    await using gateway = await startGateway()
    const client = openai(gateway)
    const numbers = `[${Array.from({ length: 100_001 }, () => '1.0').join()}]`
    const odd = JSON.stringify(chatLine('a')).replace(
      '"max_tokens":20',
      `"max_tokens":20,"x":[12345678901234567890],"y":${numbers}`,
    )
    const created = await createBatch(client, [odd, chatLine('b')])
    const batch = await endOf(gateway, client, created.id)
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 2, completed: 1, failed: 1 } })
    expect(await resultsOf(client, batch.error_file_id)).toMatchObject([
      { custom_id: 'a', error: { code: 'invalid_json' } },
    ])
  })

  test('names the first 100 problems', async () => {
    await using gateway = await startGateway()
    const client = openai(gateway)
    const created = await createBatch(
      client,
      Array.from({ length: 120 }, () => '[]'),
    )
    const batch = await endOf(gateway, client, created.id)
    expect(batch.errors?.data).toHaveLength(100)
    expect(batch.errors?.data?.at(-1)?.line).toBe(100)
  })

  test('rejects an unknown endpoint, a missing file and a file of another purpose', async () => {
    await using gateway = await startGateway()
    const client = openai(gateway)
    const input_file_id = await upload(client, lines(1))
    const create = (more: object) =>
      client.batches
        .create({ input_file_id, endpoint: '/v1/chat/completions', completion_window: '24h', ...more })
        .then(
          () => 'created',
          ({ code, param }) => `${code} ${param}`,
        )
    expect(await create({ endpoint: '/v1/videos' })).toBe('invalid_value endpoint')
    expect(await create({ completion_window: '1h' })).toBe('invalid_value completion_window')
    expect(await create({ input_file_id: 'file-none' })).toBe('file_not_found null')
    const other = await client.files.create({ file: new File(['x'], 'x.txt'), purpose: 'user_data' })
    expect(await create({ input_file_id: other.id })).toBe('invalid_value input_file_id')
  })

  test('takes embeddings, responses, completions, moderations and images', async () => {
    await using gateway = await startGateway()
    const client = openai(gateway)
    const bodies = {
      '/v1/embeddings': { model: 'sandbox/embedding', input: 'Hello' },
      '/v1/responses': { model: 'sandbox/general', input: 'Hello' },
      '/v1/completions': { model: 'sandbox/general', prompt: 'Hello' },
      '/v1/moderations': { input: 'Hello' },
      '/v1/images/generations': { model: 'sandbox/image', prompt: 'A boat', response_format: 'b64_json' },
    }
    for (const [url, body] of Object.entries(bodies)) {
      const created = await createBatch(client, [{ custom_id: 'one', method: 'POST', url, body }], { endpoint: url })
      const batch = await endOf(gateway, client, created.id)
      expect({ url, errors: batch.errors, counts: batch.request_counts }).toMatchObject({
        url,
        errors: null,
        counts: { total: 1, completed: 1, failed: 0 },
      })
    }
  })

  test('lists the batches of the token, page by page, and no other token sees them', async () => {
    await using gateway = await startGateway()
    const client = openai(gateway)
    const ids: string[] = []
    for (let at = 0; at < 5; at++) {
      ids.unshift((await createBatch(client, lines(1))).id)
      gateway.clock.advance(1_000)
    }
    const found: string[] = []
    for await (const { id } of client.batches.list({ limit: 2 })) found.push(id)
    expect(found).toEqual(ids)
    const { secret } = await gateway.instance.tokens.issue({ name: 'other' })
    const other = openai(gateway, { apiKey: secret })
    expect((await other.batches.list()).data).toEqual([])
    const [id = ''] = ids
    await expect(other.batches.retrieve(id).asResponse()).rejects.toMatchObject({
      status: 404,
      code: 'batch_not_found',
    })
    await expect(other.batches.cancel(id).asResponse()).rejects.toMatchObject({ status: 404 })
  })

  test('a token may have so many batches that have not ended, and one more when one has', async () => {
    await using gateway = await startGateway({
      rate_limits: { requests_per_minute: 1 },
      batches: { concurrency: 1, max_unfinished: 1, keep_days: 1 },
    })
    const client = openai(gateway)
    const first = await createBatch(client, lines(3))
    await expect(createBatch(client, lines(1))).rejects.toMatchObject({ status: 429, code: 'rate_limit_exceeded' })
    await endOf(gateway, client, first.id)
    expect((await createBatch(client, lines(1))).status).toBe('validating')
  })
})

describe('a batch that does not complete', () => {
  /** A model whose provider always asks to come again later, so that its lines wait. */
  const waiting = { rate_limits: { requests_per_minute: 3 } }

  test('is cancelled with the results so far; the other lines are in the error file', async () => {
    await using gateway = await startGateway(waiting)
    const client = openai(gateway)
    const created = await createBatch(client, lines(10))
    await runUntil(
      gateway,
      async () => ((await client.batches.retrieve(created.id)).request_counts?.completed ?? 0) >= 2,
    )
    expect((await client.batches.cancel(created.id)).status).toBe('cancelling')
    const batch = await endOf(gateway, client, created.id)
    const { completed = 0, failed = 0 } = batch.request_counts ?? {}
    expect(batch.status).toBe('cancelled')
    expect(completed).toBeGreaterThanOrEqual(2)
    expect(completed + failed).toBe(10)
    expect(await resultsOf(client, batch.output_file_id)).toHaveLength(completed)
    const errors = await resultsOf(client, batch.error_file_id)
    expect(new Set(errors.map(({ error }) => error?.code))).toEqual(new Set(['batch_cancelled']))
    expect(await client.batches.cancel(created.id)).toMatchObject({ status: 'cancelled' })
  })

  test('says why it waits, and expires after its window with the results so far', async () => {
    await using gateway = await startGateway({ rate_limits: { requests_per_day: 4 } })
    const client = openai(gateway)
    const created = await createBatch(client, lines(10))
    await runUntil(gateway, async () => 'waiting' in (await client.batches.retrieve(created.id)))
    expect(await client.batches.retrieve(created.id)).toMatchObject({ waiting: { code: 'rate_limit_exceeded' } })
    gateway.clock.advance(86_400_000)
    const batch = await endOf(gateway, client, created.id)
    expect(batch.status).toBe('expired')
    const { completed = 0, failed = 0 } = batch.request_counts ?? {}
    expect(completed + failed).toBe(10)
    const errors = await resultsOf(client, batch.error_file_id)
    expect(errors.every(({ error, response }) => error?.code === 'batch_expired' && response === null)).toBe(true)
  })

  test('stops when its token is revoked', async () => {
    await using gateway = await startGateway(waiting)
    const { secret, token } = await gateway.instance.tokens.issue({ name: 'revoked' })
    const client = openai(gateway, { apiKey: secret })
    const created = await createBatch(client, lines(10))
    await runUntil(
      gateway,
      async () => ((await client.batches.retrieve(created.id)).request_counts?.completed ?? 0) >= 2,
    )
    await gateway.instance.tokens.revoke(token.token_id)
    for (let round = 0; round < 100; round++) {
      gateway.clock.advance(5_000)
      await gateway.instance.batches.idle()
    }
    expect(await requestsOf(gateway)).toBeLessThanOrEqual(3)
  })

  test('leaves a fifth of a rate limit to the other calls of its token', async () => {
    await using gateway = await startGateway({
      rate_limits: { requests_per_minute: 20 },
      batches: { concurrency: 1, max_unfinished: 5, keep_days: 1 },
    })
    const client = openai(gateway)
    const created = await createBatch(client, lines(40))
    await gateway.instance.batches.idle()
    const { completed = 0 } = (await client.batches.retrieve(created.id)).request_counts ?? {}
    expect(completed).toBe(17)
    expect((await gateway.chat({ model: 'sandbox/general', messages: [{ role: 'user', content: 'Hi' }] })).status).toBe(
      200,
    )
  })
})

describe('dry_run', () => {
  const models = (more: object) => ({
    sandbox: false,
    providers: { acme: { kind: 'chatcompat' as const, base_url: 'http://127.0.0.1:1/v1', key: 'k' } },
    models: { 'acme/chat': { families: ['chatcompat' as const], prices: { input: 1, output: 10, ...more } } },
  })
  type Estimate = { cost: { lowest: number | null; highest: number | null }; usage: { most_output_tokens: number } }

  test('estimates usage and cost and names the problems, and creates nothing', async () => {
    await using gateway = await startGateway(models({ service_tiers: { batch: 0.5 } }))
    const client = openai(gateway)
    const good = Array.from({ length: 4 }, (_, at) => chatLine(`line-${at}`, 'Say', 'acme/chat'))
    const found = (await createBatch(client, [...good, '[]'], { dry_run: true })) as unknown as Estimate
    expect(found).toMatchObject({
      object: 'batch.estimate',
      request_counts: { total: 5, invalid: 1 },
      errors: { data: [{ line: 5, code: 'invalid_json_line' }] },
      usage: { most_output_tokens: 80 },
      cost: { currency: 'USD' },
    })
    const { lowest, highest } = found.cost
    // The output alone: 4 lines of 20 tokens at 10 for a million.
    expect(highest).toBeGreaterThanOrEqual(0.0008)
    expect(lowest).toBeGreaterThan(0)
    expect(lowest).toBeLessThan(highest ?? 0)
    expect((await client.batches.list()).data).toEqual([])
    expect(await gateway.instance.usage({ limit: 10 })).toEqual([])
  })

  test('is more than the first thousand lines by the length of the others', async () => {
    await using gateway = await startGateway(models({}))
    const client = openai(gateway)
    const many = Array.from({ length: 2_000 }, (_, at) => chatLine(`line-${1_000 + at}`, 'Say', 'acme/chat'))
    const found = (await createBatch(client, many, { dry_run: true })) as unknown as Estimate
    expect(found.usage.most_output_tokens).toBe(40_000)
  })
})

describe('the end of a batch', () => {
  test('is told to its callback_url, signed, once', async () => {
    const received: { headers: Headers; event: { type: string; data: { id: string; status: string } } }[] = []
    const receiver = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      async fetch(request) {
        received.push({ headers: request.headers, event: (await request.json()) as (typeof received)[0]['event'] })
        return new Response()
      },
    })
    const origin = `http://127.0.0.1:${receiver.port}`
    await using gateway = await startGateway({ tasks: { ...DEFAULT_TASKS, callback_origins: [origin] } })
    const client = openai(gateway)
    const completed = await createBatch(client, lines(2), { callback_url: `${origin}/done` })
    const failed = await createBatch(client, ['[]'], { callback_url: `${origin}/done` })
    await endOf(gateway, client, completed.id)
    await endOf(gateway, client, failed.id)
    await runUntil(gateway, async () => {
      await gateway.instance.webhooks.idle()
      return received.length >= 2
    })
    gateway.clock.advance(3_600_000)
    await gateway.instance.webhooks.idle()
    const ends = received.map(({ event: { type, data } }) => [data.id, type, data.status])
    expect(ends.sort()).toEqual(
      [
        [completed.id, 'batch.completed', 'completed'],
        [failed.id, 'batch.failed', 'failed'],
      ].sort(),
    )
    expect(received[0]?.headers.get('webhook-signature')).toStartWith('v1,')
    await receiver.stop(true)
  })

  test('cannot be told to a private address that the operator does not allow', async () => {
    await using gateway = await startGateway()
    const refused = createBatch(openai(gateway), lines(1), { callback_url: 'http://127.0.0.1:1/done' })
    expect(await refused.catch(({ status, param }) => [status, param])).toEqual([400, 'callback_url'])
  })
})

test('metrics tell how many batches have not ended', async () => {
  await using gateway = await startGateway({ metrics: { ...DEFAULT_METRICS, enabled: true } })
  await createBatch(openai(gateway), lines(1))
  const text = await (await gateway.call('/metrics')).text()
  expect(text).toMatch(/gatehouse_batches_unfinished\{.*status="(validating|in_progress|finalizing)".*\} 1/)
  expect(text).toMatch(/gatehouse_batch_calls(\{.*\})? [01]/)
})
