/** Parses YAML into a plain value, fills in `${NAME}` and `${file:path}`, and records the line and column of every key and value. */
import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
} from 'yaml'
import type { SecretFile } from '../check/secret-places.ts'
import { interpolate, referencesIn } from './interpolate.ts'
import { MAXIMUM_DEPTH, MAXIMUM_NODES, parseBounded } from './parse-yaml.ts'

export type Path = (string | number)[]
type Place = { line: number; column: number }
type PlacedTrouble = Place & { path: Path; message: string }

export type YamlText = {
  value: unknown
  troubles: PlacedTrouble[]
  /** The position of a value or its key; of the nearest enclosing one if it is missing. */
  placeOf(path: Path, part: 'key' | 'value'): Place
  /** The source text of a string in which a variable was filled in. */
  sourceAt(path: Path): string | undefined
  /** Replaces values that came from the environment by their `${NAME}` references. */
  withoutSecrets(text: string): string
}

type FillOptions = {
  /** Reads a file for a setting; throws an Error where it may not or cannot. Absent: no file can be read. */
  secretAt?: (file: SecretFile) => string
  expansionProblem?: ExpansionCheck
}

/** Why the references of `source` may not be filled in at this place; undefined: they may. */
export type ExpansionCheck = (path: Path, references: string[], source: string) => string | undefined

/** Shorter values (a port, `true`) are not secrets, and replacing them would garble messages. */
const SHORTEST_SECRET = 6

export function readYaml(
  text: string,
  environment: Record<string, string | undefined>,
  options: FillOptions = {},
): YamlText {
  const lines = new LineCounter()
  const parsed = parseBounded(text, lines)
  const place = (offset: number): Place => {
    const { line, col } = lines.linePos(offset)
    return { line: Math.max(1, line), column: Math.max(1, col) }
  }
  if (!('document' in parsed)) return unreadable({ ...place(parsed.offset), path: [], message: TOO_MUCH })
  const { document } = parsed
  const syntax = withoutFollowing(document).map(({ pos: [offset], code, message }) => ({
    ...place(offset),
    path: [],
    message: `${syntaxMessage(code, message)}${quotesHint(text, offset)}`,
  }))
  const walk = createWalk({ document, environment, place, ...options })
  const value = syntax.length > 0 ? undefined : walk.valueAt(document.contents, [], walk.root)
  return {
    value,
    troubles: [...syntax, ...walk.troubles],
    placeOf(path, part) {
      let found: Place | undefined
      let placed: Placed | undefined = walk.root
      for (const step of [undefined, ...path]) {
        if (step !== undefined) placed = placed.members?.get(step)
        if (!placed) return found ?? { line: 1, column: 1 }
        found = placed.key ?? placed.value ?? found
      }
      return placed[part] ?? found ?? { line: 1, column: 1 }
    },
    sourceAt: (path) =>
      path.reduce<Placed | undefined>((placed, step) => placed?.members?.get(step), walk.root)?.source,
    withoutSecrets(text) {
      if (walk.secrets.size === 0) return text
      const forms = new Map<string, string>()
      for (const [value, form] of walk.secrets) forms.set(value, form).set(JSON.stringify(value).slice(1, -1), form)
      // In one pass, the longest first: a shorter value may be the beginning of another, and a form may contain a value.
      const values = [...forms.keys()].sort((a, b) => b.length - a.length)
      const pattern = new RegExp(values.map((value) => RegExp.escape(value)).join('|'), 'g')
      return text.replace(pattern, (value) => forms.get(value) ?? '')
    },
  }
}

/** Longer than any name. Paths contain it once for each value below. */
const LONGEST_KEY = 512
const DUPLICATE = 'duplicate key; each key may appear once'
const TOO_MUCH = 'is nested too deeply or has too many values'
/** More do not help a reader. */
const MOST_WARNINGS = 100

