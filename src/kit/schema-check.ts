/** Checks values by a JSON Schema that somebody else has written: patterns are those of RE2, which no text makes slow. */
import type { XSchema } from 'typebox/schema'
import { isRecord } from './json.ts'

/** Says how a value does not fit, without the value; undefined: it fits. */
export type SchemaCheck = (value: unknown) => string | undefined

/** Members whose members are named by the author of the schema. */
const MAPS: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions', 'dependentSchemas'])
const VALUES: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples'])
const UNSUPPORTED = ['patternProperties', '$dynamicRef', '$recursiveRef']
const MAX_PROBLEMS = 3

/** Throws Error for a schema that is none. */
export function compileSchema(schema: unknown): SchemaCheck {
  // Loaded only where there are schemas.
  const { Compile, Errors, Meta } = require('typebox/schema') as typeof import('typebox/schema')
  const draft = isRecord(schema) && typeof schema.$schema === 'string' ? schema.$schema : undefined
  const meta = Meta[(draft ?? 'https://json-schema.org/draft/2020-12/schema') as keyof typeof Meta]
  if (!meta) throw new Error(`$schema: must be one of ${Object.keys(Meta).join(', ')}`)
  const [isSchema, problems] = Errors(meta as XSchema, schema)
  if (!isSchema) throw new Error(textOf(problems))
  const checked = linear(schema, schema, false) as XSchema
  const compiled = Compile(checked)
  return (value) => (compiled.Check(value) ? undefined : textOf(compiled.Errors(value)[1]))
}

type Problem = { instancePath: string; message: string; params: unknown }

function textOf(problems: readonly Problem[]): string {
  const texts = problems.map(({ instancePath, message }) => `${instancePath || 'the value'} ${message}`)
  return [...new Set(texts)].slice(0, MAX_PROBLEMS).join('; ') || 'the value does not fit'
}

/** The same schema, whose patterns are matched in linear time. */
function linear(schema: unknown, root: unknown, isMap: boolean): unknown {
  if (Array.isArray(schema)) return schema.map((one) => linear(one, root, false))
  if (!isRecord(schema)) return schema
  const out: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(schema)) {
    if (isMap) out[key] = linear(value, root, false)
    else if (UNSUPPORTED.includes(key)) throw new Error(`${key} is not supported`)
    else if (key === '$ref' && !isKnown(value, root)) throw new Error(`$ref: nothing is at ${JSON.stringify(value)}`)
    else if (key === 'pattern' && typeof value === 'string') out['~refine'] = [refinementOf(value)]
    else out[key] = VALUES.has(key) ? value : linear(value, root, MAPS.has(key))
  }
  return out
}

function isKnown(ref: unknown, root: unknown): boolean {
  if (ref === '#') return true
  if (typeof ref !== 'string' || !ref.startsWith('#/')) return false
  const { Pointer } = require('typebox/schema') as typeof import('typebox/schema')
  return Pointer.Get(root, decodeURIComponent(ref.slice(1))) !== undefined
}

function refinementOf(source: string) {
  const { RE2JS } = require('re2js') as typeof import('re2js')
  const pattern = RE2JS.compile(source)
  return {
    check: (value: unknown) => typeof value !== 'string' || pattern.matcher(value).find(),
    error: () => `must match pattern ${source}`,
  }
}
