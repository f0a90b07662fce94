/** Stores the connections of people to MCP servers in the database. */
import type { Engine } from '../engine.ts'
import { appendAudit } from './audit-append.ts'
import type { McpConnectionStore } from './mcp-connection-store.ts'

const NOTHING_PENDING = { pending_hash: null, pending: null, pending_until: null }
const UNUSED = { version: 0, refreshing_until_ms: null, last_used_at: null }
const NEW = { ...UNUSED, connection_id: null, sealed: null, connected_at: null }

export function mcpConnectionStore({ db, write }: Engine): McpConnectionStore {
  return {
    find: ({ person, server }) =>
      db
        .selectFrom('mcp_connections')
        .selectAll()
        .where((row) => row.and({ person, server }))
        .executeTakeFirst(),

    begin: (key, { hash, sealed, until }) =>
      write(async (rows) => {
        const pending = { pending_hash: hash, pending: sealed, pending_until: until }
        await rows
          .insertInto('mcp_connections')
          .values({ ...key, ...NEW, ...pending })
          .onConflict((conflict) => conflict.columns(['person', 'server']).doUpdateSet(pending))
          .execute()
      }),

    take: (person, hash, now) =>
      write(async (rows) => {
        const found = await rows
          .selectFrom('mcp_connections')
          .select(['server', 'pending'])
          .where((row) => row.and({ person, pending_hash: hash }))
          .where('pending_until', '>', now)
          .executeTakeFirst()
        if (!found || found.pending === null) return undefined
        const { numUpdatedRows } = await rows
          .updateTable('mcp_connections')
          .set(NOTHING_PENDING)
          .where((row) => row.and({ person, server: found.server, pending_hash: hash }))
          .executeTakeFirst()
        return numUpdatedRows === 0n ? undefined : { server: found.server, pending: found.pending }
      }),

    connect: (key, made, audit) =>
      write(async (rows) => {
        const connected = { ...made, ...UNUSED }
        await rows
          .insertInto('mcp_connections')
          .values({ ...key, ...NOTHING_PENDING, ...connected })
          .onConflict((conflict) => conflict.columns(['person', 'server']).doUpdateSet(connected))
          .execute()
        await appendAudit(rows, audit)
      }),

    used: ({ person, server, connection_id }, last_used_at) =>
      write(async (rows) => {
        await rows
          .updateTable('mcp_connections')
          .set({ last_used_at })
          .where((row) => row.and({ person, server }))
          .where('connection_id', '=', connection_id)
          .execute()
      }),

    claim: ({ person, server, connection_id, version }, now_ms, until_ms) =>
      write(async (rows) => {
        const { numUpdatedRows } = await rows
          .updateTable('mcp_connections')
          .set({ refreshing_until_ms: until_ms })
          .where((row) => row.and({ person, server, version }))
          .where('connection_id', '=', connection_id)
          .where('sealed', 'is not', null)
          .where((where) =>
            where.or([where('refreshing_until_ms', 'is', null), where('refreshing_until_ms', '<=', now_ms)]),
          )
          .executeTakeFirst()
        return numUpdatedRows > 0n
      }),

    settle: ({ person, server, connection_id, version }, sealed) =>
      write(async (rows) => {
        const { numUpdatedRows } = await rows
          .updateTable('mcp_connections')
          .set({
            refreshing_until_ms: null,
            ...(sealed !== undefined && { sealed, version: version + 1 }),
          })
          .where((row) => row.and({ person, server, version }))
          .where('connection_id', '=', connection_id)
          .executeTakeFirst()
        return numUpdatedRows > 0n
      }),

    remove: ({ person, server }, audit, pinned_as) =>
      write(async (rows) => {
        const found = await rows
          .deleteFrom('mcp_connections')
          .where((row) => row.and({ person, server }))
          .returningAll()
          .executeTakeFirst()
        if (pinned_as !== undefined) await rows.deleteFrom('mcp_tools').where('server', '=', pinned_as).execute()
        if (found?.connection_id) await appendAudit(rows, audit)
        return found
      }),

    list: (limit, after = '') =>
      db
        .selectFrom('mcp_connections')
        .selectAll()
        .where('connection_id', '>', after)
        .orderBy('connection_id')
        .limit(limit)
        .execute(),

    named: (connection_id) =>
      db.selectFrom('mcp_connections').selectAll().where('connection_id', '=', connection_id).executeTakeFirst(),
  }
}
