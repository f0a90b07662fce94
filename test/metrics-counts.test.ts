/** The metrics of 10,000 calls of all kinds: equal to what the provider has received, and to what the ledger holds. */
import { expect, it } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Server } from 'bun'
import { openStore } from '../src/store/open-store.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { readScrape } from './kit/metrics.ts'

const CALLS = 10_000
const CONCURRENCY = 50
const KINDS = ['whole', 'stream', 'cached', 'failing', 'aborted', 'refused', 'unknown'] as const
type Kind = (typeof KINDS)[number]

/** Deterministic: the number of a call decides its kind. */
const kindOf = (n: number): Kind => KINDS[((n * 7_919) % 11) % KINDS.length] as Kind

const USAGE = {
  prompt_tokens: 12,
  completion_tokens: 30,
  total_tokens: 42,
  prompt_tokens_details: { cached_tokens: 4 },
}
const event = (body: object) => `data: ${JSON.stringify(body)}\n\n`
const chunk = (delta: object, more: object = {}) =>
  event({
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: null }],
    ...more,
  })

/** Answers by what the prompt says. */
function startProvider() {
  let received = 0
  const server: Server<undefined> = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const body = (await request.json()) as { messages: { content: string }[]; stream?: boolean }
      received++
      const kind = body.messages[0]?.content.split(' ', 1)[0]
      if (kind === 'failing') return Response.json({ error: { message: 'Broken' } }, { status: 500 })
      if (!body.stream) {
        const choices = [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }]
        return Response.json({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage: USAGE })
      }
      const stream = new ReadableStream({
        start(control) {
          control.enqueue(chunk({ role: 'assistant', content: 'Hello' }))
          if (kind === 'aborted') return // goes on until the client has left
          control.enqueue(
            event({
              id: 'c',
              object: 'chat.completion.chunk',
              created: 1,
              model: 'm',
              choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
            }),
          )
          control.enqueue(
            event({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [], usage: USAGE }),
          )
          control.enqueue('data: [DONE]\n\n')
          control.close()
        },
      })
      return new Response(stream, { headers: { 'content-type': 'text/event-stream' } })
    },
  })
  return { url: `http://127.0.0.1:${server.port}/v1`, received: () => received, stop: () => server.stop(true) }
}

async function call(gateway: TestGateway, n: number, kind: Kind): Promise<void> {
  const content = kind === 'cached' ? 'cached' : `${kind} ${n}`
  const messages = [{ role: 'user', content }]
  if (kind === 'unknown') return void (await gateway.chat({ model: `no/model-${n}`, messages }))
  if (kind === 'refused') return void (await gateway.chat({ model: 'v/m', messages, temperature: 9 }))
  const stream = kind === 'stream' || kind === 'aborted'
  const control = new AbortController()
  const body = {
    model: 'v/m',
    messages,
    ...(stream ? { stream } : {}),
    ...(kind === 'cached' ? { temperature: 0 } : {}),
  }
  const headers = { 'x-gatehouse-cache': kind === 'cached' ? 'on' : 'off' }
  const response = await gateway.chat(body, { headers, signal: control.signal })
  if (kind !== 'aborted') return void (await response.arrayBuffer())
  const reader = response.body?.getReader()
  await reader?.read()
  control.abort()
  await reader?.cancel().catch(() => {})
}

/** Until every call that the provider may have charged for has its entry. */
async function settled(gateway: TestGateway, entries: number) {
  // Once: a commit that takes a second of this clock would count as a store that is away.
  gateway.clock.advance(60)
  for (let turn = 0; turn < 20_000; turn++) {
    const scrape = readScrape(await (await gateway.call('/metrics')).text())
    if (scrape.sum('gatehouse_ledger_entries_total', { kind: 'call' }) >= entries) return scrape
    await new Promise((resolve) => setImmediate(resolve))
  }
  throw new Error('Some calls have no entry.')
}

