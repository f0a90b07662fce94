/** A prompt's tokens: by its vendor where one can be asked, else estimated, and never a refusal for that. */
import { afterAll, describe, expect, test } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import { NO_FILES } from '../../../test/kit/no-files.ts'
import { testPipeline } from '../../../test/kit/pipeline.ts'
import { DEFAULT_SERVER } from '../../config/config.ts'
import type { Context } from '../../http/context.ts'
import { systemClock } from '../../kit/clock.ts'
import { createTokenizer } from '../../kit/tokenizer.ts'
import { catalogueModel, createCatalogue } from '../../models/catalogue.ts'
import type { ChatRequest } from '../../protocols/shared/canonical.ts'
import { estimateTokens, roughTokens } from '../../protocols/shared/token-estimate.ts'
import type { ChatProvider, PassthroughProvider } from '../../providers/provider.ts'
import { GatewayError } from '../../spec/error.ts'
import { jsonRoute } from '../shared/json-route.ts'
import { messagesCount } from './count-apis.ts'
import { type CountApi, countTokensEndpoint } from './count-tokens.ts'

const tokenizer = createTokenizer({ clock: systemClock })
afterAll(() => tokenizer.close())

const request = (
  content: ChatRequest['messages'][number]['content'],
  more: Partial<ChatRequest> = {},
): ChatRequest => ({
  model: 'a/b',
  messages: [{ role: 'user', content: content ?? '' }],
  ...more,
})

describe('an estimate', () => {
  test('counts text by the tokenizer, and roughly without it', async () => {
    const words = request('The quick brown fox jumps over the lazy dog. '.repeat(100))
    const exact = await estimateTokens(words, tokenizer)
    expect(exact).toBeGreaterThan(900)
    expect(exact).toBeLessThan(1100)
    expect(Math.abs(roughTokens(words) - exact)).toBeLessThan(exact / 3)
  })

  test('counts media by rules of thumb, not by their characters', () => {
    const url = `data:image/png;base64,${'A'.repeat(4_000_000)}`
    const image = roughTokens(request([{ type: 'image_url', image_url: { url } }]))
    expect(image).toBeGreaterThan(1000)
    expect(image).toBeLessThan(2000)
    const file_data = `data:application/pdf;base64,${'A'.repeat(800_000)}`
    expect(roughTokens(request([{ type: 'file', file: { file_data } }]))).toBe(20_004)
    expect(roughTokens(request([{ type: 'file', file: { file_url: 'https://a.example' } }]))).toBe(2004)
    const input_audio = { data: 'A'.repeat(4 * 16_000), format: 'mp3' }
    expect(roughTokens(request([{ type: 'input_audio', input_audio }]))).toBe(34)
  })

  test('counts tools, calls, reasoning and a schema', () => {
    const plain = roughTokens(request('x'))
    const tools = [{ type: 'function' as const, function: { name: 'look', description: 'words '.repeat(50) } }]
    expect(roughTokens(request('x', { tools }))).toBeGreaterThan(plain + 60)
    const tool_calls = [{ id: 'a', function: { name: 'look', arguments: '{"a":"long long long"}' } }]
    const messages = [{ role: 'assistant' as const, content: null, reasoning_content: 'words '.repeat(9), tool_calls }]
    expect(roughTokens({ model: 'a', messages })).toBeGreaterThan(15)
    const response_format = { type: 'json_schema' as const, json_schema: { name: 'x'.repeat(100) } }
    expect(roughTokens(request('x', { response_format }))).toBeGreaterThan(plain + 20)
  })
})

