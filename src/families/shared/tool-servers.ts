/** MCP servers of the gateway, for a family that calls their tools while a model generates a response. */
import type { Call } from '../../calls/call.ts'
import type { ListedTool } from '../../protocols/responses/client/mcp-tools.ts'
import type { Caller } from '../../spec/token.ts'

export type ToolServer = {
  /** Those that the caller may call. Rejects with GatewayError. */
  list(call: Call): Promise<ListedTool[]>
  /** Its result as text. Rejects with an error whose message a model may read. */
  call(tool: string, args: Record<string, unknown>, call: Call): Promise<{ output: string } | { error: string }>
}

type ServerName = { label: string | undefined; connector_id: string | undefined; server_url: string | undefined }

export type ToolServers = {
  /** By `server_url` or `connector_id` where they are given, else by the label. Undefined: the caller may use none such. */
  find(named: ServerName, caller: Caller): ToolServer | undefined
  /** `max_cost` in nano-units of the ledger's currency. */
  limits(): { max_rounds: number; max_calls: number; max_seconds: number; max_cost: number }
}
