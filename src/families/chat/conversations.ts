/** Conversations: stored items that responses continue, one response at a time. */
import type { StorageQuota } from '../../accounts/storage-quota.ts'
import { type Call, type CallRecord, whenEnded } from '../../calls/call.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import { jsonSize } from '../../kit/json-size.ts'
import type { Log } from '../../kit/log.ts'
import { randomAlphanumerics } from '../../kit/secret.ts'
import { type Conversation, itemKind, type StoreResponse } from '../../protocols/responses/client/items.ts'
import type { InputItem } from '../../protocols/responses/client/schema.ts'
import { GatewayError } from '../../spec/error.ts'
import type { JsonObject } from '../../spec/task.ts'
import type {
  Appending,
  ConversationItem,
  ConversationPage,
  ConversationStore,
  LockRequest,
  StoredConversation,
} from '../../store/responses/conversation-store.ts'
import type { StoredResponse } from '../../store/responses/response-row.ts'
import { amountOf, MAX_CHARACTERS, outputOf } from './stored-responses.ts'

/** A conversation as it was when a request continued it. */
export type Continued = {
  conversation_id: string
  token_id: string
  before: Conversation
  /** Of its items, which those of a response must not repeat. */
  ids: ReadonlySet<string>
  revision: number
}

/** `end_user`: whom the request named. */
type NewConversation = { token_id: string; end_user?: string | undefined; metadata: JsonObject; items: InputItem[] }
type Place = { conversation_id: string; token_id: string }

export type Conversations = {
  create(conversation: NewConversation): Promise<StoredConversation>
  /** Throws `conversation_not_found`, as all of these do. */
  find(place: Place): Promise<StoredConversation>
  update(place: Place, metadata: JsonObject): Promise<StoredConversation>
  remove(place: Place): Promise<void>
  /** Appends items and returns them with their ids. Throws `conversation_locked`, or as `read` does. */
  addItems(place: Place, added: Pick<NewConversation, 'items' | 'end_user'>): Promise<ConversationItem[]>
  /** Undefined if `after` is the id of no item. */
  page(place: Place, page: ConversationPage): Promise<ConversationItem[] | undefined>
  /** Throws `conversation_item_not_found`, as `removeItem` does. */
  item(place: Place, item_id: string): Promise<ConversationItem>
  /** Throws `conversation_locked`. */
  removeItem(place: Place, item_id: string): Promise<StoredConversation>

  /** The items that a request continues. Throws `context_length_exceeded` for more than can be read. */
  read(place: Place): Promise<Continued>
  /** Locks it for a call that was read before, until the call ends. Throws `conversation_locked`. */
  lockFor(call: Call, continued: Continued): Promise<void>
  /** Locks it for a response in the background, until that ends. */
  lockForRun(response_id: string, place: Place): Promise<void>
  unlock(conversation_id: string, response_id: string): Promise<void>
  /** Stores the response to a call together with its items. */
  storeFor(
    call: Call,
    continued: Continued,
    rowOf: (response: { id: string; created_at: number }) => StoredResponse,
  ): StoreResponse
  /** The items of a response in the background; none of one that failed. */
  appendingOf(
    row: StoredResponse,
    response: JsonObject,
    continued: Pick<Continued, 'conversation_id' | 'ids'>,
  ): Appending
  /** Removes expired conversations, at most once per interval. */
  forget(): Promise<void>
}

/** After this time a conversation is free again although the process that held it died. */
const LEASE_MILLISECONDS = 60_000
const RENEW_MILLISECONDS = 20_000
/** A response in the background holds the lock by itself as soon as it is stored, which takes less than this. */
const RUN_LEASE_MILLISECONDS = 5_000
const DAY_SECONDS = 86_400
const FORGET_SECONDS = 60
const FORGET_AT_ONCE = 200
const FORGET_ROUNDS = 500

type Held = { conversation_id: string; owner: string; stopRenewal(): void }

type ConversationsParts = {
  store: ConversationStore
  /** How long a conversation is stored after its last change; 0: none is stored. Read at each use. */
  settings(): { keep_days: number }
  quota: StorageQuota
  clock: Clock
  log: Log
}

