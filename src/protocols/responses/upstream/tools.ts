/** Encodes the tools, the tool choice and the web search. */
import { asRecord, isRecord, type JsonRecord } from '../../../kit/json.ts'
import { type ChatRequest, CUSTOM, type CustomTool, type Tool } from '../../shared/canonical.ts'
import { refused } from './parts.ts'

export function toolsOf(request: ChatRequest, isCustomNative: boolean): JsonRecord {
  const search = searchOf(request)
  const functions = request.tools ?? []
  const customs = new Set(isCustomNative ? functions.filter((tool) => tool[CUSTOM]).map(nameOf) : [])
  const own = functions.map((tool) => {
    const custom = isCustomNative ? tool[CUSTOM] : undefined
    return custom ? customOf(custom) : functionOf(tool)
  })
  const tools = [...own, ...(search ? [search] : [])]
  const { tool_choice: choice, parallel_tool_calls } = request
  // The vendor refuses an empty list, and a choice from it.
  if (tools.length === 0) return isDemanding(choice) ? { tool_choice: choiceOf(choice, customs) } : {}
  return {
    tools,
    ...(choice === undefined ? {} : { tool_choice: choiceOf(choice, customs) }),
    ...(parallel_tool_calls === undefined ? {} : { parallel_tool_calls }),
  }
}

const isDemanding = (choice: ChatRequest['tool_choice']) =>
  choice !== undefined && choice !== 'auto' && choice !== 'none'

/** In this API a tool is strict by default; elsewhere it is not. */
function functionOf({ function: definition }: Tool): JsonRecord {
  const { name, description, parameters = { type: 'object', properties: {} }, strict } = definition
  return {
    type: 'function',
    name,
    ...(description === undefined ? {} : { description }),
    parameters,
    strict: strict ?? false,
  }
}

/** This API has the members of a grammar beside its type. */
function customOf({ format, ...custom }: CustomTool): JsonRecord {
  if (!format) return { type: 'custom', ...custom }
  return {
    type: 'custom',
    ...custom,
    format: format.type === 'grammar' ? { type: 'grammar', ...format.grammar } : format,
  }
}

type Customs = ReadonlySet<unknown>

function choiceOf(choice: ChatRequest['tool_choice'], customs: Customs): unknown {
  if (typeof choice !== 'object') return choice
  if (choice.type === 'function') return nameTool(choice, customs)
  const { mode, tools } = choice.allowed_tools
  return { type: 'allowed_tools', mode, tools: tools.map((tool) => nameTool(tool, customs)) }
}

const nameOf = ({ function: { name } }: Tool): string => name

/** `{type, function: {name}}` becomes `{type, name}`. */
const nameTool = (tool: JsonRecord, customs: Customs): JsonRecord =>
  isRecord(tool.function)
    ? { type: customs.has(tool.function.name) ? 'custom' : 'function', name: tool.function.name }
    : tool

export const requestedSearch = ({ web_search, web_search_options }: ChatRequest): JsonRecord | undefined =>
  web_search?.enable ? web_search : web_search_options

/** The vendor's web search, if the model's row or the client requests it. */
function searchOf(request: ChatRequest): JsonRecord | undefined {
  const options = requestedSearch(request)
  if (!options) return undefined
  const { search_context_size, user_location: place, filters } = options
  const { allowed_domains, blocked_domains } = asRecord(filters)
  if (Array.isArray(blocked_domains) && blocked_domains.length > 0) {
    const field = request.web_search?.enable ? 'web_search' : 'web_search_options'
    throw refused(`${field}.filters.blocked_domains`, 'must be left out: the vendor supports only "allowed_domains"')
  }
  return {
    type: 'web_search',
    ...(search_context_size === undefined ? {} : { search_context_size }),
    ...(isRecord(place)
      ? { user_location: { type: 'approximate', ...(isRecord(place.approximate) ? place.approximate : place) } }
      : {}),
    ...(Array.isArray(allowed_domains) && allowed_domains.length > 0 ? { filters: { allowed_domains } } : {}),
  }
}
