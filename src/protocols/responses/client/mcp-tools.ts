/** Decodes tools of the type `mcp`, and the items of their calls, for models that only know functions. */
import { matchesGlob } from '../../../kit/glob.ts'
import { isRecord } from '../../../kit/json.ts'
import { invalidValue, missingField } from '../../../spec/error.ts'
import type { ClientTool, InputItem, ResponsesRequest } from './schema.ts'

/** An item, and its place: `input[3]`. */
export type PlacedItem = { item: InputItem; at: string }

export type McpTool = ClientTool & { type: 'mcp'; server_label: string }

export type ListedTool = {
  name: string
  description?: string | undefined
  input_schema: Record<string, unknown>
  annotations: Record<string, unknown> | null
}

/** The servers of a request, each with its place. Throws where one has no label, or two have the same one. */
export function mcpToolsOf({ tools = [] }: Pick<ResponsesRequest, 'tools'>): { tool: McpTool; at: string }[] {
  const labels = new Set(tools.flatMap(({ type, name }) => (type === 'namespace' && name !== undefined ? [name] : [])))
  return tools.flatMap((tool, index) => {
    if (tool.type !== 'mcp') return []
    const at = `tools[${index}]`
    const { server_label: label } = tool
    if (label === undefined) throw missingField(`${at}.server_label`)
    if (labels.has(label)) {
      throw invalidValue(`${at}.server_label`, `"${at}.server_label" must differ from those of other tools.`)
    }
    labels.add(label)
    return [{ tool: { ...tool, type: 'mcp', server_label: label }, at }]
  })
}

type ToolFilter = { tool_names?: string[] | undefined; read_only?: boolean | undefined }

const fits = ({ name, annotations }: ListedTool, { tool_names, read_only }: ToolFilter): boolean =>
  (tool_names === undefined || tool_names.some((pattern) => matchesGlob(pattern, name))) &&
  (read_only === undefined || (annotations?.readOnlyHint === true) === read_only)

/** The tools of a server that the client allows. */
export const allowedBy = ({ allowed_tools }: McpTool, listed: ListedTool[]): ListedTool[] =>
  allowed_tools === undefined
    ? listed
    : listed.filter((tool) => fits(tool, Array.isArray(allowed_tools) ? { tool_names: allowed_tools } : allowed_tools))

/** Whether a call waits until the client approves it. As at the API's own vendor, it does unless the request says otherwise. */
export function waitsForApproval({ require_approval = 'always' }: McpTool, tool: ListedTool): boolean {
  if (typeof require_approval === 'string') return require_approval === 'always'
  const { always, never } = require_approval
  if (always && fits(tool, always)) return true
  return never === undefined || !fits(tool, never)
}

/** The same request with functions in place of the servers: each server is a namespace with the name of its label. */
export function withFunctions(
  request: ResponsesRequest,
  listed: ReadonlyMap<string, readonly ListedTool[]>,
): ResponsesRequest {
  const { tools = [], tool_choice } = request
  return {
    ...request,
    tools: tools.map((tool) => {
      const { type, server_label = '', server_description: description } = tool
      if (type !== 'mcp') return tool
      const functions = (listed.get(server_label) ?? []).map(functionOf)
      return {
        type: 'namespace',
        name: server_label,
        ...(description !== undefined && { description }),
        tools: functions,
      }
    }),
    ...(isRecord(tool_choice) && { tool_choice: withoutServers(tool_choice) }),
  }
}

const functionOf = ({ name, description, input_schema: parameters }: ListedTool) => ({
  type: 'function',
  name,
  ...(description !== undefined && { description }),
  parameters,
})

type Choice = Exclude<NonNullable<ResponsesRequest['tool_choice']>, string>

function withoutServers(choice: Choice): Choice {
  const { type, server_label: namespace, name, tools } = choice
  if (type === 'mcp' && namespace !== undefined) {
    if (name !== undefined) return { type: 'function', name, namespace }
    return { type: 'allowed_tools', mode: 'required', tools: [{ type: 'namespace', name: namespace }] }
  }
  if (!tools) return choice
  const plain = tools.map((tool) => {
    const { type, server_label, name } = tool
    if (type !== 'mcp') return tool
    return name === undefined
      ? { type: 'namespace', name: server_label }
      : { type: 'function', name, namespace: server_label }
  })
  return { ...choice, tools: plain }
}

/** A request as its response repeats it and as it is stored: without the secrets of servers. */
export const withoutSecrets = (request: ResponsesRequest): ResponsesRequest => ({
  ...request,
  ...(request.tools && {
    tools: request.tools.map((tool) => {
      if (tool.type !== 'mcp') return tool
      const { authorization: _, headers: __, ...rest } = tool as ClientTool & Record<string, unknown>
      return rest
    }),
  }),
})

type Item<T extends string> = Extract<InputItem, { type: T }>
type McpCall = { id: string; server_label: string; name: string; arguments: string; result: string }

/** The call and the result that an item stands for; undefined for any other item. */
export function mcpCallOf(item: InputItem, items: readonly PlacedItem[]): McpCall | undefined {
  if (item.type === 'mcp_call') {
    const { id = '', server_label = '', name, arguments: given = '{}', output, error, approval_request_id } = item
    if (name === undefined) return undefined
    const result = typeof output === 'string' ? output : `Error: ${textOf(error)}`
    return { id: approval_request_id ?? id, server_label, name, arguments: given, result }
  }
  if (item.type !== 'mcp_approval_response' || item.approve) return undefined
  const request = approvalRequest(item, items)
  const reason = item.reason === undefined ? '' : ` ${item.reason}`
  return request && { ...request, result: `Error: The user has not approved this call.${reason}` }
}

const textOf = (error: unknown): string =>
  typeof error === 'string' ? error : error == null ? 'The call has no result.' : JSON.stringify(error)

const approvalRequest = ({ approval_request_id }: Item<'mcp_approval_response'>, items: readonly PlacedItem[]) =>
  items
    .map(({ item }) => item)
    .find(
      (item): item is Item<'mcp_approval_request'> =>
        item.type === 'mcp_approval_request' && item.id === approval_request_id,
    )

/** The calls that the client has approved and that were not made. Throws for the answer to a request that there is not. */
export function approvedCalls(items: readonly PlacedItem[]): { call: Item<'mcp_approval_request'>; at: string }[] {
  const made = new Set(items.flatMap(({ item }) => (item.type === 'mcp_call' ? [item.approval_request_id] : [])))
  return items.flatMap(({ item, at }) => {
    if (item.type !== 'mcp_approval_response' || !item.approve || made.has(item.approval_request_id)) return []
    made.add(item.approval_request_id)
    const call = approvalRequest(item, items)
    if (call) return [{ call, at }]
    const param = `${at}.approval_request_id`
    throw invalidValue(param, `"${param}" must be the id of an item "mcp_approval_request".`)
  })
}
