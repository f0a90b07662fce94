/** Conversations of the Responses API, and their items in order. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const conversations: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('conversations')
      .addColumn('conversation_id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('token_id', 'text', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('expires_at', 'bigint', (column) => column.notNull())
      .addColumn('metadata', 'text', (column) => column.notNull())
      .addColumn('revision', 'bigint', (column) => column.notNull())
      .addColumn('locked_by', 'text')
      .addColumn('locked_until_ms', 'bigint', (column) => column.notNull())
      .execute()
    await db.schema
      .createIndex('conversations_by_end')
      .on('conversations')
      .columns(['expires_at', 'conversation_id'])
      .execute()
    await db.schema
      .createTable('conversation_items')
      .addColumn('conversation_id', 'text', (column) => column.notNull())
      .addColumn('position', 'bigint', (column) => column.notNull())
      .addColumn('item_id', 'text', (column) => column.notNull())
      .addColumn('item', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('conversation_items_key', ['conversation_id', 'position'])
      .execute()
    await db.schema
      .createIndex('conversation_items_by_id')
      .on('conversation_items')
      .columns(['conversation_id', 'item_id'])
      .unique()
      .execute()
  },
}
