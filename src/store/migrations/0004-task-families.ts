/** A face lists its own families' tasks only: in order, without a look at those of the others. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const taskFamilies: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createIndex('tasks_of_family')
      .on('tasks')
      .columns(['token_id', 'family', 'submit_time', 'task_id'])
      .execute()
  },
}
