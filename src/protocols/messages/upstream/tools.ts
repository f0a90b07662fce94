/** Encodes the tools and the tool choice. */
import { asRecord, isRecord, type JsonRecord } from '../../../kit/json.ts'
import type { FunctionTool } from '../../../spec/chat-request.ts'
import type { ChatRequest } from '../../shared/canonical.ts'
import { refusedField } from '../../shared/request-error.ts'
import { allowedFunctions } from '../../shared/tool-choice.ts'
import { vendorSchema } from './json-schema.ts'
import type { ModelRule } from './model-rules.ts'

type VendorTools = { tools?: JsonRecord[]; tool_choice?: JsonRecord }

export function toolsOf(request: ChatRequest, rule: ModelRule): VendorTools {
  const { parallel_tool_calls } = request
  const { functions, choice } = allowedFunctions(request)
  const search = searchOf(request)
  const tools = [...functions.map((tool) => functionOf(tool, rule)), ...(search ? [search] : [])]
  if (tools.length === 0) return {}
  const chosen = choiceOf(choice)
  if (chosen && isForced(chosen.type) && !rule.forced_tools) {
    throw refusedField(
      'tool_choice',
      `must be "auto" or "none" for the model "${request.model}", which decides by itself`,
    )
  }
  const type = chosen?.type ?? 'auto'
  const once = parallel_tool_calls !== undefined && type !== 'none'
  if (!chosen && !once) return { tools }
  return {
    tools,
    tool_choice: { type, ...chosen, ...(once ? { disable_parallel_tool_use: !parallel_tool_calls } : {}) },
  }
}

export const isForced = (type: unknown): boolean => type === 'any' || type === 'tool'

function functionOf({ function: definition }: FunctionTool, rule: ModelRule): JsonRecord {
  const { name, description, parameters = { type: 'object', properties: {} }, strict } = definition
  // The vendor requires an object at the top level, strict or not.
  const schema = parameters.type === undefined ? { type: 'object', ...parameters } : parameters
  const isStrict = strict === true && rule.json_schema
  return {
    name,
    ...(description === undefined ? {} : { description }),
    input_schema: isStrict ? vendorSchema(schema) : schema,
    ...(isStrict ? { strict } : {}),
  }
}

function choiceOf(choice: ReturnType<typeof allowedFunctions>['choice']): (JsonRecord & { type: string }) | undefined {
  if (choice === undefined) return undefined
  if (typeof choice === 'object') return { type: 'tool', name: choice.function.name }
  return { type: choice === 'required' ? 'any' : choice }
}

/** The vendor's web search, if the model's row or the client requests it. */
function searchOf({ web_search, web_search_options }: ChatRequest): JsonRecord | undefined {
  const options: JsonRecord | undefined = web_search?.enable ? web_search : web_search_options
  if (!options) return undefined
  const filters = asRecord(options.filters)
  const { allowed_domains, blocked_domains } = filters
  const place = isRecord(options.user_location) ? options.user_location : undefined
  return {
    type: 'web_search_20250305',
    name: 'web_search',
    ...(place
      ? { user_location: { type: 'approximate', ...(isRecord(place.approximate) ? place.approximate : place) } }
      : {}),
    // The vendor accepts only one of the two lists.
    ...(allowed_domains ? { allowed_domains } : blocked_domains ? { blocked_domains } : {}),
  }
}
