/** Encodes the tools and the tool choice. */
import type { JsonRecord } from '../../../kit/json.ts'
import type { FunctionTool } from '../../../spec/chat-request.ts'
import type { ChatRequest } from '../../shared/canonical.ts'
import { refusedField } from '../../shared/request-error.ts'
import { allowedFunctions } from '../../shared/tool-choice.ts'
import { vendorSchema } from './json-schema.ts'
import type { ModelRule } from './model-rules.ts'

export type VendorTools = {
  tools: JsonRecord[]
  toolConfig?: JsonRecord
  /** A call is forced, so the response holds nothing else. */
  isForced: boolean
  hasFunctions: boolean
}

export function toolsOf(request: ChatRequest, rule: ModelRule): VendorTools {
  const { functions: allowed, choice } = allowedFunctions(request)
  // Functions may exclude other tools. Those that must not be called can be left out.
  const functions = choice === 'none' && !rule.mixes ? [] : allowed
  const search = searchOf(request)
  const tools: JsonRecord[] = functions.length > 0 ? [{ functionDeclarations: functions.map(functionOf) }] : []
  if (search) {
    if (functions.length > 0 && !rule.mixes) {
      throw refusedField(search, `must not be given together with "tools" for the model "${request.model}"`)
    }
    tools.push({ googleSearch: {} })
  }
  if (functions.length === 0) return { tools, isForced: false, hasFunctions: false }
  const calling = callingOf(choice, functions)
  const isFree = calling === undefined || calling.mode === 'AUTO'
  // The vendor refuses its own tools beside functions in the mode AUTO, and without the option to include their
  // invocations.
  const toolConfig = search
    ? { functionCallingConfig: isFree ? { mode: 'VALIDATED' } : calling, includeServerSideToolInvocations: true }
    : calling && { functionCallingConfig: calling }
  return {
    tools,
    ...(toolConfig ? { toolConfig } : {}),
    isForced: calling?.mode === 'ANY',
    hasFunctions: calling?.mode !== 'NONE',
  }
}

function functionOf({ function: definition }: FunctionTool): JsonRecord {
  const { name, description, parameters } = definition
  return {
    name,
    ...(description === undefined ? {} : { description }),
    ...(parameters === undefined ? {} : { parametersJsonSchema: vendorSchema(parameters) }),
  }
}

const MODES = { none: 'NONE', auto: 'AUTO', required: 'ANY' } as const

type Choice = ReturnType<typeof allowedFunctions>['choice']

function callingOf(choice: Choice, functions: FunctionTool[]): JsonRecord | undefined {
  if (typeof choice === 'object') return { mode: 'ANY', allowedFunctionNames: [choice.function.name] }
  // Strict calls are a separate mode, in which the model still decides whether to call.
  const isStrict = functions.some((tool) => tool.function.strict === true)
  if ((choice === undefined || choice === 'auto') && isStrict) return { mode: 'VALIDATED' }
  return choice === undefined ? undefined : { mode: MODES[choice] }
}

/** The field that requests the vendor's web search. */
function searchOf({ web_search, web_search_options }: ChatRequest): string | undefined {
  if (web_search?.enable) return 'web_search'
  return web_search_options ? 'web_search_options' : undefined
}
