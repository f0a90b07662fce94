/**
 * Whether a value that the sandbox made fits a JSON Schema (draft 2020-12 with the older spellings people still send).
 * A check of our own because schemas are callers' text: steps are bounded and patterns never reach a backtracker.
 */
import { isRecord } from '../../../src/kit/json.ts'
import { compilePattern, type Pattern } from './pattern.ts'

export type Schema = Record<string, unknown>

/** One piece of work on one schema: what it refers to, what was found wrong, and how much is left to spend. */
export type SchemaWork = {
  root: unknown
  /** Visits left; at zero everything fails, so no schema takes more than a bounded time. */
  steps: number
  /** The first thing in the schema that is not known here. */
  problem: string | undefined
  patterns: Map<string, Pattern | undefined>
  /** What the values written out in a schema cost to compare or copy. */
  weights: WeakMap<Schema, number>
}

/** A step takes some microseconds; schemas written by hand need some thousands in all. */
const MAX_STEPS = 60_000
const MAX_DEPTH = 64

export function startSchemaWork(root: unknown): SchemaWork {
  return { root, steps: MAX_STEPS, problem: undefined, patterns: new Map(), weights: new WeakMap() }
}

/** Pays for a visit of this schema; false when there is nothing left to pay with. */
export function consumeSteps(schema: Schema, work: SchemaWork): boolean {
  let weight = work.weights.get(schema)
  if (weight === undefined) {
    const literals = [schema.const, schema.enum, schema.required].filter((value) => value !== undefined)
    // Some fifty characters are compared in a microsecond.
    weight = 1 + (literals.length ? Math.ceil(JSON.stringify(literals).length / 50) : 0)
    work.weights.set(schema, weight)
  }
  work.steps -= weight
  return work.steps >= 0
}

export const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

export const characterCount = (text: string): number => [...text].length

export function patternOf(source: string, work: SchemaWork): Pattern | undefined {
  if (!work.patterns.has(source)) work.patterns.set(source, compilePattern(source, work))
  const pattern = work.patterns.get(source)
  if (!pattern) work.problem ??= 'a "pattern" uses what the sandbox does not know (look-around, back references, \\p)'
  return pattern
}

/** What a `$ref` within the document points at; undefined when it leads nowhere. */
export function resolveRef(reference: string, work: SchemaWork): unknown {
  if (reference === '#' || reference === '') return work.root
  const names = reference.startsWith('#/') ? reference.slice(2).split('/') : undefined
  let place: unknown = names ? work.root : undefined
  for (const name of names ?? []) {
    const key = decodeName(name).replaceAll('~1', '/').replaceAll('~0', '~')
    if (Array.isArray(place)) place = place[Number(key)]
    else place = isRecord(place) && Object.hasOwn(place, key) ? place[key] : undefined
  }
  if (place === undefined) work.problem ??= 'a "$ref" leads nowhere within the schema'
  return place
}

/** Percent-decoded where that is possible; a stray percent sign stands for itself. */
function decodeName(name: string): string {
  return /%(?![0-9a-f]{2})|%[89a-f]/i.test(name) ? name : decodeURIComponent(name)
}

/** One text for equal JSON values, whatever the order of their keys. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (!isRecord(value)) return JSON.stringify(value) ?? 'null'
  const keys = Object.keys(value).sort()
  const members = keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`)
  return `{${members.join(',')}}`
}

function isOfType(value: unknown, type: unknown): boolean {
  if (type === 'null') return value === null
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return isRecord(value)
  if (type === 'integer') return Number.isInteger(value)
  return typeof value === type
}

/** `depth` counts references as well as members, so a schema that refers to itself ends. */
export function fitsSchema(schema: unknown, value: unknown, work: SchemaWork, depth = 0): boolean {
  if (schema === true || schema === undefined) return true
  if (!isRecord(schema) || depth > MAX_DEPTH || !consumeSteps(schema, work)) return false
  return (
    fitsType(schema, value) &&
    fitsCombinations(schema, value, work, depth) &&
    (typeof value !== 'number' || fitsNumber(schema, value)) &&
    (typeof value !== 'string' || fitsString(schema, value, work)) &&
    (!Array.isArray(value) || fitsArray(schema, value, work, depth)) &&
    (!isRecord(value) || fitsObject(schema, value, work, depth))
  )
}

function fitsType(schema: Schema, value: unknown): boolean {
  if (value === null && schema.nullable === true) return true
  if (schema.type !== undefined) {
    const types = Array.isArray(schema.type) ? schema.type : [schema.type]
    if (!types.some((type) => isOfType(value, type))) return false
  }
  if ('const' in schema && canonical(schema.const) !== canonical(value)) return false
  return !Array.isArray(schema.enum) || schema.enum.some((each) => canonical(each) === canonical(value))
}

