/** A chat request as the call options of AI SDK packages. */
import type { JSONObject, JSONValue } from '@ai-sdk/provider'
import type { ProviderConfig } from '../../../config/schema.ts'
import { isRecord, type JsonRecord } from '../../../kit/json.ts'
import { ChatRequest } from '../../../protocols/canonical.ts'
import { createRequestMedia, type Media } from '../../media.ts'
import type { ChatCall } from '../../provider.ts'
import { assertNothingLost, searchOf } from './meaning.ts'
import { promptOf } from './prompt.ts'
import type { CallOptions, ChatVendor, PackageTool } from './vendor.ts'

type RequestParts = { vendor: ChatVendor; config: ProviderConfig; media: Media; signal: AbortSignal }

const JSON_ONLY = 'Answer with one JSON object and with nothing else: no words around it and no code fence.'

/** Throws `unsupported_parameter` for what would be lost. */
export async function optionsOf(
  { model, request: whole, request_id }: ChatCall,
  parts: RequestParts,
): Promise<CallOptions> {
  const { vendor, config } = parts
  const dropped = config.fields?.drop ?? []
  assertNothingLost(whole, vendor, dropped)
  const filled = without(withDefaults(whole, config.request_defaults), dropped)
  const request = fitted(filled, vendor, model)
  // What goes to the vendor under a name of its own is not told twice.
  const plain = without(request, Object.keys(config.fields?.rename ?? {}))
  const format = request.response_format
  const messages =
    vendor.jsonByWords && format?.type === 'json_object'
      ? [{ role: 'system' as const, content: JSON_ONLY }, ...request.messages]
      : request.messages
  const search = searchOf(request)
  const searching = search ? vendor.search?.(search) : undefined
  return {
    prompt: await promptOf(messages, { ...parts, media: createRequestMedia(parts.media), model }),
    includeRawChunks: false,
    headers: { 'x-request-id': request_id },
    ...samplingOf(plain),
    ...toolsOf(plain, searching?.tool),
    ...formatOf(format),
    ...(plain.reasoning_effort === undefined ? {} : { reasoning: plain.reasoning_effort }),
    providerOptions: { [vendor.namespace]: { ...optionsFor(request, model, parts), ...searching?.options } },
  }
}

/** Without thinking, where the vendor would refuse it: a call is demanded, or an earlier one was made without. */
function fitted(request: ChatRequest, { barsThinking }: ChatVendor, model: string): ChatRequest {
  if (!barsThinking?.test(model)) return request
  const { messages, tool_choice: choice } = request
  const isForced = choice === 'required' || (typeof choice === 'object' && choice.type === 'function')
  const caller = messages.at(-1)?.role === 'tool' ? messages.findLast(({ role }) => role === 'assistant') : undefined
  const isUnsigned = caller !== undefined && !caller.reasoning_details?.some(({ opaque }) => opaque)
  return isForced || isUnsigned
    ? without(request, ['reasoning_effort', 'reasoning_budget', 'thinking_enabled'])
    : request
}

function withDefaults(request: ChatRequest, defaults: Record<string, unknown> = {}): ChatRequest {
  const filled: JsonRecord = { ...request }
  for (const [field, value] of Object.entries(defaults)) {
    if (field !== 'model' && field !== 'messages' && field !== 'stream') filled[field] ??= value
  }
  // One word for the limit, the one that wins.
  if (filled.max_completion_tokens !== undefined) filled.max_tokens = filled.max_completion_tokens
  delete filled.max_completion_tokens
  return filled as ChatRequest
}

function without(request: ChatRequest, fields: string[]): ChatRequest {
  const left: JsonRecord = { ...request }
  for (const field of fields) if (field !== 'model' && field !== 'messages') delete left[field]
  return left as ChatRequest
}

