/** Fields that change the meaning of a response: refused where the vendor or its package would drop them. */
import type { ChatRequest, Message } from '../../../protocols/shared/canonical.ts'
import {
  assertNotRefused,
  HAS_EFFECT,
  hasAudioHistory,
  NO_AUDIO_HISTORY,
  type RefusedFields,
} from '../../../protocols/shared/field-rules.ts'
import { refusedField } from '../../../protocols/shared/request-error.ts'
import type { ChatVendor, Droppable, PackageWarning } from './chat-family.ts'

type Rule = { param: string; isRequested(request: ChatRequest): boolean; advice: string }

const hasMedia = ({ content }: Message) =>
  Array.isArray(content) && content.some(({ type }) => type !== 'text' && type !== 'refusal')

const hasToolHistory = ({ messages }: ChatRequest) =>
  messages.some(({ role, tool_calls }) => role === 'tool' || (tool_calls?.length ?? 0) > 0)

const DROPPABLE: Record<Droppable, Rule> = {
  tools: { param: 'tools', isRequested: HAS_EFFECT.tools, advice: 'cannot be used with the provider' },
  tool_choice: {
    param: 'tool_choice',
    isRequested: (request) => HAS_EFFECT.tools(request) && HAS_EFFECT.tool_choice(request),
    advice: 'must be "auto"',
  },
  tool_history: {
    param: 'messages',
    isRequested: hasToolHistory,
    advice: 'must contain no tool calls and no tool results',
  },
  stop: { param: 'stop', isRequested: HAS_EFFECT.stop, advice: 'must be left out' },
  json_object: {
    param: 'response_format',
    isRequested: (request) => request.response_format?.type === 'json_object',
    advice: 'must not be "json_object"; "json_schema" may work',
  },
  json_schema: {
    param: 'response_format',
    isRequested: (request) => request.response_format?.type === 'json_schema',
    advice: 'must not be "json_schema"; "json_object" may work',
  },
  media: {
    param: 'messages',
    isRequested: ({ messages }) => messages.some(hasMedia),
    advice: 'must contain text only',
  },
}

/** Fields that no package supports. */
const NEVER_SUPPORTED: RefusedFields = {
  n: { isUsed: HAS_EFFECT.n, instead: 'must be 1' },
  logprobs: { isUsed: HAS_EFFECT.logprobs, instead: 'must be false' },
  messages: { isUsed: hasAudioHistory, instead: NO_AUDIO_HISTORY },
  audio: { isUsed: HAS_EFFECT.audio, instead: 'must be left out' },
  modalities: { isUsed: HAS_EFFECT.modalities, instead: 'must be ["text"]' },
  functions: { isUsed: HAS_EFFECT.functions, instead: 'is not supported; use "tools"' },
  function_call: { isUsed: HAS_EFFECT.function_call, instead: 'is not supported; use "tool_choice"' },
}

/** Throws `unsupported_parameter` for what would be dropped, as far as the vendor's row tells. */
export function assertSupported(request: ChatRequest, vendor: ChatVendor, dropped: string[]): void {
  const refuse = (param: string, advice: string) => refusedField(param, `${advice} for the model "${request.model}"`)
  assertNotRefused(request, NEVER_SUPPORTED)
  for (const [name, { param, isRequested, advice }] of Object.entries(DROPPABLE)) {
    const isDropped = vendor.drops?.some((one) => one === name) || (param !== 'messages' && dropped.includes(param))
    if (isDropped && isRequested(request)) throw refuse(param, advice)
  }
  const isWithoutTools = !HAS_EFFECT.tools(request) || request.tool_choice === 'none'
  if (vendor.needsTools && isWithoutTools && hasToolHistory(request)) {
    throw HAS_EFFECT.tools(request)
      ? refuse('tool_choice', 'must not be "none" after tool calls')
      : refuse('tools', 'must define the tools that are called in the messages,')
  }
  if (searchOf(request) && !vendor.search) {
    throw refuse(request.web_search_options ? 'web_search_options' : 'web_search', 'must be left out')
  }
}

/** The web search that is requested. */
export function searchOf({ web_search, web_search_options }: ChatRequest): Record<string, unknown> | undefined {
  return web_search_options ?? (web_search?.enable ? web_search : undefined)
}

/** Whether the package may leave out something that matters, so that it runs once without sending. */
export const needsDryRun = (request: ChatRequest): boolean =>
  (['stop', 'json_object', 'json_schema', 'tool_choice', 'media'] as const).some((name) =>
    DROPPABLE[name].isRequested(request),
  ) || searchOf(request) !== undefined

/** A package's name of a feature -> the field that requests it. All others only tune. */
const FIELD_OF_FEATURE: [feature: RegExp, field: Droppable][] = [
  [/^stopSequences/, 'stop'],
  [/^responseFormat/, 'json_schema'],
  [/^tool ?[cC]hoice/, 'tool_choice'],
  [/^(toolContent|tool messages)/, 'tool_history'],
  [/^(user message part|tool result content|file|image)/i, 'media'],
  [/^(tools|function tool|combination of function)/, 'tools'],
]

/** Throws for a warning that the package leaves out something that changes the meaning. */
export function assertNotIgnored(warning: PackageWarning, request: ChatRequest): void {
  if (warning.type !== 'unsupported') return
  const { feature } = warning
  if (/^provider-defined tool/.test(feature) && searchOf(request)) {
    throw refusedField(
      request.web_search_options ? 'web_search_options' : 'web_search',
      `must be left out for the model "${request.model}"`,
    )
  }
  const found = FIELD_OF_FEATURE.find(([pattern]) => pattern.test(feature))?.[1]
  if (!found) return
  const isObject = found === 'json_schema' && request.response_format?.type === 'json_object'
  const { param, isRequested, advice } = DROPPABLE[isObject ? 'json_object' : found]
  if (isRequested(request)) throw refusedField(param, `${advice} for the model "${request.model}"`)
}
