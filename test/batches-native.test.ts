/** Batches of vendors: each line is executed by them once, translated, charged at their price for batches. */
import { describe, expect, test } from 'bun:test'
import { startBatchVendor } from './kit/batch-vendor.ts'
import { anthropic, chatLine, createBatch, endOf, openai, resultsOf, runUntil } from './kit/batches.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'

const PRICES = { input: 2, output: 4, service_tiers: { batch: 0.5 } }
const lines = (count: number, model = 'acme/chat') =>
  Array.from({ length: count }, (_, at) => chatLine(`line-${at}`, `Say ${at}`, model))

type Kind = 'chatcompat' | 'messages-compat' | 'contentgen-compat' | 'azure'
const PATHS: Partial<Record<Kind, string>> = { chatcompat: '/v1', azure: '/openai' }

const start = (vendor: { url: string }, kind: Kind = 'chatcompat', more: object = {}) =>
  startGateway({
    sandbox: false,
    providers: { acme: { kind, base_url: `${vendor.url}${PATHS[kind] ?? ''}`, key: 'acme-key' } },
    models: {
      'acme/chat': { families: ['chatcompat', 'messages-compat'], batch: 'native', prices: PRICES },
      'acme/other': { families: ['chatcompat'], batch: 'native', prices: PRICES },
      'acme/plain': { families: ['chatcompat'], prices: PRICES },
    },
    ...more,
  })

/** Of the ledger, once so many requests are in it. */
async function totalsOf(gateway: TestGateway, requests: number) {
  type Sum = { requests: number; cost: number; errors: number }
  const { from, to } = { from: 0, to: Math.floor(gateway.clock.now() / 1000) + 86_400 * 3 }
  const read = async () => {
    const { data } = (await (await gateway.call(`/v1/usage?from=${from}&to=${to}`)).json()) as { data: Sum[] }
    return data[0] ?? { requests: 0, cost: 0, errors: 0 }
  }
  await runUntil(gateway, async () => {
    await new Promise((resolve) => setTimeout(resolve, 5))
    return (await read()).requests >= requests
  })
  const { requests: counted, cost, errors } = await read()
  return { requests: counted, cost, errors }
}

