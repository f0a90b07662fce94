/** The processes in which live events are followed, and of which process an event is. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const liveFollowers: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('live_followers')
      .addColumn('process_id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('until_ms', 'bigint', (column) => column.notNull())
      .execute()
    // Null: an earlier version has written the event.
    await db.schema.alterTable('live_events').addColumn('process_id', 'text').execute()
    await db.schema.alterTable('live_events').addColumn('number', 'bigint').execute()
    await db.schema.alterTable('live_events').addColumn('late', 'integer').execute()
  },
}
