/** Connects chat to the response cache: which requests may be cached, and a cached response as one of its own. */
import type { AnswerCodec, CacheableRequest, SimilarRequest } from '../../calls/family.ts'
import { isRecord, type JsonRecord, parseJson } from '../../kit/json.ts'
import { withValueAt } from '../../kit/json-span.ts'
import { type ChatRequest, type Message, OPENROUTER } from '../../protocols/shared/canonical.ts'
import type { Usage } from '../../spec/usage.ts'
import type { PassthroughRequest } from './passthrough.ts'
import type { ResponseContext, Whole } from './translate.ts'

/** Members of a request whose response is stored, or continues what is stored: at the gateway or at the provider. */
const STORED_MEMBERS = ['previous_response_id', 'conversation', 'background', 'store', 'container', 'cachedContent']
/** Members with which a provider calls tools of its own, whose results change with time. */
const PROVIDER_TOOLS = ['web_search_options', 'web_search', 'mcp_servers']

/** Equal bodies have different responses where one client is made for OpenRouter. */
const formOf = (request: ChatRequest): string[] => (request[OPENROUTER] ? ['openrouter'] : [])

/** What of a chat request decides on it. */
type Cacheable = ResponseContext & {
  request: ChatRequest
  /** `source`: the body as its client sent it. `framing`: what its stream is, if not server-sent events. */
  input: {
    source?: unknown
    framing?: { content_type?: string } | undefined
    passthroughRequest?: PassthroughRequest | undefined
    admit?: unknown
  }
}

/** Undefined for a request whose response is stored, and for one that no client sent. */
export function cacheableRequest(work: Cacheable): CacheableRequest | undefined {
  const { request, writer } = work
  const { source: body, framing, passthroughRequest, admit } = work.input
  if (!isRecord(body) || admit || writer.store) return undefined
  if (STORED_MEMBERS.some((name) => body[name])) return undefined
  // The client's body, which the response may repeat, and the fitted request, with the defaults and limits of the model.
  const passing = passthroughRequest?.mayPass ? passthroughRequest : undefined
  const headers = passing?.headers
  return {
    request: [
      passing?.family,
      framing?.content_type,
      sorted(body),
      sorted(request),
      headers && sorted(headers),
      ...formOf(request),
    ],
    is_deterministic: (request.temperature === 0 || request.seed !== undefined) && !usesProviderTools(body),
    similar: () => similarRequest(work, body),
  }
}

/**
 * The members in one order. Those within members keep theirs: a model writes the members of its output in the order of
 * the schema (https://platform.openai.com/docs/guides/structured-outputs, "Key ordering").
 */
const sorted = (body: Readonly<JsonRecord>): [string, unknown][] =>
  Object.entries(body)
    .filter(([name]) => name !== 'model')
    .sort(([one], [other]) => (one < other ? -1 : 1))

/** An embedding model takes some 8,000 tokens, and a longer text is hardly ever asked again in other words. */
const MOST_TEXT_CHARACTERS = 16_384

/**
 * What the user asks last, and the rest of the request. Undefined where the request contains more than text, or results of
 * tools: their meaning is not in the text.
 */
function similarRequest({ request, input }: Cacheable, body: JsonRecord): SimilarRequest | undefined {
  const { framing, passthroughRequest } = input
  const { messages } = request
  if (messages.some((message) => !isPlain(message))) return undefined
  const first = messages.findLastIndex(({ role }) => role !== 'user') + 1
  const texts = new Set(messages.slice(first).flatMap(textsOf))
  const text = [...texts].join('\n')
  if (text.trim() === '' || text.length > MOST_TEXT_CHARACTERS) return undefined
  // The texts are removed from the messages of both forms. Nothing else is: not an earlier message with the same text.
  const blank = (value: unknown) => without(value, texts)
  const asked = { ...request, messages: messages.map((message, at) => (at < first ? message : blank(message))) }
  const sent = sorted(body).map(([name, value]) => [name, MESSAGE_MEMBERS.has(name) ? blank(value) : value])
  const passing = passthroughRequest?.mayPass ? passthroughRequest : undefined
  const headers = passing?.headers
  const form = formOf(request)
  const rest = [passing?.family, framing?.content_type, sent, sorted(asked), headers && sorted(headers), ...form]
  return { text, rest }
}

/** The messages in the bodies of the four APIs. */
const MESSAGE_MEMBERS: ReadonlySet<string> = new Set(['messages', 'input', 'contents'])

