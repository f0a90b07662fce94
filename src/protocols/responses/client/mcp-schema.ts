/** The schemas of tools of the type `mcp`, and of the items of their calls. */
import Type from 'typebox'
import { optional, orNull, typed } from '../../../spec/fields.ts'

const id = optional(Type.String())

const ToolFilter = Type.Object({
  tool_names: optional(Type.Array(Type.String())),
  read_only: optional(Type.Boolean()),
})
const filter = optional(ToolFilter)
/** Of a tool of the type `mcp`. */
export const McpFields = {
  server_label: optional(
    Type.String({
      pattern: '^[a-zA-Z][a-zA-Z0-9_-]{0,31}$',
      description:
        'Of `mcp`: names the server in items; without `connector_id` and `server_url` it is a server of the gateway.',
    }),
  ),
  connector_id: optional(Type.String({ description: 'A server of the gateway by name.' })),
  server_url: optional(Type.String()),
  server_description: optional(Type.String()),
  allowed_tools: optional(Type.Union([Type.Array(Type.String()), ToolFilter])),
  require_approval: optional(
    Type.Union([Type.Enum(['always', 'never']), Type.Object({ always: filter, never: filter })], {
      description: 'Calls that wait for an item `mcp_approval_response`. Default `always`.',
    }),
  ),
}

export const McpCallItem = typed('mcp_call', {
  id,
  server_label: optional(Type.String()),
  name: optional(Type.String({ minLength: 1 })),
  arguments: optional(Type.String()),
  output: optional(orNull(Type.String())),
  error: optional(Type.Unknown()),
  approval_request_id: optional(orNull(Type.String())),
})
export const McpApprovalRequestItem = typed('mcp_approval_request', {
  id: Type.String({ minLength: 1 }),
  server_label: Type.String(),
  name: Type.String({ minLength: 1 }),
  arguments: Type.String(),
})
export const McpApprovalResponseItem = typed('mcp_approval_response', {
  id,
  approval_request_id: Type.String({ minLength: 1 }),
  approve: Type.Boolean(),
  reason: optional(Type.String()),
})
