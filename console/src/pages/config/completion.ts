/** Suggests keys and values of the configuration at the cursor, from its JSON schema and the names in the text. */
import { pathText, readYaml, type Step } from './yaml-place.ts'

export type Schema = {
  type?: string | string[]
  description?: string
  properties?: Record<string, Schema>
  patternProperties?: Record<string, Schema>
  additionalProperties?: boolean | Schema
  items?: Schema | Schema[]
  anyOf?: Schema[]
  enum?: unknown[]
  const?: unknown
}
export type Suggestion = { label: string; insert: string; note: string }
export type Completion = { from: number; to: number; typed: string; suggestions: Suggestion[] }

const MOST = 60
/** Keys whose value is a name of another section. */
const NAMES_OF: Record<string, string> = {
  provider: 'providers',
  model: 'models',
  fallbacks: 'models',
  project: 'projects',
}

/** Undefined where nothing can be typed, such as in a comment, or nothing is known. */
export function completionAt(schema: Schema, text: string, cursor: number): Completion | undefined {
  const { place, keys } = readYaml(text, cursor)
  if (!place) return undefined
  const { path, accepts, from, to, column, hasColon } = place
  const typed = text.slice(from, cursor)
  const nodes = path.reduce((found, step) => found.flatMap((one) => childrenOf(one, step)), formsOf(schema))
  const present = keys.get(pathText(path))
  const suggestions: Suggestion[] = []
  if (accepts !== 'value')
    for (const [key, member] of new Map(nodes.flatMap(({ properties = {} }) => Object.entries(properties)))) {
      if (present?.has(key)) continue
      suggestions.push({ label: key, insert: hasColon ? key : key + endOf(member, column), note: noteOf(member) })
    }
  if (accepts !== 'key') for (const value of valuesOf(nodes, path, keys)) suggestions.push(value)
  const wanted = typed.toLowerCase()
  const fits = suggestions.filter(({ label }) => label.toLowerCase().includes(wanted))
  const isFirst = ({ label }: Suggestion) => label.toLowerCase().startsWith(wanted)
  const ordered = [...fits.filter(isFirst), ...fits.filter((one) => !isFirst(one))].slice(0, MOST)
  return ordered.length === 0 ? undefined : { from, to, typed, suggestions: ordered }
}

function valuesOf(nodes: Schema[], path: readonly Step[], keys: Map<string, Set<string>>): Suggestion[] {
  const values = nodes.flatMap((node) => {
    if (node.enum) return node.enum
    if (node.const !== undefined) return [node.const]
    return node.type === 'boolean' ? [true, false] : []
  })
  const section = NAMES_OF[String(path.findLast((step) => typeof step === 'string'))]
  // The model of a target is the provider's, which is not known here.
  const isName = section !== undefined && !path.includes('targets') ? true : section === 'providers'
  const names =
    isName && nodes.some(({ type }) => type === 'string') ? [...(keys.get(pathText([section as string])) ?? [])] : []
  const note = noteOf(nodes.find(({ description }) => description) ?? {})
  return [...new Set([...values.map(String), ...names])].map((label) => ({ label, insert: scalarOf(label), note }))
}

/** A text that YAML would read as something else is quoted. */
const scalarOf = (label: string): string =>
  /^[\w./-][\w./ -]*(?::[\w./-]+)*$/.test(label) ? label : JSON.stringify(label)

/** A mapping goes on in the next line, outside of braces. */
function endOf(member: Schema, column: number | undefined): string {
  const forms = formsOf(member)
  const isMapping =
    forms.length > 0 && forms.every(({ type, properties, items }) => type === 'object' || properties || items)
  return isMapping && column !== undefined ? `:\n${' '.repeat(column + 2)}` : ': '
}

/** A schema without its alternatives. */
const formsOf = (schema: Schema): Schema[] =>
  schema.anyOf
    ? schema.anyOf.flatMap((form) =>
        formsOf({ ...(schema.description && { description: schema.description }), ...form }),
      )
    : [schema]

function childrenOf(schema: Schema, step: Step): Schema[] {
  if (typeof step === 'number') {
    const item = Array.isArray(schema.items) ? schema.items[step] : schema.items
    return item ? formsOf(item) : []
  }
  const own = schema.properties && Object.hasOwn(schema.properties, step) ? schema.properties[step] : undefined
  const pattern = Object.entries(schema.patternProperties ?? {}).find(([source]) => matches(source, step))?.[1]
  const other = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined
  const member = own ?? pattern ?? other
  return member ? formsOf(member) : []
}

function matches(source: string, name: string): boolean {
  try {
    return new RegExp(source, 'u').test(name)
  } catch {
    return true
  }
}

function noteOf(schema: Schema): string {
  if (schema.description) return schema.description
  return formsOf(schema).find(({ description }) => description)?.description ?? ''
}
