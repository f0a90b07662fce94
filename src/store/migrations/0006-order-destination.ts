/** Where an order was sent, so that one in doubt is not repeated elsewhere. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const orderDestination: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('tasks').addColumn('sent_to', 'text').execute()
  },
}
