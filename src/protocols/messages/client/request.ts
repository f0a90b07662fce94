/** Decodes a Messages request. Errors name the client's field and the values it may have. */
import type { TSchema } from 'typebox'
import { checker } from '../../../kit/checker.ts'
import { diagnose } from '../../../kit/diagnose.ts'
import { isRecord } from '../../../kit/json.ts'
import { GatewayError } from '../../../spec/error.ts'
import { type ContentPart, contentOf } from '../../../spec/message.ts'
import type { ChatRequest, Message, Reasoning } from '../../shared/canonical.ts'
import { nullRemover } from '../../shared/nulls.ts'
import { assertObject, places, refusalOf, refusedField } from '../../shared/request-error.ts'
import { type AssistantBlock, type ClientMessage, CountRequest, MessagesRequest, type UserBlock } from './schema.ts'
import { decodeSignature } from './signature.ts'
import { toolsOf } from './tools.ts'

const checkRequest = checker(MessagesRequest)
const checkCount = checker(CountRequest)

/**
 * Treats `null` as absent and ignores unknown fields. Throws GatewayError with the client's field and its allowed
 * values.
 */
export function parseMessages(body: unknown): ChatRequest {
  return requestOf(checked(body, MessagesRequest, checkRequest))
}

/** Decodes a token-count request, which needs no `max_tokens`. */
export function parseCount(body: unknown): ChatRequest {
  return requestOf(checked(body, CountRequest, checkCount) as MessagesRequest)
}

function checked(body: unknown, schema: TSchema, check: { Check(value: unknown): boolean }): MessagesRequest {
  assertObject(body)
  const request = withoutNulls(body)
  if (!check.Check(request)) throw refusalOf(diagnose(schema, request))
  return request as MessagesRequest
}

function requestOf(clientRequest: MessagesRequest): ChatRequest {
  assertSupported(clientRequest)
  const { system, messages } = clientRequest
  const prompt = system === undefined ? '' : promptText(system)
  const before = prompt === '' ? [] : [{ role: 'system' as const, content: prompt }]
  const history = messages.flatMap((message, index) => historyOf(message, `messages[${index}]`))
  const request: ChatRequest = {
    model: clientRequest.model,
    messages: [...before, ...history],
    ...(clientRequest.tools || clientRequest.tool_choice ? toolsOf(clientRequest) : {}),
  }
  for (const field of SAME)
    if (clientRequest[field] !== undefined) Object.assign(request, { [field]: clientRequest[field] })
  if (clientRequest.stop_sequences?.length) request.stop = clientRequest.stop_sequences
  if (clientRequest.metadata?.user_id !== undefined) request.user = clientRequest.metadata.user_id
  if (clientRequest.service_tier !== undefined)
    request.service_tier = TIERS.get(clientRequest.service_tier) ?? clientRequest.service_tier
  const { effort, format = clientRequest.output_format } = clientRequest.output_config ?? {}
  if (effort !== undefined) request.reasoning_effort = effort
  if (format) {
    request.response_format = {
      type: 'json_schema',
      json_schema: { name: 'answer', schema: format.schema, strict: true },
    }
  }
  return { ...request, ...reasoningOf(clientRequest.thinking) }
}

/** Fields with the same name and meaning. */
const SAME = ['max_tokens', 'stream', 'temperature', 'top_p', 'top_k'] as const
/** The API's value -> the canonical value. */
const TIERS = new Map([['standard_only', 'default']])

function reasoningOf(thinking: MessagesRequest['thinking']): Partial<ChatRequest> {
  if (thinking?.type === 'enabled') return { thinking_enabled: true, reasoning_budget: thinking.budget_tokens }
  if (thinking?.type === 'adaptive') return { thinking_enabled: true, reasoning_budget: -1 }
  return thinking?.type === 'disabled' ? { thinking_enabled: false, reasoning_budget: 0 } : {}
}

/** Fields that would change the response or where it is generated, and that only their own vendor supports. */
const REFUSED: { field: 'mcp_servers' | 'inference_geo' | 'container'; isUsed(value: unknown): boolean }[] = [
  { field: 'mcp_servers', isUsed: (value) => Array.isArray(value) && value.length > 0 },
  { field: 'inference_geo', isUsed: (value) => value !== 'global' },
  { field: 'container', isUsed: (value) => isRecord(value) && Array.isArray(value.skills) && value.skills.length > 0 },
]

