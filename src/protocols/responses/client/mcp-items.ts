/** Encodes the items and events of MCP servers whose tools the gateway calls while it generates a response. */
import type { ItemEvents, McpApprovalRequestItem, McpCallItem, McpListItem, McpNamed, Open, Status } from './items.ts'
import type { ToolIdentity } from './tool-names.ts'

export type McpItem = McpCallItem | McpApprovalRequestItem
/** By the label of a server: whether a call of this tool waits for approval. */
export type McpNeeds = ReadonlyMap<string, (tool: string) => boolean>
type McpOutcome = { output: string } | { error: string }

export type McpItems = ReturnType<typeof createMcpItems>

export const isMcpItem = (item: { type: string }): item is McpItem =>
  item.type === 'mcp_call' || item.type === 'mcp_approval_request'

export function createMcpItems(itemEvents: ItemEvents, needs: McpNeeds = new Map()) {
  const { event, added, done, newId, output } = itemEvents
  let complete: Open<McpCallItem>[] = []

  const needsApproval = ({ namespace, name }: ToolIdentity): boolean | undefined =>
    namespace === undefined ? undefined : needs.get(namespace)?.(name)

  function begin(item: McpCallItem): { at: Open<McpCallItem>; events: string } {
    const at = itemEvents.open(item)
    return { at, events: added(at) + event('response.mcp_call.in_progress', at.place) }
  }

  const argumentsDone = ({ place, item }: Open<McpCallItem>): string =>
    event('response.mcp_call_arguments.done', `${place},"arguments":${JSON.stringify(item.arguments)}`)

  return {
    /** The id of the item of a call that begins `offset` items from here; undefined: the tool is of no such server. */
    idOf(tool: ToolIdentity, offset: number) {
      const waits = needsApproval(tool)
      const index = output.length + offset
      return waits === undefined ? undefined : newId(waits ? 'mcp_approval_request' : 'mcp_call', index)
    },
    start(tool: ToolIdentity, id: string): { at: Open<McpItem>; events: string } | undefined {
      const waits = needsApproval(tool)
      if (waits === undefined) return undefined
      const named = { server_label: tool.namespace ?? '', name: tool.name, arguments: '' }
      if (waits) return { at: itemEvents.open<McpItem>({ type: 'mcp_approval_request', id, ...named }), events: '' }
      return begin(callItem({ id, ...named }))
    },
    add(item: McpItem, place: string, text: string): string {
      item.arguments += text
      // A request for approval has no events but those of the whole item.
      if (item.type === 'mcp_approval_request') return ''
      return event('response.mcp_call_arguments.delta', `${place},"delta":${JSON.stringify(text)}`)
    },
    close({ item, index, place }: Open<McpItem>, status: Status): string {
      if (item.arguments.trim() === '') item.arguments = '{}'
      if (item.type === 'mcp_approval_request') return added({ item, index, place }) + done({ item, index, place })
      const at = { item, index, place }
      if (status === 'completed') complete.push(at)
      else item.status = status
      return argumentsDone(at) + (status === 'completed' ? '' : done(at))
    },
    /** The calls whose arguments are complete and that have no result yet; each is returned once. */
    takeCalls() {
      const taken = complete
      complete = []
      return taken
    },
    /** The call that the client has approved. */
    approved(request: McpNamed) {
      const id = newId('mcp_call', output.length)
      const started = begin({ ...callItem({ ...request, id }), approval_request_id: request.id })
      return { at: started.at, events: started.events + argumentsDone(started.at) }
    },
    result(at: Open<McpCallItem>, outcome: McpOutcome): string {
      const { item, place } = at
      const isFailed = 'error' in outcome
      item.status = isFailed ? 'failed' : 'completed'
      if ('error' in outcome) item.error = outcome.error
      else item.output = outcome.output
      return event(`response.mcp_call.${item.status}`, place) + done(at)
    },
    list(server_label: string, listed: { tools: object[] } | { error: string }): string {
      const item: McpListItem = {
        type: 'mcp_list_tools',
        id: newId('mcp_list_tools', output.length),
        server_label,
        tools: [],
        error: null,
        ...listed,
      }
      const at = itemEvents.open(item)
      const state = 'error' in listed ? 'failed' : 'completed'
      const events = added(at, { tools: [] }) + event('response.mcp_list_tools.in_progress', at.place)
      return events + event(`response.mcp_list_tools.${state}`, at.place) + done(at)
    },
  }
}

const callItem = ({ id, server_label, name, arguments: given }: McpNamed): McpCallItem => ({
  type: 'mcp_call',
  id,
  approval_request_id: null,
  server_label,
  name,
  arguments: given,
  output: null,
  error: null,
  status: 'in_progress',
})