export function createConversations({ store, settings, quota, clock, log }: ConversationsParts): Conversations {
  const held = new WeakMap<Call, Held>()
  let lastCleanup = 0
  const now = () => unixSeconds(clock)
  const keyOf = (place: Place) => ({ ...place, now: now() })
  const expiresAt = () => now() + Math.ceil(settings().keep_days * DAY_SECONDS)

  async function stateOf(place: Place) {
    const state = await store.find(keyOf(place))
    if (!state) throw notFound(place.conversation_id)
    return state
  }

  async function lock(place: Place, { owner, milliseconds, revision }: Locking): Promise<void> {
    const now_ms = clock.now()
    const request: LockRequest = { owner, now_ms, until_ms: now_ms + milliseconds }
    if (revision !== undefined) request.revision = revision
    const outcome = await store.lock(keyOf(place), request)
    if (outcome === 'missing') throw notFound(place.conversation_id)
    if (outcome === 'locked') throw locked()
  }

  /** Runs a change of the items, which no response may continue meanwhile. */
  async function changing<T>(place: Place, change: (owner: string) => Promise<T>): Promise<T> {
    const owner = `change_${randomAlphanumerics(24)}`
    await lock(place, { owner, milliseconds: LEASE_MILLISECONDS })
    try {
      return await change(owner)
    } finally {
      await store.unlock(place.conversation_id, owner)
    }
  }

  /** Renews the lock of a call, one timer at a time, until it is released. */
  function renewing(conversation_id: string, owner: string): () => void {
    let cancel = clock.after(RENEW_MILLISECONDS, renew)
    function renew(): void {
      store
        .renew(conversation_id, owner, clock.now() + LEASE_MILLISECONDS)
        .catch((error: unknown) => log.error('conversation lock not renewed', { conversation_id }, error))
      cancel = clock.after(RENEW_MILLISECONDS, renew)
    }
    return () => cancel()
  }

  function appendingFor(
    row: StoredResponse,
    owner: string,
    { conversation_id, ids }: Pick<Continued, 'conversation_id' | 'ids'>,
  ): Appending {
    const items = withOwnIds([...row.input, ...outputOf(row)], ids)
    return { conversation_id, owner, items, expires_at: row.expires_at, end_user: row.end_user }
  }

  /** At the end of a call that holds a conversation. */
  function unlock({ call, error }: CallRecord): void {
    const lockOfCall = held.get(call)
    if (!lockOfCall) return
    lockOfCall.stopRenewal()
    // After a success the lock is released when the response is stored, which comes after this.
    if (error === undefined && !(call.ending ?? call.signal).aborted) return
    const { conversation_id, owner } = lockOfCall
    store
      .unlock(conversation_id, owner)
      .catch((thrown: unknown) => log.error('conversation not unlocked', { conversation_id }, thrown))
  }

  return {
    async create({ token_id, end_user, metadata, items }) {
      const conversation = {
        conversation_id: `conv_${randomAlphanumerics(24)}`,
        token_id,
        created_at: now(),
        expires_at: expiresAt(),
        metadata,
      }
      if (settings().keep_days === 0) throw notStored('conversations')
      const own = withOwnIds(items as unknown as JsonObject[], new Set())
      const amount = { rows: 1 + own.length, bytes: jsonSize(metadata) + jsonSize(own) }
      await quota.keep(token_id, amount, () => store.add(conversation, own, end_user))
      return conversation
    },

    find: async (place) => (await stateOf(place)).conversation,

    async update(place, metadata) {
      const { conversation } = await stateOf(place)
      const change = { metadata, expires_at: Math.max(conversation.expires_at, expiresAt()) }
      const amount = { rows: 0, bytes: jsonSize(metadata) }
      const is_updated = await quota.keep(place.token_id, amount, () => store.update(keyOf(place), change))
      if (!is_updated) throw notFound(place.conversation_id)
      return { ...conversation, ...change }
    },

    async remove({ conversation_id, token_id }) {
      if (!(await store.remove(conversation_id, token_id))) throw notFound(conversation_id)
      quota.freed(token_id)
    },

    addItems: (place, { items, end_user }) =>
      changing(place, async (owner) => {
        const { conversation_id } = place
        if ((await stateOf(place)).text_length > MAX_CHARACTERS) throw tooLong()
        const ids = new Set((await store.items(conversation_id)).map(({ id }) => id))
        const added = withOwnIds(items as unknown as JsonObject[], ids)
        const appending = { conversation_id, owner, items: added, expires_at: expiresAt(), end_user }
        const amount = { rows: added.length, bytes: jsonSize(added) }
        await quota.keep(place.token_id, amount, () => store.append(appending))
        return added
      }),

    async page(place, page) {
      await stateOf(place)
      return store.page(place.conversation_id, page)
    },

    async item(place, item_id) {
      await stateOf(place)
      const found = await store.item(place.conversation_id, item_id)
      if (!found) throw itemNotFound(item_id)
      return found
    },

    removeItem: (place, item_id) =>
      changing(place, async () => {
        if (!(await store.removeItem(place.conversation_id, item_id))) throw itemNotFound(item_id)
        quota.freed(place.token_id)
        return (await stateOf(place)).conversation
      }),

    async read(place) {
      if (settings().keep_days === 0) throw notStored('conversation')
      const { revision, text_length } = await stateOf(place)
      if (text_length > MAX_CHARACTERS) throw tooLong()
      const items = await store.items(place.conversation_id)
      const ids = new Set(items.map(({ id }) => id))
      return { ...place, before: { items: items as unknown as InputItem[], ids: [] }, ids, revision }
    },

    async lockFor(call, { conversation_id, token_id, revision }) {
      const owner = `call_${randomAlphanumerics(24)}`
      await lock({ conversation_id, token_id }, { owner, milliseconds: LEASE_MILLISECONDS, revision })
      held.set(call, { conversation_id, owner, stopRenewal: renewing(conversation_id, owner) })
      whenEnded(call, unlock)
    },

    lockForRun: (response_id, place) => lock(place, { owner: response_id, milliseconds: RUN_LEASE_MILLISECONDS }),
    unlock: store.unlock,

    storeFor: (call, continued, rowOf) => async (response) => {
      const row = rowOf(response)
      const { conversation_id } = continued
      const lockOfCall = held.get(call)
      lockOfCall?.stopRenewal()
      const owner = lockOfCall?.owner ?? row.response_id
      const appending = appendingFor(row, owner, continued)
      quota.stored(row.token_id, amountOf(row, appending.items))
      if (await store.append(appending, row)) return
      log.warn('items of a response not appended: its conversation was deleted or its lock was lost', {
        conversation_id,
        response_id: row.response_id,
      })
    },

    appendingOf(row, response, continued) {
      const appending = appendingFor({ ...row, response }, row.response_id, continued)
      return response.status === 'failed' ? { ...appending, items: [] } : appending
    },

    async forget() {
      if (now() - lastCleanup < FORGET_SECONDS) return
      lastCleanup = now()
      for (let round = 0; round < FORGET_ROUNDS; round++) {
        if ((await store.deleteExpired(now(), FORGET_AT_ONCE)) < FORGET_AT_ONCE) return
      }
    },
  }
}