const unreadable = (trouble: PlacedTrouble): YamlText => ({
  value: undefined,
  troubles: [trouble],
  placeOf: () => ({ line: trouble.line, column: trouble.column }),
  sourceAt: () => undefined,
  withoutSecrets: (text) => text,
})

/** What is known of one place. A tree, since paths as text would take memory in proportion to their length at each value. */
type Placed = { key?: Place; value?: Place; source?: string; members?: Map<string | number, Placed> }

function memberOf(placed: Placed, step: string | number): Placed {
  placed.members ??= new Map()
  const known = placed.members.get(step)
  if (known) return known
  const member: Placed = {}
  placed.members.set(step, member)
  return member
}

type ScalarParts = { path: Path; placed: Placed; report(message: string): void }

type WalkParts = FillOptions & {
  document: Document.Parsed
  environment: Record<string, string | undefined>
  place(offset: number): Place
}

function createWalk({ document, environment, place, secretAt, expansionProblem }: WalkParts) {
  const troubles: PlacedTrouble[] = []
  const root: Placed = {}
  const secrets = new Map<string, string>()
  const targets = aliasTargets(document)
  let visited = 0
  let depth = 0
  let tooMuch = false

  /** The offset at which a node starts; for an alias, where it is used. */
  const startOf = (node: unknown): number => {
    const range = (node as { range?: [number, number, number] | null } | null)?.range
    return range?.[0] ?? 0
  }

  function valueAt(node: unknown, path: Path, placed: Placed): unknown {
    const at = place(startOf(node))
    const report = (message: string) => void troubles.push({ ...at, path, message })
    placed.value = at
    visited++
    if (tooMuch || visited > MAXIMUM_NODES || depth > MAXIMUM_DEPTH) {
      // Reported once for the whole file, so that the values that are skipped now cause no further errors.
      if (!tooMuch) troubles.push({ ...at, path: [], message: TOO_MUCH })
      tooMuch = true
      return undefined
    }
    if (isAlias(node)) {
      const target = targets.get(node)
      if (!target) return report(`the alias *${node.source} has no anchor before it`)
      return inside(() => valueAt(target, path, placed))
    }
    if (isScalar(node)) return scalarOf(node.value, { path, placed, report })
    if (isSeq(node)) {
      return inside(() => node.items.map((item, index) => valueAt(item, [...path, index], memberOf(placed, index))))
    }
    if (isMap(node)) return inside(() => mappingOf(node.items, path, placed))
    return null
  }

  function inside<T>(work: () => T): T {
    depth++
    const result = work()
    depth--
    return result
  }

  function scalarOf(value: unknown, { path, placed, report }: ScalarParts): unknown {
    if (typeof value === 'number' && !Number.isFinite(value)) return report('must be a finite number')
    if (typeof value !== 'string' || !value.includes('${')) return value
    const references = referencesIn(value)
    const problem = references.length > 0 ? expansionProblem?.(path, references, value) : undefined
    if (problem !== undefined) return report(problem)
    const filled = interpolate(value, environment, secretAt && ((file) => secretAt({ path, file })))
    for (const trouble of filled.troubles) report(trouble)
    if (filled.changed) placed.source = value
    if (filled.changed && filled.text.length >= SHORTEST_SECRET) secrets.set(filled.text, value)
    return filled.troubles.length > 0 ? undefined : filled.text
  }

  /** `<<: *defaults` merges the members of another mapping; the mapping's own members win. */
  function mappingOf(pairs: Pair[], path: Path, placed: Placed): Record<string, unknown> {
    const out: Record<string, unknown> = {}
    const seen = new Set<string>()
    for (const pair of pairs) {
      if (isMergeKey(pair)) define(out, mergedOf(pair.value, path, placed))
    }
    for (const pair of pairs) {
      if (isMergeKey(pair)) continue
      const at = place(startOf(pair.key))
      if (!isScalar(pair.key) || pair.key.value === null) {
        troubles.push({ ...at, path, message: 'a key must be plain text' })
        continue
      }
      const name = String(pair.key.value)
      if (name.length > LONGEST_KEY) {
        troubles.push({ ...at, path: [], message: `a key has more than ${LONGEST_KEY} characters` })
        continue
      }
      if (seen.has(name)) troubles.push({ ...at, path: [], message: DUPLICATE })
      seen.add(name)
      const member = memberOf(placed, name)
      member.key = at
      const value = pair.value === null ? null : valueAt(pair.value, [...path, name], member)
      define(out, { [name]: value })
    }
    return out
  }

  function mergedOf(node: unknown, path: Path, placed: Placed): Record<string, unknown> {
    const target = isAlias(node) ? targets.get(node) : node
    if (isMap(target)) return inside(() => valueAt(target, path, placed)) as Record<string, unknown>
    if (isSeq(target)) {
      // The first of several mappings wins.
      const merged: Record<string, unknown> = {}
      for (const item of target.items.toReversed()) define(merged, mergedOf(item, path, placed))
      return merged
    }
    troubles.push({ ...place(startOf(node)), path, message: '"<<" must be a mapping or a list of mappings' })
    return {}
  }

  return { valueAt, troubles, root, secrets }
}

