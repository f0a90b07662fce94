/** The trace that a task was submitted in. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const taskTraces: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('tasks').addColumn('trace', 'text').execute()
  },
}
