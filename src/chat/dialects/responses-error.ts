/** The responses dialect's errors: what a response says of its failure, and the client's own names of fields. */
import type { ChatRequest } from '../../spec/chat-request.ts'
import { type ErrorCode, GatewayError } from '../../spec/error.ts'
import type { Places } from './responses-history.ts'

/** Our code -> the word that clients of responses look for; where there is none, by whose fault it was. */
const FAILURE_CODES: { [code in ErrorCode]?: string } = {
  rate_limit_exceeded: 'rate_limit_exceeded',
  insufficient_quota: 'insufficient_quota',
  context_length_exceeded: 'context_length_exceeded',
  server_is_overloaded: 'server_is_overloaded',
}

export function failureOf({ code, status, message }: GatewayError): { code: string; message: string } {
  return { code: FAILURE_CODES[code] ?? (status < 500 ? 'invalid_prompt' : 'server_error'), message }
}

/** The house's field -> the client's, where they differ. */
export const CLIENT_FIELDS: { [field in keyof ChatRequest]?: string } = {
  max_tokens: 'max_output_tokens',
  max_completion_tokens: 'max_output_tokens',
  response_format: 'text.format',
  verbosity: 'text.verbosity',
  reasoning_effort: 'reasoning.effort',
  reasoning_summary: 'reasoning.summary',
  logprobs: 'include',
  web_search: 'tools',
  web_search_options: 'tools',
}

/** Kinds of parts, as a message quotes them. */
const CLIENT_PARTS = [
  ['"text"', '"input_text"'],
  ['"image_url"', '"input_image"'],
  ['"file"', '"input_file"'],
] as const

/** `messages[2].content[0].type`: which message, which part of it, and what in that. */
const IN_MESSAGE = /^messages\[(\d+)\](?:\.content\[(\d+)\])?(.*)$/
/** `tools[1].function.name`: which tool, and what in it. */
const IN_TOOL = /^tools\[(\d+)\](?:\.function)?(.*)$/

/** The same error with the place that the client knows. */
export function inClientWords(error: GatewayError, request: ChatRequest, places: Places): GatewayError {
  const { param } = error.detail
  if (param === undefined) return error
  const known = clientPlace(param, request, places)
  if (known === param) return error
  const placed = error.message.replaceAll(`"${param}"`, `"${known}"`)
  const isPart = IN_MESSAGE.test(param)
  const message = isPart
    ? CLIENT_PARTS.reduce((text, [house, client]) => text.replaceAll(house, client), placed)
    : placed
  return new GatewayError(error.code, message, { ...error.detail, param: known })
}

function clientPlace(param: string, { messages, tools = [] }: ChatRequest, places: Places): string {
  const inTool = IN_TOOL.exec(param)
  if (inTool) {
    const tool = tools[Number(inTool[1])]
    return `${(tool && places.get(tool)) ?? `tools[${inTool[1]}]`}${inTool[2]}`
  }
  const [, index, part, rest = ''] = IN_MESSAGE.exec(param) ?? []
  if (index === undefined) {
    const [field = ''] = /^\w+/.exec(param) ?? []
    return CLIENT_FIELDS[field as keyof ChatRequest] ?? param
  }
  const message = messages[Number(index)]
  const content = message && Array.isArray(message.content) ? message.content : []
  const found = part === undefined ? message : content[Number(part)]
  const place = found && places.get(found)
  if (place === undefined) return param
  // What is one text has nothing within it.
  if (!place.endsWith(']')) return place
  return `${place}${part !== undefined || rest === '.content' ? rest : ''}`
}
