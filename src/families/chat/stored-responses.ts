/** Stored responses: the conversation that a request continues, and the items that it refers to. */
import type { StorageQuota } from '../../accounts/storage-quota.ts'
import { type Call, whenEnded } from '../../calls/call.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import { jsonSize } from '../../kit/json-size.ts'
import { isReference, itemNotFound } from '../../protocols/responses/client/history.ts'
import {
  type Conversation,
  itemId,
  itemKind,
  type StorableResponse,
  type StoreResponse,
} from '../../protocols/responses/client/items.ts'
import type { InputItem } from '../../protocols/responses/client/schema.ts'
import { GatewayError, invalidValue } from '../../spec/error.ts'
import type { Json, JsonObject } from '../../spec/task.ts'
import type { Caller } from '../../spec/token.ts'
import type { StoredResponse } from '../../store/responses/response-row.ts'
import type { ResponseStore } from '../../store/responses/response-store.ts'
import type { StoredAmount } from '../../store/tokens/amount-store.ts'

type PreviousResponse = {
  caller: Caller
  /** Whom the request named. */
  end_user?: string | undefined
  before: Conversation
  input: InputItem[]
  previous_response_id: string | undefined
}

export type StoredResponses = {
  /** The conversation up to the end of this response. Throws `previous_response_not_found`. */
  conversation(response_id: string, token_id: string): Promise<Conversation>
  /** The items, with references replaced by the items that they refer to. Throws for one that is not stored. */
  resolved(items: InputItem[], token_id: string): Promise<InputItem[]>
  /** Stores the response to a request; undefined if the operator stores none. */
  storeFor(previous: PreviousResponse): StoreResponse | undefined
  /** Whether the token's quota has space for a response with this input. */
  hasSpace(amount: StoredAmount, token_id: string): Promise<boolean>
  /**
   * Reserves space for the response to a call until the call ends. Throws `storage_quota_exceeded`, unless `hasSpace` has
   * just found space (`isChecked`). What the model adds is not known before: it may exceed the quota.
   */
  reserve(amount: StoredAmount, call: Call, options: { isChecked: boolean }): Promise<void>
  isStoring(): boolean
  /** Whether a response is stored whose request does not say. */
  storesByDefault(): boolean
  /** Removes expired responses, at most once per interval. */
  forget(): Promise<void>
  /** The row of a response, with its input. */
  rowOf(previous: PreviousResponse, response: StorableResponse): StoredResponse
  /** One response of this token. Throws `response_not_found`. */
  find(response_id: string, token_id: string): Promise<StoredResponse>
  /** The input of a response, the oldest item first. Throws `response_not_found`. */
  inputOf(response_id: string, token_id: string): Promise<JsonObject[]>
  /** Throws `response_not_found`. */
  remove(response_id: string, token_id: string): Promise<void>
}

const DAY_SECONDS = 86_400
/** The length of a conversation as JSON: twice the default limit of a body, and more than any model reads. */
export const MAX_CHARACTERS = 64 * 1024 * 1024
/** How often expired responses are removed, how many in one write, and how many writes at a time. */
const FORGET_SECONDS = 60
const FORGET_AT_ONCE = 200
const FORGET_ROUNDS = 500

/** The ids of a response's items contain its own: `resp_<name>` has `msg_<name>_0`, and its input `msg_<name>_in0`. */
const ITEM_ID = /^[a-z]+_([A-Za-z0-9]+)_\d+$/

type StoredResponsesParts = {
  store: ResponseStore
  /** How long responses are stored; 0: not at all. Read for each response. */
  settings(): { keep_days: number; store_default: boolean }
  quota: StorageQuota
  clock: Clock
}

