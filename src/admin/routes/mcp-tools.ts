/** The admin API's tools of MCP servers: what is approved, what has changed, and the approval. */
import Type from 'typebox'
import { type BodyParts, bodyReader } from '../../http/checked-body.ts'
import type { Context, Route } from '../../http/context.ts'
import { unixSeconds } from '../../kit/clock.ts'
import { asRecord, canonicalJson, parseJson } from '../../kit/json.ts'
import { sha256 } from '../../kit/secret.ts'
import { SANDBOX_TOOLS } from '../../providers/mcp/sandbox-tools.ts'
import { GatewayError } from '../../spec/error.ts'
import { closedObject, orNull, titled } from '../../spec/fields.ts'
import type { McpToolRow, McpToolStore } from '../../store/admin/mcp-tool-store.ts'
import { noSuch, objectAnswer, originOf } from './edit.ts'
import { listRoute, pageOfAll } from './list.ts'
import { adminRoute } from './route.ts'

type McpToolRouteParts = BodyParts & {
  mcpTools: Pick<McpToolStore, 'list' | 'approve'>
  hasBuiltInTools(): boolean
}

const Change = Type.Object({
  member: Type.String({ description: 'Such as `description` or `inputSchema`.' }),
  before: Type.Unknown({ description: 'As it was approved.' }),
  after: Type.Unknown({ description: 'As it is now.' }),
})

const McpTool = titled('McpTool', {
  server: Type.String(),
  tool: Type.String(),
  state: Type.Enum(['approved', 'pending', 'changed'], {
    description: 'pending: never approved. changed: approved as it was before. Only an approved tool can be used.',
  }),
  hash: Type.String({ description: 'SHA-256 of its definition as it is now.' }),
  description: Type.String(),
  definition: Type.Unknown({
    description: 'What an approval would approve: its name, description and schemas. Null: it is approved.',
  }),
  changes: Type.Array(Change, { description: 'What differs from what was approved.' }),
  seen_at: Type.Integer({ description: 'Unix seconds: since when it is as it is.' }),
  approved_at: orNull(Type.Integer()),
  approved_by: orNull(Type.String()),
})
type McpTool = Type.Static<typeof McpTool>

const Approval = closedObject('McpToolApproval', {
  server: Type.String(),
  tool: Type.String(),
  hash: Type.String({
    description: 'That of the definition that was read: a tool that has changed since is not approved.',
  }),
})

const ROOT = '/admin/v1/mcp/tools'

export function mcpToolRoutes({ mcpTools, hasBuiltInTools, ...parts }: McpToolRouteParts): Route[] {
  const readApproval = bodyReader(Approval, parts)

  async function list(context: Context): Promise<Response> {
    const placeOf = ({ server, tool }: McpToolRow) => `${server} ${tool}`
    const rows = [...(hasBuiltInTools() ? BUILT_IN : []), ...(await mcpTools.list())]
    rows.sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1))
    return pageOfAll(context, rows, { view: toolView, placeOf })
  }

  async function approve(context: Context): Promise<Response> {
    const { server, tool, hash } = await readApproval(context)
    const find = async () => (await mcpTools.list(server)).find((row) => row.tool === tool)
    const before = await find()
    if (!before) throw noSuch('tool of an MCP server', `${server} ${tool}`)
    const now_ms = parts.clock.now()
    const by = { approved_by: context.admin.actor, approved_at: unixSeconds(parts.clock) }
    const isApproved = await mcpTools.approve({ server, tool, hash }, by, {
      ...originOf(context),
      at_ms: now_ms,
      action: 'mcp.approve',
      object_type: 'mcp_tool',
      object_id: `${server}/${tool}`,
      before: { definition: before.approved_definition },
      after: { definition: before.definition },
    })
    if (!isApproved) {
      throw new GatewayError(
        'precondition_failed',
        `The tool "${tool}" of "${server}" has changed meanwhile; read it again.`,
      )
    }
    return objectAnswer(context, toolView((await find()) ?? before))
  }

  return [
    listRoute(['GET', ROOT, 'read'], {
      summary: 'List tools of MCP servers',
      description: 'Those that were seen, with what has changed since they were approved.',
      of: [McpTool, 'McpToolList'],
      handle: list,
    }),
    adminRoute(['POST', `${ROOT}/approve`, 'operate'], {
      summary: 'Approve a tool of an MCP server',
      description: 'As it is now, if its hash is still the one given. Takes effect within seconds.',
      request: Approval,
      response: McpTool,
      errors: ['object_not_found', 'precondition_failed'],
      example: { server: 'github', tool: 'search', hash: '0'.repeat(64) },
      handle: approve,
    }),
  ]
}

/** Those of the sandbox are not stored. */
const BUILT_IN: McpToolRow[] = SANDBOX_TOOLS.map((tool) => {
  const definition = canonicalJson(tool)
  const hash = sha256(definition)
  const approved = { approved_hash: hash, approved_definition: definition, approved_at: null, approved_by: 'built in' }
  return { server: 'sandbox', tool: tool.name, hash, definition, seen_at: 0, ...approved }
})

function toolView(row: McpToolRow): McpTool {
  const { server, tool, hash, seen_at, approved_at, approved_by, approved_hash } = row
  const [before, after] = [row.approved_definition ?? '{}', row.definition].map((text) => parseJson(text))
  const [old, now] = [asRecord(before), asRecord(after)]
  const state = approved_hash === null ? 'pending' : approved_hash === hash ? 'approved' : 'changed'
  const names = state === 'changed' ? [...new Set([...Object.keys(old), ...Object.keys(now)])] : []
  const differs = (name: string) => JSON.stringify(old[name]) !== JSON.stringify(now[name])
  const changes = names
    .filter(differs)
    .map((member) => ({ member, before: old[member] ?? null, after: now[member] ?? null }))
  const description = typeof now.description === 'string' ? now.description : ''
  const definition = state === 'approved' ? null : after
  return { server, tool, state, hash, description, definition, changes, seen_at, approved_at, approved_by }
}
