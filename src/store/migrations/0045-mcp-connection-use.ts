/** Adds when a connection of a person to an MCP server was last used, in unix seconds; null: not yet. */
import type { Statements } from './statements.ts'

export const MCP_CONNECTION_USE: Record<string, Statements> = {
  '0045-mcp-connection-use': 'alter table mcp_connections add column last_used_at bigint',
}
