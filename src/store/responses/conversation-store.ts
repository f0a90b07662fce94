/** Stores conversations: the same on every engine. */
import type { JsonObject } from '../../spec/task.ts'
import type { StoredResponse } from './response-row.ts'

export type StoredConversation = {
  conversation_id: string
  token_id: string
  created_at: number
  expires_at: number
  metadata: JsonObject
}

/** An item in the form of the Responses API. Its id is unique in its conversation. */
export type ConversationItem = JsonObject & { id: string }

/** Identifies a conversation of a token that has not expired. */
export type ConversationKey = { conversation_id: string; token_id: string; now: number }

/** `revision` increases with every change of the items. */
type ConversationState = { conversation: StoredConversation; revision: number; text_length: number }

export type LockRequest = {
  /** A response, or one change of the items. */
  owner: string
  now_ms: number
  until_ms: number
  /** Only if the items have not changed since this revision was read. */
  revision?: number
}

/** `locked`: another owner holds it, or the items have changed. */
type LockOutcome = 'held' | 'locked' | 'missing'

/** Items that are appended at the end of a response or a change; the owner's lock is then released. */
export type Appending = {
  conversation_id: string
  owner: string
  items: ConversationItem[]
  expires_at: number
  /** Whom the request named. */
  end_user?: string | undefined
}

export type ConversationPage = { after?: string | undefined; order: 'asc' | 'desc'; limit: number }

export type ConversationStore = {
  /** `end_user`: whom the request named. */
  add(conversation: StoredConversation, items: ConversationItem[], end_user?: string): Promise<void>
  find(key: ConversationKey): Promise<ConversationState | undefined>
  /** Replaces the metadata; false if there is no such conversation. */
  update(key: ConversationKey, change: Pick<StoredConversation, 'metadata' | 'expires_at'>): Promise<boolean>
  /** Deletes it with its items; false if this token has no such conversation. */
  remove(conversation_id: string, token_id: string): Promise<boolean>
  /**
   * Locks the items for one owner. The lock ends with its time, except while its owner is a background response that has
   * not ended.
   */
  lock(key: ConversationKey, request: LockRequest): Promise<LockOutcome>
  /** Prolongs the lock, if the owner still holds it. */
  renew(conversation_id: string, owner: string, until_ms: number): Promise<void>
  unlock(conversation_id: string, owner: string): Promise<void>
  /**
   * Appends items and releases the lock, in one transaction with the response if there is one. False, and no item is
   * appended, if another owner holds the lock or the conversation was deleted; the response is stored in any case.
   */
  append(appending: Appending, response?: StoredResponse): Promise<boolean>
  /** Removes an item; false if there is none of this id. Needs the lock, as `append` does. */
  removeItem(conversation_id: string, item_id: string): Promise<boolean>
  /** All items, oldest first. */
  items(conversation_id: string): Promise<ConversationItem[]>
  item(conversation_id: string, item_id: string): Promise<ConversationItem | undefined>
  /** Undefined if `after` is the id of no item. */
  page(conversation_id: string, page: ConversationPage): Promise<ConversationItem[] | undefined>
  /** Deletes at most `limit` expired conversations; returns how many it deleted. */
  deleteExpired(now: number, limit: number): Promise<number>
}
