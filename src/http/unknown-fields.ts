/** Warns of a top-level field of a JSON body that is probably misspelt. */
import type { TSchema } from 'typebox'
import { isRecord } from '../kit/json.ts'
import { nearest } from '../kit/nearest.ts'

/** Names the fields that are probably misspelt, and those that were probably meant. */
export const WARNING_HEADER = 'x-gatehouse-warning'

/** How many unknown fields of one body are compared; a body may have any number of them. */
const MAX_UNKNOWN = 8
/** Names that are worth comparing, and safe in a header. In a shorter name, one wrong letter makes another name. */
const COMPARABLE = /^[A-Za-z][A-Za-z0-9_]{2,39}$/
/** Fields of vendors that resemble a field of the gateway and mean something else. */
const OTHER_MEANING: Readonly<Record<string, string>> = {
  min_tokens: 'max_tokens',
  mode: 'model',
  models: 'model',
  speed: 'seed',
  task: 'mask',
  top_a: 'top_p',
  top_k: 'top_p',
}
/** How many unknown names of one API are remembered: clients send the same ones with each request. */
const MAX_REMEMBERED = 200

/** The top-level fields of one API. */
export type KnownFields = { names: ReadonlySet<string>; list: readonly string[]; meant: Map<string, string | null> }

/** The fields that a schema of requests names, in every spelling that is accepted; undefined: any field is. */
export function fieldsOf(schema: TSchema | undefined): KnownFields | undefined {
  const names = new Set<string>()
  collect(schema, names)
  // APIs with names in camelCase accept snake_case as well.
  for (const name of [...names]) names.add(name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`))
  return names.size === 0 ? undefined : { names, list: [...names], meant: new Map() }
}

function collect(schema: unknown, names: Set<string>): void {
  if (!isRecord(schema)) return
  if (isRecord(schema.properties)) for (const name of Object.keys(schema.properties)) names.add(name)
  for (const members of [schema.anyOf, schema.allOf, schema.oneOf]) {
    if (Array.isArray(members)) for (const member of members) collect(member, names)
  }
}

/** `Unknown field "temprature"; did you mean "temperature"?`, for each such field; undefined for none. */
export function fieldWarning(body: unknown, known: KnownFields): string | undefined {
  if (!isRecord(body)) return undefined
  let warning: string | undefined
  let unknown = 0
  // Without a list of the names: parsed JSON inherits none.
  for (const name in body) {
    if (known.names.has(name)) continue
    if (++unknown > MAX_UNKNOWN) break
    const meant = COMPARABLE.test(name) ? meantBy(name, known) : null
    if (meant === null || meant in body) continue
    const sentence = `Unknown field "${name}"; did you mean "${meant}"?`
    warning = warning === undefined ? sentence : `${warning} ${sentence}`
  }
  return warning
}

function meantBy(name: string, { list, meant }: KnownFields): string | null {
  const remembered = meant.get(name)
  if (remembered !== undefined) return remembered
  const found = nearest(name, list, name.length < 8 ? 1 : 2) ?? null
  const suggestion = found !== null && OTHER_MEANING[name] !== found ? found : null
  if (meant.size < MAX_REMEMBERED) meant.set(name, suggestion)
  return suggestion
}
