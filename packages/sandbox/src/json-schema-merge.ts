/** Merges two JSON Schemas into one whose values fit both, as far as keywords can express it. */
import { asRecord, canonicalJson as canonical, isRecord } from '../../../src/kit/json.ts'
import { listOf, memberSchemas, type Schema, type SchemaWork, widthOf } from './json-schema-check.ts'

/** Of two bounds, the stricter one is kept: the larger or the smaller number. */
const LARGER = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties', 'minContains']
const SMALLER = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties', 'maxContains']

/** How many members one step merges. */
const MEMBERS_PER_STEP = 5

/** `false` when the two clearly exclude each other. */
export function mergeSchemas(left: unknown, right: unknown, work: SchemaWork): Schema | false {
  if (left === false || right === false) return false
  if (!isRecord(left)) return asRecord(right)
  if (!isRecord(right) || Object.keys(right).length === 0) return left
  if (Object.keys(left).length === 0) return right
  work.steps -= (widthOf(left) + widthOf(right)) / MEMBERS_PER_STEP
  if (work.steps < 0) return false
  const both: Schema = { ...left, ...right }
  for (const [names, choose] of [
    [LARGER, Math.max],
    [SMALLER, Math.min],
  ] as const) {
    for (const name of names) {
      const [one, other] = [left[name], right[name]]
      if (typeof one === 'number' && typeof other === 'number') both[name] = choose(one, other)
    }
  }
  if (!mergeValues(left, right, both)) return false
  mergeMultiples(left, right, both)
  mergeApplied(left, right, both, work)
  mergeArrays(left, right, both, work)
  mergeObjects(left, right, both, work)
  return both
}

/** type, const, enum: what both allow. False when there is nothing. */
function mergeValues(left: Schema, right: Schema, both: Schema): boolean {
  if (left.type !== undefined && right.type !== undefined) {
    const types = typesOf(left).flatMap((type) => {
      if (typesOf(right).includes(type)) return [type]
      if (type === 'integer' && typesOf(right).includes('number')) return ['integer']
      return type === 'number' && typesOf(right).includes('integer') ? ['integer'] : []
    })
    if (types.length === 0) return false
    both.type = types
  }
  if (Array.isArray(left.enum) && Array.isArray(right.enum)) {
    const allowed = new Set(right.enum.map(canonical))
    both.enum = left.enum.filter((value) => allowed.has(canonical(value)))
  }
  return !('const' in left && 'const' in right) || canonical(left.const) === canonical(right.const)
}

export function typesOf(schema: Schema): unknown[] {
  const types = Array.isArray(schema.type) ? schema.type : schema.type === undefined ? [] : [schema.type]
  return schema.nullable === true && types.length > 0 && !types.includes('null') ? [...types, 'null'] : types
}

/** The least common multiple of two integers; otherwise the larger number, and the final check decides. */
function mergeMultiples(left: Schema, right: Schema, both: Schema): void {
  const [one, other] = [left.multipleOf, right.multipleOf]
  if (typeof one !== 'number' || typeof other !== 'number') return
  if (!Number.isInteger(one) || !Number.isInteger(other)) {
    both.multipleOf = Math.max(one, other)
    return
  }
  let [a, b] = [one, other]
  while (b !== 0) [a, b] = [b, a % b]
  both.multipleOf = (one / a) * other
}

/** Combinations are flattened before; of two patterns the later one is kept, and the final check decides. */
function mergeApplied(left: Schema, right: Schema, both: Schema, work: SchemaWork): void {
  if (left.not !== undefined && right.not !== undefined) both.not = { anyOf: [left.not, right.not] }
  if (left.propertyNames !== undefined && right.propertyNames !== undefined) {
    both.propertyNames = intersect(left.propertyNames, right.propertyNames, work)
  }
}

function mergeArrays(left: Schema, right: Schema, both: Schema, work: SchemaWork): void {
  if (left.uniqueItems === true) both.uniqueItems = true
  const one = Array.isArray(left.prefixItems) ? left.prefixItems : []
  const other = Array.isArray(right.prefixItems) ? right.prefixItems : []
  if (one.length || other.length) {
    const longest = one.length >= other.length ? one : other
    both.prefixItems = longest.map((_, at) =>
      intersect(at < one.length ? one[at] : left.items, at < other.length ? other[at] : right.items, work),
    )
  }
  if (isSchema(left.items) && isSchema(right.items)) both.items = intersect(left.items, right.items, work)
}

function mergeObjects(left: Schema, right: Schema, both: Schema, work: SchemaWork): void {
  if (left.required !== undefined || right.required !== undefined) {
    both.required = [...new Set([...listOf(left.required), ...listOf(right.required)])]
  }
  for (const name of ['dependentRequired', 'dependentSchemas', 'patternProperties']) {
    if (isRecord(left[name]) && isRecord(right[name])) both[name] = { ...left[name], ...right[name] }
  }
  const keys = new Set([...keysOf(left.properties), ...keysOf(right.properties)])
  if (keys.size) {
    both.properties = Object.fromEntries(
      [...keys].map((key) => [
        key,
        [...memberSchemas(left, key, work), ...memberSchemas(right, key, work)].reduce(
          (sum: unknown, member) => intersect(sum, member, work),
          true,
        ),
      ]),
    )
  }
  const [one, other] = [left.additionalProperties, right.additionalProperties]
  if (one !== undefined && other !== undefined) both.additionalProperties = intersect(one, other, work)
}

/** Both schemas as an `allOf` that is merged later, so that a recursive schema is not expanded here. */
function intersect(left: unknown, right: unknown, work: SchemaWork): unknown {
  if (left === false || right === false) return false
  if (!isRecord(left)) return right ?? true
  if (!isRecord(right)) return left
  return --work.steps < 0 ? false : { allOf: [left, right] }
}

const keysOf = (value: unknown): string[] => (isRecord(value) ? Object.keys(value) : [])
const isSchema = (value: unknown): boolean => typeof value === 'boolean' || isRecord(value)
