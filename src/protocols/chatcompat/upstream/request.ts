/**
 * Encodes a chat request for OpenAI-shaped providers: allowed fields only, under the provider's names. Unsupported
 * features are refused by name.
 */
import { isRecord } from '../../../kit/json.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { ContentPart } from '../../../spec/message.ts'
import type { ChatRequest, ChatRequestField, Message } from '../../shared/canonical.ts'
import { HAS_EFFECT } from '../../shared/field-rules.ts'
import type { BodyOptions, UpstreamCall } from '../../shared/upstream.ts'
import { customHistory, toolFields } from './custom-tools.ts'

/**
 * Fields of a client's request that are forwarded. `model`, `messages`, `stream`, token limits and usage are set
 * separately.
 */
const FORWARDED = [
  'frequency_penalty',
  'presence_penalty',
  'temperature',
  'top_p',
  'repetition_penalty',
  'thinking_enabled',
  'web_search',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'response_format',
  'n',
  'stop',
  'seed',
  'logprobs',
  'top_logprobs',
  'logit_bias',
  'reasoning_effort',
  'verbosity',
  'user',
  'safety_identifier',
  'metadata',
  'store',
  'service_tier',
  'prediction',
  'prompt_cache_key',
  'prompt_cache_options',
  'modalities',
  'audio',
  'web_search_options',
  'functions',
  'function_call',
] as const satisfies ChatRequestField[]

/** Fields that the gateway sets. The operator's lists and defaults cannot replace them. */
const RESERVED = new Set(['model', 'messages', 'stream', 'stream_options'])

const { function_call: _, ...others } = HAS_EFFECT
/** For each field that a provider may not accept: whether leaving it out would change the response. */
const ALTERS_RESPONSE: { [field in ChatRequestField]?: (request: ChatRequest) => boolean } = {
  ...others,
  web_search_options: (request) => request.web_search_options !== undefined,
}

/** The operator's settings for requests to an OpenAI-shaped provider. */
type ChatcompatOptions = BodyOptions & {
  quirks: Record<
    'stream_usage' | 'developer_role' | 'tools' | 'custom_tools' | 'json_schema' | 'multiple_choices',
    boolean
  >
}

/** Creates the encoder of one provider, which returns JSON text. It throws `unsupported_parameter`. */
export function createBodyEncoder(settings: ChatcompatOptions): (call: UpstreamCall, stream: boolean) => string {
  const { quirks, request_defaults, fields } = settings
  const dropped = new Set(fields.drop)
  const wireName = (field: string) => fields.rename[field] ?? field
  const forwarded = new Map(
    [...FORWARDED, ...fields.allow]
      .filter((field) => !dropped.has(field) && !RESERVED.has(field) && !field.startsWith('messages.'))
      .map((field) => [field, wireName(field)]),
  )
  const maxTokens = wireName('max_tokens')
  const takesReasoning = forwarded.has('reasoning')
  const defaults = Object.entries(request_defaults).filter(([field]) => !RESERVED.has(field))
  const encodeMessages = createMessageEncoder(settings)

  return ({ model, request }, stream) => {
    assertSupported(request, quirks, dropped)
    const fields = request.tools || request.tool_choice ? toolFields(request, quirks.custom_tools) : undefined
    const given: Record<string, unknown> = fields
      ? { ...request, tools: undefined, tool_choice: undefined, ...fields }
      : request
    const messages = encodeMessages(plainHistory(request.messages))
    const body: Record<string, unknown> = { model, messages: quirks.custom_tools ? customHistory(messages) : messages }
    const limit = request.max_completion_tokens ?? request.max_tokens
    if (limit !== undefined && !dropped.has('max_tokens')) body[maxTokens] = limit
    for (const field in given) {
      const name = forwarded.get(field)
      const value = given[field]
      if (name !== undefined && value !== undefined && value !== null) body[name] = value
    }
    if (takesReasoning && setsEffort(given.reasoning)) delete body[wireName('reasoning_effort')]
    // Providers refuse an empty list of tools, which has no effect.
    if (request.tools?.length === 0) delete body[wireName('tools')]
    for (const [field, value] of defaults) body[wireName(field)] ??= value
    if (stream) {
      body.stream = true
      if (quirks.stream_usage) body.stream_options = { include_usage: true }
    }
    return JSON.stringify(body)
  }
}

/** A provider with OpenRouter's field refuses the same in another field. */
const setsEffort = (reasoning: unknown): boolean =>
  isRecord(reasoning) && (reasoning.effort ?? reasoning.max_tokens ?? reasoning.enabled ?? null) !== null