describe('a model with batch: native', () => {
  test.each<[Kind]>([['chatcompat'], ['messages-compat'], ['contentgen-compat'], ['azure']])(
    'has its lines executed by one batch of %s',
    async (kind) => {
      await using vendor = startBatchVendor()
      await using gateway = await start(vendor, kind)
      const client = openai(gateway)
      const created = await createBatch(client, lines(30))
      const batch = await endOf(gateway, client, created.id)
      expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 30, completed: 30, failed: 0 } })
      expect(batch.usage).toMatchObject({ input_tokens: 300, output_tokens: 150 })
      const results = await resultsOf(client, batch.output_file_id)
      expect(results).toHaveLength(30)
      const seventh = results.find(({ custom_id }) => custom_id === 'line-7')
      expect(seventh?.response?.body).toMatchObject({
        object: 'chat.completion',
        model: 'acme/chat',
        choices: [{ message: { content: 're: Say 7' }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 10, completion_tokens: 5 },
      })
      expect([vendor.created(), vendor.calls(), vendor.executed.size]).toEqual([1, 0, 30])
      expect([...vendor.executed.values()].every((times) => times === 1)).toBe(true)
      const totals = await totalsOf(gateway, 30)
      // Half of 30 times 10 tokens at 2 and 5 at 4 for a million.
      expect(totals).toEqual({ requests: 30, cost: 0.0006, errors: 0 })
    },
  )

  test('asks a guard about each request once, and about each answer', async () => {
    const asked: string[] = []
    using service = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      async fetch(request) {
        const { on, texts } = (await request.json()) as { on: string; texts: string[] }
        asked.push(`${on}: ${texts.join()}`)
        return Response.json({ action: 'pass' })
      },
    })
    await using vendor = startBatchVendor()
    const url = `http://127.0.0.1:${service.port}/`
    await using gateway = await start(vendor, 'chatcompat', { guards: { house: { kind: 'webhook', url, when: {} } } })
    const client = openai(gateway)
    const batch = await endOf(gateway, client, (await createBatch(client, lines(2))).id)
    expect(batch).toMatchObject({ status: 'completed', request_counts: { completed: 2, failed: 0 } })
    expect(asked.sort()).toEqual(['input: Say 0', 'input: Say 1', 'output: re: Say 0', 'output: re: Say 1'])
  })

  test('serves message batches too', async () => {
    await using vendor = startBatchVendor()
    await using gateway = await start(vendor, 'messages-compat')
    const client = anthropic(gateway)
    const requests = ['a', 'b'].map((custom_id) => ({
      custom_id,
      params: {
        model: 'acme/chat',
        max_tokens: 20,
        messages: [{ role: 'user' as const, content: `Say ${custom_id}` }],
      },
    }))
    const { id } = await client.messages.batches.create({ requests })
    await runUntil(gateway, async () => (await client.messages.batches.retrieve(id)).processing_status === 'ended')
    const found = new Map<string, unknown>()
    for await (const one of await client.messages.batches.results(id)) found.set(one.custom_id, one.result)
    expect(found.get('b')).toMatchObject({
      type: 'succeeded',
      message: { type: 'message', model: 'acme/chat', content: [{ type: 'text', text: 're: Say b' }] },
    })
    expect([vendor.created(), vendor.calls(), found.size]).toEqual([1, 0, 2])
  })

  test.each<[Kind]>([['chatcompat'], ['messages-compat'], ['contentgen-compat'], ['azure']])(
    'is created once by %s where the response to its creation is lost',
    async (kind) => {
      const clock: { now?: () => number } = {}
      await using vendor = startBatchVendor({ create: () => 'lost', now: () => clock.now?.() ?? 0 })
      await using gateway = await start(vendor, kind)
      clock.now = gateway.clock.now
      const client = openai(gateway)
      const created = await createBatch(client, lines(3))
      const batch = await endOf(gateway, client, created.id)
      expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 3, completed: 3 } })
      expect(vendor.created()).toBe(1)
    },
  )

  test('is created again where the vendor was busy, and where it certainly was not created', async () => {
    await using vendor = startBatchVendor({ create: (count) => (count < 3 ? 'busy' : 'ok') })
    await using gateway = await start(vendor)
    const client = openai(gateway)
    const created = await createBatch(client, lines(3))
    const batch = await endOf(gateway, client, created.id)
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 3, completed: 3 } })
    expect([vendor.created(), vendor.batches.length]).toEqual([3, 1])
  })

  test.each([
    ['by the version', {}],
    ['by deployments', { deploymentUrls: true, apiVersion: '2024-10-21' }],
  ])('waits at Azure, whose calls are addressed %s, for its file and for room', async (_, options) => {
    await using vendor = startBatchVendor({ create: (count) => (count < 3 ? 'full' : 'ok') })
    const acme = { kind: 'azure', base_url: `${vendor.url}/openai`, key: 'acme-key', options }
    await using gateway = await start(vendor, 'azure', { providers: { acme } })
    const client = openai(gateway)
    const batch = await endOf(gateway, client, (await createBatch(client, lines(3))).id)
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 3, completed: 3 } })
    expect([vendor.created(), vendor.batches.length, vendor.calls()]).toEqual([3, 1, 0])
    expect(vendor.batches[0]?.lines.map(({ body }) => body.model)).toEqual(['chat', 'chat', 'chat'])
    expect(vendor.azure[0]).toMatchObject({
      endpoint: '/v1/chat/completions',
      metadata: { gatehouse_order: expect.any(String) },
      output_expires_after: { seconds: 1_209_600, anchor: 'created_at' },
    })
  })

  test.each<[Kind]>([['chatcompat'], ['azure']])(
    'is created again by %s where it failed for want of room',
    async (kind) => {
      await using vendor = startBatchVendor({ create: (count) => (count < 3 ? 'fails' : 'ok') })
      await using gateway = await start(vendor, kind)
      const client = openai(gateway)
      const batch = await endOf(gateway, client, (await createBatch(client, lines(3))).id)
      expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 3, completed: 3 } })
      expect(vendor.batches.map(({ status }) => status)).toEqual(['failed', 'failed', 'completed'])
      expect([...vendor.executed.values()]).toEqual([1, 1, 1])
    },
  )

  test.each(['full', 'fails'] as const)(
    'says that it waits for room, and since when (creation: %s)',
    async (outcome) => {
      await using vendor = startBatchVendor({ create: () => outcome })
      const admin_token = 'admin-0123456789abcdef'
      await using gateway = await start(vendor, 'azure', { admin_token })
      const client = openai(gateway)
      const { id } = await createBatch(client, lines(3))
      const waiting = async () =>
        ((await client.batches.retrieve(id)) as { waiting?: { code: string; message: string; since: number } }).waiting
      await runUntil(gateway, async () => (await waiting()) !== undefined)
      const first = await waiting()
      expect(first).toMatchObject({ code: 'server_is_overloaded', message: expect.stringContaining('no room') })
      await runUntil(gateway, async () => vendor.created() >= 3)
      await runUntil(gateway, async () => (await waiting()) !== undefined)
      expect((await waiting())?.since).toBe(first?.since ?? 0)
      const headers = { authorization: `Bearer ${admin_token}` }
      const answer = await gateway.call(`/admin/v1/batches/${id}`, { headers })
      const shown = (await answer.json()) as { waiting: { since_ms: number } }
      expect(Math.floor(shown.waiting.since_ms / 1000)).toBe(first?.since ?? 0)
      gateway.clock.advance(24 * 3_600_000)
      const batch = await endOf(gateway, client, id)
      expect(batch).toMatchObject({ status: 'expired', request_counts: { total: 3, failed: 3 } })
      const [error] = await resultsOf(client, batch.error_file_id)
      expect(error?.error).toEqual({ code: 'batch_expired', message: expect.stringContaining('no room') })
    },
  )

  test('has the error of its vendor for each line where that refuses the batch', async () => {
    await using vendor = startBatchVendor({ create: () => 'refused' })
    await using gateway = await start(vendor)
    const client = openai(gateway)
    const created = await createBatch(client, lines(3))
    const batch = await endOf(gateway, client, created.id)
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 3, completed: 0, failed: 3 } })
    const [error] = await resultsOf(client, batch.error_file_id)
    expect(error?.error?.message).toContain('no such model')
  })

  test('has a result for each line: errors, lines that were not executed, and lines without a result', async () => {
    const outcomes = ['ok', 'error', 'expired', 'missing'] as const
    await using vendor = startBatchVendor({ line: (text) => outcomes[Number(text.slice(4)) % 4] ?? 'ok' })
    await using gateway = await start(vendor)
    const client = openai(gateway)
    const created = await createBatch(client, lines(8))
    const batch = await endOf(gateway, client, created.id)
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 8, completed: 2, failed: 6 } })
    const errors = await resultsOf(client, batch.error_file_id)
    const of = (custom_id: string) => errors.find((line) => line.custom_id === custom_id)
    expect(of('line-1')?.response).toMatchObject({
      status_code: 400,
      body: { error: { message: expect.stringContaining('bad line') } },
    })
    expect(of('line-2')?.error?.code).toBe('batch_expired')
    expect(of('line-3')?.error?.code).toBe('outcome_unknown')
    // Lines that were answered, whatever the answer: what was not is no call.
    expect(await totalsOf(gateway, 4)).toEqual({ requests: 4, cost: 0.00004, errors: 2 })
  })

  test('is cancelled at its vendor, with the results so far', async () => {
    await using vendor = startBatchVendor({ polls: 1_000, line: (text) => (text === 'Say 1' ? 'missing' : 'ok') })
    await using gateway = await start(vendor)
    const client = openai(gateway)
    const created = await createBatch(client, lines(3))
    await runUntil(gateway, async () => vendor.batches.length === 1)
    await client.batches.cancel(created.id)
    const batch = await endOf(gateway, client, created.id)
    expect(batch).toMatchObject({ status: 'cancelled', request_counts: { completed: 2, failed: 1 } })
    const errors = await resultsOf(client, batch.error_file_id)
    expect(errors.map(({ error }) => error?.code)).toEqual(['batch_cancelled'])
    expect(vendor.cancelled()).toBe(1)
  })

  test('keeps what was paid where the file is deleted meanwhile', async () => {
    await using vendor = startBatchVendor({ polls: 3 })
    await using gateway = await start(vendor)
    const client = openai(gateway)
    const created = await createBatch(client, lines(3))
    await runUntil(gateway, async () => vendor.batches.length === 1)
    await client.files.delete(created.input_file_id)
    const batch = await endOf(gateway, client, created.id)
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 3, completed: 3 } })
    expect(await totalsOf(gateway, 3)).toMatchObject({ requests: 3 })
  })

  test('has one batch for each of its models, and the gateway calls the lines of others', async () => {
    await using vendor = startBatchVendor()
    await using gateway = await start(vendor)
    const client = openai(gateway)
    const all = ['acme/chat', 'acme/other', 'acme/plain'].flatMap((model) =>
      lines(2, model).map((line) => ({ ...line, custom_id: `${model}-${line.custom_id}` })),
    )
    const created = await createBatch(client, all)
    const batch = await endOf(gateway, client, created.id)
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 6, completed: 6 } })
    expect([vendor.created(), vendor.calls()]).toEqual([2, 2])
  })

  test('leaves lines that it cannot send to the gateway, which finds what is wrong with them', async () => {
    await using vendor = startBatchVendor()
    await using gateway = await start(vendor)
    const client = openai(gateway)
    const bad = { ...chatLine('bad', '', 'acme/chat'), body: { model: 'acme/chat', messages: 'none' } }
    const created = await createBatch(client, [...lines(2), bad])
    const batch = await endOf(gateway, client, created.id)
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 3, completed: 2, failed: 1 } })
    const [error] = await resultsOf(client, batch.error_file_id)
    expect(error).toMatchObject({
      custom_id: 'bad',
      response: { status_code: 400, body: { error: { param: 'messages' } } },
    })
  })

  test('sends no more lines together than a budget has left for', async () => {
    await using vendor = startBatchVendor()
    // A line costs at most some 30 tokens of input at 2 and 20 of output at 4 for a million.
    const budgets = [{ amount: 0.003, window: 'total' }]
    await using gateway = await start(vendor, 'chatcompat', { budgets })
    const client = openai(gateway)
    const created = await createBatch(client, lines(50))
    await runUntil(gateway, async () => vendor.batches.length === 1)
    const sent = vendor.batches[0]?.lines.length ?? 0
    expect(sent).toBeGreaterThan(0)
    expect(sent).toBeLessThan(50)
    const waiting = (await client.batches.retrieve(created.id)) as { waiting?: { code: string } }
    expect(waiting.waiting?.code).toBe('insufficient_quota')
    for (let hour = 0; hour < 25; hour++) {
      for (let round = 0; round < 20; round++) {
        await gateway.instance.batches.idle()
        gateway.clock.advance(180_000)
      }
    }
    const batch = await endOf(gateway, client, created.id)
    expect([batch.status, vendor.calls()]).toEqual(['expired', 0])
    const { cost } = await totalsOf(gateway, batch.request_counts?.completed ?? 0)
    expect(cost).toBeLessThanOrEqual(0.003)
  })

  test('is cancelled where its token is revoked, and what was executed is charged', async () => {
    await using vendor = startBatchVendor({ polls: 1_000 })
    await using gateway = await start(vendor)
    const { secret, token } = await gateway.instance.tokens.issue({ name: 'revoked' })
    await createBatch(openai(gateway, { apiKey: secret }), lines(3))
    await runUntil(gateway, async () => vendor.batches.length === 1)
    await gateway.instance.tokens.revoke(token.token_id)
    await runUntil(gateway, async () => {
      await new Promise((resolve) => setTimeout(resolve, 5))
      return (await gateway.instance.usage({ limit: 100 })).reduce((sum, { requests }) => sum + requests, 0) === 3
    })
    expect([vendor.cancelled(), vendor.created()]).toEqual([1, 1])
  })
})
