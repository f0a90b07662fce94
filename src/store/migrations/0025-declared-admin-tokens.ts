/** Admin tokens of the configuration file. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const declaredAdminTokens: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .alterTable('admin_tokens')
      .addColumn('declared', 'integer', (column) => column.notNull().defaultTo(0))
      .execute()
  },
}
