/** Projects and tokens of the configuration file. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const declaredAccounts: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const table of ['projects', 'tokens']) {
      await db.schema
        .alterTable(table)
        .addColumn('declared', 'integer', (column) => column.notNull().defaultTo(0))
        .execute()
    }
  },
}
