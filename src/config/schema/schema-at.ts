/** Finds the schemas that apply to one place of the configuration. */
import { FileConfig } from './schema.ts'

type Schema = {
  type?: string
  const?: unknown
  enum?: unknown[]
  properties?: Record<string, Schema>
  patternProperties?: Record<string, Schema>
  items?: Schema
  anyOf?: Schema[]
}

/** Every alternative there; none for an unknown setting. */
export function schemasAt(path: readonly (string | number)[]): Schema[] {
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
