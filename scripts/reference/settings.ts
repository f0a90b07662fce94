/** Writes the lists of all settings of `gatehouse.yaml`, from the schema that checks the file. */
import { FileConfig } from '../../src/config/schema/schema.ts'
import { isShort, mapOf, membersOf, type Schema, typeOf } from './schema.ts'
import { code, codes, definitions } from './table.ts'

type Section = { path: string; schema: Schema }

/** One heading for each shape of object in the file, in the order of the schema; a shape of several places is there once. */
export function settingsLists(): string {
  const all = sectionsOf({ path: '', schema: FileConfig as unknown as Schema })
  const shortest = new Map<string, string>()
  for (const { path, schema } of all) {
    const known = shortest.get(shapeOf(schema))
    if (known === undefined || depthOf(path) < depthOf(known)) shortest.set(shapeOf(schema), path)
  }
  const pathOf = (schema: Schema) => shortest.get(shapeOf(schema)) ?? ''
  const printed = all
    .filter(({ path, schema }) => path === pathOf(schema))
    .filter(({ path }, at, sections) => sections.findIndex((section) => section.path === path) === at)
  return printed.map((section) => textOf(section, printed, pathOf)).join('\n\n')
}

const shapeOf = (schema: Schema): string => JSON.stringify(membersOf(schema))
const depthOf = (path: string): number => path.split('.').length

function textOf({ path, schema }: Section, printed: Section[], pathOf: (schema: Schema) => string): string {
  const heading = path === '' ? '## Top level' : `## ${code(path)}`
  const about = path !== '' && typeof schema.description === 'string' ? `${schema.description}\n\n` : ''
  const { like, repeated } = mostAlike({ path, schema }, printed)
  const rows = Object.entries(membersOf(schema))
    .filter(([name]) => !repeated.includes(name))
    .flatMap(([name, member]) => rowOf({ path: join(path, name), name, member, pathOf }))
  if (repeated.length > 0) rows.push([codes(repeated), `as ${link(like, code(like))}`, ''])
  return `${heading}\n\n${about}${definitions(rows)}`.trim()
}

const LEAST_REPEATED = 3

/** The earlier section with the most members that are the same in this one. */
function mostAlike({ path, schema }: Section, printed: Section[]): { like: string; repeated: string[] } {
  const earlier = printed.slice(
    0,
    printed.findIndex((section) => section.path === path),
  )
  const repeatedIn = (other: Section) =>
    Object.entries(membersOf(schema))
      .filter(([name, member]) => JSON.stringify(member) === JSON.stringify(membersOf(other.schema)[name]))
      .map(([name]) => name)
  return earlier
    .map((section) => ({ like: section.path, repeated: repeatedIn(section) }))
    .filter(({ repeated }) => repeated.length >= LEAST_REPEATED)
    .reduce((most, one) => (one.repeated.length > most.repeated.length ? one : most), { like: '', repeated: [] })
}

/** A simple default follows the name, as in the file; what is nothing by default does not say so. */
function splitDefault({ description = '', type }: Schema): { fallback: string; meaning: string } {
  const text = String(description)
    .replace(' ${NAME} takes it from the environment.', '')
    .replace(/ Default: (?:none|nothing|nowhere|never|off|no limit|no end)\.$/, '')
  const [whole = '', fallback = ''] = / Default `?([\w./[\]-]+?)`?\.$/.exec(text) ?? []
  if (fallback !== '') return { fallback, meaning: text.slice(0, text.length - whole.length) }
  return { fallback: type === 'boolean' && !text.includes('Default') ? 'false' : '', meaning: text }
}

type Member = { path: string; name: string; member: Schema; pathOf: (schema: Schema) => string }

/** Lists and maps of text are named as in headings. */
const SUFFIXES: Record<string, string> = { list: '[]', 'map to text': '.<name>' }

/** A section of its own has no row: its heading names it. */
function rowOf({ path, name, member, pathOf }: Member): string[][] {
  if (name === '$schema' || member.description === 'Has no effect.') return []
  const { fallback, meaning: about } = splitDefault(member)
  const type = isExplained(member, about) ? '' : shortType(typeOf(member, (object) => link(pathOf(object))))
  const section = isSection(member) ? member : mapOf(member)
  if (!section || !isSection(section))
    return [
      fallback === ''
        ? [code(`${name}${SUFFIXES[type] ?? ''}`), type in SUFFIXES ? '' : type, about]
        : [code(`${name}: ${fallback}`), type === 'boolean' ? '' : type, about],
    ]
  const isHere = objectsOf(path, member).some((object) => object.path === pathOf(section))
  return isHere ? [] : [[code(name), `as ${link(pathOf(section), code(pathOf(section)))}`, about]]
}

/** A meaning that explains each value lists them too. */
const isExplained = ({ enum: values, anyOf }: Schema, about: string): boolean => {
  const all = Array.isArray(values)
    ? values
    : Array.isArray(anyOf)
      ? anyOf.map(({ const: value }: Schema) => value)
      : []
  return all.length > 0 && all.every((value) => typeof value === 'string' && new RegExp(`\\b${value}[:,]`).test(about))
}

/** Text and numbers have no name here: the default or the meaning shows which it is, and `gatehouse check` the bounds. */
const shortType = (type: string): string =>
  type
    .replace(/^(?:text|(?:number|integer)(?: \S+)?)$/, '')
    .replaceAll(/\b(?:number|integer)(?: [^\s,)]*\d[^\s,)]*)?/g, 'number')
    .replace(/^list of text$/, 'list')
    .replaceAll('list of [objects]', '[list]')

const sectionsOf = (section: Section): Section[] => [
  section,
  ...Object.entries(membersOf(section.schema)).flatMap(([name, member]) =>
    objectsOf(join(section.path, name), member).flatMap(sectionsOf),
  ),
]

/** The objects that a setting is, or that its map, list or forms have. */
function objectsOf(path: string, member: Schema): Section[] {
  const map = mapOf(member)
  if (map) return objectsOf(`${path}.<id>`, map)
  if (Array.isArray(member.anyOf)) return (member.anyOf as Schema[]).flatMap((form) => objectsOf(path, form))
  if (member.type === 'array') return objectsOf(`${path}[]`, (member.items ?? {}) as Schema)
  return isSection(member) ? [{ path, schema: member }] : []
}

const join = (path: string, name: string) => (path === '' ? name : `${path}.${name}`)
const link = (path: string, text = 'objects') => `[${text}](#${path.replaceAll(/[^\w-]/g, '')})`

const isSection = (schema: Schema) =>
  schema.properties !== undefined && !isShort(schema) && schema.title !== 'rate limits'
