/** Errors about a request: from a schema problem, and with the field names that the client used. */
import { foundText, type Problem, pathText } from '../kit/diagnose.ts'
import { GatewayError } from '../spec/error.ts'
import type { ContentPart } from '../spec/message.ts'
import type { ChatRequest, Message } from './canonical.ts'

/** Where in the client's own body a message, part or tool of the house's stood. */
export type Places = WeakMap<object, string>

export type ClientFields = { [field in keyof ChatRequest]?: string }

type ClientNames = {
  /** The house's field -> the client's, where they differ. */
  fields: ClientFields
  /** Kinds of parts, as a message quotes them. */
  parts: readonly (readonly [gateway: string, client: string])[]
  /** The place of what is in a message; undefined: the house's own name is as good. */
  inMessage(at: InMessage, places: Places): string | undefined
  /** The place of anything else that is no field under another name. */
  elsewhere?(param: string): string | undefined
}

/** What a place in the house's words means: `messages[2].content[0].type`. */
type InMessage = {
  message: Message | undefined
  /** The part of the message; undefined where none was named. */
  part: ContentPart | undefined
  isPart: boolean
  /** What in that, with its full stop. */
  rest: string
}

/** `messages[2].content[0].type`: which message, which part of it, and what in that. */
const IN_MESSAGE = /^messages\[(\d+)\](?:\.content\[(\d+)\])?(.*)$/
/** `tools[1].function.name`: which tool, and what in it. */
const IN_TOOL = /^tools\[(\d+)\](?:\.function)?(.*)$/

/** How an error is retold: the same error, with the place that the client knows. */
export const errorTranslator =
  (names: ClientNames) =>
  (error: GatewayError, request: ChatRequest, places: Places): GatewayError => {
    const { param } = error.detail
    if (param === undefined) return error
    const known = placeOf(param, { request, places, names })
    if (known === param) return error
    const placed = error.message.replaceAll(`"${param}"`, `"${known}"`)
    const message = IN_MESSAGE.test(param)
      ? names.parts.reduce((text, [gateway, client]) => text.replaceAll(gateway, client), placed)
      : placed
    return new GatewayError(error.code, message, { ...error.detail, param: known })
  }

type ErrorContext = { request: ChatRequest; places: Places; names: ClientNames }

function placeOf(param: string, { request: { messages, tools = [] }, places, names }: ErrorContext): string {
  const [, tool, member] = IN_TOOL.exec(param) ?? []
  if (tool !== undefined) {
    const clientRequest = tools[Number(tool)]
    return `${(clientRequest && places.get(clientRequest)) ?? `tools[${tool}]`}${member}`
  }
  const [, index, part, rest = ''] = IN_MESSAGE.exec(param) ?? []
  if (index === undefined) {
    const [field = ''] = /^\w+/.exec(param) ?? [] // the field itself, without what is in it
    const known = Object.hasOwn(names.fields, field) ? names.fields[field as keyof ChatRequest] : undefined
    return known ?? names.elsewhere?.(param) ?? param
  }
  const message = messages[Number(index)]
  const content = message && Array.isArray(message.content) ? message.content : []
  const isPart = part !== undefined
  return names.inMessage({ message, part: isPart ? content[Number(part)] : undefined, isPart, rest }, places) ?? param
}

/** Converts a validation problem to the error that names the field. */
export function refusalOf(problem: Problem | undefined): GatewayError {
  if (!problem) return new GatewayError('invalid_value', 'The body does not fit the schema of the request.')
  const param = pathText(problem.path)
  if (problem.kind === 'missing') {
    return new GatewayError('missing_required_parameter', `"${param}" is required.`, { param })
  }
  if (problem.path.length === 0) {
    return new GatewayError('invalid_type', `The body must be a JSON object, not ${foundText(problem.found)}.`)
  }
  const code = problem.kind === 'type' ? 'invalid_type' : 'invalid_value'
  return new GatewayError(code, `"${param}" must be ${mustBe(problem.expected)}, not ${foundText(problem.found)}.`, {
    param,
  })
}

/** `at least 1 item` reads better as `an array of at least 1 item`. */
const mustBe = (expected: string) => (/ items?$/.test(expected) ? `an array of ${expected}` : expected)
