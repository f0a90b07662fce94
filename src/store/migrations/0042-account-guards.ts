/** Guards of tokens and projects, by name. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const accountGuards: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const table of ['tokens', 'projects'])
      await db.schema
        .alterTable(table)
        .addColumn('guards', 'text', (column) => column.notNull().defaultTo('[]'))
        .execute()
  },
}
