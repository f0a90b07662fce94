/** Fields that change what an answer means: how each is asked for, and by which words packages say that it is lost. */
import type { ChatRequest, Message } from '../../../protocols/canonical.ts'
import { refused } from './prompt.ts'
import type { ChatVendor, Losable, PackageWarning } from './vendor.ts'

type Meaning = { param: string; asks(request: ChatRequest): boolean; instead: string }

const isMedium = ({ content }: Message) =>
  Array.isArray(content) && content.some(({ type }) => type !== 'text' && type !== 'refusal')

const hasToolHistory = ({ messages }: ChatRequest) =>
  messages.some(({ role, tool_calls }) => role === 'tool' || (tool_calls?.length ?? 0) > 0)

const hasTools = ({ tools }: ChatRequest) => (tools?.length ?? 0) > 0

const LOSABLE: Record<Losable, Meaning> = {
  tools: { param: 'tools', asks: hasTools, instead: 'cannot be used with the vendor' },
  tool_choice: {
    param: 'tool_choice',
    asks: (request) => hasTools(request) && request.tool_choice !== undefined && request.tool_choice !== 'auto',
    instead: 'must be "auto"',
  },
  tool_history: { param: 'messages', asks: hasToolHistory, instead: 'must hold no calls of tools and no results' },
  stop: { param: 'stop', asks: ({ stop }) => (stop?.length ?? 0) > 0, instead: 'must be left out' },
  json_object: {
    param: 'response_format',
    asks: (request) => request.response_format?.type === 'json_object',
    instead: 'must not be "json_object"; "json_schema" may work',
  },
  json_schema: {
    param: 'response_format',
    asks: (request) => request.response_format?.type === 'json_schema',
    instead: 'must not be "json_schema"; "json_object" may work',
  },
  media: { param: 'messages', asks: ({ messages }) => messages.some(isMedium), instead: 'must hold text only' },
}

/** Fields that no package can carry. */
const NEVER: { [field in keyof ChatRequest]?: Omit<Meaning, 'param'> } = {
  n: { asks: ({ n = 1 }) => n > 1, instead: 'must be 1' },
  logprobs: { asks: ({ logprobs }) => logprobs === true, instead: 'must be false' },
  audio: { asks: ({ audio }) => audio !== undefined, instead: 'must be left out' },
  modalities: {
    asks: ({ modalities }) => modalities?.some((one) => one !== 'text') ?? false,
    instead: 'must be ["text"]',
  },
  functions: { asks: ({ functions }) => (functions?.length ?? 0) > 0, instead: 'is not known; use "tools"' },
  function_call: {
    asks: (request) => typeof request.function_call === 'object',
    instead: 'is not known; use "tool_choice"',
  },
}

/** Throws `unsupported_parameter` for what would be lost, as far as it is known by the vendor's row. */
export function assertNothingLost(request: ChatRequest, vendor: ChatVendor, dropped: string[]): void {
  const cannot = (param: string, instead: string) => refused(param, `${instead} for the model "${request.model}"`)
  for (const [field, { asks, instead }] of Object.entries(NEVER)) if (asks(request)) throw cannot(field, instead)
  for (const [name, { param, asks, instead }] of Object.entries(LOSABLE)) {
    const isLost = vendor.loses?.some((lost) => lost === name) || dropped.includes(param)
    if (isLost && param !== 'messages' && asks(request)) throw cannot(param, instead)
    if (vendor.loses?.some((lost) => lost === name) && asks(request)) throw cannot(param, instead)
  }
  const isMute = !hasTools(request) || request.tool_choice === 'none'
  if (vendor.needsTools && isMute && hasToolHistory(request)) {
    throw hasTools(request)
      ? cannot('tool_choice', 'must not be "none" after calls of tools')
      : cannot('tools', 'must name the tools whose calls are in the messages,')
  }
  if (searchOf(request) && !vendor.search) {
    throw cannot(request.web_search_options ? 'web_search_options' : 'web_search', 'must be left out')
  }
}

/** The search of the web that is asked for. */
export function searchOf({ web_search, web_search_options }: ChatRequest): Record<string, unknown> | undefined {
  return web_search_options ?? (web_search?.enable ? web_search : undefined)
}

/** Whether the package should be asked, before anything is sent, what it would leave out. */
export const isWorthDryRun = (request: ChatRequest): boolean =>
  (['stop', 'json_object', 'json_schema', 'tool_choice', 'media'] as const).some((name) =>
    LOSABLE[name].asks(request),
  ) || searchOf(request) !== undefined

/** A package's word for a feature -> the field that asks for it. All others only tune. */
const FIELD_OF_FEATURE: [feature: RegExp, losable: Losable][] = [
  [/^stopSequences/, 'stop'],
  [/^responseFormat/, 'json_schema'],
  [/^tool ?[cC]hoice/, 'tool_choice'],
  [/^(toolContent|tool messages)/, 'tool_history'],
  [/^(user message part|tool result content|file|image)/i, 'media'],
  [/^(tools|function tool|combination of function)/, 'tools'],
]

/** Throws for a warning that says that something meaningful is left out. */
export function refuseWarned(warning: PackageWarning, request: ChatRequest): void {
  if (warning.type !== 'unsupported') return
  const { feature } = warning
  if (/^provider-defined tool/.test(feature) && searchOf(request)) {
    throw refused(
      request.web_search_options ? 'web_search_options' : 'web_search',
      `must be left out for the model "${request.model}"`,
    )
  }
  const found = FIELD_OF_FEATURE.find(([pattern]) => pattern.test(feature))?.[1]
  if (!found) return
  const isObject = found === 'json_schema' && request.response_format?.type === 'json_object'
  const { param, asks, instead } = LOSABLE[isObject ? 'json_object' : found]
  if (asks(request)) throw refused(param, `${instead} for the model "${request.model}"`)
}
