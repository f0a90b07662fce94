/** Stored responses: what a request continues from, and the ids that their items have. */
import type { InputItem } from './schema.ts'

/** What was said before a request, and in which responses. */
export type Conversation = { items: InputItem[]; ids: string[] }

/** A response, as far as its keeper looks at it. */
export type Kept = { id: string; created_at: number }

/** Remembers an answer. */
export type Keep = (response: Kept) => Promise<void>

/** The id of an item of a response. The response id is part of it. */
export const itemId = (response_id: string, kind: string, index: number | string): string =>
  `${kind}_${response_id.slice('resp_'.length)}_${index}`
