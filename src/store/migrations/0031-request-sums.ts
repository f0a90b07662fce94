/** Sums of the request log: by minute as they are recorded, and by hour and day for each project, token, model and so on. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const requestSums: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('request_minutes')
      .addColumn('start', 'bigint', (column) => column.notNull())
      .addColumn('id', 'text', (column) => column.notNull())
      .addColumn('sums', 'text', (column) => column.notNull())
      .addColumn('users', 'text')
      .addColumn('tags', 'text')
      .addPrimaryKeyConstraint('request_minutes_pk', ['start', 'id'])
      .execute()
    const parts = ['projects', 'tokens', 'models', 'providers', 'users', 'tags']
    await parts
      .reduce(
        (table, name) => table.addColumn(name, 'text'),
        db.schema
          .createTable('request_sums')
          .addColumn('period', 'integer', (column) => column.notNull())
          .addColumn('kind', 'text', (column) => column.notNull())
          .addColumn('scope', 'text', (column) => column.notNull())
          .addColumn('start', 'bigint', (column) => column.notNull())
          .addColumn('total', 'text', (column) => column.notNull()),
      )
      .addPrimaryKeyConstraint('request_sums_pk', ['period', 'kind', 'scope', 'start'])
      .execute()
    // Rows are deleted, and days are made of hours, in the order of time.
    await db.schema
      .createIndex('request_sums_by_time')
      .on('request_sums')
      .columns(['period', 'start', 'kind', 'scope'])
      .execute()
    for (const noun of ['request_hours', 'request_days', 'request_sums'])
      await db
        .insertInto('revisions' as never)
        .values({ noun, revision: 0 } as never)
        .execute()
  },
}
