/**
 * How each kind of provider gets each field of a chat request: sent, dropped, or rejected by name. This is measured: each
 * field goes through the whole gateway, and the request to the provider is compared with the one without the field. The
 * manual's table is the result; GATEHOUSE_WRITE_TABLES=1 writes it.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import type { ProviderKind } from '../src/config/schema/provider-kinds.ts'
import { ChatRequest } from '../src/spec/chat-request.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { manualPath } from './kit/manual.ts'
import { failure, startVendor, type Vendor } from './kit/vendor.ts'

type Column = { kind: ProviderKind; model: string; base: string }

/** Models with names that each kind knows as current ones. */
const COLUMNS: Column[] = [
  { kind: 'chatcompat', model: 'some-model', base: '/v1' },
  { kind: 'messages-compat', model: 'claude-opus-5', base: '' },
  { kind: 'responses-compat', model: 'gpt-6-sol', base: '/v1' },
  { kind: 'contentgen-compat', model: 'gemini-3-flash', base: '/v1beta' },
  { kind: 'amazon-bedrock', model: 'eu.anthropic.claude-sonnet-4-20250514-v1:0', base: '' },
  { kind: 'google-vertex', model: 'gemini-3-flash', base: '/v1/publishers/google' },
  { kind: 'azure', model: 'my-deployment', base: '/openai' },
  { kind: 'mistral', model: 'mistral-large-latest', base: '/v1' },
  { kind: 'cohere', model: 'command-a-reasoning-08-2025', base: '/v2' },
  { kind: 'xai', model: 'grok-4-1', base: '/v1' },
  { kind: 'groq', model: 'openai/gpt-oss-120b', base: '/openai/v1' },
  { kind: 'deepseek', model: 'deepseek-v4-pro', base: '/v1' },
]

const TOOL = {
  type: 'function',
  function: {
    name: 'look',
    description: 'Looks.',
    parameters: { type: 'object', properties: { what: { type: 'string' } } },
  },
}
const SCHEMA = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false }
const PIXEL =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const PDF = `data:application/pdf;base64,${Buffer.from('%PDF-1.4 x').toString('base64')}`
const WAV = Buffer.from('RIFF0000WAVEfmt ').toString('base64')

type Probe = {
  what: string
  /** The fields of the request that the probe is about. */
  fields: (keyof typeof ChatRequest.properties)[]
  body: Record<string, unknown>
  /** Other fields of the comparison. */
  beside?: Record<string, unknown>
}

const summary = (content: unknown) => ({ messages: [{ role: 'user', content }] })
const withPart = (part: object) => summary([{ type: 'text', text: 'Hello' }, part])
const field = (
  name: keyof typeof ChatRequest.properties,
  value: unknown,
  beside: Record<string, unknown> = {},
): Probe => ({
  what: `\`${name}\``,
  fields: [name],
  body: { [name]: value },
  beside,
})
const tools = { tools: [TOOL] }

const PROBES: Probe[] = [
  { what: 'image input', fields: ['messages'], body: withPart({ type: 'image_url', image_url: { url: PIXEL } }) },
  {
    what: 'audio input',
    fields: ['messages'],
    body: withPart({ type: 'input_audio', input_audio: { data: WAV, format: 'wav' } }),
  },
  {
    what: 'files (PDF)',
    fields: ['messages'],
    body: withPart({ type: 'file', file: { file_data: PDF, filename: 'a.pdf' } }),
  },
  field('tools', [TOOL]),
  { ...field('tool_choice', 'required', tools), what: '`tool_choice: required`' },
  {
    ...field('tool_choice', { type: 'function', function: { name: 'look' } }, tools),
    what: '`tool_choice` of one function',
  },
  field('parallel_tool_calls', false, tools),
  {
    what: '`functions`, `function_call`',
    fields: ['functions', 'function_call'],
    body: { functions: [TOOL.function] },
  },
  { ...field('response_format', { type: 'json_object' }), what: '`response_format: json_object`' },
  {
    ...field('response_format', { type: 'json_schema', json_schema: { name: 'a', schema: SCHEMA, strict: true } }),
    what: '`response_format: json_schema`',
  },
  field('max_tokens', 77),
  field('max_completion_tokens', 77),
  field('temperature', 0.3),
  field('top_p', 0.3),
  field('top_k', 7),
  field('frequency_penalty', 0.3),
  field('presence_penalty', 0.3),
  field('repetition_penalty', 1.2),
  field('seed', 7),
  field('stop', ['END']),
  { ...field('n', 2), what: '`n` above 1' },
  field('logprobs', true),
  field('top_logprobs', 3, { logprobs: true }),
  field('logit_bias', { 50256: -100 }),
  field('reasoning_effort', 'low'),
  field('reasoning_budget', 2048),
  field('reasoning_summary', 'detailed'),
  field('thinking_enabled', true),
  field('web_search', { enable: true }),
  field('web_search_options', {}),
  field('verbosity', 'low'),
  field('user', 'u-1'),
  field('safety_identifier', 's-1'),
  field('metadata', { a: 'b' }),
  field('store', true),
  field('service_tier', 'flex'),
  field('prediction', { type: 'content', content: 'x' }),
  field('prompt_cache_key', 'k'),
  field('prompt_cache_options', { ttl: '24h' }),
  field('modalities', ['text', 'audio'], {}),
  field('audio', { voice: 'alloy', format: 'mp3' }, { modalities: ['text', 'audio'] }),
]

