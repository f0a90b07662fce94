/** Projects, and what tokens share with them: labels, limits, budgets and allowed addresses. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const accounts: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('projects')
      .addColumn('project_id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('labels', 'text', (column) => column.notNull())
      .addColumn('models', 'text', (column) => column.notNull())
      .addColumn('families', 'text')
      .addColumn('rate_limits', 'text', (column) => column.notNull())
      .addColumn('budgets', 'text', (column) => column.notNull())
      .addColumn('end_users', 'text', (column) => column.notNull())
      .addColumn('allowed_addresses', 'text')
      .addColumn('expires_at', 'bigint')
      .addColumn('disabled', 'integer', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('deleted_at', 'bigint')
      .addColumn('added_revision', 'bigint', (column) => column.notNull())
      .execute()
    // The name of a deleted project may be used again.
    await db.schema
      .createIndex('projects_by_name')
      .on('projects')
      .unique()
      .column('name')
      .where('deleted_at' as never, 'is', null)
      .execute()
    for (const [column, initial] of [
      ['labels', '{}'],
      ['rate_limits', '{}'],
      ['budgets', '[]'],
      ['end_users', '{}'],
    ] as const) {
      await db.schema
        .alterTable('tokens')
        .addColumn(column, 'text', (definition) => definition.notNull().defaultTo(initial))
        .execute()
    }
    for (const column of ['project_id', 'allowed_addresses', 'previous_hash']) {
      await db.schema.alterTable('tokens').addColumn(column, 'text').execute()
    }
    await db.schema.alterTable('tokens').addColumn('previous_expires_at', 'bigint').execute()
    await db.schema.createIndex('tokens_by_previous_hash').on('tokens').unique().column('previous_hash').execute()
    await db.schema.createIndex('tokens_of_project').on('tokens').column('project_id').execute()
  },
}
