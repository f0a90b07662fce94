/** Contract of the response cache in the database. */
import type { AuditDraft } from '../../spec/audit.ts'

/** An answer of the response cache. `bytes`: its size, for the bounds. `answer`: JSON text. */
export type CachedAnswer = { created_ms: number; expires_ms: number; bytes: number; answer: string }

export type CachedAnswerStore = {
  /** The answer, unless it has expired. */
  find(cache_key: string, now_ms: number): Promise<CachedAnswer | undefined>
  /** Stores or replaces an answer, then removes the oldest ones that exceed the bounds. */
  put(cache_key: string, entry: CachedAnswer, bounds: { max_entries: number; max_bytes: number }): Promise<void>
  /** Deletes at most `limit` expired answers; returns how many it deleted. */
  deleteExpired(now_ms: number, limit: number): Promise<number>
  /** Counts a purge, of all or of one model or project, with its row of the audit log in one transaction. */
  countPurge(name: string | undefined, audit?: AuditDraft): Promise<void>
  /** How many purges there were, by any process: by model and project, and of all under the empty name. */
  purges(): Promise<Map<string, number>>
  /** How many answers there are, also expired ones, and their bytes. */
  size(): Promise<{ entries: number; bytes: number }>
  /** Deletes at most `limit` answers whose key has this text; returns how many it deleted. */
  deleteWith(part: string, limit: number): Promise<number>
}

/** The most similar vector, with the key of its answer. */
export type Neighbour = { key: string; similarity: number }

export type CachedVectors = {
  /** Adds the vector of a cached answer, or replaces it. It lives as long as that; an answer that is gone has none. */
  add(entry: { partition: string; key: string; vector: Float32Array }): Promise<void>
  /** The most similar vector of the partition whose answer has not expired; undefined: none reaches the threshold. */
  nearest(
    partition: string,
    search: { vector: Float32Array; threshold: number; now_ms: number },
  ): Promise<Neighbour | undefined>
}
