/** Whether the contents of a project's calls are recorded. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const logContents: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('projects').addColumn('log_contents', 'text').execute()
  },
}
