/** Generates arrays and objects that fit a flat JSON Schema. */
import { asRecord, canonicalJson as canonical, isRecord } from '../../../src/kit/json.ts'
import {
  fitsSchema,
  itemSchemas,
  listOf,
  memberSchemas,
  patternOf,
  type Schema,
  type SchemaWork,
} from './json-schema-check.ts'
import { type Hints, nextTerm } from './json-schema-scalars.ts'
import type { Random } from './random.ts'

/** No value was found; `undefined` would be ambiguous. */
export const NONE = Symbol('none')

export type Sampler = {
  random: Random
  hints: Hints
  work: SchemaWork
  /** The number of this attempt: later attempts leave out more optional members. */
  attempt: number
  /** A value for a schema at this depth, or NONE. */
  sample(schema: unknown, depth: number): unknown
  flats(schema: unknown, depth: number): Iterable<Schema>
}

/** From this depth on, optional members are left out, and branches that end are preferred to recursive ones. */
export const DEEP = 4
/** No more members are generated, whatever a schema demands. */
const MAX_MEMBERS = 2000

export function sampleArray(schema: Schema, depth: number, sampler: Sampler): unknown {
  const { prefix, rest } = itemSchemas(schema)
  const minimum = typeof schema.minItems === 'number' ? Math.ceil(schema.minItems) : 0
  const maximum = typeof schema.maxItems === 'number' ? Math.floor(schema.maxItems) : MAX_MEMBERS
  if (minimum > maximum || minimum > MAX_MEMBERS) return NONE
  const preferred = depth >= DEEP || rest === false ? 0 : 1 + sampler.random.below(3)
  const contained = schema.contains === undefined ? 0 : typeof schema.minContains === 'number' ? schema.minContains : 1
  const length = Math.min(maximum, Math.max(minimum, prefix.length || preferred, prefix.length + contained))
  const items: unknown[] = []
  const seen = new Set<string>()
  for (let at = 0; at < length; at++) {
    const own = at < prefix.length ? prefix[at] : rest
    const isContained = at >= prefix.length && at < prefix.length + contained
    const item = nextItem(isContained ? { allOf: [own ?? true, schema.contains] } : own, depth, {
      schema,
      seen,
      sampler,
    })
    if (item === NONE) return items.length >= minimum && !isContained ? items : NONE
    if (schema.uniqueItems === true) seen.add(canonical(item))
    items.push(item)
  }
  return items
}

type ArrayState = { schema: Schema; seen: Set<string>; sampler: Sampler }

/** A new item, where items must differ. */
function nextItem(schema: unknown, depth: number, { schema: array, seen, sampler }: ArrayState): unknown {
  if (array.uniqueItems !== true) return sampler.sample(schema, depth + 1)
  for (let tries = 0; tries < 12; tries++) {
    const item = sampler.sample(schema, depth + 1)
    if (item === NONE) return NONE
    const text = canonical(item)
    sampler.work.steps -= text.length / 50
    if (!seen.has(text)) return item
  }
  return otherChoice(schema, { schema: array, seen, sampler })
}

