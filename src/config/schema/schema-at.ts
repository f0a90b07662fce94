/** Finds the schemas that apply to one place of the configuration, and the places that have a mark. */
import { type Mark, mark, marksOf } from '../../spec/marks.ts'
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

/** Of members of any name, or of items: of any depth where their schema says nothing of them. */
const anyStepOf = (schema: object | undefined): string => (Object.keys(schema ?? {}).length === 0 ? '**' : '*')

/** The patterns of the single settings with each mark: `*` is any one step, and `**` at the end one or more. */
const PLACES = collectPlaces()

export const placesMarked = (name: Mark): readonly string[] => PLACES.get(name) ?? []
export const isMarked = (name: Mark, path: Path): boolean => isListed(placesMarked(name), path)

/** One walk for all marks: every start makes it. */
function collectPlaces(): Map<Mark, readonly string[]> {
  const places = new Map<Mark, Set<string>>()
  for (const name of Object.keys(mark) as Mark[]) places.set(name, new Set(OUTSIDE[name]))

  function walk(schema: Schema, path: string, above: readonly Mark[]): void {
    const marks = [...above, ...marksOf(schema)]
    const { anyOf = [], properties = {}, patternProperties = {}, items } = schema
    let isSingle = true
    const below = (inner: Schema, step?: string) => {
      isSingle = false
      walk(inner, step === undefined ? path : path === '' ? step : `${path}.${step}`, marks)
    }
    for (const one of anyOf) below(one)
    for (const step in properties) below(properties[step] as Schema, step)
    for (const name in patternProperties) below(patternProperties[name] as Schema, anyStepOf(patternProperties[name]))
    if (items) below(items, anyStepOf(items))
    if (isSingle) for (const name of marks) places.get(name)?.add(path)
  }

  walk(FileConfig as Schema, '', [])
  return new Map([...places].map(([name, found]) => [name, [...found]]))
}
