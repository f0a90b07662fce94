/** Runtime overrides of routing. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const routingOverrides: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('routing_overrides')
      .addColumn('kind', 'text', (column) => column.notNull())
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('weight', 'double precision')
      .addColumn('state', 'text')
      .addColumn('set_by', 'text', (column) => column.notNull())
      .addColumn('set_at', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('routing_overrides_key', ['kind', 'name'])
      .execute()
    await db
      .insertInto('revisions' as never)
      .values({ noun: 'routing_overrides', revision: 0 } as never)
      .execute()
  },
}
