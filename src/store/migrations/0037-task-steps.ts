/** The states of tasks and their targets, each with the time at which it was first reached. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const taskSteps: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    const text = (column: string) => [column, 'text'] as const
    await db.schema
      .createTable('task_steps')
      .addColumn(...text('task_id'), (column) => column.notNull())
      .addColumn(...text('status'), (column) => column.notNull())
      .addColumn(...text('provider'), (column) => column.notNull())
      .addColumn(...text('upstream_model'), (column) => column.notNull())
      .addColumn(...text('provider_key'), (column) => column.notNull())
      .addColumn('failures', 'integer', (column) => column.notNull())
      .addColumn(...text('fail_code'), (column) => column.notNull())
      .addColumn('at_ms', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('task_steps_key', [
        'task_id',
        'status',
        'provider',
        'upstream_model',
        'provider_key',
        'failures',
      ])
      .execute()
  },
}
