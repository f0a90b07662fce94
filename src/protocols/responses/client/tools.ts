/** Decodes the tools and the tool choice of a Responses request. */
import { type GatewayError, invalidValue, missingField } from '../../../spec/error.ts'
import type { ChatRequest, CustomTool, Tool } from '../../shared/canonical.ts'
import { customFunction, functionTool } from '../../shared/custom-tools.ts'
import { places, refusedField } from '../../shared/request-error.ts'
import { assertOffered, foreignTool } from '../../shared/tool-choice.ts'
import type { PlacedItem } from './mcp-tools.ts'
import type { ClientTool, ResponsesRequest } from './schema.ts'
import { createToolNames, type OfferedTool, offeredTools, TOOL_SEARCH, type ToolNames } from './tool-names.ts'

type Tools = Pick<ChatRequest, 'tools' | 'tool_choice' | 'web_search_options'>

/** The tools of one request, and their names for providers. */
type ClientTools = { offered: OfferedTool[]; names: ToolNames }

/** `items`: the conversation, which may add tools. */
export function clientTools({ tools = [] }: Pick<ResponsesRequest, 'tools'>, items: PlacedItem[] = []): ClientTools {
  const offered = offeredTools(tools, items)
  return { offered, names: createToolNames(offered) }
}

/** `web_search`, `web_search_preview`, and either with a date suffix. */
const isSearch = (type: unknown): boolean => typeof type === 'string' && /^web_search(_preview)?(_[\d_]+)?$/.test(type)

/** A tool that the client runs itself. */
const isOwn = (type: unknown): boolean => type === 'function' || type === 'custom'

export function toolsOf({ tool_choice }: ResponsesRequest, { offered, names }: ClientTools): Tools {
  const clientRequest: Tools = {}
  const functions: Tool[] = []
  for (const one of offered) {
    const { tool, at } = one
    if (isSearch(tool.type)) {
      // Only the original vendor has a search index without web access. Other providers search the web and charge for
      // it.
      if (tool.external_web_access !== false) clientRequest.web_search_options = searchOf(tool)
    }
    // All tools are sent in full, so a provider has nothing to search.
    else if (tool.type !== 'tool_search' || tool.execution === 'client') {
      const converted = functionOf(one, names)
      places.set(converted, at)
      functions.push(converted)
    }
  }
  if (functions.length > 0) clientRequest.tools = functions
  if (tool_choice !== undefined) clientRequest.tool_choice = choiceOf(tool_choice, { offered, names })
  return clientRequest
}

function functionOf(one: OfferedTool, names: ToolNames): Tool {
  const { tool, at, namespace } = one
  const { type, parameters, strict } = tool
  if (type === 'namespace') throw badNamespace(one)
  const isToolSearch = type === 'tool_search' && namespace === undefined
  if (!isOwn(type) && !isToolSearch) {
    throw foreignTool(`${at}.type`, type, 'send it as a "function" with its parameters')
  }
  const given = isToolSearch ? TOOL_SEARCH.name : tool.name
  if (given === undefined) throw missingField(`${at}.name`)
  const name = names.vendorName(isToolSearch ? TOOL_SEARCH : { name: given, namespace })
  const description = descriptionOf(one)
  if (type === 'custom') {
    return customFunction({ name, ...(description === undefined ? {} : { description }), ...formatOf(tool) })
  }
  return functionTool({ name, description, parameters, strict })
}

/** Without a definition, a grammar allows any text. */
function formatOf({ format }: ClientTool): Pick<CustomTool, 'format'> {
  if (format?.type !== 'grammar' || format.definition === undefined) return {}
  const syntax = format.syntax === 'regex' ? 'regex' : 'lark'
  return { format: { type: 'grammar', grammar: { definition: format.definition, syntax } } }
}

/** Providers have no field for the description of a namespace. It is added to the description of its first tool. */
function descriptionOf({ tool: { description }, namespace, about }: OfferedTool): string | undefined {
  if (about === undefined) return description
  return [`Namespace ${namespace}: ${about}`, description].filter((text) => text !== undefined).join('\n\n')
}

/** The error for a namespace that is incomplete or nested. */
function badNamespace({ tool, at, namespace }: OfferedTool): GatewayError {
  if (namespace === undefined) return missingField(tool.name === undefined ? `${at}.name` : `${at}.tools`)
  const param = `${at}.type`
  return invalidValue(param, `"${param}" must be "function" or "custom" within a namespace.`)
}

/** Converts the vendor's web search to the options of chat completions. */
function searchOf({ search_context_size, user_location, filters }: ClientTool): Record<string, unknown> {
  const { type: _, ...approximate } = user_location ?? {}
  return {
    ...(search_context_size === undefined ? {} : { search_context_size }),
    ...(user_location === undefined ? {} : { user_location: { type: 'approximate', approximate } }),
    ...(filters === undefined ? {} : { filters }),
  }
}

type ClientChoice = NonNullable<ResponsesRequest['tool_choice']>

function choiceOf(choice: ClientChoice, tools: ClientTools): NonNullable<ChatRequest['tool_choice']> {
  if (typeof choice === 'string') return choice
  const { type, name, namespace, mode = 'auto', tools: allowed = [] } = choice
  if (isOwn(type)) {
    if (name === undefined) throw missingField('tool_choice.name')
    return { type: 'function', function: { name: chosenName({ name, namespace, param: 'tool_choice.name' }, tools) } }
  }
  if (type === 'allowed_tools') {
    return { type, allowed_tools: { mode, tools: allowed.flatMap((tool, at) => allowedTools(tool, at, tools)) } }
  }
  const rule = `must be "function", "custom" or "allowed_tools", not "${type.slice(0, 60)}", which only its own vendor supports`
  throw refusedField('tool_choice.type', rule)
}

type Choice = { name: string; namespace: unknown; param: string }

/** A name without a namespace may mean a tool in a namespace, if no other tool has that name. */
function chosenName({ name, namespace, param }: Choice, { offered, names }: ClientTools): string {
  const alike = offered.filter((one) => typeof namespace !== 'string' || one.namespace === namespace)
  const known = new Set(alike.flatMap(({ tool }) => (isOwn(tool.type) ? tool.name : [])))
  assertOffered(name, known, { param, list: 'tools' })
  if (typeof namespace === 'string') return names.vendorName({ name, namespace })
  const named = offered.filter(({ tool }) => isOwn(tool.type) && tool.name === name)
  const [only] = named
  const isPlain = named.some((tool) => tool.namespace === undefined)
  return names.vendorName({ name, namespace: !isPlain && named.length === 1 ? only?.namespace : undefined })
}

function allowedTools(tool: Record<string, unknown>, at: number, tools: ClientTools): Record<string, unknown>[] {
  const { type, name, namespace } = tool
  const named = (name: unknown) => ({ type: 'function', function: { name } })
  const param = `tool_choice.tools[${at}].name`
  if (isOwn(type)) return [named(typeof name === 'string' ? chosenName({ name, namespace, param }, tools) : name)]
  if (type === 'tool_search') {
    const isOffered = tools.offered.some((one) => one.tool.type === type && one.tool.execution === 'client')
    return isOffered ? [named(tools.names.vendorName(TOOL_SEARCH))] : []
  }
  if (type !== 'namespace') return [tool]
  return tools.offered.flatMap(({ tool: { name: inner }, namespace }) =>
    namespace === name && inner !== undefined ? [named(tools.names.vendorName({ name: inner, namespace }))] : [],
  )
}
