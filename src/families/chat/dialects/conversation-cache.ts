/** Caches the conversations that requests of one WebSocket continue. */
import type { Conversation, ConversationCache, StoreResponse } from '../../../protocols/responses/client/items.ts'
import type { PassthroughState } from '../../../protocols/responses/client/passthrough-items.ts'
import type { InputItem } from '../../../protocols/responses/client/schema.ts'

type Added = { before: Conversation; input: InputItem[]; isStored: boolean }
type Cache = (response: { id: string; output?: unknown }) => void

/** Adds the conversation up to the end of a response. */
export const addTo =
  (conversations: ConversationCache, { before, input, isStored }: Added): Cache =>
  ({ id, output }) => {
    const made = Array.isArray(output) ? (output as InputItem[]) : []
    const ids = isStored ? [...before.ids, id] : []
    conversations.add(id, { items: [...before.items, ...input, ...made], ids, isStored })
  }

type CachedStore = { cache: Cache; store: StoreResponse | undefined; passthroughState: PassthroughState }

/** Caches a response under the id that the client received, and stores it where it is to be stored. */
export const cachedStore =
  ({ cache, store, passthroughState }: CachedStore): StoreResponse =>
  async (response) => {
    const id = store ? response.id : (passthroughState.id ?? response.id)
    cache({ ...response, id })
    await store?.(response)
  }
