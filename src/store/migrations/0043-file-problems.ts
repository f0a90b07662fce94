/** Adds to files what their upload found wrong for a batch of them. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const fileProblems: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('files').addColumn('problems', 'text').execute()
  },
}
