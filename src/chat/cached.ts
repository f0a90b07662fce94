/** What the response cache needs of chat: which requests may be cached, and a cached response as one of its own. */
import { isRecord, type JsonRecord } from '../kit/json.ts'
import type { AnswerCodec, CacheableRequest } from '../pipeline/family.ts'
import type { ChatRequest } from '../protocols/canonical.ts'
import type { Usage } from '../spec/usage.ts'
import type { PassthroughRequest } from './passthrough.ts'
import type { ResponseContext, Whole } from './translate.ts'

/** The request as its client sent it. `framing`: what its stream is, if not server-sent events. */
export type ChatSource = { body: unknown; framing: string | undefined }

/** Members of a request whose response is stored, or continues what is stored: at the gateway or at the provider. */
const STORED_MEMBERS = ['previous_response_id', 'conversation', 'background', 'store', 'container', 'cachedContent']
/** Members with which a provider calls tools of its own, whose results change with time. */
const PROVIDER_TOOLS = ['web_search_options', 'web_search', 'mcp_servers']

/** What of a chat request decides on it. */
type Cacheable = {
  source?: ChatSource | undefined
  request: ChatRequest
  passthroughRequest?: PassthroughRequest | undefined
  responseContext: ResponseContext
  admit?: unknown
}

/** Undefined for a request whose response is stored, and for one that no client sent. */
export function cacheableRequest(work: Cacheable): CacheableRequest | undefined {
  const { source, request, passthroughRequest, responseContext, admit } = work
  if (!source || !isRecord(source.body) || admit || responseContext.writer.store) return undefined
  const { body } = source
  if (STORED_MEMBERS.some((name) => body[name])) return undefined
  // The client's body, which the response may repeat, and the fitted request, with the defaults and limits of the model.
  const headers = passthroughRequest?.headers
  return {
    request: [passthroughRequest?.family, source.framing, sorted(body), sorted(request), headers && sorted(headers)],
    is_deterministic: (request.temperature === 0 || typeof request.seed === 'number') && !usesProviderTools(body),
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
export const chatCodec: AnswerCodec<Pick<Cacheable, 'responseContext'>, Whole, Usage> = {
  encode(answer, usage) {
    const body = answer.encode(usage)
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    return { text, answer: { encode: () => text } }
  },
  decode(text, { responseContext: { head } }) {
    const [body] = withId([text], head.id)
    return { encode: () => body }
  },
}

/** The parts of a response with another id; unchanged if they have none. */
export function withId(parts: string[], id: string): string[] {
  const old = idIn(parts)
  if (old === undefined) return parts
  // Only members: the id is no text of the model, in which a quote would be escaped.
  const member = new RegExp(`("(?:id|responseId|response_id)"\\s*:\\s*)${escaped(JSON.stringify(old))}`, 'g')
  const value = JSON.stringify(id)
  return parts.map((part) => part.replace(member, (_, name: string) => name + value))
}

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')

/** The data of an event. */
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
  const value = parsed(text)
  if (!isRecord(value)) return undefined
  const within = [value.message, value.response].flatMap((inner) => (isRecord(inner) ? [inner.id] : []))
  return [value.id, value.responseId, ...within].find((id) => typeof id === 'string')
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
