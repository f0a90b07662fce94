/** Stored responses, and the runs of those in the background. */
import type { JsonObject } from '../../spec/task.ts'
import type { Appending } from './conversation-store.ts'
import type { StoredResponse } from './response-row.ts'

export type ResponseStore = {
  /** Stores a response. The previous responses (`previous_ids`) then expire no earlier than it. */
  add(response: StoredResponse, previous_ids: string[]): Promise<void>
  /** The responses of this token that have not expired, in no order. */
  find(response_ids: string[], token_id: string, now: number): Promise<StoredResponse[]>
  /** The total length of their JSON text in characters. */
  textLength(response_ids: string[], token_id: string, now: number): Promise<number>
  /**
   * The response and all previous ones, oldest first; empty if it does not exist. The chain stops at a missing response,
   * and at the one with which the total text exceeds `max_length`.
   */
  conversation(
    response_id: string,
    at: { token_id: string; now: number; max_length: number },
  ): Promise<StoredResponse[]>
  /** False if this token has no such response. */
  remove(response_id: string, token_id: string): Promise<boolean>
  /** Deletes at most `limit` expired responses; returns how many it deleted. */
  deleteExpired(now: number, limit: number): Promise<number>
}

/** Serialized events of a response; `last_number` is the number of the last one. */
export type StoredEvents = { last_number: number; events: string }

/** A claimed background response: each claim has another `fence`. */
export type ResponseRun = {
  response: StoredResponse
  request: JsonObject
  /** Whom the request named. */
  end_user?: string
  /** How often it was started, this time included. */
  attempts: number
  fence: number
  /** The number of the last stored event; -1 for a response without a stream. */
  last_number: number
}

/** Identifies a claimed run. */
type RunKey = { response_id: string; fence: number }

export type ResponseRunStore = {
  /** Stores a queued response, with its first events if it is streamed. */
  add(
    queued: Pick<ResponseRun, 'response' | 'request' | 'end_user'> & {
      events: StoredEvents | undefined
      due_ms: number
    },
    previous_ids: string[],
  ): Promise<void>
  /** Claims due runs, each until `until_ms`: the oldest of each token before the second oldest of any. */
  claim(claim: { now_ms: number; until_ms: number; limit: number }): Promise<ResponseRun[]>
  /** Renews the lease of a run; false if the run was removed or claimed again. */
  renew(run: RunKey, until_ms: number): Promise<boolean>
  /** Stores the current response and its new events; false as above. */
  save(run: RunKey, notifications: { response?: JsonObject; events?: StoredEvents | undefined }): Promise<boolean>
  /** The same at its end: the run is removed, and its items are appended to its conversation. */
  end(
    run: RunKey,
    notifications: { response: JsonObject; events?: StoredEvents | undefined; appending?: Appending | undefined },
  ): Promise<boolean>
  /** Releases a run as if it had not been started. */
  release(run: RunKey, due_ms: number): Promise<void>
  /** Ends a response of this token as `response`, even a claimed one; false if it had already ended. */
  cancel(response_id: string, token_id: string, response: JsonObject): Promise<boolean>
  isRunning(response_id: string): Promise<boolean>
  /** How many responses of this token have not ended, including running ones. */
  waiting(token_id: string): Promise<number>
  /** Events after this number, in order; the first row may start before it. */
  events(response_id: string, after: number): Promise<StoredEvents[]>
  /** When the next run is due; null if there is none. */
  earliest(): Promise<number | null>
}
