/** Generates values that fit a JSON Schema, from the terms and numbers of a prompt. */
import { isRecord } from '../../../src/kit/json.ts'
import { consumeSteps, fitsSchema, listOf, resolveRef, type Schema, startSchemaWork } from './json-schema-check.ts'
import { DEEP, NONE, type Sampler, sampleArray, sampleObject } from './json-schema-containers.ts'
import { mergeSchemas, typesOf } from './json-schema-merge.ts'
import { type Hints, sampleNumber, sampleString } from './json-schema-scalars.ts'
import type { Random } from './random.ts'

const MAX_DEPTH = 24
const MAX_FLATTENING = 32
/** Attempts at a complete value; most schemas need one. */
const MAX_ATTEMPTS = 40

type Sample = { value: unknown } | { problem: string }

/** A checked value that fits, or why none was found. */
export function sampleFromSchema(schema: unknown, random: Random, hints: Hints): Sample {
  const work = startSchemaWork(schema)
  for (let attempt = 0; attempt < MAX_ATTEMPTS && work.steps > 0; attempt++) {
    const sampler: Sampler = {
      random,
      hints,
      work,
      attempt,
      sample: (each, depth) => sample(each, depth, sampler),
      flats: (each, depth) => flats(each, { depth, level: 0, sampler }),
    }
    const value = sampler.sample(schema, 0)
    if (value !== NONE && fitsSchema(schema, value, work)) return { value }
  }
  if (work.steps <= 0) return { problem: work.problem ?? 'it is too large or too deep for the sandbox' }
  return { problem: work.problem ?? 'no value was found that fits all of it' }
}

function sample(schema: unknown, depth: number, sampler: Sampler): unknown {
  // A value without a schema takes no other steps, so each value takes one here.
  if (depth > MAX_DEPTH || --sampler.work.steps < 0) return NONE
  for (const flat of sampler.flats(schema, depth)) {
    const value = fromFlat(flat, depth, sampler)
    if (value !== NONE) return value
    if (sampler.work.steps < 0) break
  }
  return NONE
}

type Flattening = { depth: number; level: number; sampler: Sampler }

/** Yields the alternatives of a schema without references and combinations, the preferred one first. */
function* flats(schema: unknown, state: Flattening): Generator<Schema> {
  const { sampler, level } = state
  if (schema === true || schema === undefined) yield {}
  if (!isRecord(schema) || level > MAX_FLATTENING || !consumeSteps(schema, sampler.work)) return
  const { $ref, allOf, anyOf, oneOf, if: condition, then, else: otherwise, ...own } = schema
  const groups: unknown[][] = listOf(allOf).map((each) => [each])
  if (typeof $ref === 'string') groups.push([resolveRef($ref, sampler.work) ?? false])
  if (Array.isArray(anyOf)) groups.push(sortBranches(anyOf, state))
  if (Array.isArray(oneOf)) {
    const alone = (branch: unknown) => oneOf.filter((other) => other !== branch)
    groups.push(sortBranches(oneOf, state).map((branch) => ({ allOf: [branch], not: { anyOf: alone(branch) } })))
  }
  if (condition !== undefined) {
    groups.push([{ allOf: [condition, then ?? true] }, { allOf: [otherwise ?? true], not: condition }])
  }
  yield* combinations(own, groups, { ...state, level: level + 1 })
}

function* combinations(base: Schema, groups: unknown[][], state: Flattening): Generator<Schema> {
  const [first, ...others] = groups
  if (!first) {
    yield base
    return
  }
  for (const branch of first) {
    for (const flat of flats(branch, state)) {
      const merged = mergeSchemas(base, flat, state.sampler.work)
      if (merged !== false) yield* combinations(merged, others, state)
      if (state.sampler.work.steps < 0) return
    }
  }
}

/** Near the top: random order, null last. Deep down: short branches first, so that a recursive schema ends. */
function sortBranches(branches: unknown[], { depth, sampler }: Flattening): unknown[] {
  const cost = (branch: unknown): number => {
    if (isRecord(branch) && branch.type === 'null') return depth >= DEEP ? 0 : Number.POSITIVE_INFINITY
    if (depth < DEEP) return sampler.random.next()
    const target = isRecord(branch) && typeof branch.$ref === 'string' ? resolveRef(branch.$ref, sampler.work) : branch
    const text = JSON.stringify(target) ?? ''
    sampler.work.steps -= text.length / 50
    return 1 + text.split('"$ref"').length * 1000 + text.length / 1000
  }
  return branches
    .map((branch) => ({ branch, cost: cost(branch) }))
    .sort((one, other) => one.cost - other.cost || 0)
    .map(({ branch }) => branch)
}

function fromFlat(flat: Schema, depth: number, sampler: Sampler): unknown {
  const { work, random } = sampler
  const fits = (value: unknown) => value !== NONE && fitsSchema(flat, value, work)
  if ('const' in flat) return fits(flat.const) ? flat.const : NONE
  if (Array.isArray(flat.enum)) {
    const start = random.below(flat.enum.length || 1)
    const rotated = [...flat.enum.slice(start), ...flat.enum.slice(0, start)]
    const found = rotated.find((value) => value !== null && fits(value))
    return found === undefined ? (rotated.includes(null) && fits(null) ? null : NONE) : found
  }
  for (const type of typesToTry(flat, depth)) {
    // For a value that `not` excludes, another one is generated a few times before the next type.
    for (let tries = 0; tries < (flat.not === undefined ? 1 : 4); tries++) {
      const value = ofType(type, flat, depth, sampler)
      if (value === NONE) break
      if (flat.not === undefined || !fitsSchema(flat.not, value, work)) return value
    }
  }
  return NONE
}

const ALL_TYPES = ['string', 'integer', 'number', 'boolean', 'object', 'array', 'null']
/** A schema without a type that uses these keywords implies the type. */
const TYPE_KEYWORDS: [string, string[]][] = [
  ['object', ['properties', 'required', 'additionalProperties', 'patternProperties', 'minProperties', 'propertyNames']],
  ['array', ['items', 'prefixItems', 'minItems', 'contains', 'uniqueItems']],
  ['string', ['pattern', 'minLength', 'maxLength', 'format']],
  ['number', ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf']],
]

function typesToTry(flat: Schema, depth: number): unknown[] {
  const named = typesOf(flat)
  if (named.length === 0) {
    const implied = TYPE_KEYWORDS.filter(([, keywords]) => keywords.some((keyword) => flat[keyword] !== undefined)).map(
      ([type]) => type,
    )
    return [...new Set([...implied, ...ALL_TYPES])]
  }
  const simple = (type: unknown) => type !== 'object' && type !== 'array'
  const others = named.filter((type) => type !== 'null')
  if (depth >= DEEP) {
    const containers = others.filter((type) => !simple(type))
    return [...(named.includes('null') ? ['null'] : []), ...others.filter(simple), ...containers]
  }
  return named.includes('null') ? [...others, 'null'] : others
}

function ofType(type: unknown, flat: Schema, depth: number, sampler: Sampler): unknown {
  const { random, hints, work } = sampler
  switch (type) {
    case 'null':
      return null
    case 'boolean':
      return random.next() < 0.5
    case 'integer':
    case 'number':
      return sampleNumber(flat, type === 'integer', { random, hints }) ?? NONE
    case 'string':
      return sampleString(flat, { random, hints, work }) ?? NONE
    case 'array':
      return sampleArray(flat, depth, sampler)
    case 'object':
      return sampleObject(flat, depth, sampler)
    default:
      sampler.work.problem ??= 'a "type" is not one of JSON'
      return NONE
  }
}
