/**
 * Normalises the spelling of a client's body: `system_instruction` becomes `systemInstruction`, and `null` members
 * are removed.
 */
import { camelCase } from '../../../kit/camel-case.ts'
import { GatewayError } from '../../../spec/error.ts'

/**
 * A body holds contents, which hold parts, which hold data. Schemas are deeper, but nobody writes 64 levels by hand.
 */
const MAX_DEPTH = 64

/** Members whose value is the client's own data. */
const OWN_DATA = new Set([
  'args',
  'default',
  'example',
  'labels',
  'partMetadata',
  'parametersJsonSchema',
  'response',
  'responseJsonSchema',
])
/** Members whose names are the client's own. */
const OWN_NAMES = new Set(['$defs', 'definitions', 'properties'])
/** Members that are lists. A single value may stand for a list of one. */
const LISTS = new Set([
  'allowedFunctionNames',
  'contents',
  'functionDeclarations',
  'parts',
  'responseModalities',
  'stopSequences',
  'tools',
])

/** Returns the same value if nothing changes. Copies only what changes. */
export const normaliseNames = (body: unknown): unknown => normalise(body, { depth: 0, isOwn: false })

type Place = { depth: number; isOwn: boolean }

function normalise(value: unknown, { depth, isOwn }: Place): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (depth > MAX_DEPTH) throw new GatewayError('invalid_value', `The body is nested deeper than ${MAX_DEPTH} levels.`)
  if (Array.isArray(value)) return normaliseList(value, depth)
  let copy: Record<string, unknown> | undefined
  const members = value as Record<string, unknown>
  for (const name of Object.keys(members)) {
    const member = members[name]
    // Most members of a hostile body are of this kind, and none of them can change.
    if (typeof member !== 'object' && !name.includes('_') && (isOwn || !LISTS.has(name))) continue
    const known = isOwn ? name : camelCase(name)
    const isData = !isOwn && OWN_DATA.has(known)
    const inner = isData ? member : normalise(member, { depth: depth + 1, isOwn: !isOwn && OWN_NAMES.has(known) })
    const cleaned = !isOwn && LISTS.has(known) && isAlone(inner) ? [inner] : inner
    if (known === name && cleaned === member && member !== null) continue
    copy ??= { ...value }
    delete copy[name]
    // Assigning this key would replace the object's prototype.
    if (member !== null && known !== '__proto__') copy[known] = cleaned
  }
  return copy ?? value
}

function normaliseList(list: unknown[], depth: number): unknown[] {
  let copy: unknown[] | undefined
  for (const [index, item] of list.entries()) {
    const cleaned = normalise(item, { depth: depth + 1, isOwn: false })
    if (cleaned === item) continue
    copy ??= [...list]
    copy[index] = cleaned
  }
  return copy ?? list
}

const isAlone = (value: unknown): boolean =>
  typeof value === 'string' || (typeof value === 'object' && value !== null && !Array.isArray(value))
