/** Finds the schemas that apply to one place of the configuration, and the places that have a mark. */
import { hasMark, type Mark, mark } from '../../spec/marks.ts'
import { isListed } from '../check/path-pattern.ts'
import { FileConfig } from './schema.ts'

export type Schema = {
  type?: string
  const?: unknown
  enum?: unknown[]
  properties?: Record<string, Schema>
  patternProperties?: Record<string, Schema>
  items?: Schema
  anyOf?: Schema[]
}

type Path = readonly (string | number)[]

/** Every alternative there; none for an unknown setting. */
export function schemasAt(path: Path): Schema[] {
  let schemas: Schema[] = [FileConfig as Schema]
  for (const step of path) schemas = schemas.flatMap(alternatives).flatMap((schema) => memberOf(schema, step))
  return schemas.flatMap(alternatives)
}

const alternatives = (schema: Schema): Schema[] => schema.anyOf?.flatMap(alternatives) ?? [schema]

function memberOf(schema: Schema, step: string | number): Schema[] {
  if (typeof step === 'number') return schema.items ? [schema.items] : []
  const own = schema.properties && Object.hasOwn(schema.properties, step) ? schema.properties[step] : undefined
  return own ? [own] : Object.values(schema.patternProperties ?? {}).slice(0, 1)
}

/** Settings that no file has. */
const OUTSIDE: Partial<Record<Mark, string[]>> = {
  shown: ['file', 'log_level'],
  origin: ['store_url'],
  restart: ['store_url', 'log_level', 'admin_token'],
}

/** The patterns of the single settings with each mark: `*` is any one step, and `**` at the end one or more. */
const PLACES = new Map(
  (Object.keys(mark) as Mark[]).map((name) => [
    name,
    [...(OUTSIDE[name] ?? []), ...markedBelow(FileConfig as Schema, name)],
  ]),
)

export const placesMarked = (name: Mark): readonly string[] => PLACES.get(name) ?? []
export const isMarked = (name: Mark, path: Path): boolean => isListed(placesMarked(name), path)

function markedBelow(schema: Schema, name: Mark, path: string[] = [], isAbove = false): string[] {
  const isOwn = isAbove || hasMark(schema, name)
  const below = (inner: Schema, ...step: string[]) => markedBelow(inner, name, [...path, ...step], isOwn)
  const { anyOf = [], properties = {}, patternProperties = {}, items } = schema
  const free = [...Object.values(patternProperties), ...(items ? [items] : [])]
  const all = [
    ...anyOf.flatMap((one) => below(one)),
    ...Object.entries(properties).flatMap(([step, one]) => below(one, step)),
    ...free.flatMap((one) => below(one, Object.keys(one).length === 0 ? '**' : '*')),
  ]
  const isLeaf = anyOf.length + Object.keys(properties).length + free.length === 0
  return isLeaf ? (isOwn ? [path.join('.')] : []) : [...new Set(all)]
}
