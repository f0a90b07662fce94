/** Reads a YAML text into a plain value, with `${NAME}` filled in and every key and value's line and column kept. */
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
import { interpolate } from './interpolate.ts'

export type Path = (string | number)[]
type Place = { line: number; column: number }
type PlacedTrouble = Place & { path: Path; message: string }

export type YamlText = {
  value: unknown
  troubles: PlacedTrouble[]
  /** Where a value stands, or its key; the nearest thing around it when it is not there. */
  placeOf(path: Path, part: 'key' | 'value'): Place
  /** The text as written, of a string that took something from the environment. */
  writtenAt(path: Path): string | undefined
  /** The text with what came from the environment put back as it was written. */
  withoutSecrets(text: string): string
}

/** Far above any real file; stops a few lines of nested aliases from growing into gigabytes. */
const MAXIMUM_NODES = 100_000
/** What is shorter (a port, `true`) is no secret, and putting it back would garble messages. */
const SHORTEST_SECRET = 6
/** An alias within its own anchor would never end. */
const MAXIMUM_DEPTH = 100

export function readYaml(text: string, environment: Record<string, string | undefined>): YamlText {
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
  const walk = createWalk({ document, environment, place })
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
    writtenAt: (path) => walk.written.get(JSON.stringify(path)),
    withoutSecrets(text) {
      let out = text
      for (const [value, form] of walk.secrets) {
        out = out.replaceAll(value, form).replaceAll(JSON.stringify(value).slice(1, -1), form)
      }
      return out
    },
  }
}

type WalkParts = {
  document: Document.Parsed
  environment: Record<string, string | undefined>
  place(offset: number): Place
}

function createWalk({ document, environment, place }: WalkParts) {
  const troubles: PlacedTrouble[] = []
  const keys = new Map<string, Place>()
  const values = new Map<string, Place>()
  const written = new Map<string, string>()
  const secrets = new Map<string, string>()
  const targets = aliasTargets(document)
  let visited = 0
  let depth = 0
  let tooMuch = false

  /** The offset at which a node starts; an alias counts where it is used. */
  const startOf = (node: unknown): number => {
    const range = (node as { range?: [number, number, number] | null } | null)?.range
    return range?.[0] ?? 0
  }

  function valueAt(node: unknown, path: Path): unknown {
    const at = place(startOf(node))
    const say = (message: string) => void troubles.push({ ...at, path, message })
    values.set(JSON.stringify(path), at)
    visited++
    if (tooMuch || visited > MAXIMUM_NODES || depth > MAXIMUM_DEPTH) {
      // Told of the file as a whole: what is missing from it now is no further mistake.
      if (!tooMuch) troubles.push({ ...at, path: [], message: 'is nested too deeply or holds too much' })
      tooMuch = true
      return undefined
    }
    if (isAlias(node)) {
      const target = targets.get(node)
      if (!target) return say(`the alias *${node.source} names no anchor before it`)
      return inside(() => valueAt(target, path))
    }
    if (isScalar(node)) return scalarOf(node.value, path, say)
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

  function scalarOf(value: unknown, path: Path, say: (message: string) => void): unknown {
    if (typeof value === 'number' && !Number.isFinite(value)) return say('must be a finite number')
    if (typeof value !== 'string') return value
    const filled = interpolate(value, environment)
    for (const trouble of filled.troubles) say(trouble)
    if (filled.changed) written.set(JSON.stringify(path), value)
    if (filled.changed && filled.text.length >= SHORTEST_SECRET) secrets.set(filled.text, value)
    return filled.troubles.length > 0 ? undefined : filled.text
  }

  /** `<<: *defaults` brings in another mapping's members; those written here win. */
  function mappingOf(pairs: Pair[], path: Path): Record<string, unknown> {
    const out: Record<string, unknown> = {}
    for (const pair of pairs) {
      if (isMergeKey(pair)) Object.assign(out, mergedOf(pair.value, path))
    }
    for (const pair of pairs) {
      if (isMergeKey(pair)) continue
      const at = place(startOf(pair.key))
      if (!isScalar(pair.key) || pair.key.value === null) {
        troubles.push({ ...at, path, message: 'a key must be a plain text' })
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
      // Of several, the first wins.
      return Object.assign({}, ...target.items.map((item) => mergedOf(item, path)).reverse())
    }
    troubles.push({ ...place(startOf(node)), path, message: '"<<" takes a mapping, or a list of mappings' })
    return {}
  }

  return { valueAt, troubles, keys, values, written, secrets }
}

/** Whom each alias stands for: the last node before it with its anchor. Asked of the library, each would cost a search. */
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

/** The library's words, with its advice to programmers replaced by advice to operators. */
function syntaxMessage(code: string, message: string): string {
  if (code === 'DUPLICATE_KEY') return 'the key stands here a second time; each key may be written once'
  if (code === 'MULTIPLE_DOCS') return 'a second document starts here; the file holds one'
  if (code === 'TAG_RESOLVE_FAILED') return `${message}; tags are not used here`
  return `not valid YAML: ${message}`
}