type Locking = { owner: string; milliseconds: number; revision?: number }

/** The same items, each with an id that no other item of the conversation has. */
function withOwnIds(items: readonly JsonObject[], taken: ReadonlySet<string>): ConversationItem[] {
  const used = new Set(taken)
  return items.map((item) => {
    const { id } = item
    const isFree = typeof id === 'string' && id !== '' && !used.has(id)
    // In the form of the ids that the gateway gives to inputs: they are not sent to providers.
    const own = isFree ? id : `${itemKind(item.type)}_${randomAlphanumerics(24)}_in0`
    used.add(own)
    return { ...item, id: own }
  })
}

const notFound = (conversation_id: string) =>
  new GatewayError('conversation_not_found', `Conversation with id '${conversation_id.slice(0, 80)}' not found.`, {
    param: 'conversation',
  })

const itemNotFound = (item_id: string) =>
  new GatewayError('conversation_item_not_found', `Item with id '${item_id.slice(0, 80)}' not found in conversation.`)

/** The wording of OpenAI: https://github.com/paulgmiller/careme/issues/379 */
const locked = () =>
  new GatewayError(
    'conversation_locked',
    'Another process is currently operating on this conversation. Please retry in a few seconds.',
    { param: 'conversation' },
  )

const tooLong = () =>
  new GatewayError(
    'context_length_exceeded',
    `The conversation is too long to continue: its items have more than ${MAX_CHARACTERS} characters.`,
    { param: 'conversation' },
  )

const notStored = (param: string) =>
  new GatewayError('unsupported_parameter', `"${param}" is not supported: this gateway stores no conversations.`, {
    param,
  })
