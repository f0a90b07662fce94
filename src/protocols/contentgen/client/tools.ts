/** Decodes the tools and the tool configuration of a contentgen request. */
import type { FunctionTool } from '../../../spec/chat-request.ts'
import type { ChatRequest } from '../../shared/canonical.ts'
import { functionTool } from '../../shared/custom-tools.ts'
import { places, refusedField } from '../../shared/request-error.ts'
import { assertOffered } from '../../shared/tool-choice.ts'
import { jsonSchemaOf } from './json-schema.ts'
import type { ContentgenRequest, FunctionDeclaration, JsonObject, Tool } from './schema.ts'

type Tools = Pick<ChatRequest, 'tools' | 'tool_choice' | 'web_search_options'>

const FUNCTIONS = 'functionDeclarations'
/** The vendor's web search, in its current and its earlier form. */
const SEARCHES = ['googleSearch', 'googleSearchRetrieval']

export function toolsOf({ tools = [], toolConfig }: Pick<ContentgenRequest, 'tools' | 'toolConfig'>) {
  const clientRequest: Tools = {}
  const functions: FunctionTool[] = []
  for (const [index, tool] of tools.entries()) {
    const at = `tools[${index}]`
    const foreign = Object.keys(tool).find((name) => name !== FUNCTIONS && !SEARCHES.includes(name))
    if (foreign !== undefined) throw refusedField(`${at}.${foreign}`, ONLY_ITS_VENDOR)
    if (tool.googleSearch || tool.googleSearchRetrieval) clientRequest.web_search_options = searchOf(tool)
    for (const [place, declaration] of (tool.functionDeclarations ?? []).entries()) {
      const converted = functionOf(declaration)
      places.set(converted, `${at}.${FUNCTIONS}[${place}]`)
      functions.push(converted)
    }
  }
  if (functions.length > 0) clientRequest.tools = functions
  const choice = choiceOf(toolConfig)
  if (typeof choice === 'object') assertAllowedOffered(functions, toolConfig)
  if (choice !== undefined && functions.length > 0) clientRequest.tool_choice = choice
  return clientRequest
}

function assertAllowedOffered(functions: FunctionTool[], config: ContentgenRequest['toolConfig']): void {
  const names = new Set(functions.map((tool) => tool.function.name))
  for (const [index, name] of (config?.functionCallingConfig?.allowedFunctionNames ?? []).entries()) {
    const param = `toolConfig.functionCallingConfig.allowedFunctionNames[${index}]`
    assertOffered(name, names, { param, list: FUNCTIONS })
  }
}

/** The rule that a tool of the vendor breaks. */
const ONLY_ITS_VENDOR = `is a tool that only its own vendor supports; all providers support "${FUNCTIONS}" and "googleSearch"`

function functionOf({ name, description, parameters, parametersJsonSchema }: FunctionDeclaration): FunctionTool {
  const schema = parametersJsonSchema ?? (parameters && (jsonSchemaOf(parameters) as JsonObject))
  return functionTool({ name, description, parameters: schema })
}

const searchOf = ({ googleSearch: { excludeDomains = [] } = {} }: Tool): Record<string, unknown> =>
  excludeDomains.length > 0 ? { filters: { blocked_domains: excludeDomains } } : {}

/** `VALIDATED` only guarantees that calls match their schemas. */
const MODES = { AUTO: 'auto', ANY: 'required', NONE: 'none', VALIDATED: 'auto' } as const

function choiceOf(config: ContentgenRequest['toolConfig']): ChatRequest['tool_choice'] {
  const { mode, allowedFunctionNames: names = [] } = config?.functionCallingConfig ?? {}
  if (mode === undefined || mode === 'MODE_UNSPECIFIED') return undefined
  const choice = MODES[mode]
  const [name] = names
  if (choice === 'none' || name === undefined) return choice
  if (choice === 'required' && names.length === 1) return { type: 'function', function: { name } }
  const tools = names.map((one) => ({ type: 'function', function: { name: one } }))
  return { type: 'allowed_tools', allowed_tools: { mode: choice, tools } }
}
