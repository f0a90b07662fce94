/** Allow-lists for JSON: the members and types that a value may have, at every depth. */
import type { JsonRecord } from './json.ts'

/**
 * `value`: text, a number or a boolean, or a list of them. `data`: anything; the reader takes it as data. A list of what
 * is allowed is allowed. `null` is allowed everywhere.
 */
export type Shape = 'value' | 'data' | TextShape | ObjectShape | (() => ObjectShape)

/** A string with a limited set of values. */
export type TextShape = { accepts(text: string): boolean }

export type ObjectShape = {
  members?: Readonly<Record<string, Shape>>
  /** The rule for members that are not in `members`; absent: no other member is allowed. */
  others?: Shape
  /** The allowed values of `type`. `*` stands for a date suffix: `bash_*` matches `bash_20250124`. */
  types?: readonly string[]
  /** Members of the objects of one type only; '' is for objects without a type. */
  by_type?: Readonly<Record<string, Readonly<Record<string, Shape>>>>
  /** A plain value instead of the object is not allowed. */
  only_objects?: true
}

/** The part of a value that is not allowed. */
export type Outside = {
  /** `tools[0].parameters`. */
  path: string
  /** The same as an entry of the configuration: without list indexes, and with the type if the type is not allowed. */
  entry: string
  /** The type that is not allowed; absent: the member is not. */
  type?: string
  allowed: string[]
}

export type AllowList = {
  shape: ObjectShape
  /** Additional allowed entries, each with all of its content. */
  besides?: readonly string[]
  /** The canonical spelling of a member's name, if readers accept several. */
  spelling?: (name: string) => string
}

/** Deeper than any known request; limits the recursion. */
const MAX_DEPTH = 100
/** The longest part of a type that a message repeats. */
const MAX_TYPE_LENGTH = 100
const DATE = /_(\d{8}|\d{4}_\d{2}_\d{2})$/ // `_20250124`, `_2025_03_11`

/** The first part of a value that is not allowed; undefined if all of it is. `at`: the path of the value. */
export function outsideOf(value: unknown, { shape: whole, besides = [], spelling }: AllowList, at = '') {
  const hasBesides = besides.length > 0

  /** Builds the path only when something is found, and `entry` only when there are entries to compare. */
  function look(one: unknown, shape: Shape, entry: string, depth: number): Found | undefined {
    if (shape === 'data' || one === null || one === undefined) return undefined
    if (typeof shape === 'function') return look(one, shape(), entry, depth)
    if (depth > MAX_DEPTH) return { places: [], allowed: [] }
    if (Array.isArray(one)) return inList(one, shape, entry, depth)
    const isObject = typeof one === 'object'
    if (shape === 'value') return isObject ? { places: [], allowed: [] } : undefined
    if ('accepts' in shape)
      return typeof one === 'string' && shape.accepts(one) ? undefined : { places: [], allowed: [] }
    if (isObject) return inObject(one as JsonRecord, shape, entry, depth)
    return shape.only_objects ? { places: [], allowed: Object.keys(shape.members ?? {}) } : undefined
  }

  function inList(list: unknown[], shape: Shape, entry: string, depth: number): Found | undefined {
    for (let index = 0; index < list.length; index++) {
      const found = look(list[index], shape, entry, depth + 1)
      if (found) return { ...found, places: [index, ...found.places] }
    }
    return undefined
  }

  function inObject(object: JsonRecord, shape: ObjectShape, entry: string, depth: number): Found | undefined {
    const { members = NONE, others, types, by_type } = shape
    const type = typeOf(object.type, types)
    if (type === undefined) {
      const named = typeof object.type === 'string' ? object.type : 'type'
      if (hasBesides && besides.includes(joined(entry, named))) return undefined
      return { places: ['type'], type: named, allowed: [...(types ?? [])] }
    }
    const ofType = own(by_type, type)
    for (const name of Object.keys(object)) {
      const below = hasBesides ? joined(entry, name) : ''
      if (object[name] === null || (hasBesides && besides.includes(below))) continue
      const known = spelling ? spelling(name) : name
      const inner = own(members, known) ?? own(ofType, known) ?? others
      const found = inner
        ? look(object[name], inner, below, depth + 1)
        : { places: [], allowed: Object.keys({ ...members, ...ofType }) }
      if (found) return { ...found, places: [name, ...found.places] }
    }
    return undefined
  }

  const found = look(value, whole, at, 0)
  return found && toOutside(found, at)
}

/** Member names and list indexes, outermost first. */
type Found = { places: (string | number)[]; type?: string; allowed: string[] }

function toOutside({ places, type, allowed }: Found, at: string): Outside {
  const path = places.reduce<string>(
    (before, place) => (typeof place === 'number' ? `${before}[${place}]` : joined(before, place)),
    at,
  )
  const names = places.filter((place) => typeof place === 'string')
  const entry = [...(type === undefined ? names : [...names.slice(0, -1), type])].reduce(joined, at)
  return { path, entry, allowed, ...(type === undefined ? {} : { type: type.slice(0, MAX_TYPE_LENGTH) }) }
}

const joined = (before: string, name: string): string => (before === '' ? name : `${before}.${name}`)

const NONE: Readonly<Record<string, never>> = {}

const own = <Value>(record: Readonly<Record<string, Value>> = NONE, name: string): Value | undefined =>
  Object.hasOwn(record, name) ? record[name] : undefined

/** The type's name in the list; '' without a type; undefined if the type is not listed. */
function typeOf(type: unknown, types: readonly string[] | undefined): string | undefined {
  if (type === undefined || type === null) return ''
  if (typeof type !== 'string') return types ? undefined : ''
  if (!types || types.includes(type)) return type
  const dated = type.replace(DATE, '_*')
  return dated !== type && types.includes(dated) ? dated : undefined
}

/** A map whose members all have one shape. */
export const all = (shape: Shape, ...names: string[]): Record<string, Shape> =>
  Object.fromEntries(names.map((name) => [name, shape]))

/** An object whose members are plain values. */
export const plain = (...names: string[]): ObjectShape => ({ members: all('value', ...names) })
