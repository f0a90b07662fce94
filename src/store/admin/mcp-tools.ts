/** Stores the tools of MCP servers in the database. */
import type { Engine } from '../engine.ts'
import { appendAudit } from './audit-append.ts'
import type { McpToolStore } from './mcp-tool-store.ts'

export function mcpToolStore({ db, write }: Engine): McpToolStore {
  return {
    list(server) {
      const all = db.selectFrom('mcp_tools').selectAll().orderBy('server').orderBy('tool')
      return (server === undefined ? all : all.where('server', '=', server)).execute()
    },

    see: (tools, approved_by) =>
      write(async (rows) => {
        for (const tool of tools) {
          const { hash, definition, seen_at } = tool
          const approval =
            approved_by === undefined
              ? { approved_hash: null, approved_definition: null, approved_at: null, approved_by: null }
              : { approved_hash: hash, approved_definition: definition, approved_at: seen_at, approved_by }
          await rows
            .insertInto('mcp_tools')
            .values({ ...tool, ...approval })
            // Of two processes that see a new tool, the first one stores it. A change keeps what was approved.
            .onConflict((conflict) => conflict.columns(['server', 'tool']).doUpdateSet({ hash, definition, seen_at }))
            .execute()
        }
      }),

    approve: ({ server, tool, hash }, by, audit) =>
      write(async (rows) => {
        const { numUpdatedRows } = await rows
          .updateTable('mcp_tools')
          .set((row) => ({ ...by, approved_hash: row.ref('hash'), approved_definition: row.ref('definition') }))
          .where((row) => row.and({ server, tool, hash }))
          .executeTakeFirst()
        if (numUpdatedRows === 0n) return false
        await appendAudit(rows, audit)
        return true
      }),
  }
}
