/** Parses YAML into a plain value, fills in `${NAME}` and `${file:path}`, and records the line and column of every key and value. */
import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  visit,
} from 'yaml'
import { interpolate, referencesIn } from './interpolate.ts'
import type { SecretFile } from './secret-places.ts'

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

/** Far above any real file; prevents a few lines of nested aliases from expanding to gigabytes. */
const MAXIMUM_NODES = 100_000
/** Shorter values (a port, `true`) are not secrets, and replacing them would garble messages. */
const SHORTEST_SECRET = 6
/** An alias inside its own anchor would recurse without end. */
const MAXIMUM_DEPTH = 100

export function readYaml(
  text: string,
  environment: Record<string, string | undefined>,
  options: FillOptions = {},
): YamlText {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const place = (offset: number): Place => {
    const { line, col } = lines.linePos(offset)
    return { line: Math.max(1, line), column: Math.max(1, col) }
  }
  const syntax = [...document.errors, ...document.warnings].map((error) => ({
    ...place(error.pos[0]),
    path: [],
    message: syntaxMessage(error.code, error.message),
  }))
  const walk = createWalk({ document, environment, place, ...options })
  const value = syntax.length > 0 ? undefined : walk.valueAt(document.contents, [])
  return {
    value,
    troubles: [...syntax, ...walk.troubles],
    placeOf(path, part) {
      const known = (part === 'key' ? walk.keys : walk.values).get(JSON.stringify(path))
      if (known) return known
      for (let length = path.length; length >= 0; length--) {
        const outer = JSON.stringify(path.slice(0, length))
        const found = walk.keys.get(outer) ?? walk.values.get(outer)
        if (found) return found
      }
      return { line: 1, column: 1 }
    },
    sourceAt: (path) => walk.sources.get(JSON.stringify(path)),
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

type WalkParts = FillOptions & {
  document: Document.Parsed
  environment: Record<string, string | undefined>
  place(offset: number): Place
}

function createWalk({ document, environment, place, secretAt, expansionProblem }: WalkParts) {
  const troubles: PlacedTrouble[] = []
  const keys = new Map<string, Place>()
  const values = new Map<string, Place>()
  const sources = new Map<string, string>()
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

  function valueAt(node: unknown, path: Path): unknown {
    const at = place(startOf(node))
    const report = (message: string) => void troubles.push({ ...at, path, message })
    values.set(JSON.stringify(path), at)
    visited++
    if (tooMuch || visited > MAXIMUM_NODES || depth > MAXIMUM_DEPTH) {
      // Reported once for the whole file, so that the values that are skipped now cause no further errors.
      if (!tooMuch) troubles.push({ ...at, path: [], message: 'is nested too deeply or has too many values' })
      tooMuch = true
      return undefined
    }
    if (isAlias(node)) {
      const target = targets.get(node)
      if (!target) return report(`the alias *${node.source} has no anchor before it`)
      return inside(() => valueAt(target, path))
    }
    if (isScalar(node)) return scalarOf(node.value, path, report)
    if (isSeq(node)) return inside(() => node.items.map((item, index) => valueAt(item, [...path, index])))
    if (isMap(node)) return inside(() => mappingOf(node.items, path))
    return null
  }

  function inside<T>(work: () => T): T {
    depth++
    const result = work()
    depth--
    return result
  }

  function scalarOf(value: unknown, path: Path, report: (message: string) => void): unknown {
    if (typeof value === 'number' && !Number.isFinite(value)) return report('must be a finite number')
    if (typeof value !== 'string' || !value.includes('${')) return value
    const references = referencesIn(value)
    const problem = references.length > 0 ? expansionProblem?.(path, references, value) : undefined
    if (problem !== undefined) return report(problem)
    const filled = interpolate(value, environment, secretAt && ((file) => secretAt({ path, file })))
    for (const trouble of filled.troubles) report(trouble)
    if (filled.changed) sources.set(JSON.stringify(path), value)
    if (filled.changed && filled.text.length >= SHORTEST_SECRET) secrets.set(filled.text, value)
    return filled.troubles.length > 0 ? undefined : filled.text
  }

  /** `<<: *defaults` merges the members of another mapping; the mapping's own members win. */
  function mappingOf(pairs: Pair[], path: Path): Record<string, unknown> {
    const out: Record<string, unknown> = {}
    for (const pair of pairs) {
      if (isMergeKey(pair)) Object.assign(out, mergedOf(pair.value, path))
    }
    for (const pair of pairs) {
      if (isMergeKey(pair)) continue
      const at = place(startOf(pair.key))
      if (!isScalar(pair.key) || pair.key.value === null) {
        troubles.push({ ...at, path, message: 'a key must be plain text' })
        continue
      }
      const name = String(pair.key.value)
      keys.set(JSON.stringify([...path, name]), at)
      const value = pair.value === null ? null : valueAt(pair.value, [...path, name])
      // Defined rather than assigned, so that a key named __proto__ is a key.
      Object.defineProperty(out, name, {
        value,
        enumerable: true,
        writable: true,
        configurable: true,
      })
    }
    return out
  }

  function mergedOf(node: unknown, path: Path): Record<string, unknown> {
    const target = isAlias(node) ? targets.get(node) : node
    if (isMap(target)) return inside(() => valueAt(target, path)) as Record<string, unknown>
    if (isSeq(target)) {
      // The first of several mappings wins.
      return Object.assign({}, ...target.items.map((item) => mergedOf(item, path)).reverse())
    }
    troubles.push({ ...place(startOf(node)), path, message: '"<<" must be a mapping or a list of mappings' })
    return {}
  }

  return { valueAt, troubles, keys, values, sources, secrets }
}

/** The node of each alias: the last node before it with its anchor. The library searches the document for each alias. */
function aliasTargets(document: Document.Parsed): Map<Alias, Node> {
  const anchors = new Map<string, Node>()
  const targets = new Map<Alias, Node>()
  visit(document, {
    Value: (_, node) => void (node.anchor && anchors.set(node.anchor, node)),
    Alias(_, node) {
      const target = anchors.get(node.source)
      if (target) targets.set(node, target)
    },
  })
  return targets
}

const isMergeKey = (pair: Pair): boolean => isScalar(pair.key) && pair.key.value === '<<'

/** The library's message, with advice for programmers replaced by advice for operators. */
function syntaxMessage(code: string, message: string): string {
  if (code === 'DUPLICATE_KEY') return 'duplicate key; each key may appear once'
  if (code === 'MULTIPLE_DOCS') return 'a second document starts here; the file must have one'
  if (code === 'TAG_RESOLVE_FAILED') return `${message}; tags are not supported`
  return `not valid YAML: ${message}`
}
