import { expect, test } from 'bun:test'
import { NO_FILES } from '../../../../test/kit/no-files.ts'
import { testPipeline } from '../../../../test/kit/pipeline.ts'
import { DEFAULT_SERVER } from '../../../config/config.ts'
import type { Context } from '../../../http/context.ts'
import { catalogueModel, createCatalogue } from '../../../models/catalogue.ts'
import { GatewayError } from '../../../spec/error.ts'
import { createChat } from '../chat.ts'
import { chatcompatDialect } from '../dialects/chatcompat.ts'
import { chatRoute } from './chat-route.ts'

const clock = { now: () => 0, steady: () => 0, after: () => () => {} }

test('a stream that breaks is ended with its error before its usage is estimated', async () => {
  const counted = Promise.withResolvers<void>()
  const chat = {
    complete: () => Promise.reject(new Error('not asked for')),
    async *chunks() {
      const choices = [{ index: 0, delta: { content: 'Hello' } }]
      yield [{ id: '', object: 'chat.completion.chunk' as const, created: 0, model: '', choices }]
      throw new GatewayError('upstream_cut', 'It broke off.')
    },
  }
  const catalogue = createCatalogue({ clock })
  const targets = [{ provider: { id: 'v', kind: 'test', chat }, model: 'm' }]
  const row = catalogueModel({ id: 'v/m', config: {}, targets, created: 0, when_retired: 'refuse' })
  catalogue.replace([row])
  const { pipeline, recorded } = testPipeline({ catalogue })
  const tokenizer = {
    async count(texts: string[]) {
      await counted.promise
      return texts.map(() => 1)
    },
    close() {},
  }
  const route = chatRoute(chatcompatDialect(DEFAULT_SERVER), {
    pipeline,
    catalogue,
    chat: createChat({ tokenizer, clock }),
    fileInputs: NO_FILES,
    settings: DEFAULT_SERVER,
    clock,
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
    params: {},
    header: () => null,
    caller: { token_id: 't', mayUseModel: () => true, mayUseFamily: () => true },
    signal: new AbortController().signal,
    note: {},
    noteFields() {},
    hold() {},
    finish: (outcome: string) => finished.push(outcome),
  } as unknown as Context
  const response = await route.handle(context)
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const text = async () => new TextDecoder().decode((await reader.read()).value)
  expect(await text()).toContain('"content":"Hello"')
  expect(await text()).toStartWith('data: {"error":{')
  expect((await reader.read()).done).toBe(true)
  expect({ finished, recorded }).toEqual({ finished: [], recorded: [] })
  counted.resolve()
  await pipeline.close({ deadline_ms: 1_000 })
  expect(finished).toEqual(['cut'])
  expect(recorded).toMatchObject([{ token_id: 't', model: 'v/m', error: true, estimated: true }])
})
