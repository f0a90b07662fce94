/** Contract of the stored tools of MCP servers: what was approved, and what the server says now. */
import type { AuditDraft } from '../../spec/audit.ts'

/** A definition is JSON: the name, description and schemas of the tool. Times are unix seconds. */
export type McpToolRow = SeenTool & {
  /** Null: it was never approved, as the three after it. */
  approved_hash: string | null
  approved_definition: string | null
  approved_at: number | null
  approved_by: string | null
}

export type SeenTool = {
  server: string
  tool: string
  hash: string
  definition: string
  /** When it was first seen as it is. */
  seen_at: number
}

export type McpToolStore = {
  /** By server and name; without a server those of all. */
  list(server?: string): Promise<McpToolRow[]>
  /** Stores what a server says now. `approved_by`: approves those that are new; undefined: they wait. */
  see(tools: readonly SeenTool[], approved_by: string | undefined): Promise<void>
  /** Approves the tool if it still has this hash; false: it has not. `audit`: the row that is appended with it. */
  approve(
    tool: Pick<SeenTool, 'server' | 'tool' | 'hash'>,
    by: { approved_by: string; approved_at: number },
    audit: AuditDraft,
  ): Promise<boolean>
}
