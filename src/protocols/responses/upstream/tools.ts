/** Encodes the tools, the tool choice and the web search. */

import { isRecord, type JsonRecord } from '../../../kit/json.ts'
import type { FunctionTool } from '../../../spec/chat-request.ts'
import type { ChatRequest } from '../../canonical.ts'
import { refused } from './parts.ts'

export function toolsOf(request: ChatRequest): JsonRecord {
  const search = searchOf(request)
  const tools = [...(request.tools ?? []).map(functionOf), ...(search ? [search] : [])]
  // The vendor refuses an empty list, and a choice from it.
  if (tools.length === 0) return isDemanding(request.tool_choice) ? { tool_choice: choiceOf(request.tool_choice) } : {}
  const { tool_choice, parallel_tool_calls } = request
  return {
    tools,
    ...(tool_choice === undefined ? {} : { tool_choice: choiceOf(tool_choice) }),
    ...(parallel_tool_calls === undefined ? {} : { parallel_tool_calls }),
  }
}

const isDemanding = (choice: ChatRequest['tool_choice']) =>
  choice !== undefined && choice !== 'auto' && choice !== 'none'

/** In this API a tool is strict by default; elsewhere it is not. */
function functionOf({ function: definition }: FunctionTool): JsonRecord {
  const { name, description, parameters = { type: 'object', properties: {} }, strict } = definition
  return {
    type: 'function',
    name,
    ...(description === undefined ? {} : { description }),
    parameters,
    strict: strict ?? false,
  }
}

function choiceOf(choice: ChatRequest['tool_choice']): unknown {
  if (typeof choice !== 'object') return choice
  if (choice.type === 'function') return { type: 'function', name: choice.function.name }
  const { mode, tools } = choice.allowed_tools
  return { type: 'allowed_tools', mode, tools: tools.map(nameTool) }
}

/** `{type, function: {name}}` becomes `{type, name}`. */
const nameTool = (tool: JsonRecord): JsonRecord =>
  isRecord(tool.function) ? { type: 'function', name: tool.function.name } : tool

export const requestedSearch = ({ web_search, web_search_options }: ChatRequest): JsonRecord | undefined =>
  web_search?.enable ? web_search : web_search_options

/** The vendor's web search, if the model's row or the client requests it. */
function searchOf(request: ChatRequest): JsonRecord | undefined {
  const options = requestedSearch(request)
  if (!options) return undefined
  const { search_context_size, user_location: place, filters } = options
  const { allowed_domains, blocked_domains } = isRecord(filters) ? filters : {}
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
