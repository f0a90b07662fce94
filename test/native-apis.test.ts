/** A provider that serves several text APIs: a client of each is passed through to it, and others are translated. */
import { describe, expect, test } from 'bun:test'
import type { ProviderConfig } from '../src/config/schema/schema.ts'
import { createProvider } from '../src/providers/registry.ts'
import { GatewayError } from '../src/spec/error.ts'
import { startGateway } from './kit/gateway.ts'
import { providerParts } from './kit/provider-parts.ts'
import { completion, startVendor, whole } from './kit/vendor.ts'

const NEVER = new AbortController().signal

describe('a provider with several APIs', () => {
  const RESPONSE = {
    id: 'resp_v',
    object: 'response',
    created_at: 1,
    status: 'completed',
    model: 'm',
    output: [{ type: 'message', id: 'msg_v', role: 'assistant', content: [{ type: 'output_text', text: 'Hi' }] }],
  }
  const MESSAGE = { id: 'msg_v', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: 'end_turn' }
  const messages = [{ role: 'user', content: 'Hello' }]
  const CASES = [
    ['/v1/responses', '/v1/responses', { input: 'Hello', tools: [{ type: 'local_shell' }] }, RESPONSE],
    ['/v1/messages', '/v1/messages', { max_tokens: 9, messages, tools: [{ type: 'bash_9', name: 'bash' }] }, MESSAGE],
    ['/v1/chat/completions', '/v1/chat/completions', { messages }, completion('Hi')],
    [
      '/v1beta/models/v/m:generateContent',
      '/v1/chat/completions',
      { contents: [{ parts: [{ text: 'Hello' }] }] },
      completion('Hi'),
    ],
  ] as const

  test.each(CASES)('%s is sent to %s', async (path, sent, body, answer) => {
    const vendor = startVendor(whole(answer))
    const apis: ProviderConfig['apis'] = ['responses-compat', 'messages-compat']
    await using gateway = await startGateway({
      providers: { v: { base_url: vendor.url, key: 'vendor-key', apis } },
      models: { 'v/m': {} },
    })
    const response = await gateway.call(path, { json: { model: 'v/m', ...body } })
    expect([response.status, vendor.requests.map((request) => request.path)]).toEqual([200, [sent]])
    const [request] = vendor.requests
    const { tools } = body as { tools?: object }
    expect(request?.json().tools as unknown).toEqual(tools)
    const key = sent === '/v1/messages' ? request?.headers['x-api-key'] : request?.headers.authorization
    expect(key).toEndWith('vendor-key')
    await vendor.stop()
  })

  test('a token that is limited to some models is held to the list of the API that passes', async () => {
    const vendor = startVendor()
    await using gateway = await startGateway({
      providers: { v: { base_url: vendor.url, key: 'vendor-key', apis: ['responses-compat'] } },
      models: { 'v/m': {} },
    })
    const { secret } = await gateway.instance.tokens.issue({ name: 'narrow', models: ['v/m'] })
    const response = await gateway.call('/v1/responses', {
      json: { model: 'v/m', input: 'Hello', tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] },
      headers: { authorization: `Bearer ${secret}` },
    })
    expect([response.status, vendor.requests]).toEqual([400, []])
    expect(await response.text()).toContain('providers.v.passthrough.allow')
    await vendor.stop()
  })
})

describe('the APIs of a preset', () => {
  /** The addresses to which a provider would pass clients through. */
  async function addresses(
    config: ProviderConfig,
    environment: Record<string, string>,
  ): Promise<Record<string, string>> {
    const parts = providerParts(config, { environment })
    const urls: string[] = []
    const send = async ({ url }: { url: string }) => {
      urls.push(url)
      throw new GatewayError('upstream_unreachable', 'Not sent.')
    }
    const provider = createProvider({ ...parts, transport: { ...parts.transport, send } })
    const passthroughs = [provider.passthrough ?? [], provider.otherPassthroughs ?? []].flat()
    const request = { model: 'm', messages: [{ role: 'user' as const, content: 'x' }] }
    const call = { model: 'm', request, request_id: 'r', body: request, headers: {} }
    for (const one of passthroughs) await one.send(call, false, NEVER).catch(() => {})
    return Object.fromEntries(passthroughs.map(({ dialect }, at) => [dialect, urls[at] ?? '']))
  }
  const openai = { OPENAI_API_KEY: 'sk-test' }

  test('OPENAI_API_KEY alone serves Responses and chat completions, each by its own API', async () => {
    expect(await addresses({ preset: 'openai' }, openai)).toEqual({
      chatcompat: 'https://api.openai.com/v1/chat/completions',
      'chatcompat-response': 'https://api.openai.com/v1/responses',
    })
  })

  test('DEEPSEEK_API_KEY alone serves Messages and chat completions', async () => {
    expect(await addresses({ preset: 'deepseek' }, { DEEPSEEK_API_KEY: 'sk-test' })).toEqual({
      chatcompat: 'https://api.deepseek.com/v1/chat/completions',
      'messages-compat': 'https://api.deepseek.com/anthropic/v1/messages',
    })
  })

  test('apply to another address only where the operator names them', async () => {
    const base_url = 'http://proxy.test/v1'
    const chatcompat = `${base_url}/chat/completions`
    expect(await addresses({ preset: 'openai', base_url }, openai)).toEqual({ chatcompat })
    expect(await addresses({ preset: 'openai', base_url, apis: ['responses-compat'] }, openai)).toEqual({
      chatcompat,
      'chatcompat-response': `${base_url}/responses`,
    })
  })

  test('end with passthrough, and with an empty list', async () => {
    const chatcompat = 'https://api.openai.com/v1/chat/completions'
    expect(await addresses({ preset: 'openai', apis: [] }, openai)).toEqual({ chatcompat })
    expect(await addresses({ preset: 'openai', quirks: { passthrough: false } }, openai)).toEqual({})
  })
})
