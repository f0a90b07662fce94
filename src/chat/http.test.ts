import { expect, test } from 'bun:test'
import { DEFAULT_SERVER } from '../config/config.ts'
import type { Context } from '../http/context.ts'
import { createLog } from '../kit/log.ts'
import { catalogueModel } from '../models/catalogue.ts'
import { GatewayError } from '../spec/error.ts'
import { usageFrom } from '../spec/usage.ts'
import { chatcompatDialect } from './dialects/chatcompat.ts'
import { chatRoute } from './http.ts'
import type { Meter } from './meter.ts'

const clock = { now: () => 0, after: () => () => {} }
const log = createLog({ clock, level: 'error', pretty: false, write() {} })

test('the error that ends a stream is told before the count of what was said is done', async () => {
  const counted = Promise.withResolvers<void>()
  const model = catalogueModel({ id: 'v/m', config: {}, targets: [], created: 0, when_retired: 'refuse' })
  // biome-ignore lint/correctness/useYield: it breaks off before it said anything
  async function* breaksOff(): AsyncGenerator<string> {
    throw new GatewayError('upstream_cut', 'It broke off.')
  }
  const meter: Meter = {
    count() {},
    countRaw() {},
    countWhole() {},
    usage: async () => usageFrom({ input: 0, output: 0 }),
    settle: () => counted.promise,
  }
  const route = chatRoute({
    chat: {
      ask: ({ request }) => ({
        model,
        requested: model,
        request,
        targets: [],
        sent: undefined,
        meter,
      }),
      whole: () => Promise.reject(new Error('not asked for')),
      stream: async () => ({ batches: breaksOff(), tellsUsage: false, end: () => '' }),
    },
    dialect: chatcompatDialect(DEFAULT_SERVER),
    settings: DEFAULT_SERVER,
    clock,
    log,
  })
  const body = { model: 'v/m', stream: true, messages: [{ role: 'user', content: 'Hello' }] }
  const finished: string[] = []
  const context = {
    request: new Request('http://gatehouse.test', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
    request_id: 'req_1',
    signal: new AbortController().signal,
    note: {},
    finish: (outcome: string) => finished.push(outcome),
  } as unknown as Context
  const response = await route.handle(context)
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  expect(new TextDecoder().decode((await reader.read()).value)).toStartWith('data: {"error":{')
  expect(finished).toEqual([])
  counted.resolve()
  expect((await reader.read()).done).toBe(true)
  expect(finished).toEqual(['cut'])
})
