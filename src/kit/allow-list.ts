/** Allow-lists of JSON: which members and which types a value may have, at every depth. */
import type { JsonRecord } from './json.ts'

/**
 * `value`: text, a number or a boolean, or a list of them. `data`: anything; the reader takes it as data. A list of what
 * is allowed is allowed. `null` is allowed everywhere.
 */
export type Shape = 'value' | 'data' | TextShape | ObjectShape | (() => ObjectShape)

/** A text of which not every value is allowed. */
export type TextShape = { accepts(text: string): boolean }

export type ObjectShape = {
  members?: Readonly<Record<string, Shape>>
  /** What every member is whose name is not in `members`; absent: no other member is allowed. */
  others?: Shape
  /** What its `type` may be. A date at its end is written `*`: `bash_*` is `bash_20250124`. */
  types?: readonly string[]
  /** Members that only objects of one type have; of those without a type under ''. */
  by_type?: Readonly<Record<string, Readonly<Record<string, Shape>>>>
  /** A plain value in the place of the object is not allowed. */
  only_objects?: true
}

/** What is outside of the list. */
export type Outside = {
  /** `tools[0].parameters`. */
  path: string
  /** The same as an operator writes it: without places in lists, and with the type where that is what is outside. */
  entry: string
  /** The type that is not allowed; absent: the member is not. */
  type?: string
  /** What is allowed in its place. */
  allowed: string[]
}

export type AllowList = {
  shape: ObjectShape
  /** Entries that are allowed besides, each with everything within. */
  besides?: readonly string[]
  /** The one spelling of a member's name, where readers take several. */
  spelling?: (name: string) => string
}

/** Deeper than any known request; bounds the recursion. */
const MAX_DEPTH = 100
/** So much of a type is worth repeating. */
const MAX_TYPE_LENGTH = 100
const DATE = /_(\d{8}|\d{4}_\d{2}_\d{2})$/ // `_20250124`, `_2025_03_11`

/** The first part of a value that is not on the list; undefined where all of it is. `at`: where the value stands. */
export function outsideOf(value: unknown, { shape: whole, besides = [], spelling }: AllowList, at = '') {
  const hasBesides = besides.length > 0

  /** The path is built only once something is found, and `entry` only where there are entries to compare it with. */
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

/** As lists name it; '' where there is none; undefined for one that is not among the types. */
function typeOf(type: unknown, types: readonly string[] | undefined): string | undefined {
  if (type === undefined || type === null) return ''
  if (typeof type !== 'string') return types ? undefined : ''
  if (!types || types.includes(type)) return type
  const dated = type.replace(DATE, '_*')
  return dated !== type && types.includes(dated) ? dated : undefined
}

/** Members that are all of one shape. */
export const all = (shape: Shape, ...names: string[]): Record<string, Shape> =>
  Object.fromEntries(names.map((name) => [name, shape]))

/** An object whose members are plain values. */
export const plain = (...names: string[]): ObjectShape => ({ members: all('value', ...names) })
