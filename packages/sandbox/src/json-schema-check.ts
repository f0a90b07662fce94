/**
 * Checks generated values against a JSON Schema (draft 2020-12, and the older forms that clients still send).
 * It is our own because clients write the schemas: its steps are bounded, and patterns never reach a backtracking matcher.
 */
import { asRecord, canonicalJson as canonical, isRecord } from '../../../src/kit/json.ts'
import { compilePattern, type Pattern } from './pattern.ts'

export type Schema = Record<string, unknown>

/** The state of one run on one schema: its root, the problem found, and the steps left. */
export type SchemaWork = {
  root: unknown
  /** At zero everything fails, so every schema takes a bounded time. */
  steps: number
  /** The first unsupported thing in the schema. */
  problem: string | undefined
  patterns: Map<string, Pattern | undefined>
  /** The steps that comparing or copying the literal values of a schema takes. */
  weights: WeakMap<Schema, number>
}

/**
 * A step takes a few microseconds, and all are taken in the thread that serves every request. Schemas written by hand
 * need a few thousand steps.
 */
const MAX_STEPS = 30_000
/** How many members of an object, items of an array or parts of a pattern one step visits. */
const VISITS_PER_STEP = 10
/** How many characters one step compares. */
const CHARACTERS_PER_STEP = 50
const MAX_DEPTH = 64

export function startSchemaWork(root: unknown): SchemaWork {
  return { root, steps: MAX_STEPS, problem: undefined, patterns: new Map(), weights: new WeakMap() }
}

/** Counts the steps of a visit of this schema; false when none are left. */
export function consumeSteps(schema: Schema, work: SchemaWork): boolean {
  let weight = work.weights.get(schema)
  if (weight === undefined) {
    const literals = [schema.const, schema.enum, schema.required].filter((value) => value !== undefined)
    const characters = literals.length ? JSON.stringify(literals).length : 0
    weight = 1 + Math.ceil(characters / CHARACTERS_PER_STEP) + Math.floor(widthOf(schema) / VISITS_PER_STEP)
    // Each branch is compared with each other one.
    if (Array.isArray(schema.oneOf)) weight += Math.floor(schema.oneOf.length ** 2 / (10 * VISITS_PER_STEP))
    work.weights.set(schema, weight)
  }
  work.steps -= weight
  return work.steps >= 0
}

/** How many members and items the keywords of a schema have, not counting those further inside. */
export function widthOf(schema: Schema): number {
  let width = 0
  for (const value of Object.values(schema)) {
    if (Array.isArray(value)) width += value.length
    else if (isRecord(value)) width += Object.keys(value).length
  }
  return width
}

export const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

export const characterCount = (text: string): number => [...text].length

export function patternOf(source: string, work: SchemaWork): Pattern | undefined {
  work.steps -= 1 / VISITS_PER_STEP
  if (!work.patterns.has(source)) {
    work.steps -= 1 + source.length / VISITS_PER_STEP
    work.patterns.set(source, work.steps < 0 ? undefined : compilePattern(source, work))
  }
  const pattern = work.patterns.get(source)
  if (!pattern)
    work.problem ??= 'a "pattern" uses what the sandbox does not support (look-around, back references, \\p)'
  return pattern
}

/** The target of a `$ref` within the document; undefined when there is none. */
export function resolveRef(reference: string, work: SchemaWork): unknown {
  work.steps -= reference.length / CHARACTERS_PER_STEP
  if (reference === '#' || reference === '' || work.steps < 0) return work.root
  const names = reference.startsWith('#/') ? reference.slice(2).split('/') : undefined
  let place: unknown = names ? work.root : undefined
  for (const name of names ?? []) {
    const key = decodeName(name).replaceAll('~1', '/').replaceAll('~0', '~')
    if (Array.isArray(place)) place = place[Number(key)]
    else place = isRecord(place) && Object.hasOwn(place, key) ? place[key] : undefined
  }
  if (place === undefined) work.problem ??= 'a "$ref" has no target within the schema'
  return place
}

/** Percent-decodes a name where possible; a stray percent sign stands for itself. */
function decodeName(name: string): string {
  return /%(?![0-9a-f]{2})|%[89a-f]/i.test(name) ? name : decodeURIComponent(name)
}

function isOfType(value: unknown, type: unknown): boolean {
  if (type === 'null') return value === null
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return isRecord(value)
  if (type === 'integer') return Number.isInteger(value)
  return typeof value === type
}

/** `depth` counts references as well as members, so the check of a recursive schema ends. */
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
  work.steps -= value.length / (10 * CHARACTERS_PER_STEP)
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

/** The schemas of an array's first items and of all others, in the newer or the older form. */
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
  for (const [key, needed] of Object.entries(asRecord(schema.dependentRequired))) {
    if (has(key) && !listOf(needed).every(has)) return false
  }
  for (const [key, other] of Object.entries(asRecord(schema.dependentSchemas))) {
    if (has(key) && !fitsSchema(other, value, work, depth + 1)) return false
  }
  return keys.every(
    (key) =>
      (schema.propertyNames === undefined || fitsSchema(schema.propertyNames, key, work, depth + 1)) &&
      memberSchemas(schema, key, work).every((member) => fitsSchema(member, value[key], work, depth + 1)),
  )
}

/** All schemas that an object schema applies to the member of this name. */
export function memberSchemas(schema: Schema, key: string, work: SchemaWork): unknown[] {
  const found: unknown[] = []
  if (isRecord(schema.properties) && Object.hasOwn(schema.properties, key)) found.push(schema.properties[key])
  for (const [source, member] of Object.entries(asRecord(schema.patternProperties))) {
    if (work.steps < 0) break
    if (patternOf(source, work)?.matches(key)) found.push(member)
  }
  if (found.length === 0 && schema.additionalProperties !== undefined) found.push(schema.additionalProperties)
  return found
}
