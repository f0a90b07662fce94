/** The lists of what reaches no other model. */
import { describe, expect, test } from 'bun:test'
import type { ObjectShape, Shape } from '../../kit/allow-list.ts'
import type { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'
import { allowedHeaders, assertBody, assertOptions, assertOrder } from './allowed.ts'
import { CHAT_COMPLETIONS } from './chat-completions.ts'
import { CONTENTGEN } from './contentgen.ts'
import { EXTRAS } from './extras.ts'
import { MESSAGES } from './messages.ts'
import { CHAT_OPTIONS } from './options.ts'
import { RESPONSES } from './responses.ts'

const vendor = { id: 'v', kind: 'chatcompat' }
const limited: Caller = { token_id: 't', is_limited: true, mayUseModel: () => true, mayUseFamily: () => true }
const everyone: Caller = { ...limited, is_limited: false }

function refusedAt(work: () => void): string | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    return (error as GatewayError).detail.param
  }
}

/** The names of all members of a list, at any depth, each with its place. */
function namesIn(shape: Shape, seen = new Set<Shape>(), at = ''): string[] {
  const one = typeof shape === 'function' ? shape() : shape
  if (typeof one === 'string' || 'accepts' in one || seen.has(one)) return []
  seen.add(one)
  const { members = {}, by_type = {}, others = 'value' }: ObjectShape = one
  const rows = [members, ...Object.values(by_type), { '*': others }].flatMap((row) => Object.entries(row))
  return rows.flatMap(([name, inner]) => [`${at}.${name}`, ...namesIn(inner, seen, `${at}.${name}`)])
}

const LISTS = { MESSAGES, RESPONSES, CONTENTGEN, CHAT_COMPLETIONS, CHAT_OPTIONS, EXTRAS }
/** What names models, adapters of models, or things of an account. */
const NAMES =
  /model|fallback|lora|checkpoint|advis|adapter|router?\b|plugin|preset|file_?id|vector|cached|conversation|bucket|uri$|webhook|callback/i
/** The model is said by the gateway; a seed names nothing; annotations come back from answers; addresses are looked at. */
const KNOWN =
  /^\.model$|\.modelSeed$|\.savePreRemeshedModel$|\.motionBucketId$|\.(annotations|citations)\.(file_id|container_id)$|\.fileUri$/

test.each(Object.entries(LISTS))('%s allows no model, no adapter and no resource of an account', (_, list) => {
  const names = namesIn(list)
  expect(names.length).toBeGreaterThan(20)
  expect(names.filter((name) => NAMES.test(name.slice(name.lastIndexOf('.') + 1)) && !KNOWN.test(name))).toEqual([])
})

describe('paths of each kind', () => {
  const wrong = {
    model: 'x',
    model_name: 'x',
    Models: ['x'],
    loras: [{ path: 'x' }],
    modelId: 'x',
    fallbacks: ['x'],
    webhook: 'x',
  }

  test.each(Object.keys(EXTRAS.members ?? {}))('metadata.%s', (kind) => {
    for (const [name, value] of Object.entries(wrong)) {
      const order = { metadata: { [kind]: { [name]: value } } }
      expect(refusedAt(() => assertOrder(order, vendor, limited))).toBe(`metadata.${kind}.${name}`)
      expect(refusedAt(() => assertOrder(order, vendor, everyone))).toBeUndefined()
    }
    expect(refusedAt(() => assertOrder({ metadata: { [kind]: 'x' } }, vendor, limited))).toBeUndefined()
  })

  test.each(Object.keys(CHAT_OPTIONS.members ?? {}))('provider_options.%s', (kind) => {
    for (const [name, value] of Object.entries(wrong)) {
      const options = { [kind]: { [name]: value } }
      expect(refusedAt(() => assertOptions(options, vendor, limited))).toBe(`provider_options.${kind}.${name}`)
      expect(refusedAt(() => assertOptions(options, vendor, everyone))).toBeUndefined()
    }
  })
})