function assertSupported(clientRequest: MessagesRequest): void {
  for (const { field, isUsed } of REFUSED) {
    if (clientRequest[field] === undefined || !isUsed(clientRequest[field])) continue
    throw refusedField(field, 'is supported only by its own vendor; leave it out')
  }
  if (clientRequest.thread === undefined) return
  // The vendor's client libraries recognise this code and retry with the whole conversation instead of a thread.
  throw new GatewayError(
    'thread_unsupported_request',
    '"thread" is not supported for this model: the gateway does not store conversations. Leave it out, and send all messages each time.',
    { param: 'thread' },
  )
}

/** A body holds messages, which hold blocks, which hold blocks with a source, which holds blocks. */
const withoutNulls = nullRemover({ depth: 5, ownData: new Set(['input', 'input_schema', 'schema']) })

type Block<T extends UserBlock['type'] | AssistantBlock['type']> = Extract<UserBlock | AssistantBlock, { type: T }>
type ToolCalls = NonNullable<Message['tool_calls']>

/**
 * A line that Claude Code puts before its system prompt for the billing of its own vendor. Part of it changes with each
 * request, so a provider that caches prompts by their prefix would never find this one in its cache
 * (https://github.com/anthropics/claude-code/issues/68900).
 */
const BILLING_LINE = /^x-anthropic-billing-header:[^\n]*(?:\n+|$)/

/** The system prompt for another vendor: its blocks become paragraphs of one text. */
function promptText(system: string | { text: string }[]): string {
  const texts = typeof system === 'string' ? [system] : system.map(({ text }) => text)
  return texts
    .map((text) => text.replace(BILLING_LINE, ''))
    .filter((text) => text !== '')
    .join('\n\n')
}

/** The blocks of a system message become paragraphs of one text. */
const systemText = (system: string | { text: string }[]): string =>
  typeof system === 'string' ? system : system.map((block) => block.text).join('\n\n')

/** Converts one client message to one or more canonical messages. `at` is its place: `messages[3]`. */
function historyOf(message: ClientMessage, at: string): Message[] {
  const messages = messagesFrom(message, at)
  for (const one of messages) if (!places.has(one)) places.set(one, at)
  return messages
}

function messagesFrom(message: ClientMessage, at: string): Message[] {
  if (message.role === 'system') return [{ role: 'system', content: systemText(message.content) }]
  if (typeof message.content === 'string') return [{ role: message.role, content: message.content }]
  return message.role === 'user' ? userMessages(message.content, `${at}.content`) : assistantMessages(message.content)
}

/** Tool results become separate messages, before the other content of the user message. */
function userMessages(blocks: UserBlock[], at: string): Message[] {
  const results: Message[] = []
  const parts: ContentPart[] = []
  for (const [index, block] of blocks.entries()) {
    const place = `${at}[${index}]`
    if (block.type === 'tool_result') {
      const result = toolMessage(block, place)
      places.set(result, place)
      results.push(result)
    } else parts.push(...partsOf(block, place))
  }
  if (parts.length === 0 && results.length > 0) return results
  return [...results, { role: 'user', content: contentOf(parts) }]
}

function toolMessage(block: Block<'tool_result'>, at: string): Message {
  const { content = '', is_error, tool_use_id } = block
  const parts = Array.isArray(content)
    ? content.flatMap((inner, index) => partsOf(inner, `${at}.content[${index}]`))
    : undefined
  return {
    role: 'tool',
    tool_call_id: tool_use_id,
    content: parts ? contentOf(parts) : (content as string),
    ...(is_error === undefined ? {} : { is_error }),
  }
}

type Shown = Exclude<UserBlock, { type: 'tool_result' }>

function partsOf(block: Shown, at: string): ContentPart[] {
  const parts = block.type === 'document' ? documentParts(block, at) : [partOf(block, at)]
  for (const part of parts) places.set(part, at)
  return parts
}

function partOf(block: Exclude<Shown, { type: 'document' }>, at: string): ContentPart {
  if (block.type === 'text') return text(block.text)
  if (block.type === 'image') return imagePart(block, at)
  return text([block.title, block.source, ...block.content.map((inner) => inner.text)].join('\n'))
}

