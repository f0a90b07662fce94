/** The contentgen dialect's errors: the client's own names of fields. */
import type { ChatRequest } from '../../spec/chat-request.ts'
import { GatewayError } from '../../spec/error.ts'
import { RENAMED } from './contentgen-fields.ts'
import type { Places } from './contentgen-history.ts'

/** The house's field -> the client's, where they differ. */
export const CLIENT_FIELDS: { [field in keyof ChatRequest]?: string } = {
  ...Object.fromEntries(Object.entries(RENAMED).map(([member, field]) => [field, `generationConfig.${member}`])),
  max_completion_tokens: 'generationConfig.maxOutputTokens',
  messages: 'contents',
  stop: 'generationConfig.stopSequences',
  response_format: 'generationConfig.responseMimeType',
  modalities: 'generationConfig.responseModalities',
  reasoning_budget: 'generationConfig.thinkingConfig.thinkingBudget',
  reasoning_effort: 'generationConfig.thinkingConfig.thinkingLevel',
  reasoning_summary: 'generationConfig.thinkingConfig.includeThoughts',
  thinking_enabled: 'generationConfig.thinkingConfig',
  service_tier: 'serviceTier',
  tool_choice: 'toolConfig.functionCallingConfig',
  web_search: 'tools',
  web_search_options: 'tools',
}

/** Kinds of parts, as a message quotes them. */
const CLIENT_PARTS = [
  ['"image_url"', 'an image'],
  ['"input_audio"', 'a sound'],
  ['"file"', 'a file'],
] as const

/** `messages[2].content[0].type`: which message, which part of it, and what in that. */
const IN_MESSAGE = /^messages\[(\d+)\](?:\.content\[(\d+)\])?/
/** `tools[1].function.name`: which tool, and what in it. */
const IN_TOOL = /^tools\[(\d+)\](?:\.function)?(.*)$/
/** A member of what goes to this style's vendors as it is. */
const OWN_OPTION = /^provider_options\.contentgen-compat\.(.+)$/

/** The same error with the place that the client knows. */
export function inClientWords(error: GatewayError, request: ChatRequest, places: Places): GatewayError {
  const { param } = error.detail
  if (param === undefined) return error
  const known = clientPlace(param, request, places)
  if (known === param) return error
  const placed = error.message.replaceAll(`"${param}"`, `"${known}"`)
  const message = IN_MESSAGE.test(param)
    ? CLIENT_PARTS.reduce((text, [house, client]) => text.replaceAll(house, client), placed)
    : placed
  return new GatewayError(error.code, message, { ...error.detail, param: known })
}

/** Within a part the two do not look alike, so its own place is as near as one can come. */
function clientPlace(param: string, { messages, tools = [] }: ChatRequest, places: Places): string {
  const inTool = IN_TOOL.exec(param)
  if (inTool) {
    const tool = tools[Number(inTool[1])]
    return `${(tool && places.get(tool)) ?? `tools[${inTool[1]}]`}${inTool[2]}`
  }
  const own = OWN_OPTION.exec(param)?.[1]
  if (own !== undefined) return own
  const [found, index, part] = IN_MESSAGE.exec(param) ?? []
  if (found === undefined) {
    const [field = ''] = /^\w+/.exec(param) ?? [] // the field itself, without what is in it
    return CLIENT_FIELDS[field as keyof ChatRequest] ?? param
  }
  const message = messages[Number(index)]
  const content = message && Array.isArray(message.content) ? message.content : []
  const meant = part === undefined ? undefined : content[Number(part)]
  return (meant && places.get(meant)) ?? (message && places.get(message)) ?? param
}