function assertSupported(request: ChatRequest, quirks: ChatcompatOptions['quirks'], dropped: Set<string>): void {
  if (!quirks.tools) {
    if (request.tools?.length) throw unsupported(request, 'tools')
    if (request.functions?.length) throw unsupported(request, 'functions')
  }
  if (!quirks.json_schema && request.response_format?.type === 'json_schema')
    throw unsupported(request, 'response_format')
  if (!quirks.multiple_choices && (request.n ?? 1) > 1) throw unsupported(request, 'n')
  if (dropped.size === 0) return
  for (const [field, isUsed] of Object.entries(ALTERS_RESPONSE)) {
    if (dropped.has(field) && isUsed(request)) throw unsupported(request, field)
  }
}

const INSTEAD: Record<string, string> = { n: '; request one choice', response_format: '; json_object may work' }

const unsupported = (request: ChatRequest, param: string) =>
  new GatewayError(
    'unsupported_parameter',
    `The model ${request.model} does not support "${param}" as requested${INSTEAD[param] ?? '; leave it out'}.`,
    { param },
  )

/** Applies the operator's settings to messages. Returns the same array if nothing has to change. */
function createMessageEncoder({ quirks, fields }: ChatcompatOptions): (messages: Message[]) => Message[] {
  const drop = fields.drop.filter((name) => name.startsWith('messages.')).map((name) => name.slice(9))
  const rename = Object.entries(fields.rename)
    .filter(([name]) => name.startsWith('messages.'))
    .map(([name, to]) => [name.slice(9), to] as const)
  const touched = [...drop, ...rename.map(([name]) => name)]
  const hasTouched = (message: Message) => touched.some((name) => name in message)
  const needsChange = (message: Message) =>
    (message.role === 'developer' && !quirks.developer_role) || (touched.length > 0 && hasTouched(message))
  function encode(message: Message): Message {
    if (!needsChange(message)) return message
    const copy: Record<string, unknown> = { ...message }
    if (message.role === 'developer' && !quirks.developer_role) copy.role = 'system'
    for (const [name, to] of rename) if (name in copy) copy[to] = copy[name]
    for (const name of touched) delete copy[name]
    return copy as Message
  }
  if (touched.length === 0 && quirks.developer_role) return (messages) => messages
  return (messages) => (messages.some(needsChange) ? messages.map(encode) : messages)
}

/** Returns the same array if nothing has to change, which is the usual case. */
export const plainHistory = (messages: Message[]): Message[] =>
  messages.some(isForeign) ? rewritten(messages) : messages

function rewritten(messages: Message[]): Message[] {
  const out: Message[] = []
  /** A tool message may hold only text. Other parts of a tool result follow in a user message. */
  let pending: ContentPart[] = []
  const flush = () => {
    if (pending.length > 0) out.push({ role: 'user', content: pending })
    pending = []
  }
  for (const [index, message] of messages.entries()) {
    if (message.role !== 'tool') flush() // the results of parallel calls must stay together
    refuseAddresses(message, index)
    out.push(plain(message))
    if (message.role === 'tool') pending.push(...nonTextParts(message))
  }
  flush()
  return out
}

const isForeign = (message: Message): boolean =>
  message.reasoning_details !== undefined ||
  message.is_error !== undefined ||
  message.images !== undefined ||
  (message.tool_calls?.some(({ opaque }) => opaque !== undefined) ?? false) ||
  (Array.isArray(message.content) && (message.role === 'tool' || message.content.some(isAddressedFile)))

const isAddressedFile = (part: ContentPart): boolean => part.type === 'file' && part.file.file_url !== undefined

/**
 * Reasoning that another vendor signed is useless to this one, and so is its text. Unsigned reasoning is kept: it
 * most likely came from this vendor, and some vendors refuse an earlier call without it.
 */
function plain(message: Message): Message {
  const { reasoning_details, is_error: _, images: _images, ...rest } = message
  const copy: Message = rest
  if (reasoning_details) {
    const reasoning = reasoning_details.map(({ text = '', opaque }) => (opaque ? '' : text)).join('')
    if (reasoning === '') delete copy.reasoning_content
    else copy.reasoning_content = reasoning
  }
  if (copy.tool_calls) copy.tool_calls = copy.tool_calls.map(({ opaque: _opaque, ...call }) => call)
  if (message.role === 'tool' && Array.isArray(message.content)) copy.content = textOf(message.content)
  return copy
}

const textOf = (parts: ContentPart[]): string => parts.map((part) => (part.type === 'text' ? part.text : '')).join('')

function nonTextParts({ content, tool_call_id }: Message): ContentPart[] {
  if (!Array.isArray(content)) return []
  const rest = content.filter(({ type }) => type !== 'text')
  if (rest.length === 0) return []
  return [{ type: 'text', text: `Other output of the tool call ${tool_call_id ?? ''}:` }, ...rest]
}

function refuseAddresses({ content }: Message, index: number): void {
  if (!Array.isArray(content)) return
  const at = content.findIndex(isAddressedFile)
  if (at === -1) return
  throw new GatewayError('unsupported_value', 'This model accepts files only as data, not by URL.', {
    param: `messages[${index}].content[${at}].file.file_url`,
    accepted: 'no',
  })
}
