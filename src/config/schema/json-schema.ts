/** The JSON Schema of `gatehouse.yaml` for editors, from the schema that validates the file. */
import { FileConfig } from './schema.ts'

/** Draft 7: the version that the YAML support of editors handles best; nothing newer is used. */
export function configJsonSchema(): Record<string, unknown> {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    ...(editorForm(FileConfig) as Record<string, unknown>),
    description: 'The configuration of Gatehouse. Everything in it is optional.',
  }
}

/** As text; short lists are on one line, as the project's formatter writes them. */
export function configJsonSchemaText(): string {
  const text = JSON.stringify(configJsonSchema(), null, 2)
  const onOneLine = text.replace(/^( *(?:"[^"]+": )?)\[\n([^[\]{}]*)\n *\](,?)$/gm, (whole, before, inner, comma) => {
    const line = `${before}[${inner.trim().replace(/\n\s*/g, ' ')}]${comma}`
    return line.length <= LINE_WIDTH ? line : whole
  })
  return `${onOneLine}\n`
}

const LINE_WIDTH = 120

/** Numbers and booleans may also be `${NAME}` references; sections and entries may be empty. */
const REFERENCE = { type: 'string', pattern: '\\$\\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\\}' }

function editorForm(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(editorForm)
  if (typeof schema !== 'object' || schema === null) return schema
  const copy = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, editorForm(value)]))
  if (copy.type !== 'integer' && copy.type !== 'number' && copy.type !== 'boolean') return copy
  const { description, ...rest } = copy
  return { ...(description === undefined ? {} : { description }), anyOf: [rest, REFERENCE] }
}
