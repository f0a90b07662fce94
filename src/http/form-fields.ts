/** Converts the parts of a form to the fields of a JSON body: text to numbers and objects, files to data URIs. */
import { SNIFF_BYTES, sniff } from '../kit/sniff.ts'
import { GatewayError, invalidValue } from '../spec/error.ts'
import type { FormFields } from '../spec/operation.ts'
import { assertBounded } from './body.ts'
import type { FormFile, FormPart, Posted } from './multipart.ts'

/** `metadata[fal][loop]`, `images[]`: how client libraries write nested fields. */
const NAME = /^([^[\]]+)((?:\[[^[\]]*\])*)$/
/** No option of any provider is nested deeper. */
const DEEPEST = 8

type Fields = { [name: string]: unknown }

/** The JSON body, or the same from the fields of a form. Throws as `fieldsOfForm` does. */
export const bodyOf = (posted: Posted, types: FormFields): unknown =>
  posted.kind === 'json' ? posted.value : fieldsOfForm(posted.parts, types)

/** Throws GatewayError for a field that occurs twice, is a file where none is allowed, or contradicts itself. */
export function fieldsOfForm(parts: FormPart[], types: FormFields): Fields {
  // Without a prototype: names come from the client.
  const fields: Fields = Object.create(null)
  for (const part of parts) {
    const [, name, inner = ''] = NAME.exec(part.name) ?? []
    if (name === undefined || isEmpty(part)) continue
    const steps = inner === '' ? [] : inner.slice(1, -1).split('][')
    const value = readPart(name, part, types)
    if (types.lists?.includes(name)) fields[name] = [...((fields[name] as unknown[] | undefined) ?? []), value]
    else if (steps.length === 0) put(fields, name, { value, at: name })
    else putDeep(fields, [name, ...steps], value)
  }
  return fields
}

/** An empty field, or a file input without a file, counts as absent. */
const isEmpty = ({ value }: FormPart): boolean =>
  typeof value === 'string' ? value === '' : value.bytes.length === 0 && value.filename === ''

function put(into: Fields, name: string, { value, at }: { value: unknown; at: string }): void {
  if (name in into) throw invalidValue(at, `"${at}" occurs in the form more than once.`)
  into[name] = value
}

function putDeep(fields: Fields, path: string[], value: unknown): void {
  const at = `${path[0]}[${path.slice(1).join('][')}]`
  if (path.length > DEEPEST) throw invalidValue(at, `"${at.slice(0, 100)}" is nested deeper than ${DEEPEST} levels.`)
  let into = fields
  for (const step of path.slice(0, -1)) {
    into[step] ??= Object.create(null)
    const next = into[step]
    if (typeof next !== 'object' || next === null) throw invalidValue(at, `"${at}" occurs in the form more than once.`)
    into = next as Fields
  }
  put(into, path.at(-1) ?? '', { value, at })
}

function readPart(name: string, { value, name: at }: FormPart, types: FormFields): unknown {
  if (typeof value !== 'string') {
    if (types.files?.includes(name)) return dataUri(value)
    throw new GatewayError('invalid_type', `"${at}" must be text, not a file.`, { param: at })
  }
  if (at !== name && !types.objects?.includes(name)) return value
  // Decimals as JSON writes them: `Number` alone would take "", " 8 " and "0x8" too.
  if (types.numbers?.includes(name) && /^-?\d+(\.\d+)?$/.test(value)) return Number(value)
  if (types.booleans?.includes(name) && (value === 'true' || value === 'false')) return value === 'true'
  if (types.objects?.includes(name) && at === name) return objectIn(value, at)
  return value
}

function objectIn(text: string, at: string): unknown {
  assertBounded(Buffer.from(text))
  try {
    return JSON.parse(text)
  } catch {
    throw invalidValue(at, `"${at}" must be a JSON object as text, or fields such as "${at}[name]".`)
  }
}

/** The type is sniffed from the bytes; the declared type counts where sniffing fails. */
function dataUri({ bytes, content_type }: FormFile): string {
  const type = sniff(bytes.subarray(0, SNIFF_BYTES)) ?? (content_type || 'application/octet-stream')
  return `data:${type};base64,${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64')}`
}
