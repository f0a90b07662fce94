/** The items of a response's output, and the encoder of their events. */
import { decodeSigned, encodeSigned, type SignedContent } from '../../shared/signed-content.ts'
import type { InputItem } from './schema.ts'

export type TextPart = { type: 'output_text'; text: string; annotations: object[]; logprobs: unknown[] }
export type RefusalPart = { type: 'refusal'; refusal: string }
export type Status = 'in_progress' | 'completed' | 'incomplete'
export type MessageItem = {
  type: 'message'
  id: string
  role: 'assistant'
  status: Status
  content: (TextPart | RefusalPart)[]
}
type Called = { id: string; call_id: string; name: string; namespace?: string; status: Status }
export type CallItem = Called & { type: 'function_call'; arguments: string }
/** A call of a tool that takes free text. */
export type CustomCallItem = Called & { type: 'custom_tool_call'; input: string }
/** A search among tools that are not in the request yet. The client runs it. */
export type ToolSearchItem = {
  type: 'tool_search_call'
  id: string
  call_id: string
  execution: 'client'
  arguments: unknown
  status: Status
}
export type ReasoningItem = {
  type: 'reasoning'
  id: string
  summary: { type: 'summary_text'; text: string }[]
  encrypted_content?: string
  status: Status
}
type ImageItem = {
  type: 'image_generation_call'
  id: string
  status: Status
  result: string | null
  output_format?: string
}
export type McpNamed = { id: string; server_label: string; name: string; arguments: string }
/** A call that the gateway makes itself, with its result. */
export type McpCallItem = McpNamed & {
  type: 'mcp_call'
  approval_request_id: string | null
  output: string | null
  error: string | null
  status: Status | 'failed'
}
/** A call that waits until the client approves it. */
export type McpApprovalRequestItem = McpNamed & { type: 'mcp_approval_request'; status?: undefined }
export type McpListItem = {
  type: 'mcp_list_tools'
  id: string
  server_label: string
  tools: object[]
  error: string | null
  status?: undefined
}
/** A summary that takes the place of the items before it. */
export type CompactionItem = { type: 'compaction'; id: string; encrypted_content: string; status?: Status }
export type OutputItem =
  | CompactionItem
  | MessageItem
  | CallItem
  | CustomCallItem
  | ToolSearchItem
  | ReasoningItem
  | ImageItem
  | McpCallItem
  | McpApprovalRequestItem
  | McpListItem

export const ITEM_KINDS = {
  message: 'msg',
  function_call: 'fc',
  function_call_output: 'fco',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctco',
  tool_search_call: 'tsc',
  tool_search_output: 'tso',
  agent_message: 'amsg',
  additional_tools: 'at',
  configuration_update: 'cu',
  reasoning: 'rs',
  image_generation_call: 'ig',
  compaction: 'cmp',
  mcp_call: 'mcp',
  mcp_approval_request: 'mcpr',
  mcp_approval_response: 'mcpa',
  mcp_list_tools: 'mcpl',
} as const

/** The prefix of the id of an item of this type. */
export const itemKind = (type: unknown): string =>
  typeof type === 'string' && Object.hasOwn(ITEM_KINDS, type) ? ITEM_KINDS[type as keyof typeof ITEM_KINDS] : 'msg'

/** An open item. `place`: the members of its events that identify it, as JSON text. */
export type Open<T extends OutputItem> = { item: T; index: number; place: string }

export type ItemEventParts = {
  /** The id of the item at `index`: by its type, and by the provider's id if it has one. */
  newId(type: OutputItem['type'], index: number, vendors?: string): string
  /** Encodes one numbered event. `fields` is JSON text without its braces. */
  event(type: string, fields: string): string
  includes_encrypted: boolean
}

export type ItemEvents = ItemEventParts & {
  /** All items so far, in order. */
  output: OutputItem[]
  open<T extends OutputItem>(item: T): Open<T>
  /** The event for a new item. `start` overrides members that are still empty. */
  added(at: Open<OutputItem>, start?: object): string
  done(at: Open<OutputItem>): string
}

export function createItemEvents(parts: ItemEventParts): ItemEvents {
  const { event, includes_encrypted } = parts
  const output: OutputItem[] = []
  return {
    ...parts,
    output,
    open(item) {
      const index = output.length
      output.push(item)
      return { item, index, place: `"item_id":${JSON.stringify(item.id)},"output_index":${index}` }
    },
    added: ({ item, index }, start = {}) =>
      event('response.output_item.added', `"output_index":${index},"item":${JSON.stringify({ ...item, ...start })}`),
    done: ({ item, index }) =>
      event(
        'response.output_item.done',
        `"output_index":${index},"item":${JSON.stringify(visibleItem(item, includes_encrypted))}`,
      ),
  }
}

/** An item as the client receives it: encrypted reasoning is removed unless it was requested. */
export function visibleItem(item: OutputItem, includes_encrypted: boolean): object {
  if (item.type !== 'reasoning' || includes_encrypted) return item
  const { encrypted_content: _, ...rest } = item
  return rest
}

/** The items before a request, and the ids of the responses that hold them. */
export type Conversation = { items: InputItem[]; ids: string[] }

/** Conversations in memory, which requests of one connection continue. */
export type ConversationCache = {
  /** The conversation up to the end of this response; undefined if it is not here. */
  find(response_id: string): CachedConversation | undefined
  add(response_id: string, conversation: CachedConversation): void
}

/** `isStored`: its last response is in the store too. */
export type CachedConversation = Conversation & { isStored: boolean }

/** The members of a response that the store needs. */
export type StorableResponse = { id: string; created_at: number }

export type StoreResponse = (response: StorableResponse) => Promise<void>

/** The id of an item of a response. The response id is part of it. */
export const itemId = (response_id: string, kind: string, index: number | string): string =>
  `${kind}_${response_id.slice('resp_'.length)}_${index}`

const HOME = 'chatcompat-response'

/** The `encrypted_content` of the item `id`. */
export const encodeEncrypted = (content: Partial<SignedContent>, id: string): string =>
  encodeSigned(content, { home: HOME, item_id: id })

/** The reverse of `encodeEncrypted`. */
export const decodeEncrypted = (text: string, id: string | undefined): Partial<SignedContent> =>
  decodeSigned(text, { home: HOME, item_id: id })
