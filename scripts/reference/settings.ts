/** The tables of all settings of `gatehouse.yaml`, from the schema that checks the file. */

import { PROVIDER_KINDS } from '../../src/config/provider-kinds.ts'
import { FileConfig } from '../../src/config/schema.ts'
import { isRecord } from '../../src/kit/json.ts'
import { code, codes, table } from './table.ts'

type Schema = { [name: string]: unknown }
type Section = { path: string; schema: Schema }

/** One heading for each object of the file, in the order of the schema. */
export function settingsTables(): string {
  return sectionsOf({ path: '', schema: FileConfig as unknown as Schema })
    .map(({ path, schema }) => {
      const heading = path === '' ? '## Top level' : `## ${code(path)}`
      const about = path !== '' && typeof schema.description === 'string' ? `${schema.description}\n\n` : ''
      return `${heading}\n\n${about}${table(['setting', 'type', 'default', 'meaning'], rowsOf(path, schema))}`
    })
    .join('\n\n')
}

function sectionsOf(section: Section): Section[] {
  const inner = Object.entries(membersOf(section.schema)).flatMap(([name, schema]) => {
    const path = section.path === '' ? name : `${section.path}.${name}`
    const map = mapOf(schema)
    if (map && isSection(map)) return sectionsOf({ path: `${path}.<id>`, schema: map })
    return isSection(schema) ? sectionsOf({ path, schema }) : []
  })
  return [section, ...inner]
}

function rowsOf(path: string, schema: Schema): string[][] {
  return Object.entries(membersOf(schema))
    .filter(([name]) => name !== '$schema')
    .map(([name, member]) => {
      const { meaning, fallback } = describedBy(member)
      const at = path === '' ? name : `${path}.${name}`
      if (isSection(member)) return [code(name), 'section', '', `See ${link(at)}.`]
      if (isSection(mapOf(member) ?? {})) return [code(name), 'section', '', `By id: see ${link(`${at}.<id>`)}.`]
      return [code(name), typeOf(member), fallback, meaning]
    })
}

const link = (path: string) => `[${code(path)}](#${path.replaceAll(/[.<>]/g, '')})`

const membersOf = (schema: Schema): Record<string, Schema> => (schema.properties ?? {}) as Record<string, Schema>

/** The schema of the values of a map from free names. */
function mapOf({ patternProperties, additionalProperties }: Schema): Schema | undefined {
  if (isRecord(patternProperties)) return Object.values(patternProperties)[0] as Schema
  return isRecord(additionalProperties) ? additionalProperties : undefined
}

/** A range or a choice, `{ minimum, maximum, default }` or `{ values, default }`, is one setting and no section. */
const RANGE_MEMBERS = ['values', 'minimum', 'maximum', 'default']
const isRange = (schema: Schema) => Object.keys(membersOf(schema)).every((name) => RANGE_MEMBERS.includes(name))
const isSection = (schema: Schema) => schema.properties !== undefined && !isRange(schema)

function typeOf(schema: Schema): string {
  if (Array.isArray(schema.anyOf)) return schema.anyOf.map(typeOf).join(' or ')
  if (Array.isArray(schema.enum)) return namesOf(schema.enum.map(String))
  if (schema.const !== undefined) return code(String(schema.const))
  if (schema.type === 'array') return `list of ${typeOf((schema.items ?? {}) as Schema)}`
  if (schema.type === 'object')
    return schema.properties ? `object: ${codes(Object.keys(membersOf(schema)))}` : mapType(schema)
  if (schema.type === 'string')
    return `text${typeof schema.pattern === 'string' ? ` matching ${code(schema.pattern)}` : ''}`
  if (schema.type === undefined) return 'any'
  return `${schema.type}${rangeOf(schema)}`
}

const namesOf = (names: string[]): string =>
  names.length === PROVIDER_KINDS.length ? '[a kind](provider-kinds.md)' : codes(names)

function mapType(schema: Schema): string {
  const values = mapOf(schema)
  return values && Object.keys(values).length > 0 ? `map to ${typeOf(values)}` : 'map'
}

function rangeOf({ minimum, exclusiveMinimum, maximum }: Schema): string {
  const low =
    typeof minimum === 'number'
      ? `from ${minimum}`
      : typeof exclusiveMinimum === 'number'
        ? `above ${exclusiveMinimum}`
        : ''
  const high = typeof maximum === 'number' ? `to ${maximum}` : ''
  return low || high ? ` ${[low, high].filter(Boolean).join(' ')}` : ''
}

/** A description ends with its default: `... Default 10.` */
function describedBy({ description }: Schema): { meaning: string; fallback: string } {
  if (typeof description !== 'string') return { meaning: '', fallback: '' }
  const [, meaning = '', fallback = ''] = /^(.*?)\s*\bDefault:? ((?:(?!\. ).)*?)\.?$/s.exec(description) ?? []
  return fallback ? { meaning, fallback: fallback.replaceAll('<', '\\<') } : { meaning: description, fallback: '' }
}