/** The node of each alias: the last node before it with its anchor. The library searches the document for each alias. */
function aliasTargets(document: Document.Parsed): Map<Alias, Node> {
  const anchors = new Map<string, Node>()
  const targets = new Map<Alias, Node>()
  /** `parseBounded` limits its depth. */
  function search(node: unknown): void {
    if (isPair(node)) {
      search(node.key)
      search(node.value)
    } else if (isAlias(node)) {
      const target = anchors.get(node.source)
      if (target) targets.set(node, target)
    } else if (isNode(node)) {
      if ('anchor' in node && node.anchor) anchors.set(node.anchor, node)
      if (isMap(node) || isSeq(node)) node.items.forEach(search)
    }
  }
  search(document.contents)
  return targets
}

/** Defined rather than assigned, so that a key named __proto__ is a key. */
function define(out: Record<string, unknown>, members: Record<string, unknown> | undefined): void {
  for (const [name, value] of Object.entries(members ?? {})) {
    Object.defineProperty(out, name, { value, enumerable: true, writable: true, configurable: true })
  }
}

const isMergeKey = (pair: Pair): boolean => isScalar(pair.key) && pair.key.value === '<<'

/** The first error alone: the others are mostly of the rest of the file, which is read wrongly after it. */
const withoutFollowing = ({ errors, warnings }: Document.Parsed) =>
  errors.length > 0 ? errors.toSorted((a, b) => a.pos[0] - b.pos[0]).slice(0, 1) : warnings.slice(0, MOST_WARNINGS)

/** Inside braces and brackets, the "{" of a reference without quotes begins a mapping. */
const quotesHint = (text: string, offset: number): string =>
  text.startsWith('${', offset) || text.startsWith('${', offset - 1)
    ? '; a value with "${" needs quotes around it here: "${NAME}"'
    : ''

/** The library's message, with advice for programmers replaced by advice for operators. */
function syntaxMessage(code: string, message: string): string {
  if (code === 'MULTIPLE_DOCS') return 'a second document starts here; the file must have one'
  if (code === 'TAG_RESOLVE_FAILED') return `${message}; tags are not supported`
  return `not valid YAML: ${message}`
}

/** Of a file of another program: `${` has no meaning there. The message repeats no value. */
export function parseYamlPlainly(text: string): { value: unknown; trouble?: string } {
  const { value, troubles } = readYaml(
    text.replaceAll('${', () => '$${'),
    {},
  )
  const [first] = troubles
  if (first === undefined) return { value }
  const { line, column, message } = first
  const known = message === TOO_MUCH || message === DUPLICATE || message.startsWith('not valid YAML')
  return { value, trouble: `line ${line}, column ${column}: ${known ? message : 'not valid here'}` }
}
