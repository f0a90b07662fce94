/** What is remembered: one small interface a noun, the same on every engine. */
import type { Token, UsageRow } from '../spec/token.ts'

/** A token with the SHA-256 (hex) of its secret. The secret itself is never stored. */
export type StoredToken = Token & { hash: string }

export type TokenStore = {
  /** Adds a token. Throws if its `token_id` or `hash` is taken. */
  add(token: StoredToken): Promise<void>
  /** Adds the token only if the store holds none at all; false if it held one. Atomic between processes. */
  addFirst(token: StoredToken): Promise<boolean>
  findByHash(hash: string): Promise<StoredToken | undefined>
  find(token_id: string): Promise<StoredToken | undefined>
  /** All tokens, oldest first. */
  list(): Promise<StoredToken[]>
  /** Changes fields of a token; false if there is no such token. */
  update(token_id: string, change: Partial<Omit<StoredToken, 'token_id' | 'created_at'>>): Promise<boolean>
  /** Writes when tokens were last used (unix seconds); a time never moves back. Does not count as a change. */
  touch(used: { token_id: string; last_used_at: number }[]): Promise<void>
  /** A number that grows with every add and update, by any process: how caches learn of a change. */
  revision(): Promise<number>
}

export type UsageStore = {
  /** Adds the counts of the rows to what is stored for the same token, model and hour. One transaction. */
  add(rows: UsageRow[]): Promise<void>
  /** Stored rows, newest hour first, of one token or of all, from an hour on (unix seconds). */
  list(filter: { token_id?: string; since?: number; limit: number }): Promise<UsageRow[]>
}

export type ModelStore = {
  /**
   * When each model entered the catalogue (unix seconds): those not yet known are stored with `now`; the rest keep
   * their time. Answers all of `ids`.
   */
  firstSeen(ids: string[], now: number): Promise<Map<string, number>>
}

export type Store = {
  /** The engine's name, for the log. */
  engine: string
  tokens: TokenStore
  usage: UsageStore
  models: ModelStore
  /** Rejects when the store cannot answer; for /readyz. */
  ping(): Promise<void>
  close(): Promise<void>
}
