/** Indexes that hold the sizes of what each token has stored, so that they are summed without reading the rows. */
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const storedAmounts: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    // Null in rows of older versions, which are not counted and expire with their responses.
    await db.schema.alterTable('response_events').addColumn('token_id', 'text').execute()
    for (const [index, columns] of INDEXES) await sql.raw(`create index ${index} on ${columns}`).execute(db)
  },
}

/** The expressions are those of `stored-amounts.ts`: an index is used only if they are the same. */
const INDEXES = [
  ['responses_sizes', 'responses (token_id, (octet_length(input) + octet_length(response)))'],
  ['response_runs_sizes', 'response_runs (token_id, (octet_length(request)))'],
  ['response_events_sizes', 'response_events (token_id, (octet_length(events)))'],
  ['conversations_sizes', 'conversations (token_id, conversation_id, (octet_length(metadata)))'],
  ['conversation_items_sizes', 'conversation_items (conversation_id, (octet_length(item)))'],
  ['tasks_sizes', 'tasks (token_id, submit_time, (octet_length(request)))'],
  ['tasks_unfinished_of_token', `tasks (token_id, task_id, status) where status not in ('SUCCESS', 'FAILURE')`],
] as const