test('documented options are allowed, in both spellings', () => {
  const metadata = {
    kling: { cfg_scale: 0.4, cameraControl: { type: 'simple', config: { zoom: 1 } } },
    luma: { loop: true, concepts: [{ key: 'pan' }] },
    ark: { watermark: true, resolution: '1080p' },
    runway: { outputFormat: 'mp4' },
    tripo: { texture_quality: 'detailed', quad: true },
    meshy: { target_formats: ['glb', 'fbx'] },
    fal: { num_inference_steps: 4, guidanceScale: 3 },
    google: { personGeneration: 'allow_adult' },
    xai: { mode: 'extend-video', resolution: '2k' },
    'black-forest-labs': { safetyTolerance: 2 },
    replicate: { go_fast: true },
  }
  expect(
    refusedAt(() =>
      assertOrder({ metadata, image: 'iVBORw0KGgo=', images: ['https://x.example/a.png'] }, vendor, limited),
    ),
  ).toBeUndefined()
  const options = {
    groq: { reasoning_format: 'parsed' },
    xai: { reasoningSummary: 'auto' },
    'contentgen-compat': {
      safety_settings: [{ category: 'x', threshold: 'y' }],
      generationConfig: { mediaResolution: 'x' },
    },
    'responses-compat': { reasoning: { effort: 'low' }, text: { verbosity: 'low' } },
  }
  expect(refusedAt(() => assertOptions(options, vendor, limited))).toBeUndefined()
})

test.each(['gs://b/x', 'asset://1', 'runway://1', ' s3:x', 'https://storage.cloud.google.com/b/x'])(
  '%s is a file of the account and is rejected',
  (image) => {
    expect(refusedAt(() => assertOrder({ image }, vendor, limited))).toBe('image')
    expect(refusedAt(() => assertOrder({ images: ['https://x.example/a.png', image] }, vendor, limited))).toBe(
      'images[1]',
    )
  },
)

test('the sandbox calls no provider, so it has no list', () => {
  expect(
    refusedAt(() => assertBody({ any: {} }, 'messages-compat', { id: 's', kind: 'sandbox' }, limited)),
  ).toBeUndefined()
})

test('headers: known ones, those that the operator allows, and all with a token for all models', () => {
  const headers = { 'anthropic-beta': 'effort-2025-11-24,effort-x,files-api-2025-04-14', 'openai-beta': 'x=1' }
  expect(allowedHeaders(headers, vendor, limited)).toEqual({ 'anthropic-beta': 'effort-2025-11-24' })
  expect(allowedHeaders(headers, vendor, everyone)).toEqual(headers)
  const passthroughRules = { applies_to: 'all_tokens' as const, allow: ['headers.openai-beta.x=1'] }
  expect(allowedHeaders(headers, { ...vendor, passthroughRules }, everyone)).toEqual({
    'anthropic-beta': 'effort-2025-11-24',
    'openai-beta': 'x=1',
  })
})

test('fields that coding agents send by default are allowed, or rejected with the code that they expect', () => {
  const body = {
    input: [
      { type: 'additional_tools', role: 'developer', tools: [{ type: 'namespace', name: 'n', tools: [] }] },
      { type: 'message', role: 'user', content: 'x', internal_chat_message_metadata_passthrough: { turn_id: 't' } },
      {
        type: 'agent_message',
        author: '/root',
        recipient: '/root/one',
        content: [{ type: 'encrypted_content', encrypted_content: 'x' }],
      },
      { type: 'function_call', call_id: 'c', namespace: 'n', name: 'f', arguments: '{}' },
    ],
    tools: [{ type: 'web_search', external_web_access: false }],
    tool_choice: { type: 'function', namespace: 'n', name: 'f' },
    client_metadata: { session_id: 's' },
    reasoning: { effort: 'low', context: 'all_turns' },
  }
  expect(refusedAt(() => assertBody(body, 'chatcompat-response', vendor, limited))).toBeUndefined()
  const thread = { messages: [], thread: { type: 'create' } }
  expect(() => assertBody(thread, 'messages-compat', vendor, limited)).toThrow(
    expect.objectContaining({ code: 'thread_unsupported_request' }),
  )
  expect(() => assertBody({ ...thread, container: 'c' }, 'messages-compat', vendor, everyone)).not.toThrow()
})
