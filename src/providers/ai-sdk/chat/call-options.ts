/** Encodes a chat request as the call options of AI SDK packages. */
import type { JSONObject, JSONValue } from '@ai-sdk/provider'
import type { ProviderConfig } from '../../../config/schema/schema.ts'
import { isRecord, type JsonRecord } from '../../../kit/json.ts'
import { ChatRequest } from '../../../protocols/shared/canonical.ts'
import { allowedFunctions } from '../../../protocols/shared/tool-choice.ts'
import { createRequestMedia, type Media } from '../../media.ts'
import type { ChatCall } from '../../provider.ts'
import type { CallOptions, ChatVendor, PackageTool } from './chat-family.ts'
import { promptOf } from './prompt.ts'
import { assertSupported, searchOf } from './unsupported.ts'

type RequestParts = { vendor: ChatVendor; config: ProviderConfig; media: Media; signal: AbortSignal }

const JSON_ONLY = 'Answer with one JSON object and with nothing else: no words around it and no code fence.'

/** Throws `unsupported_parameter` for what would be dropped. */
export async function optionsOf({ model, request: original }: ChatCall, parts: RequestParts): Promise<CallOptions> {
  const { vendor, config } = parts
  const dropped = config.fields?.drop ?? []
  assertSupported(original, vendor, dropped)
  const filled = without(withDefaults(original, config.request_defaults), dropped)
  const request = withAllowedReasoning(filled, vendor, model)
  // A renamed field is not sent under its common name too.
  const unrenamed = without(request, Object.keys(config.fields?.rename ?? {}))
  const format = request.response_format
  const messages =
    vendor.jsonByPrompt && format?.type === 'json_object'
      ? [{ role: 'system' as const, content: JSON_ONLY }, ...request.messages]
      : request.messages
  const search = searchOf(request)
  const webSearch = search ? vendor.search?.(search) : undefined
  return {
    prompt: await promptOf(messages, { ...parts, media: createRequestMedia(parts.media), model }),
    includeRawChunks: false,
    ...samplingOf(unrenamed),
    ...toolsOf(unrenamed, webSearch?.tool),
    ...formatOf(format),
    ...(unrenamed.reasoning_effort === undefined ? {} : { reasoning: unrenamed.reasoning_effort }),
    providerOptions: { [vendor.namespace]: { ...optionsFor(request, model, parts), ...webSearch?.options } },
  }
}

/** Without reasoning, where the vendor would refuse it: a tool call is required, or an earlier one came without reasoning. */
function withAllowedReasoning(request: ChatRequest, vendor: ChatVendor, model: string): ChatRequest {
  if (!vendor.noReasoningWithForcedTools?.test(model)) return request
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
  // Of the two fields for the limit, this one wins.
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
    // Zero is the default of every vendor, and some refuse the field itself.
    ...(presence_penalty ? { presencePenalty: presence_penalty } : {}),
    ...(frequency_penalty ? { frequencyPenalty: frequency_penalty } : {}),
    // The packages only write it into a body.
    ...(seed === undefined ? {} : { seed: seed as number }),
    ...(stops.length === 0 ? {} : { stopSequences: stops }),
  }
}

function toolsOf(request: ChatRequest, search: PackageTool | undefined): Partial<CallOptions> {
  const { functions, choice } = allowedFunctions(request)
  const tools = functions.map(
    ({ function: { name, description, parameters, strict } }): PackageTool => ({
      type: 'function',
      name,
      ...(description === undefined ? {} : { description }),
      inputSchema: parameters ?? { type: 'object', properties: {} },
      ...(typeof strict === 'boolean' ? { strict } : {}),
    }),
  )
  if (search) tools.push(search)
  if (tools.length === 0) return {}
  if (choice === undefined) return { tools }
  if (typeof choice === 'string') return { tools, toolChoice: { type: choice } }
  return { tools, toolChoice: { type: 'tool', toolName: choice.function.name } }
}

function formatOf(format: ChatRequest['response_format']): Partial<CallOptions> {
  if (format?.type === 'json_object') return { responseFormat: { type: 'json' } }
  if (format?.type !== 'json_schema') return {}
  const { name, description, schema = { type: 'object' } } = format.json_schema
  return { responseFormat: { type: 'json', schema, name, ...(description === undefined ? {} : { description }) } }
}

/** Set by fields of the specification, to which limits apply, so a vendor's own option may not set them again. */
const COVERED =
  /^(model|modelid|messages|input|prompt|system|instructions|contents|stream|n|tools|toolconfig|toolchoice|max(output|completion|new)?tokens|maxtokenstosample|inferenceconfig|generationconfig|baseurl|headers|previousresponseid)$/

function optionsFor(request: ChatRequest, model: string, { vendor, config }: RequestParts): JSONObject {
  const fields: JsonRecord = request
  const extras: JSONObject = {}
  const names = {
    ...vendor.options,
    ...Object.fromEntries((config.fields?.allow ?? []).map((field) => [field, field])),
  }
  for (const [field, name] of Object.entries({ ...names, ...config.fields?.rename })) {
    if (fields[field] != null) extras[name] = fields[field] as JSONValue
  }
  for (const [field, value] of Object.entries(config.request_defaults ?? {})) {
    if (!Object.hasOwn(ChatRequest.properties, field)) extras[field] ??= value as JSONValue
  }
  const format = request.response_format
  if (vendor.hasStrictSchemas && format?.type === 'json_schema') {
    extras.strictJsonSchema = format.json_schema.strict ?? false
  }
  const { reasoning_effort: effort } = request
  if (effort !== undefined && effort !== 'none') Object.assign(extras, vendor.showReasoning)
  const thinking = thinkingOf(request)
  if (thinking && vendor.thinking) Object.assign(extras, vendor.thinking(thinking, model))
  const own = request.provider_options?.[vendor.kind]
  return { ...extras, ...(own ? uncovered(own) : {}) }
}

function thinkingOf({ reasoning_budget: budget, thinking_enabled, reasoning_effort }: ChatRequest) {
  if (budget !== undefined) return { budget, enabled: budget !== 0 }
  // An effort is more precise.
  return thinking_enabled === undefined || reasoning_effort !== undefined ? undefined : { enabled: thinking_enabled }
}

/** Compares names without case and underscores, at every depth. */
function uncovered(options: JsonRecord): JSONObject {
  const allowed = Object.entries(options).filter(([name]) => !COVERED.test(name.toLowerCase().replaceAll(/[_-]/g, '')))
  return Object.fromEntries(
    allowed.map(([name, value]) => [name, isRecord(value) ? uncovered(value) : (value as JSONValue)]),
  )
}
