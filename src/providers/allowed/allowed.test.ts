/** Tests the lists of fields that reach no other model. */
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

function rejectedParam(check: () => void): string | undefined {
  try {
    check()
    return undefined
  } catch (error) {
    return (error as GatewayError).detail.param
  }
}

/** The paths of all members of a list, at any depth. */
function pathsIn(shape: Shape, seen = new Set<Shape>(), path = ''): string[] {
  const resolved = typeof shape === 'function' ? shape() : shape
  if (typeof resolved === 'string' || 'accepts' in resolved || seen.has(resolved)) return []
  seen.add(resolved)
  const { members = {}, by_type = {}, others = 'value' }: ObjectShape = resolved
  const rows = [members, ...Object.values(by_type), { '*': others }].flatMap((row) => Object.entries(row))
  return rows.flatMap(([name, inner]) => [`${path}.${name}`, ...pathsIn(inner, seen, `${path}.${name}`)])
}

const LISTS = { MESSAGES, RESPONSES, CONTENTGEN, CHAT_COMPLETIONS, CHAT_OPTIONS, EXTRAS }
/** Member names that refer to models, adapters, or things in an account. */
const RISKY =
  /model|fallback|lora|checkpoint|advis|adapter|router?\b|plugin|preset|file_?id|vector|cached|conversation|bucket|uri$|webhook|callback/i
/** The gateway sets `model`; a seed refers to nothing; annotations come from earlier responses; URIs are checked. */
const HARMLESS =
  /^\.model$|\.modelSeed$|\.savePreRemeshedModel$|\.motionBucketId$|\.(annotations|citations)\.(file_id|container_id)$|\.fileUri$/

test.each(Object.entries(LISTS))(
  '%s contains no field that names a model, an adapter or a thing in an account',
  (_, list) => {
    const names = pathsIn(list)
    expect(names.length).toBeGreaterThan(20)
    expect(names.filter((name) => RISKY.test(name.slice(name.lastIndexOf('.') + 1)) && !HARMLESS.test(name))).toEqual(
      [],
    )
  },
)

describe('rejects other names of models, adapters and callbacks in', () => {
  const rejected = {
    model: 'x',
    model_name: 'x',
    Models: ['x'],
    loras: [{ path: 'x' }],
    modelId: 'x',
    fallbacks: ['x'],
    webhook: 'x',
  }

  test.each(Object.keys(EXTRAS.members ?? {}))('metadata.%s', (kind) => {
    for (const [name, value] of Object.entries(rejected)) {
      const order = { metadata: { [kind]: { [name]: value } } }
      expect(rejectedParam(() => assertOrder(order, vendor, limited))).toBe(`metadata.${kind}.${name}`)
      expect(rejectedParam(() => assertOrder(order, vendor, everyone))).toBeUndefined()
    }
    expect(rejectedParam(() => assertOrder({ metadata: { [kind]: 'x' } }, vendor, limited))).toBeUndefined()
  })

  test.each(Object.keys(CHAT_OPTIONS.members ?? {}))('provider_options.%s', (kind) => {
    for (const [name, value] of Object.entries(rejected)) {
      const options = { [kind]: { [name]: value } }
      expect(rejectedParam(() => assertOptions(options, vendor, limited))).toBe(`provider_options.${kind}.${name}`)
      expect(rejectedParam(() => assertOptions(options, vendor, everyone))).toBeUndefined()
    }
  })
})

test('accepts documented options in camel case and in snake case', () => {
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
    rejectedParam(() =>
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
  expect(rejectedParam(() => assertOptions(options, vendor, limited))).toBeUndefined()
})

test.each(['gs://b/x', 'asset://1', 'runway://1', ' s3:x', 'https://storage.cloud.google.com/b/x'])(
  'rejects %s, a file in the account',
  (image) => {
    expect(rejectedParam(() => assertOrder({ image }, vendor, limited))).toBe('image')
    expect(rejectedParam(() => assertOrder({ images: ['https://x.example/a.png', image] }, vendor, limited))).toBe(
      'images[1]',
    )
  },
)

test('accepts every field for the sandbox, which sends no requests', () => {
  expect(
    rejectedParam(() => assertBody({ any: {} }, 'messages-compat', { id: 's', kind: 'sandbox' }, limited)),
  ).toBeUndefined()
})

test('passes known headers, those the operator allows, and all headers of an unlimited token', () => {
  const headers = { 'anthropic-beta': 'effort-2025-11-24,effort-x,files-api-2025-04-14', 'openai-beta': 'x=1' }
  expect(allowedHeaders(headers, vendor, limited)).toEqual({ 'anthropic-beta': 'effort-2025-11-24' })
  expect(allowedHeaders(headers, vendor, everyone)).toEqual(headers)
  const passthroughRules = { applies_to: 'all_tokens' as const, allow: ['headers.openai-beta.x=1'] }
  expect(allowedHeaders(headers, { ...vendor, passthroughRules }, everyone)).toEqual({
    'anthropic-beta': 'effort-2025-11-24',
    'openai-beta': 'x=1',
  })
})

test('accepts what coding agents send by default, or rejects it with the code that they handle', () => {
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
  expect(rejectedParam(() => assertBody(body, 'chatcompat-response', vendor, limited))).toBeUndefined()
  const thread = { messages: [], thread: { type: 'create' } }
  expect(() => assertBody(thread, 'messages-compat', vendor, limited)).toThrow(
    expect.objectContaining({ code: 'thread_unsupported_request' }),
  )
  expect(() => assertBody({ ...thread, container: 'c' }, 'messages-compat', vendor, everyone)).not.toThrow()
})
