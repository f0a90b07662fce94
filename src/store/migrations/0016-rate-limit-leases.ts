/** Leases of rate limits. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const rateLimitLeases: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('rate_limit_leases')
      .addColumn('counter', 'text', (column) => column.notNull())
      .addColumn('process_id', 'text', (column) => column.notNull())
      .addColumn('held', 'double precision', (column) => column.notNull())
      .addColumn('used', 'text', (column) => column.notNull())
      .addColumn('window_ms', 'bigint', (column) => column.notNull())
      .addColumn('renewed_ms', 'bigint', (column) => column.notNull())
      .addColumn('ends_ms', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('rate_limit_leases_pk', ['counter', 'process_id'])
      .execute()
    await db.schema.createIndex('rate_limit_leases_by_end').on('rate_limit_leases').columns(['ends_ms']).execute()
    await db.schema
      .createIndex('rate_limit_leases_by_renewal')
      .on('rate_limit_leases')
      .columns(['renewed_ms', 'process_id'])
      .execute()
  },
}