export function createStoredResponses({ store, settings, quota, clock }: StoredResponsesParts): StoredResponses {
  let lastCleanup = 0
  const now = () => unixSeconds(clock)

  const rowOf = (previous: PreviousResponse, response: StorableResponse) =>
    storedFrom(previous, response, Math.ceil(settings().keep_days * DAY_SECONDS))

  async function find(response_id: string, token_id: string): Promise<StoredResponse> {
    const [found] = await store.find([response_id], token_id, now())
    if (found) return found
    throw notFound(response_id)
  }

  return {
    find,

    async conversation(response_id, token_id) {
      const turns = await store.conversation(response_id, { token_id, now: now(), max_length: MAX_CHARACTERS })
      const [first] = turns
      if (!first) throw previousNotFound(response_id)
      if (first.previous_id !== null) {
        const [before] = await store.find([first.previous_id], token_id, now())
        throw before ? tooLong('previous_response_id') : previousNotFound(first.previous_id)
      }
      const { status } = turns.at(-1)?.response ?? {}
      if (status === 'queued' || status === 'in_progress') throw notEnded(response_id)
      return { items: turns.flatMap(itemsOf) as InputItem[], ids: turns.map((turn) => turn.response_id) }
    },

    async resolved(items, token_id) {
      const requested = new Map<string, string>()
      for (const [index, item] of items.entries()) {
        if (isReference(item) && typeof item.id !== 'string') throw withoutId(`input[${index}].id`)
        const [, name] = isReference(item) ? (ITEM_ID.exec(item.id) ?? []) : []
        if (name !== undefined) requested.set(name, `resp_${name}`)
      }
      if (requested.size === 0 && !items.some(isReference)) return items
      const ids = [...requested.values()]
      if ((await store.textLength(ids, token_id, now())) > MAX_CHARACTERS) throw tooLong('input')
      const found = await store.find(ids, token_id, now())
      const byId = new Map(found.flatMap(outputOf).map((item) => [item.id, item]))
      // One item may be referred to many times: a short request could expand beyond all memory.
      const lengths = new Map<unknown, number>()
      let length = 0
      return items.map((item, index) => {
        if (!isReference(item)) return item
        const referred = byId.get(item.id)
        if (!referred) throw itemNotFound(`input[${index}]`, item.id)
        length += lengths.getOrInsertComputed(item.id, () => JSON.stringify(referred).length)
        if (length > MAX_CHARACTERS) throw tooLong('input')
        return referred as unknown as InputItem
      })
    },

    rowOf,

    isStoring: () => settings().keep_days > 0,

    storesByDefault: () => settings().store_default,

    storeFor(previous) {
      if (settings().keep_days === 0) return undefined
      return (response) => {
        const row = rowOf(previous, response)
        quota.stored(row.token_id, amountOf(row, []))
        return store.add(row, previous.before.ids)
      }
    },

    hasSpace: (amount, token_id) => quota.fits(token_id, amount),
    async reserve(amount, call, { isChecked }) {
      const { token_id } = call.caller
      whenEnded(call, isChecked ? quota.hold(token_id, amount) : await quota.reserve(token_id, amount))
    },

    async forget() {
      const at = clock.steady() / 1000
      if (at - lastCleanup < FORGET_SECONDS) return
      lastCleanup = at
      for (let round = 0; round < FORGET_ROUNDS; round++) {
        if ((await store.deleteExpired(now(), FORGET_AT_ONCE)) < FORGET_AT_ONCE) return
      }
    },

    async inputOf(response_id, token_id) {
      const turns = await store.conversation(response_id, { token_id, now: now(), max_length: MAX_CHARACTERS })
      const last = turns.at(-1)
      if (!last) throw notFound(response_id)
      return [...turns.slice(0, -1).flatMap(itemsOf), ...last.input]
    },

    async remove(response_id, token_id) {
      if (!(await store.remove(response_id, token_id))) throw notFound(response_id)
      quota.freed(token_id)
    },
  }
}

/** A row with the items that it adds to a conversation. */
export const amountOf = ({ input, response }: StoredResponse, items: readonly JsonObject[]): StoredAmount => ({
  rows: 1 + items.length,
  bytes: jsonSize(input) + jsonSize(response) + jsonSize(items),
})

function storedFrom(previous: PreviousResponse, response: StorableResponse, seconds: number): StoredResponse {
  const { caller, end_user, input, previous_response_id } = previous
  const { id, created_at } = response
  const items = input.map((item, index) => ({ id: itemId(id, itemKind(item.type), `in${index}`), ...item }))
  return {
    response_id: id,
    token_id: caller.token_id,
    end_user,
    previous_id: previous_response_id ?? null,
    created_at,
    expires_at: created_at + seconds,
    input: items as unknown as JsonObject[],
    response: response as unknown as JsonObject,
  }
}

const isItem = (value: Json): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
export const outputOf = ({ response: { output } }: StoredResponse): JsonObject[] =>
  Array.isArray(output) ? output.filter(isItem) : []
const itemsOf = (turn: StoredResponse): JsonObject[] => [...turn.input, ...outputOf(turn)]

const notFound = (response_id: string) =>
  new GatewayError('response_not_found', `Response with id '${response_id.slice(0, 80)}' not found.`)

const tooLong = (param: 'previous_response_id' | 'input') =>
  new GatewayError(
    'context_length_exceeded',
    `The conversation before this request is too long to continue: what "${param}" refers to has more than ${MAX_CHARACTERS} characters.`,
    { param },
  )

const notEnded = (response_id: string) =>
  invalidValue('previous_response_id', `Previous response with id '${response_id.slice(0, 80)}' has not ended yet.`)

const previousNotFound = (response_id: string) =>
  new GatewayError(
    'previous_response_not_found',
    `Previous response with id '${response_id.slice(0, 80)}' not found.`,
    { param: 'previous_response_id' },
  )

/** For a request that only its own provider understands, whose items were not validated. */
const withoutId = (param: string) =>
  new GatewayError('invalid_type', `"${param}" must be a string: the id of a stored item.`, { param })
