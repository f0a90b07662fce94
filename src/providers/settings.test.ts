import { describe, expect, test } from 'bun:test'
import { DEFAULT_TIMEOUTS } from '../config/config.ts'
import type { ProviderConfig } from '../config/schema/schema.ts'
import { statusIn } from './ai-sdk/vendors/response-values.ts'
import { discoverProviders } from './discover.ts'
import { readModelList } from './model-list.ts'
import { PRESETS } from './presets.ts'
import { resolveProvider, settingsOf, withFieldRules } from './settings.ts'

const settings = (config: ProviderConfig, environment: Record<string, string> = {}) =>
  settingsOf({ id: 'p', config, timeouts: DEFAULT_TIMEOUTS, environment })

describe('settings of a provider', () => {
  test('a preset needs only its key, from the environment or the configuration, which takes precedence', () => {
    const fromEnvironment = settings({ preset: 'groq' }, { GROQ_API_KEY: 'gsk-env' })
    expect(fromEnvironment.base_url).toBe('https://api.groq.com/openai/v1')
    expect(fromEnvironment.headers.authorization).toBe('Bearer gsk-env')
    expect(settings({ preset: 'groq', key: 'gsk-own' }, { GROQ_API_KEY: 'gsk-env' }).headers.authorization).toBe(
      'Bearer gsk-own',
    )
  })

  test("the operator's settings take precedence over the preset, and lists are merged", () => {
    const resolved = resolveProvider('p', {
      preset: 'openai',
      base_url: 'http://proxy.internal/v1',
      quirks: { tools: false },
      fields: { allow: ['web_search'], drop: ['user'], rename: { max_tokens: 'max_tokens' } },
      headers: { 'OpenAI-Organization': 'org-1' },
    })
    expect(resolved).toMatchObject({
      base_url: 'http://proxy.internal/v1',
      quirks: { tools: false, developer_role: true },
      fields: { rename: { max_tokens: 'max_tokens' } },
    })
    expect(resolved.fields?.drop).toContain('user')
    expect(resolved.fields?.drop).toContain('thinking_enabled')
    expect(resolved.fields?.drop).not.toContain('web_search')
  })

  test('an unknown preset is rejected with the list of presets', () => {
    expect(() => settings({ preset: 'opnai' })).toThrow(/providers\.p\.preset is "opnai"; known are .*mistral.*openai/)
    expect(() => settings({ preset: 'constructor' })).toThrow(/known are/)
  })

  test.each([[undefined], ['api.example.com/v1'], ['ftp://example.com'], ['https://example.com/v1?key=x']])(
    'the base_url %p is rejected with a correct example',
    (base_url) => {
      const config = base_url === undefined ? {} : { base_url }
      expect(() => settings(config)).toThrow(/providers\.p.*base_url/)
    },
  )

  test('credentials in the base_url become a header and are removed from the URL', () => {
    const { base_url, headers } = settings({ base_url: 'https://us%40er:pass-word@example.com/v1/' })
    expect(base_url).toBe('https://example.com/v1')
    expect(headers.authorization).toBe(`Basic ${btoa('us@er:pass-word')}`)
  })

  test('a key that is not valid in a header is rejected without being shown', () => {
    for (const key of ['two words', 'line\nbreak', 'schlüssel']) {
      expect(() => settings({ base_url: 'https://example.com/v1', key })).toThrow(/^providers\.p\.key holds/)
      expect(() => settings({ base_url: 'https://example.com/v1', key })).not.toThrow(new RegExp(key))
    }
  })

  test('a header may contain the key, and a configured authorization takes precedence', () => {
    const { headers } = settings({
      base_url: 'https://example.com/v1',
      key: 'key-12345678',
      headers: { 'API-Key': '{key}', Authorization: 'Token abcdefgh' },
    })
    expect(headers).toEqual({ 'api-key': 'key-12345678', authorization: 'Token abcdefgh' })
  })

  test('the global timeouts apply unless the provider has its own', () => {
    const { timeouts } = settings({ base_url: 'https://example.com/v1', timeouts: { idle_seconds: 5 } })
    expect(timeouts).toEqual({ ...DEFAULT_TIMEOUTS, idle_seconds: 5 })
  })
})