/** Fields that every request has, that only select the format of the response, or that the page explains in text. */
/** `usage` asks the gateway for the cost. */
const NOT_PROBED = ['model', 'messages', 'stream', 'stream_options', 'provider_options', 'function_call', 'usage']

let vendor: Vendor
let gateway: TestGateway
beforeAll(async () => {
  vendor = startVendor()
  vendor.otherwise(failure(500))
  const providers = COLUMNS.map(({ kind, base }) => [kind, { kind, base_url: vendor.origin + base, key: 'k' }])
  const models = COLUMNS.map(({ kind, model }) => [
    `${kind}/m`,
    { targets: [{ provider: kind, model }], fields: ['repetition_penalty', 'thinking_enabled', 'web_search'] },
  ])
  gateway = await startGateway({
    sandbox: false,
    providers: Object.fromEntries(providers),
    models: Object.fromEntries(models),
  })
})
afterAll(async () => {
  await gateway[Symbol.asyncDispose]()
  await vendor.stop()
})

type FieldHandling = 'sent' | 'dropped' | 'rejected'

/** The request to the provider, without what differs from request to request; undefined if it was refused. */
async function sentValueOf({ kind }: Column, body: Record<string, unknown>): Promise<string | undefined> {
  const first = vendor.requests.length
  const json = { model: `${kind}/m`, ...summary('Hello'), ...body }
  const response = await gateway.chat(json)
  const { error } = (await response.json()) as { error: { code: string; message: string; param: string | null } }
  const request = vendor.requests[first]
  if (request) return request.body
  expect([kind, error.code]).toEqual([kind, expect.stringMatching(/^unsupported_(parameter|value)$/)])
  expect([kind, error.param]).not.toEqual([kind, null])
  return undefined
}

async function handlingOf(column: Column, { body, beside = {} }: Probe): Promise<FieldHandling> {
  const without = await sentValueOf(column, beside)
  const requested = await sentValueOf(column, { ...beside, ...body })
  if (requested === undefined) return 'rejected'
  return requested === without ? 'dropped' : 'sent'
}

test('every field of a chat request is probed', () => {
  const looked = new Set([...NOT_PROBED, ...PROBES.flatMap(({ fields }) => fields)])
  expect(Object.keys(ChatRequest.properties).filter((name) => !looked.has(name))).toEqual([])
})

test('the table of the manual shows the measured handling', async () => {
  const fields = new Map<string, string[]>()
  for (const probe of PROBES) {
    const handlings: { kind: ProviderKind; mapping: FieldHandling }[] = []
    // One at a time: requests to the provider are identified by their order.
    for (const column of COLUMNS) handlings.push({ ...column, mapping: await handlingOf(column, probe) })
    const handled = (['dropped', 'rejected'] as const)
      .map((mapping) => ({ mapping, kinds: kindsWith(mapping, handlings) }))
      .filter(({ kinds }) => kinds !== '')
    const handling = handled.map(({ mapping, kinds }) => `${mapping} for ${kinds}`).join('; ') || 'sent to all'
    fields.set(handling, [...(fields.get(handling) ?? []), probe.what])
  }
  const lines = [...fields].map(([handling, names]) => `- ${names.join(', ')}: ${handling}`)
  const generated = `${START}\n\n${lines.join('\n')}\n\n${END}`
  const page = readFileSync(PAGE, 'utf8')
  const [head, tail] = [page.slice(0, page.indexOf(START)), page.slice(page.indexOf(END) + END.length)]
  if (process.env.GATEHOUSE_WRITE_TABLES) writeFileSync(PAGE, head + generated + tail)
  expect(readFileSync(PAGE, 'utf8')).toBe(head + generated + tail)
}, 120_000)

/** The kinds with this handling, or all kinds except the others, whichever is shorter. */
function kindsWith(mapping: FieldHandling, handlings: { kind: ProviderKind; mapping: FieldHandling }[]): string {
  const named = (isListed: boolean) =>
    handlings
      .filter((one) => (one.mapping === mapping) === isListed)
      .map(({ kind }) => `\`${kind}\``)
      .join(', ')
  const kinds = handlings.filter((one) => one.mapping === mapping).length
  if (kinds === handlings.length) return 'all'
  return kinds > handlings.length / 2 ? `all but ${named(false)}` : named(true)
}

const PAGE = manualPath('translation.md')
const START = '<!-- Generated: test/translation-table.test.ts -->'
const END = '<!-- End. -->'
