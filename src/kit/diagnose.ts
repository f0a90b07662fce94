/** Explains why a JSON Schema rejected a value: the path, what was expected, what was found. */
import { isRawNumber } from './json.ts'

export type Problem = {
  path: (string | number)[]
  kind: 'missing' | 'type' | 'value' | 'unknown'
  /** The expectation as part of a sentence: `a string`, `one of "a", "b"`, `at least 1`. */
  expected: string
  found: unknown
}

type Schema = {
  type?: string
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
  patternProperties?: Record<string, Schema>
  items?: Schema
  anyOf?: Schema[]
  enum?: unknown[]
  const?: unknown
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  minItems?: number
  maxItems?: number
  minLength?: number
  maxLength?: number
  pattern?: string
}

/** The first problem in document order, or undefined if the supported subset of JSON Schema finds none. */
export function diagnose(schema: object, value: unknown): Problem | undefined {
  return problems(schema as Schema, value, [], 1)[0]
}

/** All problems in document order, at most `limit`. */
export function diagnoseAll(schema: object, value: unknown, limit = 100): Problem[] {
  return problems(schema as Schema, value, [], limit)
}

/** `messages[0].content`: the format in which the API names a field. */
export function pathText(path: (string | number)[]): string {
  let text = ''
  for (const step of path) text += typeof step === 'number' ? `[${step}]` : text === '' ? step : `.${step}`
  return text
}

/** Describes a found value for a message without long user text: its type, and the value of a small scalar. */
export function foundText(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return arrayText(value.length)
  if (isRawNumber(value)) return rawText(value.rawJSON)
  if (typeof value === 'object') return 'an object'
  if (typeof value === 'string')
    return value.length <= 40 ? `the string ${JSON.stringify(value)}` : `a string of ${value.length} characters`
  if (typeof value === 'number') return `the ${Number.isInteger(value) ? 'integer' : 'number'} ${value}`
  return `the ${typeof value} ${String(value)}`
}

const arrayText = (length: number): string =>
  length === 0 ? 'an empty array' : `an array of ${length} ${length === 1 ? 'item' : 'items'}`

const rawText = (digits: string): string =>
  digits.length > 40 ? 'a long number' : `the ${/^-?\d+$/.test(digits) ? 'integer' : 'number'} ${digits}`

type Found = Problem[]

function problems(schema: Schema, value: unknown, path: (string | number)[], limit: number): Found {
  const problem = (kind: Problem['kind'], expected: string): Found => [{ path, kind, expected, found: value }]
  if (schema.anyOf) return ofUnion(schema.anyOf, value, path, limit)
  if (schema.enum) return schema.enum.includes(value) ? [] : problem(sameKind(schema.enum, value), oneOf(schema.enum))
  if ('const' in schema) {
    return schema.const === value ? [] : problem(sameKind([schema.const], value), JSON.stringify(schema.const))
  }
  switch (schema.type) {
    case 'string':
      if (typeof value !== 'string') return problem('type', 'a string')
      return messageFor(stringTrouble(schema, value), problem)
    case 'integer':
      if (isRawNumber(value)) return problem('value', safeRange(schema))
      if (typeof value !== 'number') return problem('type', 'an integer')
      if (!Number.isInteger(value)) return problem('type', 'an integer')
      return messageFor(numberTrouble(schema, value), problem)
    case 'number':
      if (isRawNumber(value)) return problem('value', safeRange(schema))
      if (typeof value !== 'number') return problem('type', 'a number')
      return messageFor(numberTrouble(schema, value), problem)
    case 'boolean':
      return typeof value === 'boolean' ? [] : problem('type', 'a boolean')
    case 'null':
      return value === null ? [] : problem('type', 'null')
    case 'array':
      return ofArray(schema, value, path, limit)
    case 'object':
      return ofObject(schema, value, path, limit)
    default:
      return []
  }
}

const messageFor = (trouble: string | undefined, problem: (kind: Problem['kind'], expected: string) => Found): Found =>
  trouble === undefined ? [] : problem('value', trouble)

function stringTrouble(schema: Schema, value: string): string | undefined {
  if (schema.minLength !== undefined && value.length < schema.minLength) {
    return schema.minLength === 1 ? 'a string that is not empty' : `at least ${schema.minLength} characters`
  }
  if (schema.maxLength !== undefined && value.length > schema.maxLength) return `at most ${schema.maxLength} characters`
  if (schema.pattern !== undefined && !new RegExp(schema.pattern, 'u').test(value)) return `text like ${schema.pattern}`
  return undefined
}

function numberTrouble(schema: Schema, value: number): string | undefined {
  const low = schema.minimum !== undefined && value < schema.minimum
  const high = schema.maximum !== undefined && value > schema.maximum
  const tooLow = schema.exclusiveMinimum !== undefined && value <= schema.exclusiveMinimum
  if (!low && !high && !tooLow) return undefined
  if (schema.exclusiveMinimum !== undefined) {
    return schema.maximum === undefined
      ? `more than ${schema.exclusiveMinimum}`
      : `more than ${schema.exclusiveMinimum} and at most ${schema.maximum}`
  }
  return rangeText(schema.minimum, schema.maximum)
}

/** `from 1 to 32768`, `at least 0`, `at most 1`. */
export function rangeText(minimum: number | undefined, maximum: number | undefined): string {
  if (minimum !== undefined && maximum !== undefined) return `from ${minimum} to ${maximum}`
  return minimum === undefined ? `at most ${maximum}` : `at least ${minimum}`
}