describe('presets', () => {
  test.each(Object.entries(PRESETS))('%s is complete: it has a URL, with TLS unless it is local', (id, preset) => {
    const { base_url, headers } = settings({ preset: id, key: 'key-12345678' })
    const url = new URL(base_url)
    expect(url.protocol).toBe(url.hostname === '127.0.0.1' ? 'http:' : 'https:')
    expect(base_url).not.toEndWith('/')
    expect(headers.authorization).toBe('Bearer key-12345678')
    for (const name of preset.key_env) expect(name).toMatch(/^[A-Z][A-Z0-9_]+$/)
    if (preset.local) expect(url.port).toBe(String(preset.local.port))
  })

  test('a key in the environment enables its vendor, and is not copied', () => {
    const environment = { OPENAI_API_KEY: 'sk-1', GOOGLE_API_KEY: 'AIza', MISTRAL_API_KEY: '', HOME: '/root' }
    expect(discoverProviders(environment)).toEqual({ openai: { preset: 'openai' }, gemini: { preset: 'gemini' } })
    expect(discoverProviders({})).toEqual({})
  })

  test('a variable that is set for other purposes enables nothing by itself, but is used if configured', () => {
    const environment = { GITHUB_TOKEN: 'ghp-1', HF_TOKEN: 'hf-1' }
    expect(discoverProviders(environment)).toEqual({})
    expect(settings({ preset: 'github' }, environment).headers.authorization).toBe('Bearer ghp-1')
  })
})

