/**
 * Passthrough of responses: what the gateway changes in requests and responses between a client and a provider of the
 * same API.
 */
import { isRecord, type JsonRecord } from '../../../kit/json.ts'
import { EXTRA_FIELDS } from '../../../spec/chat-request.ts'
import { addsModel, namesAnotherModel } from '../../shared/passthrough/named-models.ts'
import type { ResponseHead } from '../../shared/protocol.ts'
import { isEncoded } from '../../shared/signed-content.ts'
import { conversationIn } from './answer.ts'
import { summaryMessage } from './compaction.ts'
import { isReference } from './history.ts'
import {
  type Conversation,
  decodeEncrypted,
  encodeEncrypted,
  ITEM_KINDS,
  itemId,
  type OutputItem,
  visibleItem,
} from './items.ts'
import type { InputItem, ResponsesRequest } from './schema.ts'

/** One exchange, with the context that passthrough needs. */
export type PassthroughExchange = {
  body: Readonly<JsonRecord>
  /** The conversation before the request, and the request's items with references resolved. */
  before: Conversation
  input: InputItem[]
  /** Whether the gateway stores the response. Its items then have the gateway's ids. */
  isStored: boolean
  includes_encrypted: boolean
  state: PassthroughState
}

/** What has passed: an error continues from it, and the whole of it is stored. */
export type PassthroughState = {
  hasStarted: boolean
  next_number: number
  /** The id of the response that the client received. */
  id: string | undefined
  /** The items whose last event was sent, as the client received them. */
  output: OutputItem[]
  /** The final response, as it is stored. */
  final: (JsonRecord & { id: string; created_at: number }) | undefined
}

export const emptyPassthroughState = (): PassthroughState => ({
  hasStarted: false,
  next_number: 0,
  id: undefined,
  output: [],
  final: undefined,
})

/** Fields of the gateway, and fields that refer to the operator's account. */
const NOT_SENT = [
  'provider_options',
  'previous_response_id',
  'conversation',
  'background',
  'access_programs',
  ...EXTRA_FIELDS,
]

/**
 * The body for the provider. The gateway stores conversations itself, so the body includes all earlier items. `store`
 * says whether the response is stored. Undefined if the body names another model, which the caller may not be allowed
 * to use.
 */
export function passthroughBody({ body, before, input, isStored }: PassthroughExchange): JsonRecord | undefined {
  if (namesAnotherModel(body) || addsModel([...before.items, ...input])) return undefined
  const forwarded: JsonRecord = { ...body, store: isStored }
  for (const field of NOT_SENT) delete forwarded[field]
  const given = Array.isArray(body.input) ? body.input : undefined
  if (!given && before.items.length === 0) return forwarded
  const own = given?.map((item, index) => (isRecord(item) && isReference(item as InputItem) ? input[index] : item))
  const earlier = before.items.flatMap(vendorsItem)
  const added = (own ?? input).flatMap(vendorsItem)
  forwarded.input = [
    ...earlier.filter((item, at) => !isIncompleteReasoning(item, [...earlier.slice(at + 1), added[0]])),
    ...added,
  ]
  return forwarded
}

const HOME = 'chatcompat-response'
/** The ids that the gateway assigns, to inputs and to output items. */
const OUR_ID = /^[a-z]+_[A-Za-z0-9]{24}_(in)?\d+$/
const OUR_INPUT_ID = /_in\d+$/
/** Items that providers accept without an id. Other items need theirs. */
const NEEDS_NO_ID = new Set([undefined, 'message', 'function_call', 'custom_tool_call'])

/** Returns the same item if the gateway changed nothing in it, which is the usual case. */
function vendorsItem(item: unknown): unknown[] {
  if (!isRecord(item)) return [item]
  const { type, id, encrypted_content: text } = item
  const summary = type === 'compaction' || type === 'compaction_summary' ? summaryMessage(text) : undefined
  if (summary) return [{ type: 'message', ...summary }]
  const isOurs = typeof id === 'string' && OUR_ID.test(id)
  if (typeof text === 'string' && isEncoded(text)) {
    const { opaque, owner } = decodeEncrypted(text, undefined)
    if (owner !== undefined || opaque?.origin !== HOME) return []
    const { id: _, ...rest } = item
    return [{ ...rest, ...(opaque.id === undefined ? {} : { id: opaque.id }), encrypted_content: opaque.value }]
  }
  if (!isOurs) return [item]
  // The provider stores nothing under the gateway's ids.
  if (type === 'reasoning' && !text && !(Array.isArray(item.content) && item.content.length > 0)) return []
  const isNeeded = !NEEDS_NO_ID.has(type as string | undefined) && !OUR_INPUT_ID.test(id)
  if (isNeeded) return [item]
  const { id: _, ...rest } = item
  return [rest]
}

