/** Live events of all processes, and until when somebody follows them. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const liveEvents: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('live_events')
      .addColumn('sequence', 'bigint', (column) => column.primaryKey().notNull())
      .addColumn('at_ms', 'bigint', (column) => column.notNull())
      .addColumn('type', 'text', (column) => column.notNull())
      .addColumn('project_id', 'text')
      .addColumn('text', 'text', (column) => column.notNull())
      .execute()
    await (db as Kysely<{ revisions: { noun: string; revision: number } }>)
      .insertInto('revisions')
      .values([
        { noun: 'live_events', revision: 0 },
        { noun: 'live_followed', revision: 0 },
      ])
      .execute()
  },
}