describe('model lists', () => {
  const names = (payload: unknown, preset = 'xai') =>
    readModelList(payload, settings({ preset }).chat_models)?.map(({ model }) => model)

  test('only models of served families are used, each once, sorted', () => {
    const ids = [
      'gpt-4o',
      'o3-mini',
      'gpt-4o',
      'text-embedding-3-large',
      'whisper-1',
      'dall-e-3',
      'tts-1',
      'gpt-4o-realtime-preview',
    ]
    const more = [
      'omni-moderation-latest',
      'gpt-image-1',
      'davinci-002',
      'gpt-3.5-turbo-instruct',
      'gpt-4o-transcribe',
      'sora-2',
    ]
    expect(names({ object: 'list', data: [...ids, ...more].map((id) => ({ id })) }, 'openai')).toEqual([
      'dall-e-3',
      'gpt-4o',
      'gpt-4o-realtime-preview',
      'gpt-4o-transcribe',
      'gpt-image-1',
      'o3-mini',
      'omni-moderation-latest',
      'text-embedding-3-large',
      'tts-1',
      'whisper-1',
    ])
  })

  test('embedding models and rerankers get their family, rerankers only if the provider serves them', () => {
    const data = [
      { id: 'bge-reranker-v2-m3' },
      { id: 'BAAI/bge-m3', created: 7 },
      { id: 'told', type: 'embedding' },
      { id: 'drawn', architecture: { output_modalities: ['embeddings'] } },
      { id: 'mistral-embed', capabilities: { completion_chat: false } },
      { id: 'a/far', supported_endpoint_types: ['embeddings'] },
      { id: 'a/chat-embed', supported_endpoint_types: ['chatcompat'] },
      { id: 'chat' },
    ]
    const families = (preset: string) =>
      (readModelList(data, settings({ preset }).chat_models) ?? []).map(({ model, families }) => [model, families?.[0]])
    const embedders = ['BAAI/bge-m3', 'a/far', 'drawn', 'mistral-embed', 'told'].map((model) => [model, 'embeddings'])
    expect(families('xai')).toEqual([...embedders.slice(0, 2), ['chat', undefined], ...embedders.slice(2)])
    expect(families('vllm')).toContainEqual(['bge-reranker-v2-m3', 'rerank'])
    expect(families('vllm')).toHaveLength(7)
  })

  test('moderation models get their family by their names; Together’s guard models do not', () => {
    const data = [
      { id: 'omni-moderation-2024-09-26' },
      { id: 'mistral-moderation-2411', capabilities: { completion_chat: false } },
      { id: 'text-moderation-stable' },
      { id: 'meta-llama/Llama-Guard-4-12B', type: 'moderation' },
      { id: 'a/far', supported_endpoint_types: ['moderations'] },
    ]
    for (const preset of ['openai', 'mistral', 'gatehouse']) {
      expect(
        (readModelList(data, settings({ preset }).chat_models) ?? []).map(({ model, families }) => [model, families]),
      ).toEqual(
        ['a/far', 'mistral-moderation-2411', 'omni-moderation-2024-09-26', 'text-moderation-stable'].map((model) => [
          model,
          ['moderations'],
        ]),
      )
    }
  })

  test('image models get their family if the vendor serves images below the same URL', () => {
    const data = [
      { id: 'gpt-image-2' },
      { id: 'black-forest-labs/FLUX.2-pro', type: 'image' },
      { id: 'told', type: 'image' },
      { id: 'drawn', architecture: { output_modalities: ['image'] } },
      { id: 'a/far', supported_endpoint_types: ['image-generation'] },
      { id: 'talks-and-draws', architecture: { output_modalities: ['image', 'text'] } },
      { id: 'grok-imagine-image' },
      { id: 'grok-imagine-video' },
      { id: 'flux-3-video' },
    ]
    const families = (preset: string) =>
      (readModelList(data, settings({ preset }).chat_models) ?? []).flatMap(({ model, families }) =>
        families?.[0] === 'image-generation' ? [model] : [],
      )
    const drawers = ['a/far', 'black-forest-labs/FLUX.2-pro', 'drawn', 'gpt-image-2', 'grok-imagine-image', 'told']
    expect(families('deepinfra')).toEqual(drawers)
    expect(families('openai')).toEqual(drawers)
    expect(families('openrouter')).toEqual([])
  })

  test('formats of vendors: a bare list, a `models/` prefix, their fields for type and task', () => {
    expect(
      names([
        { id: 'b', type: 'chat' },
        { id: 'a', type: 'video' },
      ]),
    ).toEqual(['b'])
    expect(names({ data: [{ id: 'models/gemini-2.5-pro' }, { id: 'models/aqa' }] }, 'gemini')).toEqual([
      'gemini-2.5-pro',
    ])
    expect(
      names({
        data: [
          { id: 'x', capabilities: { completion_chat: false } },
          { id: 'y', active: false },
        ],
      }),
    ).toEqual([])
    expect(names({ data: [{ id: 'x', architecture: { output_modalities: ['audio'] } }] })).toEqual([])
  })

  test('the families that another Gatehouse lists are used as they are', () => {
    const data = [
      { id: 'a/chat', supported_endpoint_types: ['chatcompat'], status: 'deprecated', created: 5 },
      { id: 'a/old', supported_endpoint_types: ['chatcompat'], status: 'retired' },
      { id: 'a/film', supported_endpoint_types: ['video-generation'], status: 'active' },
    ]
    expect(readModelList({ success: true, data }, settings({ preset: 'gatehouse' }).chat_models)).toEqual([
      { model: 'a/chat', created: 5 },
    ])
  })

  test.each([[undefined], [{}], ['x'], [{ data: 'x' }]])('%p is not a list', (payload) => {
    expect(names(payload)).toBeUndefined()
  })

  test('invalid items are skipped', () => {
    expect(names({ data: [null, 'x', {}, { id: '' }, { id: 'a', created: 'then' }] })).toEqual(['a'])
  })
})

describe('names that every object has', () => {
  test('are no renamed fields', () => {
    expect(withFieldRules({ constructor: 1, a: 2 }, { rename: { a: 'b' } })).toEqual({ constructor: 1, b: 2 })
  })

  test('are no states of a video', () => {
    const statuses = { Success: { isPending: true, status: 'QUEUED' } } as const
    expect(statusIn(statuses, 'constructor')).toEqual({ isPending: true })
    expect(statusIn(statuses, 'Success')).toEqual(statuses.Success)
    expect(statusIn(statuses, 1)).toBeUndefined()
  })
})
