/** Errors about a request: from a schema problem, and with the client's field names. */
import type { Static, TObject } from 'typebox'
import type { checker } from '../../kit/checker.ts'
import { diagnose, foundText, type Problem, pathText } from '../../kit/diagnose.ts'
import { isRecord, type JsonRecord, parseExactJson } from '../../kit/json.ts'
import { GatewayError, invalidValue, missingField } from '../../spec/error.ts'
import type { ContentPart } from '../../spec/message.ts'
import type { ChatRequest, Message } from './canonical.ts'

/** The place in the client's body of each canonical message, part or tool, which an error about it names. */
export const places = new WeakMap<object, string>()

export type ClientFields = { [field in keyof ChatRequest]?: string }

type ClientNames = {
  /** Canonical field -> the client's field, where they differ. */
  fields: ClientFields
  /** Kinds of parts, as error messages quote them. */
  parts: readonly (readonly [gateway: string, client: string])[]
  /** The client's place of something in a message; undefined if the canonical name is as good. */
  inMessage(at: InMessage): string | undefined
  /** The client's place of anything else that is not a renamed field. */
  elsewhere?(param: string): string | undefined
}

/** A parsed canonical place: `messages[2].content[0].type`. */
type InMessage = {
  message: Message | undefined
  /** The part of the message; undefined if the place names none. */
  part: ContentPart | undefined
  isPart: boolean
  /** The rest of the path, with its leading full stop. */
  rest: string
}

/** `messages[2].content[0].type`: the message, the part and the rest of the path. */
const IN_MESSAGE = /^messages\[(\d+)\](?:\.content\[(\d+)\])?(.*)$/
/** `tools[1].function.name`: the tool and the rest of the path. */
const IN_TOOL = /^tools\[(\d+)\](?:\.function)?(.*)$/

/** Creates a function that replaces the canonical place in an error by the client's. */
export const errorTranslator =
  (names: ClientNames) =>
  (error: GatewayError, request: ChatRequest): GatewayError => {
    const { param } = error.detail
    if (param === undefined) return error
    const known = placeOf(param, request, names)
    if (known === param) return error
    const placed = error.message.replaceAll(`"${param}"`, `"${known}"`)
    const message = IN_MESSAGE.test(param)
      ? names.parts.reduce((text, [gateway, client]) => text.replaceAll(gateway, client), placed)
      : placed
    return new GatewayError(error.code, message, { ...error.detail, param: known })
  }

function placeOf(param: string, { messages, tools = [] }: ChatRequest, names: ClientNames): string {
  const [, tool, member] = IN_TOOL.exec(param) ?? []
  if (tool !== undefined) {
    const clientRequest = tools[Number(tool)]
    return `${(clientRequest && places.get(clientRequest)) ?? `tools[${tool}]`}${member}`
  }
  const [, index, part, rest = ''] = IN_MESSAGE.exec(param) ?? []
  if (index === undefined) {
    const [field = ''] = /^\w+/.exec(param) ?? [] // the field, without its members
    const known = Object.hasOwn(names.fields, field) ? names.fields[field as keyof ChatRequest] : undefined
    return known ?? names.elsewhere?.(param) ?? param
  }
  const message = messages[Number(index)]
  const content = message && Array.isArray(message.content) ? message.content : []
  const isPart = part !== undefined
  return names.inMessage({ message, part: isPart ? content[Number(part)] : undefined, isPart, rest }) ?? param
}

/** The same error about a field that has another name for the client. */
export const withParam = ({ code, message, detail }: GatewayError, param: string, named: string): GatewayError =>
  new GatewayError(code, message.replaceAll(`"${param}"`, `"${named}"`), { ...detail, param: named })

/** Converts a validation problem to the error that names the field. */
export function refusalOf(problem: Problem | undefined): GatewayError {
  if (!problem) return new GatewayError('invalid_value', 'The body does not match the schema of the request.')
  const param = pathText(problem.path)
  if (problem.kind === 'missing') return missingField(param)
  if (problem.path.length === 0) {
    return new GatewayError('invalid_type', `The body must be a JSON object, not ${foundText(problem.found)}.`)
  }
  if (problem.kind === 'unknown')
    return invalidValue(param, `"${param}" is not known; there may be ${problem.expected}.`)
  const code = problem.kind === 'type' ? 'invalid_type' : 'invalid_value'
  return new GatewayError(code, `"${param}" must be ${mustBe(problem.expected)}, not ${foundText(problem.found)}.`, {
    param,
  })
}

/** Throws invalid_type where the body is no JSON object. */
export function assertObject(body: unknown): asserts body is JsonRecord {
  if (!isRecord(body)) throw new GatewayError('invalid_type', `The body must be a JSON object, not ${foundText(body)}.`)
}

/** The members of a body but those that are `null`, which is absent. */
export function presentMembers(body: unknown): JsonRecord {
  assertObject(body)
  // Assigning `__proto__` would set the object's prototype.
  return Object.fromEntries(Object.entries(body).filter(([name, value]) => value !== null && name !== '__proto__'))
}

/** The known members of a body; `null` is absent. Throws GatewayError naming the field and what it may be. */
export function knownMembers<S extends TObject>(
  schema: S,
  check: ReturnType<typeof checker<S>>,
  body: unknown,
): Static<S> {
  assertObject(body)
  const known = Object.entries(body).filter(([name, value]) => value !== null && Object.hasOwn(schema.properties, name))
  const fields: unknown = Object.fromEntries(known)
  if (check.Check(fields)) return fields
  throw refusalOf(diagnose(schema, fields))
}

/** The error for a field that a provider does not support in this way. */
export const refusedField = (param: string, rule: string) =>
  new GatewayError('unsupported_parameter', `"${param}" ${rule}.`, { param })

/** The object in the text of a call's arguments; an empty text is one without members. */
export function argumentsObject(text: string, param: string): JsonRecord {
  if (text.trim() === '') return {}
  const value = parseExactJson(text)
  if (isRecord(value)) return value
  throw invalidValue(param, `"${param}" must be the JSON text of an object.`)
}

/** The error for a content part that a provider cannot read: nothing was sent. */
export const refusedPart = (param: string, rule: string) =>
  new GatewayError('unsupported_value', `"${param}" ${rule}.`, { param, accepted: 'no' })

/** `at least 1 item` reads better as `an array of at least 1 item`. */
const mustBe = (expected: string) => (/ items?$/.test(expected) ? `an array of ${expected}` : expected)