describe('the route', () => {
  const clock = manualClock()
  const settings = DEFAULT_SERVER

  /** Asks with this body; the model's targets can count as told. */
  async function ask(
    counters: (ChatProvider['countTokens'] | undefined)[],
    body: object,
    api?: CountApi,
    relays: (PassthroughProvider | undefined)[] = [],
  ) {
    const catalogue = createCatalogue({ clock })
    const targets = counters.map((countTokens, index) => {
      const chat = {
        complete: async () => ({}) as never,
        chunks: async function* () {},
        ...(countTokens ? { countTokens } : {}),
      }
      const passthrough = relays[index]
      return {
        provider: { id: `p${index}`, kind: 'x', chat, ...(passthrough ? { passthrough } : {}) },
        model: 'vendor-model',
      }
    })
    const row = catalogueModel({ id: 'a/b', config: {}, targets, created: 1, when_retired: 'refuse' })
    catalogue.replace([{ ...row, families: ['messages-compat'] }])
    const { pipeline, finished, recorded } = testPipeline({ catalogue, clock })
    const parts = { pipeline, settings, clock }
    const route = jsonRoute(countTokensEndpoint(api ?? messagesCount, { tokenizer, fileInputs: NO_FILES }), parts)
    const context = {
      request: new Request('http://g.test/v1/messages/count_tokens?beta=true', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
      request_id: 'req_1',
      params: {},
      header: () => null,
      signal: new AbortController().signal,
      caller: { token_id: 't', mayUseModel: () => true, mayUseFamily: () => true },
      note: {},
      noteFields() {},
      withHeaders: (headers: Record<string, string>) => headers,
      hold() {},
    } as unknown as Context
    const response = await route.handle(context)
    return { answer: await response.json(), headers: response.headers, record: finished[0], recorded }
  }

  const BODY = { model: 'a/b', messages: [{ role: 'user', content: 'hello world' }] }

  test('calls the target that can count, with the provider’s name of the model', async () => {
    const clientRequest: string[] = []
    const { answer, record, recorded } = await ask(
      [
        undefined,
        async ({ model, request_id }) => {
          clientRequest.push(model, request_id)
          return 42
        },
      ],
      BODY,
    )
    expect(answer).toEqual({ input_tokens: 42 })
    expect(clientRequest).toEqual(['vendor-model', 'req_1'])
    expect(record).toMatchObject({ model: 'a/b', target: { provider: { id: 'p1' }, model: 'vendor-model' } })
    expect(recorded).toEqual([])
  })

  test('estimates if no target can count, and if the provider returns an error', async () => {
    const none = await ask([undefined], BODY)
    const refused = await ask([async () => Promise.reject(new GatewayError('upstream_auth', 'No.'))], BODY)
    expect(none.answer).toEqual({ input_tokens: 7 })
    expect(refused.answer).toEqual(none.answer)
    expect(refused.record).toMatchObject({ attempts: [{ error: 'upstream_auth' }], error: undefined })
  })

  test('requires no max_tokens, and names the client’s fields in errors', async () => {
    await expect(ask([undefined], { ...BODY, messages: [] })).rejects.toMatchObject({ detail: { param: 'messages' } })
    await expect(ask([undefined], { ...BODY, model: 'a/c' })).rejects.toMatchObject({ code: 'model_not_found' })
  })

  describe('a prompt that only a provider of the same protocol understands', () => {
    const OWN = { ...BODY, tools: [{ type: 'code_execution_20260120', name: 'code_execution' }], unseen: { a: 1 } }
    const counted: { body: unknown; headers: unknown; model: string }[] = []
    const passthrough = (more: object = {}) => ({
      dialect: 'messages-compat' as const,
      send: async () => ({}) as never,
      faultsOf: () => ({}) as never,
      ...more,
    })

    test('is counted unchanged by such a provider, and estimated if that cannot count', async () => {
      const count = async ({ body, headers, model }: { body: unknown; headers: unknown; model: string }) => {
        counted.push({ body, headers, model })
        return 77
      }
      expect(
        (await ask([async () => 1, undefined], OWN, undefined, [undefined, passthrough({ count })])).answer,
      ).toEqual({
        input_tokens: 77,
      })
      expect(counted).toEqual([{ body: OWN, headers: {}, model: 'vendor-model' }])
      const { answer } = await ask([async () => 1], OWN, undefined, [passthrough()])
      expect(answer.input_tokens).toBeGreaterThan(7)
    })

    test('is rejected if there is none, and for other errors in any case', async () => {
      await expect(ask([async () => 1], OWN)).rejects.toMatchObject({ code: 'unsupported_parameter' })
      const wrong = ask([undefined], { ...OWN, messages: [] }, undefined, [passthrough()])
      await expect(wrong).rejects.toMatchObject({ detail: { param: 'messages' } })
    })
  })

  test('does not hide an internal error behind an estimate', async () => {
    await expect(ask([async () => Promise.reject(new TypeError('x'))], BODY)).rejects.toBeInstanceOf(TypeError)
  })

  test('of another protocol has its own path and response', async () => {
    const api: CountApi = {
      family: 'messages-compat',
      path: '/other',
      operation: { summary: 'x', tag: 'Chat' },
      parse: () => request('hello world'),
      encode: (totalTokens) => ({ totalTokens }),
    }
    expect((await ask([async () => 3], {}, api)).answer).toEqual({ totalTokens: 3 })
  })
})
