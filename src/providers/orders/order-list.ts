/** How a provider that lists its orders shows them, so that an order in doubt can be recognised in its list. */
import { canonicalJson, type JsonRecord } from '../../kit/json.ts'
import type { Json } from '../../spec/task.ts'

/** An order in a provider's list. */
export type ListedOrder = {
  /** The provider's id, as it stands in the operation. */
  id: string
  /** What `start` returns for it. */
  operation: Json
  /** Unix seconds, by the provider's clock. */
  created_at: number
  /** The name that came with the order. If it is our task id, this is the order; any other name is another order. */
  label?: string
  /** What was ordered, as far as the list shows it. */
  fields?: JsonRecord
}

/** By which fields of a listed order this one is recognised. */
export type ExpectedFields = {
  /** Equal in the list; what is undefined here must be absent there. */
  always: JsonRecord
  /** Equal where the list shows them. */
  where_shown?: JsonRecord
}

export type OrderList<Call> = {
  /** All orders that the provider accepted from `since` on (unix seconds); undefined: this upstream has no list. */
  since(call: Call, since: number, signal: AbortSignal): Promise<ListedOrder[] | undefined>
  /**
   * By which fields this order is recognised; undefined: the list does not show enough to tell it from another order.
   * Absent: only a label identifies an order.
   */
  fieldsOf?(call: Call): ExpectedFields | undefined | Promise<ExpectedFields | undefined>
  /**
   * What an order that is not listed in time is: `not accepted` only where the list is known to be complete, since it is
   * then sent again; otherwise its outcome stays unknown.
   */
  absent: 'not accepted' | 'unknown'
  /** How long after its acceptance an order may still be missing from the list. Default 300. */
  listed_seconds?: number
}

/** Whether a listed order shows these fields; undefined: it may, but the list does not say. */
export function shows({ fields = {} }: ListedOrder, { always, where_shown = {} }: ExpectedFields): boolean | undefined {
  const differs = ([name, value]: [string, unknown]) =>
    canonicalJson(fields[name] ?? null) !== canonicalJson(value ?? null)
  const isShown = ([name]: [string, unknown]) => fields[name] !== undefined && fields[name] !== null
  const expected = Object.entries(always)
  if ([...expected, ...Object.entries(where_shown)].some((field) => isShown(field) && differs(field))) return false
  return expected.some(differs) ? undefined : true
}

/** Unix seconds from an ISO date, or from a number of seconds or milliseconds. */
export function secondsOf(time: unknown): number {
  if (typeof time === 'string') return Date.parse(time) / 1000
  if (typeof time !== 'number') return Number.NaN
  return time > MAX_SECONDS ? time / 1000 : time
}

/** The year 2286; as milliseconds it is in April 1970. */
const MAX_SECONDS = 9_999_999_999

export type Page = { orders: ListedOrder[]; isLast: boolean }
/** The place of a page: its number, from 1, and the last order of those before it. */
export type PagePlace = { number: number; last: ListedOrder | undefined }

/** A page has at most a hundred orders: an account with more of them in some minutes is not searched. */
const MAX_PAGES = 30

/**
 * Reads a list, newest first, up to an order from before `since`. `read` returns undefined where the upstream has no
 * such list. Throws `tooLong` where the list does not get there: then nothing is known of an order that is missing.
 */
export async function listSince(
  since: number,
  read: (place: PagePlace) => Promise<Page | undefined>,
  tooLong: () => Error,
): Promise<ListedOrder[] | undefined> {
  const orders: ListedOrder[] = []
  for (let number = 1; number <= MAX_PAGES; number++) {
    const page = await read({ number, last: orders.at(-1) })
    if (!page) return undefined
    orders.push(...page.orders)
    if (page.isLast || page.orders.some(({ created_at }) => created_at < since)) return orders
  }
  throw tooLong()
}

/** Statuses with which an upstream says that it has no such path. */
export const hasNoList = (status: number): boolean => status === 404 || status === 405 || status === 501
