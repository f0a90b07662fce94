/** Connections of people to MCP servers, with their encrypted tokens. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const mcpConnections: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('mcp_connections')
      .addColumn('person', 'text', (column) => column.notNull())
      .addColumn('server', 'text', (column) => column.notNull())
      // Null: the person has begun to connect, and has not yet come back.
      .addColumn('connection_id', 'text')
      // Null: the connection has ended, as a refused refresh token ends it.
      .addColumn('sealed', 'text')
      .addColumn('version', 'bigint', (column) => column.notNull().defaultTo(0))
      // Until when one process refreshes the tokens, in unix milliseconds.
      .addColumn('refreshing_until_ms', 'bigint')
      .addColumn('connected_at', 'bigint')
      .addColumn('pending_hash', 'text')
      .addColumn('pending', 'text')
      .addColumn('pending_until', 'bigint')
      .addPrimaryKeyConstraint('mcp_connections_key', ['person', 'server'])
      .execute()
  },
}
