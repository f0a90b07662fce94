/** Replaces the indexes of sizes in SQLite by ones without `octet_length()`, so that older versions of its tools can check the file. */
import { type Kysely, SqliteAdapter, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const sizeIndexes: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    // SQLite has `octet_length()` since 3.43, and Debian 12 has 3.40. PostgreSQL keeps the indexes of migration 0009.
    if (!(db.getExecutor().adapter instanceof SqliteAdapter)) return
    for (const [index, columns] of INDEXES) {
      await sql.raw(`drop index ${index}`).execute(db)
      await sql.raw(`create index ${index} on ${columns}`).execute(db)
    }
  },
}

const bytes = (column: string) => `length(cast(${column} as blob))`

/** The expressions are those of `stored-amounts.ts`: an index is used only if they are the same. */
const INDEXES = [
  ['responses_sizes', `responses (token_id, (${bytes('input')} + ${bytes('response')}))`],
  ['response_runs_sizes', `response_runs (token_id, (${bytes('request')}))`],
  ['response_events_sizes', `response_events (token_id, (${bytes('events')}))`],
  ['conversations_sizes', `conversations (token_id, conversation_id, (${bytes('metadata')}))`],
  ['conversation_items_sizes', `conversation_items (conversation_id, (${bytes('item')}))`],
  ['tasks_sizes', `tasks (token_id, submit_time, (${bytes('request')}))`],
] as const