/** Only text of the system, the user or the assistant. */
const isPlain = ({ role, content, tool_calls, function_call, images }: Message): boolean =>
  role !== 'tool' &&
  role !== 'function' &&
  !tool_calls?.length &&
  !function_call &&
  !images?.length &&
  (typeof content === 'string' || (Array.isArray(content) && content.every(({ type }) => type === 'text')))

const textsOf = ({ content }: Message): string[] =>
  typeof content === 'string' ? [content] : (content ?? []).flatMap((part) => (part.type === 'text' ? [part.text] : []))

/** The value with each of these texts in it replaced by null. Names and roles are no texts. */
function without(value: unknown, texts: ReadonlySet<string>, name?: string): unknown {
  if (typeof value === 'string') return name !== 'role' && name !== 'type' && texts.has(value) ? null : value
  if (Array.isArray(value)) return value.map((item) => without(item, texts, name))
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([inner, item]) => [inner, without(item, texts, inner)]))
}

function usesProviderTools(body: JsonRecord): boolean {
  if (PROVIDER_TOOLS.some((name) => body[name])) return true
  return Array.isArray(body.tools) && !body.tools.every(isClientTool)
}

/** A function or a custom tool: of chat completions and Responses, of Messages, of contentgen. */
function isClientTool(tool: unknown): boolean {
  if (!isRecord(tool)) return false
  if (tool.type === 'function' || tool.type === 'custom') return true
  if (tool.type === undefined && isRecord(tool.input_schema)) return true
  return Object.keys(tool).length > 0 && Object.keys(tool).every((name) => name === 'functionDeclarations')
}

/** The body for the client is what is cached: whole responses of all four APIs, translated or passed through. */
export const chatCodec: AnswerCodec<Replayed, Whole, Usage> = {
  encode(answer, usage) {
    const body = answer.encode(usage)
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    return { text, answer: { encode: () => text } }
  },
  decode(text, work) {
    const [own = text] = withId([text], work.head.id)
    // A provider's members may follow the usage.
    const body = asksForCost(work) ? withValueAt(own, ['usage', 'cost'], '0') : own
    return { encode: () => body }
  },
}

type Replayed = { request: Pick<ChatRequest, 'usage'>; head: { id: string } }

/** A cached response as the response to another request: with an id of its own, and free of charge. */
export function replayParts(parts: string[], work: Replayed): string[] {
  const own = withId(parts, work.head.id)
  return asksForCost(work) ? own.map((part) => part.replace(LAST_COST, '"cost":0$1')) : own
}

const asksForCost = ({ request }: Replayed): boolean => request.usage?.include === true

/** The last member of the usage, which ends the last event of a stream: the gateway writes that event itself. */
const LAST_COST = /"cost":(?:null|[\d.e+-]+)(\}\}\s*data: \[DONE\]\s*)$/

/** The parts of a response with another id; unchanged if they have none. */
function withId(parts: string[], id: string): string[] {
  const old = idIn(parts)
  if (old === undefined) return parts
  // Only members: the id is no text of the model, in which a quote would be escaped.
  const member = new RegExp(`("(?:id|responseId|response_id)"\\s*:\\s*)${escaped(JSON.stringify(old))}`, 'g')
  const value = JSON.stringify(id)
  return parts.map((part) => part.replace(member, (_, name: string) => name + value))
}

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')

const DATA = /^data: ?(\{.*)$/gm
/** An id is in the first event, or in the one after a ping. */
const EVENTS_TO_SEARCH = 4

/** The id of a response: in its body, or in its first events. */
function idIn(parts: string[]): string | undefined {
  const start = parts.slice(0, EVENTS_TO_SEARCH).join('')
  const events = [...start.matchAll(DATA)].slice(0, EVENTS_TO_SEARCH).map(([, data = '']) => data)
  for (const text of events.length > 0 ? events : [start]) {
    const id = idOf(text)
    if (id !== undefined) return id
  }
  // The items of a contentgen stream that is one JSON array.
  const [, id] = /"responseId"\s*:\s*"([^"\\]+)"/.exec(start) ?? []
  return id
}

function idOf(text: string): string | undefined {
  const value = parseJson(text)
  if (!isRecord(value)) return undefined
  const within = [value.message, value.response].flatMap((inner) => (isRecord(inner) ? [inner.id] : []))
  return [value.id, value.responseId, ...within].find((id) => typeof id === 'string')
}
