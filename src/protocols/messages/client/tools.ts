/** Decodes the tools and the tool choice of a Messages request. */
import { missingField } from '../../../spec/error.ts'
import type { ChatRequest } from '../../shared/canonical.ts'
import { functionTool } from '../../shared/custom-tools.ts'
import { assertOffered, foreignTool } from '../../shared/tool-choice.ts'
import type { ClientTool, MessagesRequest } from './schema.ts'

type Tools = Pick<ChatRequest, 'tools' | 'tool_choice' | 'parallel_tool_calls' | 'web_search_options'>

export function toolsOf({ tools = [], tool_choice }: Pick<MessagesRequest, 'tools' | 'tool_choice'>): Tools {
  const clientRequest: Tools = {}
  const functions: NonNullable<ChatRequest['tools']> = []
  for (const [index, tool] of tools.entries()) {
    if (tool.type !== undefined && /^web_search(_\d+)?$/.test(tool.type))
      clientRequest.web_search_options = searchOf(tool)
    else functions.push(functionOf(tool, `tools[${index}]`))
  }
  if (functions.length > 0) clientRequest.tools = functions
  if (tool_choice) {
    if (tool_choice.type === 'tool') {
      const names = new Set(tools.map(({ name }) => name))
      assertOffered(tool_choice.name, names, { param: 'tool_choice.name', list: 'tools' })
    }
    clientRequest.tool_choice = choiceOf(tool_choice)
    const once = 'disable_parallel_tool_use' in tool_choice ? tool_choice.disable_parallel_tool_use : undefined
    if (once !== undefined) clientRequest.parallel_tool_calls = !once
  }
  return clientRequest
}

function functionOf(tool: ClientTool, at: string): NonNullable<ChatRequest['tools']>[number] {
  if (tool.type !== undefined && tool.type !== 'custom') {
    throw foreignTool(`${at}.type`, tool.type, 'send it as a "custom" tool with an input_schema')
  }
  const { name, description, input_schema, strict } = tool
  if (name === undefined) throw missingField(`${at}.name`)
  if (input_schema === undefined) throw missingField(`${at}.input_schema`)
  return functionTool({ name, description, parameters: input_schema, strict })
}

/** Converts the vendor's web search to the options of chat completions. */
function searchOf({ user_location, allowed_domains, blocked_domains }: ClientTool): Record<string, unknown> {
  const filters = {
    ...(allowed_domains?.length ? { allowed_domains } : {}),
    ...(blocked_domains?.length ? { blocked_domains } : {}),
  }
  const { type: _, ...approximate } = user_location ?? {}
  return {
    ...(user_location === undefined ? {} : { user_location: { type: 'approximate', approximate } }),
    ...(Object.keys(filters).length === 0 ? {} : { filters }),
  }
}

function choiceOf(choice: NonNullable<MessagesRequest['tool_choice']>): NonNullable<ChatRequest['tool_choice']> {
  if (choice.type === 'tool') return { type: 'function', function: { name: choice.name } }
  return choice.type === 'any' ? 'required' : choice.type
}
