/** Finds the orders that were sent to a provider lately: one of them may be the order in doubt. */
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const sentOrders: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createIndex('tasks_sent')
      .on('tasks')
      .columns(['provider', 'sent_at'])
      .where(sql<boolean>`sent_at is not null`)
      .execute()
  },
}