/** Random choice may repeat the values of a short enum: returns the first value that is not used yet. */
function otherChoice(schema: unknown, { seen, sampler }: ArrayState): unknown {
  for (const flat of sampler.flats(schema, 0)) {
    const choices = Array.isArray(flat.enum) ? flat.enum : [true, false, null, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    const free = choices.find((value) => !seen.has(canonical(value)) && fitsSchema(schema, value, sampler.work))
    if (free !== undefined) return free
  }
  return NONE
}

export function sampleObject(schema: Schema, depth: number, sampler: Sampler): unknown {
  const { work } = sampler
  const properties = isRecord(schema.properties) ? Object.keys(schema.properties) : []
  const required = listOf(schema.required).filter((key) => typeof key === 'string')
  const maximum = typeof schema.maxProperties === 'number' ? schema.maxProperties : MAX_MEMBERS
  const minimum = typeof schema.minProperties === 'number' ? schema.minProperties : 0
  if (required.length > maximum || minimum > maximum || minimum > MAX_MEMBERS) return NONE
  const keys = chosenKeys(schema, { properties, required, maximum, depth, sampler })
  const expanded = withDependentSchemas(schema, keys, { depth, sampler })
  if (expanded) return sampleObject(expanded, depth, sampler)

  const members = new Map<string, unknown>()
  const put = (key: string): boolean => {
    if (--work.steps < 0) return false
    if (schema.propertyNames !== undefined && !fitsSchema(schema.propertyNames, key, work)) return false
    const found = memberSchemas(schema, key, work)
    const value = sampler.sample(found.length > 1 ? { allOf: found } : (found[0] ?? true), depth + 1)
    if (value !== NONE) members.set(key, value)
    return value !== NONE
  }
  for (const key of keys) if (!put(key) && required.includes(key)) return NONE
  // A map without named members gets one, so that a reader sees what it holds.
  const isMap = properties.length === 0 && (isRecord(schema.additionalProperties) || isRecord(schema.patternProperties))
  const target = Math.min(maximum, Math.max(minimum, isMap && depth < DEEP && sampler.attempt === 0 ? 1 : 0))
  for (const key of properties) if (members.size < minimum && !members.has(key)) put(key)
  for (let tries = 0; members.size < target && tries < target * 2 + 8 && work.steps >= 0; tries++) {
    const key = newKey(schema, sampler, tries)
    if (key !== undefined && !members.has(key)) put(key)
  }
  return members.size < minimum ? NONE : Object.fromEntries(members)
}

type KeyChoice = { properties: string[]; required: string[]; maximum: number; depth: number; sampler: Sampler }

/** The members to generate: all required ones; of the optional ones all near the top, some below, none deep down. */
function chosenKeys(schema: Schema, { properties, required, maximum, depth, sampler }: KeyChoice): Set<string> {
  const likely = depth >= DEEP ? 0 : sampler.attempt > 0 || depth > 2 ? 0.5 : 1
  const withRequired = new Set(required)
  let remaining = maximum - withRequired.size
  for (const key of properties) {
    if (withRequired.has(key) || remaining <= 0 || sampler.random.next() >= likely) continue
    withRequired.add(key)
    remaining--
  }
  const keys = new Set([...properties.filter((key) => withRequired.has(key)), ...required])
  const dependent = asRecord(schema.dependentRequired)
  // The iteration of a set includes the values that are added meanwhile.
  for (const key of keys) {
    if (keys.size > MAX_MEMBERS) break
    for (const other of listOf(dependent[key]).slice(0, MAX_MEMBERS)) if (typeof other === 'string') keys.add(other)
  }
  return keys
}

/** The schema merged with the `dependentSchemas` of the chosen members; undefined when there are none. */
function withDependentSchemas(
  schema: Schema,
  keys: Set<string>,
  { depth, sampler }: { depth: number; sampler: Sampler },
): Schema | undefined {
  if (!isRecord(schema.dependentSchemas)) return undefined
  const { dependentSchemas, ...rest } = schema
  const dependent = Object.entries(dependentSchemas as Schema).filter(([key]) => keys.has(key))
  if (dependent.length === 0) return undefined
  const [names, schemas] = [dependent.map(([key]) => key), dependent.map(([, each]) => each)]
  const withRequired = { ...rest, required: [...listOf(rest.required), ...names] }
  const [first] = sampler.flats({ allOf: [withRequired, ...schemas] }, depth)
  return first
}

/** A name for an additional member: one that matches a pattern, one that `propertyNames` allows, or a term of the prompt. */
function newKey(schema: Schema, sampler: Sampler, count: number): string | undefined {
  const { random, work, hints } = sampler
  const sources = isRecord(schema.patternProperties) ? Object.keys(schema.patternProperties) : []
  if (sources.length) return patternOf(random.pick(sources), work)?.sample(random, 1 + (count >> 2), 64)
  if (isRecord(schema.propertyNames)) {
    const name = sampler.sample({ allOf: [{ type: 'string' }, schema.propertyNames] }, DEEP)
    return typeof name === 'string' ? name : undefined
  }
  const term = nextTerm({ hints, random }).toLowerCase()
  return count === 0 ? term : `${term}_${count}`
}