it('equals the counts of the provider and of the ledger after 10,000 calls of all kinds', async () => {
  const provider = startProvider()
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-metrics-'))
  const store_url = `sqlite:${join(directory, 'store.db')}`
  const prices = { currency: 'USD', input: 1, output: 2, as_of: '2026-01-01' }
  const gateway = await startGateway(
    {
      sandbox: false,
      // A busy machine must not refuse any of them.
      server: { max_delay_ms: 0 },
      providers: { v: { kind: 'chatcompat', base_url: provider.url, key: 'k' } },
      models: { 'v/m': { prices } },
    },
    { store_url },
  )
  const made = new Map<Kind, number>(KINDS.map((kind) => [kind, 0]))
  let next = 0
  const worker = async () => {
    for (let n = next++; n < CALLS; n = next++) {
      const kind = kindOf(n)
      made.set(kind, (made.get(kind) ?? 0) + 1)
      await call(gateway, n, kind)
    }
  }
  // The first one is a miss; all others of this kind find its response.
  await call(gateway, CALLS, 'cached')
  await Promise.all(Array.from({ length: CONCURRENCY }, worker))
  const of = (...kinds: Kind[]) => kinds.reduce((sum, kind) => sum + (made.get(kind) ?? 0), 0)
  const entries = of('whole', 'stream', 'cached', 'failing', 'aborted') + 1
  const scrape = await settled(gateway, entries)
  await gateway[Symbol.asyncDispose]()
  provider.stop()
  const store = await openStore({ url: store_url })
  const { rows } = await store.ledger.usage({ from: 0, to: 4_000_000_000, by: ['model'] })
  await store.close()
  rmSync(directory, { recursive: true })

  const DURATION = 'gen_ai_server_request_duration_seconds_count'
  // A request that is not valid is no call.
  expect(scrape.sum(DURATION)).toBe(CALLS + 1 - of('refused'))
  expect(scrape.sum('gatehouse_http_requests_total', { method: 'POST', status: '400' })).toBe(of('refused'))
  expect(scrape.sum(DURATION, { error_type: '' })).toBe(of('whole', 'stream', 'cached') + 1)
  expect(scrape.sum(DURATION, { error_type: 'client_closed_request' })).toBe(of('aborted'))
  expect(scrape.sum(DURATION, { error_type: 'model_not_found' })).toBe(of('unknown'))
  expect(scrape.values(DURATION, 'gen_ai_request_model')).toEqual(expect.arrayContaining(['v/m', '']))
  expect(scrape.sum('gatehouse_http_requests_total', { method: 'POST' })).toBe(CALLS + 1)
  expect(scrape.sum('gatehouse_http_requests_total', { outcome: 'client_gone' })).toBe(of('aborted'))
  expect(scrape.sum('gen_ai_server_time_to_first_token_seconds_count')).toBe(of('stream', 'aborted'))
  expect(scrape.sum('gatehouse_cache_requests_total', { result: 'hit' })).toBe(of('cached'))
  expect(scrape.sum('gatehouse_cache_requests_total', { result: 'miss' })).toBe(1)
  // The provider's count.
  const outcome = (name: string) => scrape.sum('gatehouse_attempts_total', { provider: 'v', outcome: name })
  expect(scrape.sum('gatehouse_attempts_total')).toBe(provider.received())
  expect(outcome('served')).toBe(of('whole', 'stream') + 1)
  expect(outcome('failed')).toBe(of('failing'))
  expect(outcome('abandoned')).toBe(of('aborted'))
  // The ledger's.
  expect(rows).toHaveLength(1)
  const [row] = rows
  expect(scrape.sum('gatehouse_ledger_entries_total', { kind: 'call' })).toBe(entries)
  expect(scrape.sum('gatehouse_ledger_requests_total')).toBe(row?.requests ?? -1)
  expect(scrape.sum('gatehouse_ledger_errors_total')).toBe(row?.errors ?? -1)
  expect(scrape.sum('gatehouse_tokens_total', { token_type: 'input' })).toBe(row?.input_tokens ?? -1)
  expect(scrape.sum('gatehouse_tokens_total', { token_type: 'output' })).toBe(row?.output_tokens ?? -1)
  expect(scrape.sum('gatehouse_tokens_total', { token_type: 'cached' })).toBe(4 * (of('whole', 'stream') + 1))
  expect(Math.round(scrape.sum('gatehouse_charged_amount_total') * 1e9)).toBe(Number(row?.amount ?? -1))
  expect(Math.round(scrape.sum('gatehouse_provider_cost_total') * 1e9)).toBe(Number(row?.cost ?? -1))
  expect(Math.round(scrape.sum('gatehouse_token_charged_amount_total') * 1e9)).toBe(Number(row?.amount ?? -1))
  expect(Number(row?.amount)).toBeGreaterThan(0)
  expect(scrape.sum('gatehouse_unpriced_entries_total')).toBe(0)
}, 600_000)