function fitsCombinations(schema: Schema, value: unknown, work: SchemaWork, depth: number): boolean {
  const fits = (other: unknown) => fitsSchema(other, value, work, depth + 1)
  if (typeof schema.$ref === 'string' && !fits(resolveRef(schema.$ref, work) ?? false)) return false
  if (!listOf(schema.allOf).every(fits)) return false
  if (Array.isArray(schema.anyOf) && !schema.anyOf.some(fits)) return false
  if (Array.isArray(schema.oneOf) && schema.oneOf.filter(fits).length !== 1) return false
  if (schema.not !== undefined && fits(schema.not)) return false
  if (schema.if === undefined) return true
  return fits(fits(schema.if) ? schema.then : schema.else)
}

function fitsNumber(schema: Schema, value: number): boolean {
  const { minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below, multipleOf } = schema
  if (typeof minimum === 'number' && (above === true ? value <= minimum : value < minimum)) return false
  if (typeof maximum === 'number' && (below === true ? value >= maximum : value > maximum)) return false
  if (typeof above === 'number' && value <= above) return false
  if (typeof below === 'number' && value >= below) return false
  return typeof multipleOf !== 'number' || Number.isInteger(value / multipleOf)
}

function fitsString(schema: Schema, value: string, work: SchemaWork): boolean {
  const length = characterCount(value)
  if (typeof schema.minLength === 'number' && length < schema.minLength) return false
  if (typeof schema.maxLength === 'number' && length > schema.maxLength) return false
  return typeof schema.pattern !== 'string' || (patternOf(schema.pattern, work)?.matches(value) ?? false)
}

function fitsArray(schema: Schema, value: unknown[], work: SchemaWork, depth: number): boolean {
  const { minItems, maxItems, contains, uniqueItems } = schema
  if (typeof minItems === 'number' && value.length < minItems) return false
  if (typeof maxItems === 'number' && value.length > maxItems) return false
  const { prefix, rest } = itemSchemas(schema)
  const fits = (item: unknown, at: number) => fitsSchema(at < prefix.length ? prefix[at] : rest, item, work, depth + 1)
  if (!value.every(fits)) return false
  if (contains !== undefined) {
    const found = value.filter((item) => fitsSchema(contains, item, work, depth + 1)).length
    if (found < (typeof schema.minContains === 'number' ? schema.minContains : 1)) return false
    if (typeof schema.maxContains === 'number' && found > schema.maxContains) return false
  }
  return uniqueItems !== true || new Set(value.map(canonical)).size === value.length
}

/** The schemas of an array's first items and of all others, in the new spelling or the old one. */
export function itemSchemas(schema: Schema): { prefix: unknown[]; rest: unknown } {
  if (Array.isArray(schema.prefixItems)) return { prefix: schema.prefixItems, rest: schema.items }
  if (Array.isArray(schema.items)) return { prefix: schema.items, rest: schema.additionalItems }
  return { prefix: [], rest: schema.items }
}

function fitsObject(schema: Schema, value: Record<string, unknown>, work: SchemaWork, depth: number): boolean {
  const keys = Object.keys(value)
  if (typeof schema.minProperties === 'number' && keys.length < schema.minProperties) return false
  if (typeof schema.maxProperties === 'number' && keys.length > schema.maxProperties) return false
  const has = (key: unknown) => typeof key === 'string' && Object.hasOwn(value, key)
  if (!listOf(schema.required).every(has)) return false
  for (const [key, needed] of Object.entries(isRecord(schema.dependentRequired) ? schema.dependentRequired : {})) {
    if (has(key) && !listOf(needed).every(has)) return false
  }
  for (const [key, other] of Object.entries(isRecord(schema.dependentSchemas) ? schema.dependentSchemas : {})) {
    if (has(key) && !fitsSchema(other, value, work, depth + 1)) return false
  }
  return keys.every(
    (key) =>
      (schema.propertyNames === undefined || fitsSchema(schema.propertyNames, key, work, depth + 1)) &&
      memberSchemas(schema, key, work).every((member) => fitsSchema(member, value[key], work, depth + 1)),
  )
}

/** Every schema that one object schema puts on the member of this name. */
export function memberSchemas(schema: Schema, key: string, work: SchemaWork): unknown[] {
  const found: unknown[] = []
  if (isRecord(schema.properties) && Object.hasOwn(schema.properties, key)) found.push(schema.properties[key])
  for (const [source, member] of Object.entries(isRecord(schema.patternProperties) ? schema.patternProperties : {})) {
    if (patternOf(source, work)?.matches(key)) found.push(member)
  }
  if (found.length === 0 && schema.additionalProperties !== undefined) found.push(schema.additionalProperties)
  return found
}
