/** For whom responses and the items of conversations are stored, so that they can be erased with their end user. */
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const contentsEndUsers: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('responses').addColumn('end_user', 'text').execute()
    await db.schema.alterTable('conversation_items').addColumn('end_user', 'text').execute()
    await sql`create index responses_by_user on responses (end_user) where end_user is not null`.execute(db)
    await sql`create index conversation_items_by_user on conversation_items (end_user, conversation_id)
      where end_user is not null`.execute(db)
  },
}
