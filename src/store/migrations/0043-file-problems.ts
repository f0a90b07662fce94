/** What the upload of a file found wrong for a batch of it. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const fileProblems: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('files').addColumn('problems', 'text').execute()
  },
}