function imagePart({ source }: Block<'image'>, at: string): ContentPart {
  if (source.type === 'file') throw fileRefused(at)
  const url = source.type === 'url' ? source.url : `data:${source.media_type};base64,${source.data}`
  return { type: 'image_url', image_url: { url } }
}

/** The context of a document becomes a text before it, because not every provider has a field for it. */
function documentParts(block: Block<'document'>, at: string): ContentPart[] {
  const { source, title, context } = block
  const before = context === undefined ? [] : [text(context)]
  const titled = title === undefined ? [] : [text(title)]
  if (source.type === 'text') return [...before, text(title === undefined ? source.data : `${title}\n\n${source.data}`)]
  if (source.type === 'content') {
    const { content } = source
    const inner = typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content
    return [
      ...before,
      ...titled,
      ...inner.map((one, index) =>
        one.type === 'text' ? text(one.text) : imagePart(one, `${at}.source.content[${index}]`),
      ),
    ]
  }
  const named = title === undefined ? {} : { filename: title }
  if (source.type === 'url') return [...before, { type: 'file', file: { file_url: source.url, ...named } }]
  if (source.type === 'file') throw fileRefused(at)
  const file_data = `data:${source.media_type};base64,${source.data}`
  return [...before, { type: 'file', file: { file_data, filename: title ?? 'document.pdf' } }]
}

const text = (value: string): ContentPart => ({ type: 'text', text: value })

const fileRefused = (at: string) =>
  refusedField(
    `${at}.source.type`,
    'must be "base64" or "url", not "file": a stored file is known to one provider only',
  )

/**
 * An earlier response. A canonical message holds reasoning, then text, then calls. So reasoning after text starts a
 * new message; consecutive assistant messages form one turn. Nothing may come between a call and its result.
 */
function assistantMessages(blocks: AssistantBlock[]): Message[] {
  const drafts: Draft[] = []
  /** Signatures of calls, which clients return in separate thinking blocks. */
  const signed = new Map<string, NonNullable<ToolCalls[number]['opaque']>>()
  const calls = new Map<string, ToolCalls[number]>()
  let draft = newDraft()
  drafts.push(draft)
  for (const block of blocks) {
    if (block.type === 'thinking' || block.type === 'redacted_thinking') {
      const { piece, call } = pieceOf(block)
      if (call !== undefined) {
        if (piece.opaque) signed.set(call, piece.opaque)
        continue
      }
      if (draft.texts.length > 0 && draft.calls.length === 0) {
        draft = newDraft()
        drafts.push(draft)
      }
      draft.reasoning.push(piece)
    } else if (block.type === 'text') draft.texts.push(block.text)
    else if (block.type === 'compaction') draft.texts.push(block.content ?? '')
    else if (block.type === 'tool_use') {
      const call = {
        id: block.id,
        type: 'function' as const,
        function: { name: block.name, arguments: inputText(block) },
      }
      calls.set(block.id, call)
      draft.calls.push(call)
    }
  }
  for (const [id, opaque] of signed) {
    const call = calls.get(id)
    if (call) call.opaque = opaque
  }
  return drafts.map(messageOf)
}

type Draft = { reasoning: Reasoning[]; texts: string[]; calls: ToolCalls }
const newDraft = (): Draft => ({ reasoning: [], texts: [], calls: [] })

const inputText = ({ input }: Block<'tool_use'>): string =>
  typeof input === 'string' ? input : JSON.stringify(input ?? {})

function pieceOf(block: Block<'thinking'> | Block<'redacted_thinking'>): { piece: Reasoning; call?: string } {
  const text = block.type === 'thinking' ? { text: block.thinking } : {}
  const value = block.type === 'thinking' ? (block.signature ?? '') : block.data
  if (value === '') return { piece: text }
  const { opaque, owner: call } = decodeSignature(value)
  return { piece: { ...text, ...(opaque ? { opaque } : {}) }, ...(call === undefined ? {} : { call }) }
}

function messageOf({ reasoning, texts, calls }: Draft): Message {
  const content = texts.join('')
  const message: Message = {
    role: 'assistant',
    content: content === '' && (calls.length > 0 || reasoning.length > 0) ? null : content,
  }
  if (reasoning.length > 0) {
    message.reasoning_details = reasoning
    const plain = reasoning.map((piece) => piece.text ?? '').join('')
    if (plain !== '') message.reasoning_content = plain
  }
  if (calls.length > 0) message.tool_calls = calls
  return message
}
