/** Custom tools, their choices and their calls in the form of OpenAI's API; and what other vendors get instead. */
import { type ChatRequest, CUSTOM, type HistoryCall, type Message, type Tool } from '../../shared/canonical.ts'
import { freeText } from '../../shared/custom-tools.ts'
import { allowedFunctions, nameOfAllowed } from '../../shared/tool-choice.ts'

const isCustom = (tool: Tool | HistoryCall): boolean => tool[CUSTOM] !== undefined

type ToolFields = { tools?: unknown; tool_choice?: unknown }

/** The fields to send in place of those of the request; undefined if they are sent as they are. */
export function toolFields(request: ChatRequest, isNative: boolean): ToolFields | undefined {
  const { tools, tool_choice: choice } = request
  if (isNative) return tools?.some(isCustom) ? nativeFields(tools, choice) : undefined
  // Only OpenAI's API knows the choice `allowed_tools`; without the other tools, it means the same.
  if (typeof choice !== 'object' || choice.type !== 'allowed_tools') return undefined
  const { functions, choice: mode } = allowedFunctions(request)
  return functions.length === 0 ? {} : { tools: functions, tool_choice: mode }
}

type ToolChoice = ChatRequest['tool_choice']

function nativeFields(tools: Tool[], choice: ToolChoice): ToolFields {
  const customs = new Set(tools.filter(isCustom).map((tool) => tool.function.name))
  return {
    tools: tools.map(toolOf),
    ...(choice === undefined ? {} : { tool_choice: choiceOf(choice, customs) }),
  }
}

function toolOf(tool: Tool): unknown {
  const custom = tool[CUSTOM]
  return custom ? { type: 'custom', custom } : tool
}

function choiceOf(choice: NonNullable<ToolChoice>, customs: Set<unknown>): unknown {
  if (typeof choice !== 'object') return choice
  if (choice.type === 'function') return namedChoice(choice.function.name, customs) ?? choice
  const { mode, tools } = choice.allowed_tools
  return {
    type: choice.type,
    allowed_tools: { mode, tools: tools.map((tool) => namedChoice(nameOfAllowed(tool), customs) ?? tool) },
  }
}

const namedChoice = (name: unknown, customs: Set<unknown>) =>
  customs.has(name) ? { type: 'custom', custom: { name } } : undefined

/** The calls of custom tools in the history. Returns the same array if there are none. */
export function customHistory(messages: Message[]): unknown[] {
  if (!messages.some(hasCustomCall)) return messages
  return messages.map((message) =>
    hasCustomCall(message) ? { ...message, tool_calls: message.tool_calls?.map(callOf) } : message,
  )
}

const hasCustomCall = ({ tool_calls }: Message): boolean => tool_calls?.some(isCustom) ?? false

function callOf(call: HistoryCall): unknown {
  if (!call[CUSTOM]) return call
  const {
    id,
    function: { name, arguments: text },
  } = call
  return { id, type: 'custom', custom: { name, input: freeText(text) } }
}
