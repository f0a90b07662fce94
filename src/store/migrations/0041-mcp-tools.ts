/** Tools of MCP servers as they were seen and approved. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const mcpTools: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('mcp_tools')
      .addColumn('server', 'text', (column) => column.notNull())
      .addColumn('tool', 'text', (column) => column.notNull())
      .addColumn('hash', 'text', (column) => column.notNull())
      .addColumn('definition', 'text', (column) => column.notNull())
      .addColumn('seen_at', 'bigint', (column) => column.notNull())
      // Null: it was never approved.
      .addColumn('approved_hash', 'text')
      .addColumn('approved_definition', 'text')
      .addColumn('approved_at', 'bigint')
      .addColumn('approved_by', 'text')
      .addPrimaryKeyConstraint('mcp_tools_key', ['server', 'tool'])
      .execute()
  },
}