/** Reasoning without a following item, from a response that was cut by its limit. Providers refuse it. */
function isIncompleteReasoning(item: unknown, after: unknown[]): boolean {
  if (!isRecord(item) || item.type !== 'reasoning') return false
  const next = after.find((one) => !isRecord(one) || one.type !== 'reasoning')
  return !isRecord(next) || next.role === 'user' || next.role === 'system' || next.role === 'developer'
}

/** Fields that the response echoes. They may come from the operator's settings if the client did not set them. */
const ECHOED: Record<string, unknown> = {
  instructions: null,
  metadata: {},
  prompt: null,
  prompt_cache_key: null,
  safety_identifier: null,
  tools: [],
  user: null,
}

const isBlank = (value: unknown): boolean =>
  value === null || value === undefined || (typeof value === 'object' && Object.keys(value).length === 0)

/** Rewrites a provider's responses for the client. Each function returns the same object if nothing changes. */
export function createResponseRewriter(
  { body, isStored, includes_encrypted }: PassthroughExchange,
  { id: response_id, created, model }: ResponseHead,
) {
  const ids = new Map<string, string>()
  const { conversation } = conversationIn(body as Pick<ResponsesRequest, 'conversation'>)

  /** Maps a provider's id to the gateway's. An item without an id is identified by its position. */
  function idOf(vendors: unknown, type: unknown, index: unknown): string {
    const known = typeof vendors === 'string' && vendors !== '' ? vendors : `#${index}`
    let id = ids.get(known)
    if (id === undefined) {
      const [prefix] = /^[a-z]+(?=_)/.exec(known) ?? [] // `msg_abc`, `ws_abc`
      id = itemId(response_id, prefix ?? ITEM_KINDS[type as OutputItem['type']] ?? 'item', ids.size)
      ids.set(known, id)
    }
    return id
  }

  /** The item as it is stored, with its encrypted content. */
  function itemOf(item: unknown, index: unknown): unknown {
    if (!isStored || !isRecord(item)) return item
    const { id: vendors, encrypted_content: value } = item
    const id = idOf(vendors, item.type, index)
    if (typeof value !== 'string' || value === '') return { ...item, id }
    const opaque = { origin: HOME, value, ...(typeof vendors === 'string' ? { id: vendors } : {}) } as const
    return { ...item, id, encrypted_content: encodeEncrypted({ opaque }, id) }
  }

  const shownItem = (item: unknown): unknown =>
    isStored && isRecord(item) ? visibleItem(item as unknown as OutputItem, includes_encrypted) : item

  function changesTo(response: JsonRecord): JsonRecord {
    const changes: JsonRecord = {}
    for (const [field, blank] of Object.entries(ECHOED)) {
      if (isBlank(body[field]) && !isBlank(response[field])) changes[field] = blank
    }
    const previous = body.previous_response_id ?? null
    if ((response.previous_response_id ?? null) !== previous) changes.previous_response_id = previous
    // The provider does not know it. Responses with a conversation are always stored.
    if (conversation) changes.conversation = conversation
    else if (!isBlank(response.conversation)) changes.conversation = null
    if (response.store !== undefined && response.store !== isStored) changes.store = isStored
    if (typeof response.model !== 'string') changes.model = model
    if (isStored) Object.assign(changes, { id: response_id, created_at: created, store: true })
    return changes
  }

  return {
    idOf,
    item: (item: unknown, index: unknown) => shownItem(itemOf(item, index)),
    /**
     * The response as it is stored, except for the model. `done`: its items, for imitations of the API that leave
     * them out.
     */
    response(response: JsonRecord, done: unknown[] = []): JsonRecord {
      const changes = changesTo(response)
      const output = Array.isArray(response.output) ? response.output : done
      // Client libraries read it without checking that it exists.
      if (isStored || output !== response.output) changes.output = output.map(itemOf)
      return Object.keys(changes).length === 0 ? response : { ...response, ...changes }
    },
    /** The response as the client receives it. */
    visible: (response: JsonRecord): JsonRecord =>
      isStored && Array.isArray(response.output) ? { ...response, output: response.output.map(shownItem) } : response,
  }
}