/** Other numbers than these have no exact value in JavaScript. */
const safeRange = ({ minimum = Number.MIN_SAFE_INTEGER, maximum = Number.MAX_SAFE_INTEGER }: Schema): string =>
  rangeText(minimum, maximum)

function ofArray(schema: Schema, value: unknown, path: (string | number)[], limit: number): Found {
  if (!Array.isArray(value)) return [{ path, kind: 'type', expected: 'an array', found: value }]
  const { minItems = 0, maxItems = Number.POSITIVE_INFINITY, items } = schema
  if (value.length < minItems) return [{ path, kind: 'value', expected: `at least ${minItems} item`, found: value }]
  if (value.length > maxItems) return [{ path, kind: 'value', expected: `at most ${maxItems} items`, found: value }]
  const out: Found = []
  for (let index = 0; items && index < value.length && out.length < limit; index++) {
    out.push(...problems(items, value[index], [...path, index], limit - out.length))
  }
  return out
}

function ofObject(schema: Schema, value: unknown, path: (string | number)[], limit: number): Found {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || isRawNumber(value)) {
    return [{ path, kind: 'type', expected: 'an object', found: value }]
  }
  const fields = value as Record<string, unknown>
  const out: Found = []
  for (const name of schema.required ?? []) {
    if (fields[name] === undefined) {
      out.push({ path: [...path, name], kind: 'missing', expected: 'required', found: undefined })
    }
  }
  for (const [name, inner] of Object.entries(fields)) {
    if (out.length >= limit) break
    if (inner === undefined) continue
    const known = ownProperty(schema, name) ?? otherProperty(schema)
    if (known) out.push(...problems(known, inner, [...path, name], limit - out.length))
    else if (schema.additionalProperties === false) {
      const names = Object.keys(schema.properties ?? {})
      const expected = names.length === 0 ? 'no member' : oneOf(names)
      out.push({ path: [...path, name], kind: 'unknown', expected, found: inner })
    }
  }
  return out.slice(0, limit)
}

/** Every object inherits members such as `constructor`, which no schema has. */
const ownProperty = ({ properties }: Schema, name: string): Schema | undefined =>
  properties && Object.hasOwn(properties, name) ? properties[name] : undefined

function otherProperty(schema: Schema): Schema | undefined {
  const pattern = Object.values(schema.patternProperties ?? {})[0]
  if (pattern) return pattern
  return typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined
}

/**
 * A union's problem, reported for the intended branch: the one whose fixed members (`type: "text"`) match; else the one
 * of the value's own JSON type. Without an intended branch, everything that is allowed.
 */
function ofUnion(branches: Schema[], value: unknown, path: (string | number)[], limit: number): Found {
  const results = branches.map((branch) => ({ branch, found: problems(branch, value, path, limit) }))
  if (results.some((result) => result.found.length === 0)) return []
  const ofType = results.filter(({ found }) => !(found[0]?.kind === 'type' && found[0].path.length === path.length))
  // Where a fixed text is allowed beside a number or another one, the error of another text names both.
  const isWord =
    (typeof ofType[0]?.branch.const === 'string' &&
      branches.every(({ type }) => type === 'string' || type === 'integer' || type === 'number')) ||
    (ofType.length > 1 && ofType.every(({ branch }) => 'const' in branch))
  const intended = isWord ? [] : ofType.filter(({ branch }) => fixedMembersFit(branch, value))
  if (intended.length === 1 || (intended.length > 0 && ofType.length === intended.length))
    return intended[0]?.found ?? []
  const tags = ofType.map(({ branch }) => fixedMember(branch)).filter((tag) => tag !== undefined)
  const tag = tags[0]
  if (tag && tags.length === ofType.length) {
    const found = (value as Record<string, unknown>)[tag.name]
    const kind =
      found === undefined
        ? 'missing'
        : sameKind(
            tags.flatMap((other) => other.values),
            found,
          )
    return [{ path: [...path, tag.name], kind, expected: oneOf(tags.flatMap((other) => other.values)), found }]
  }
  if (ofType.length === 1 && !isWord) return ofType[0]?.found ?? []
  const expected = [...new Set(results.map(({ found }) => found[0]?.expected ?? ''))].join(' or ')
  return [{ path, kind: ofType.length === 0 ? 'type' : 'value', expected, found: value }]
}

function fixedMember(schema: Schema): { name: string; values: unknown[] } | undefined {
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    if ('const' in member) return { name, values: [member.const] }
    if (member.enum && name === 'type') return { name, values: member.enum }
  }
  return undefined
}

function fixedMembersFit(schema: Schema, value: unknown): boolean {
  const tag = fixedMember(schema)
  if (!tag) return true
  if (typeof value !== 'object' || value === null) return false
  const found = (value as Record<string, unknown>)[tag.name]
  return found === undefined ? !schema.required?.includes(tag.name) : tag.values.includes(found)
}

const sameKind = (allowed: unknown[], value: unknown): 'type' | 'value' =>
  allowed.some((one) => typeof one === typeof value) ? 'value' : 'type'

function oneOf(values: unknown[]): string {
  const texts = [...new Set(values)].map((value) => JSON.stringify(value))
  return texts.length === 1 ? (texts[0] ?? '') : `one of ${texts.join(', ')}`
}
