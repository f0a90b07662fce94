/** Contract of the stored connections of people to MCP servers. Whatever is secret is sealed before it comes here. */
import type { AuditDraft } from '../../spec/audit.ts'

/** Whose, and to which server. */
type McpConnectionKey = { person: string; server: string }

export type McpConnectionRow = McpConnectionKey & {
  /** Another one each time that the person connects. Null: not connected yet. */
  connection_id: string | null
  /** Null: it has ended, and the person must connect again. */
  sealed: string | null
  /** Counts the refreshes. */
  version: number
  refreshing_until_ms: number | null
  connected_at: number | null
  /** Unix seconds; null: not yet. */
  last_used_at: number | null
  /** What was begun: the hash of its state, what its end needs, and until when it may end. */
  pending_hash: string | null
  pending: string | null
  pending_until: number | null
}

/** A row as it was read. */
type Read = Pick<McpConnectionRow, 'person' | 'server' | 'connection_id' | 'version'>

export type McpConnectionStore = {
  find(key: McpConnectionKey): Promise<McpConnectionRow | undefined>
  /** Replaces what the person has begun before. */
  begin(key: McpConnectionKey, pending: { hash: string; sealed: string; until: number }): Promise<void>
  /** What was begun, once; undefined: the person has begun nothing with this hash, or it is too late. */
  take(person: string, hash: string, now: number): Promise<{ server: string; pending: string } | undefined>
  connect(
    key: McpConnectionKey,
    made: { connection_id: string; sealed: string; connected_at: number },
    audit: AuditDraft,
  ): Promise<void>
  used(read: Read, now: number): Promise<void>
  /** Whether this caller may refresh the tokens: nobody else does, and they are still as they were read. */
  claim(read: Read, now_ms: number, until_ms: number): Promise<boolean>
  /** Ends a claim. `sealed`: the new tokens; null: there are none any more; undefined: as before. False: it is gone. */
  settle(read: Read, sealed: string | null | undefined): Promise<boolean>
  /** What was there. `pinned_as`: the server by whose name its tools were approved, which they are no more; undefined: they stay. */
  remove(key: McpConnectionKey, audit: AuditDraft, pinned_as?: string): Promise<McpConnectionRow | undefined>
  /** Those that people have made, by connection_id, after this one. */
  list(limit: number, after?: string): Promise<McpConnectionRow[]>
  /** Undefined: there is none. */
  named(connection_id: string): Promise<McpConnectionRow | undefined>
}
