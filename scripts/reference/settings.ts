/** The tables of all settings of `gatehouse.yaml`, from the schema that checks the file. */

import { FileConfig } from '../../src/config/schema/schema.ts'
import { describedBy, mapOf, membersOf, type Schema, typeOf } from './schema.ts'
import { code, table } from './table.ts'

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

/** A range or a choice, `{ minimum, maximum, default }` or `{ values, default }`, is one setting and no section. */
const RANGE_MEMBERS = ['values', 'minimum', 'maximum', 'default']
const isRange = (schema: Schema) => Object.keys(membersOf(schema)).every((name) => RANGE_MEMBERS.includes(name))
const isSection = (schema: Schema) =>
  schema.properties !== undefined && !isRange(schema) && schema.title !== 'rate limits'
