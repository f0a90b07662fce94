/** The responses dialect, inwards: tools and how they are to be used, in the house's words. */
import type { ChatRequest, FunctionTool } from '../../spec/chat-request.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Places } from './client-words.ts'
import { customFunction } from './responses-custom.ts'
import type { ClientTool, ResponsesRequest } from './responses-schema.ts'

type Tools = Pick<ChatRequest, 'tools' | 'tool_choice' | 'web_search_options'>

/** `web_search`, `web_search_preview`, and either with a date behind it. */
const isSearch = (type: unknown): boolean => typeof type === 'string' && /^web_search(_preview)?(_[\d_]+)?$/.test(type)

/** A tool that the client runs itself. */
const isOwn = (type: unknown): boolean => type === 'function' || type === 'custom'

export function toolsOf({ tools = [], tool_choice }: ResponsesRequest, places: Places): Tools {
  const asked: Tools = {}
  const functions: FunctionTool[] = []
  for (const [index, tool] of tools.entries()) {
    if (isSearch(tool.type)) asked.web_search_options = searchOf(tool)
    else {
      const made = functionOf(tool, `tools[${index}]`)
      places.set(made, `tools[${index}]`)
      functions.push(made)
    }
  }
  if (functions.length > 0) asked.tools = functions
  if (tool_choice !== undefined) asked.tool_choice = choiceOf(tool_choice)
  return asked
}

function functionOf(tool: ClientTool, at: string): FunctionTool {
  const { type, name, description, parameters, strict } = tool
  if (type !== 'function' && type !== 'custom') {
    const param = `${at}.type`
    throw new GatewayError(
      'unsupported_parameter',
      `"${param}" is "${type.slice(0, 60)}", a tool that only its own vendor knows; give it as a "function" with its parameters.`,
      { param },
    )
  }
  if (name === undefined) {
    throw new GatewayError('missing_required_parameter', `"${at}.name" is required.`, { param: `${at}.name` })
  }
  if (type === 'custom') return customFunction(tool)
  return {
    type: 'function',
    function: {
      name,
      ...(description === undefined ? {} : { description }),
      ...(parameters === undefined ? {} : { parameters }),
      ...(strict === undefined ? {} : { strict }),
    },
  }
}

/** The vendor's search on the web, in the words that chat clients have for it. */
function searchOf({ search_context_size, user_location, filters }: ClientTool): Record<string, unknown> {
  const { type: _, ...approximate } = user_location ?? {}
  return {
    ...(search_context_size === undefined ? {} : { search_context_size }),
    ...(user_location === undefined ? {} : { user_location: { type: 'approximate', approximate } }),
    ...(filters === undefined ? {} : { filters }),
  }
}

function choiceOf(choice: NonNullable<ResponsesRequest['tool_choice']>): NonNullable<ChatRequest['tool_choice']> {
  if (typeof choice === 'string') return choice
  const { type, name, mode = 'auto', tools = [] } = choice
  if (isOwn(type)) {
    if (name !== undefined) return { type: 'function', function: { name } }
    throw new GatewayError('missing_required_parameter', '"tool_choice.name" is required.', {
      param: 'tool_choice.name',
    })
  }
  if (type === 'allowed_tools') {
    const named = tools.map((tool) => (isOwn(tool.type) ? { type: 'function', function: { name: tool.name } } : tool))
    return { type, allowed_tools: { mode, tools: named } }
  }
  throw new GatewayError(
    'unsupported_parameter',
    `"tool_choice.type" must be "function", "custom" or "allowed_tools", not "${type.slice(0, 60)}": that tool is its own vendor's.`,
    { param: 'tool_choice.type' },
  )
}