function samplingOf(request: ChatRequest): Partial<CallOptions> {
  const { max_tokens, temperature, top_p, top_k, presence_penalty, frequency_penalty, seed, stop } = request
  const stops = typeof stop === 'string' ? [stop] : (stop ?? [])
  return {
    ...(max_tokens === undefined ? {} : { maxOutputTokens: max_tokens }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(top_p === undefined ? {} : { topP: top_p }),
    ...(top_k === undefined || top_k === 0 ? {} : { topK: top_k }),
    // Zero is every vendor's default, and some refuse the very field.
    ...(presence_penalty ? { presencePenalty: presence_penalty } : {}),
    ...(frequency_penalty ? { frequencyPenalty: frequency_penalty } : {}),
    ...(seed === undefined ? {} : { seed }),
    ...(stops.length === 0 ? {} : { stopSequences: stops }),
  }
}

function toolsOf(request: ChatRequest, search: PackageTool | undefined): Partial<CallOptions> {
  const { tool_choice: choice } = request
  const allowed = typeof choice === 'object' && choice.type === 'allowed_tools' ? choice.allowed_tools : undefined
  const names =
    allowed && new Set(allowed.tools.map((tool) => (isRecord(tool.function) ? tool.function.name : tool.name)))
  const tools: PackageTool[] = (request.tools ?? [])
    .filter((tool) => !names || names.has(tool.function.name))
    .map(({ function: told }) => ({
      type: 'function',
      name: told.name,
      ...(told.description === undefined ? {} : { description: told.description }),
      inputSchema: told.parameters ?? { type: 'object', properties: {} },
      ...(typeof told.strict === 'boolean' ? { strict: told.strict } : {}),
    }))
  if (search) tools.push(search)
  if (tools.length === 0) return {}
  const chosen = allowed ? allowed.mode : choice
  if (chosen === undefined) return { tools }
  if (typeof chosen === 'string') return { tools, toolChoice: { type: chosen } }
  return chosen.type === 'function'
    ? { tools, toolChoice: { type: 'tool', toolName: chosen.function.name } }
    : { tools }
}

function formatOf(format: ChatRequest['response_format']): Partial<CallOptions> {
  if (format?.type === 'json_object') return { responseFormat: { type: 'json' } }
  if (format?.type !== 'json_schema') return {}
  const { name, description, schema = { type: 'object' } } = format.json_schema
  return { responseFormat: { type: 'json', schema, name, ...(description === undefined ? {} : { description }) } }
}

/** Decided by fields of the house's, so that limits hold: not to be set again by a vendor's own option. */
const COVERED =
  /^(model|modelid|messages|input|prompt|system|instructions|contents|stream|n|tools|toolconfig|toolchoice|max(output|completion|new)?tokens|maxtokenstosample|inferenceconfig|generationconfig|baseurl|headers|previousresponseid)$/

/** What the package knows beyond the words that all share. */
function optionsFor(request: ChatRequest, model: string, { vendor, config }: RequestParts): JSONObject {
  const given: JsonRecord = request
  const extras: JSONObject = {}
  const names = {
    ...vendor.options,
    ...Object.fromEntries((config.fields?.allow ?? []).map((field) => [field, field])),
  }
  for (const [field, name] of Object.entries({ ...names, ...config.fields?.rename })) {
    if (given[field] != null) extras[name] = given[field] as JSONValue
  }
  for (const [field, value] of Object.entries(config.request_defaults ?? {})) {
    if (!Object.hasOwn(ChatRequest.properties, field)) extras[field] ??= value as JSONValue
  }
  const format = request.response_format
  if (vendor.hasStrictSchemas && format?.type === 'json_schema') {
    extras.strictJsonSchema = format.json_schema.strict ?? false
  }
  const { reasoning_effort: effort } = request
  if (effort !== undefined && effort !== 'none') Object.assign(extras, vendor.showsThoughts)
  const wanted = thinkingOf(request)
  if (wanted && vendor.thinking) Object.assign(extras, vendor.thinking(wanted, model))
  const own = request.provider_options?.[vendor.kind]
  return { ...extras, ...(own ? uncovered(own) : {}) }
}

function thinkingOf({ reasoning_budget: budget, thinking_enabled, reasoning_effort }: ChatRequest) {
  if (budget !== undefined) return { budget, enabled: budget !== 0 }
  // An effort says it better.
  return thinking_enabled === undefined || reasoning_effort !== undefined ? undefined : { enabled: thinking_enabled }
}

/** Names are compared without case and underscores, at every depth. */
function uncovered(options: JsonRecord): JSONObject {
  const kept = Object.entries(options).filter(([name]) => !COVERED.test(name.toLowerCase().replaceAll(/[_-]/g, '')))
  return Object.fromEntries(
    kept.map(([name, value]) => [name, isRecord(value) ? uncovered(value) : (value as JSONValue)]),
  )
}
