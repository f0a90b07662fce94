/** How much a token has stored: the same on every engine. */

/** Sums what a token has stored: the same on every engine. */
export type StoredAmount = { rows: number; bytes: number }

export type StoredAmounts = {
  /** Responses, conversations and their items; the bytes include the requests and events of background responses. */
  responses(token_id: string): Promise<StoredAmount>
  /** Rows: unfinished tasks. Bytes: their inputs, and the requests of all tasks since then (unix seconds). */
  tasks(token_id: string, since: number): Promise<StoredAmount>
  keys(token_id: string): Promise<StoredAmount>
}
