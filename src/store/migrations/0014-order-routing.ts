/** The key that an order is sent with, and what its caller asked of the routing. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const orderRouting: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    // Null for orders of older versions: they were sent with the first key that may call their model.
    await db.schema.alterTable('tasks').addColumn('provider_key', 'text').execute()
    await db.schema.alterTable('tasks').addColumn('call_options', 'text').execute()
  },
}
