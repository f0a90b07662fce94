/** Each API lists the tasks of its own families only: the index returns them in order without reading other tasks. */
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
