/** Edits members of a YAML text and preserves every other byte: comments, order, spacing, quotes. */
import { isDeepStrictEqual } from 'node:util'
import { isAlias, isCollection, isMap, isScalar, isSeq, type Pair, parseDocument, type YAMLMap } from 'yaml'
import { readYaml } from '../load/read-yaml.ts'

/** A list of plain entries, which is written and replaced as a whole. */
export type Entries = readonly (string | number | { readonly [name: string]: Tree | Leaf | undefined })[]
type Leaf = string | number | boolean | Entries
/** The new members: a value, `undefined` to remove the member, or a tree of its own members. */
export type Tree = { [name: string]: Tree | Leaf | undefined }

/** Applied completely or not at all. */
export type Change = { path: string[]; tree: Tree }

type Edited = {
  text: string
  /** The changes that were not applied, with the reason. */
  refused: { change: Change; why: string }[]
}

type Splice = { from: number; to: number; text: string }
type Sheet = { text: string; eol: string; step: number }
/** New members of one mapping; `pair` if the mapping does not exist yet. `depth`: the number of keys in its path. */
type Addition = { at: YAMLMap | Pair | undefined; depth: number; tree: Tree }
type Found = { splices: Splice[]; additions: Addition[] }

/** Why a change would affect another place. */
class Obstacle extends Error {}

/** Deeper members are written in braces on one line: `models`, a model, then its settings. */
const BLOCK_DEPTH = 2

/** The text must be valid for `readYaml`. Throws if it cannot be changed without changing something else. */
export function editYaml(text: string, changes: readonly Change[]): Edited {
  const root = parseDocument(text, { prettyErrors: false }).contents
  const before = plain(text) ?? {}
  const sheet: Sheet = { text, eol: text.includes('\r\n') ? '\r\n' : '\n', step: stepOf(text, root) }
  const splices: Splice[] = []
  const gathered: Addition[] = []
  const refused: Edited['refused'] = []
  const expected = structuredClone(before) as Tree
  for (const change of changes) {
    const tree = change.path.reduceRight<Tree>((inner, name) => ({ [name]: inner }), change.tree)
    try {
      assertNames(tree)
      const found: Found = { splices: [], additions: [] }
      if (isMap(root)) visit({ map: root, tree, effective: before, depth: 0 }, found)
      else found.additions.push({ at: undefined, depth: 0, tree })
      splices.push(...found.splices)
      for (const addition of found.additions) gather(gathered, addition)
      merge(expected, tree)
    } catch (error) {
      if (!(error instanceof Obstacle)) throw error
      refused.push({ change, why: error.message })
    }
  }
  for (const addition of gathered) splices.push(insertion(sheet, addition))
  const edited = applySplices(text, splices)
  if (!isDeepStrictEqual(plain(edited) ?? {}, expected)) {
    throw new Error('The file is written in a way that cannot be edited without changing something else in it.')
  }
  return { text: edited, refused }
}

/** The value as the loader reads it, with every `${NAME}` unreplaced. */
const plain = (text: string): unknown =>
  readYaml(
    text.replaceAll('${', () => '$${'),
    {},
  ).value

/** Merged as a member, it would change every object of the process. */
function assertNames(tree: Tree): void {
  for (const [name, value] of Object.entries(tree)) {
    if (name === '__proto__') throw new Obstacle('no member can be named __proto__')
    if (isTree(value)) assertNames(value)
  }
}

type Visit = { map: YAMLMap; tree: Tree; effective: unknown; depth: number }

function visit({ map, tree, effective, depth }: Visit, found: Found): void {
  if (map.anchor) throw new Obstacle(`it is part of &${map.anchor}, which other places may share`)
  for (const [name, value] of Object.entries(tree)) {
    const pair = map.items.find(({ key }) => isScalar(key) && String(key.value) === name)
    if (!pair) {
      if (value === undefined) continue
      // An own member would hide the whole member that "<<" merges in.
      if (isTree(value) && memberOf(effective, name) !== undefined) throw new Obstacle(`its ${name} come from "<<"`)
      found.additions.push({ at: map, depth, tree: { [name]: value } })
    } else if (value === undefined) {
      found.splices.push(removal(map, pair))
    } else if (isTree(value)) {
      if (map.flow && isBlank(pair.value)) throw new Obstacle('it is empty within braces')
      visitMember({ pair, tree: value, effective: memberOf(effective, name), depth: depth + 1 }, found)
    } else {
      found.splices.push(replacement(pair, value))
    }
  }
}

function visitMember({ pair, ...rest }: Omit<Visit, 'map'> & { pair: Pair }, found: Found): void {
  const { value } = pair
  if (isMap(value)) visit({ map: value, ...rest }, found)
  else if (isBlank(value)) found.additions.push({ at: pair, depth: rest.depth, tree: rest.tree })
  else if (isAlias(value)) throw new Obstacle(`it is written as *${value.source}, which other places share`)
  else throw new Obstacle('it is written in a way that cannot be edited')
}

function replacement(pair: Pair, value: Leaf): Splice {
  const node = pair.value
  const [from, to] = rangeOf(node) ?? []
  if (from === undefined || to === undefined || (isCollection(node) && !isFlowList(node, value)) || isBlank(node)) {
    throw new Obstacle('a value is written in a way that cannot be edited')
  }
  if (isScalar(node) && node.anchor) throw new Obstacle(`a value is written as &${node.anchor}, which others may share`)
  return { from, to, text: leafText(value) }
}

const isFlowList = (node: unknown, value: Leaf): boolean =>
  Array.isArray(value) && isSeq(node) && node.flow === true && !node.anchor

/** Removes whole lines; inside braces, only the member and its comma. */
function removal(map: YAMLMap, pair: Pair): Splice {
  const index = map.items.indexOf(pair)
  const start = rangeOf(pair.key)?.[0]
  if (start === undefined || endOf(pair) === undefined) throw new Obstacle('a member cannot be removed')
  if (!map.flow) return { from: start, to: endOf(pair) ?? start, text: LINE_REMOVED }
  const before = map.items[index - 1]
  const next = map.items[index + 1]
  const nextStart = next ? rangeOf(next.key)?.[0] : undefined
  const [from, to] = before ? [endOf(before), endOf(pair)] : [start, nextStart ?? endOf(pair)]
  return { from: from ?? start, to: to ?? start, text: '' }
}

/** Marks a splice that removes whole lines. */
const LINE_REMOVED = '\u0000'

/** Members of one mapping are inserted at one place, in the given order. */
function gather(gathered: Addition[], addition: Addition): void {
  const same = gathered.find(({ at }) => at === addition.at)
  if (same) merge(same.tree, addition.tree)
  else gathered.push({ ...addition, tree: structuredClone(addition.tree) })
}

function insertion(sheet: Sheet, { at, depth, tree }: Addition): Splice {
  const { text, step, eol } = sheet
  if (isMap(at) && at.flow) return insertIntoBraces(text, at, tree)
  if (at === undefined || depth === 0) return append(sheet, blockText(sheet, { tree, indent: 0, depth }))
  if (isMap(at)) return insertIntoBlock(sheet, at, { tree, depth })
  const key = rangeOf(at.key) ?? [0, 0]
  const range = rangeOf(at.value)
  // An explicit `acme/small: null` or `~`.
  if (range && range[1] > range[0]) return { from: range[0], to: range[1], text: flowText(tree) }
  const from = lineAfter(text, key[1])
  const lines = blockText(sheet, { tree, indent: columnOf(text, key[0]) + step, depth })
  return { from, to: from, text: endsLine(text, from) ? lines : `${eol}${lines}` }
}

function insertIntoBlock(sheet: Sheet, map: YAMLMap, { tree, depth }: { tree: Tree; depth: number }): Splice {
  const { text, eol } = sheet
  const first = rangeOf(map.items[0]?.key)?.[0] ?? 0
  const last = map.items.at(-1)
  const indent = columnOf(text, first)
  let from = lineAfter(text, (last && endOf(last)) ?? first)
  // A comment that is indented further belongs to the last member.
  for (;;) {
    const end = text.indexOf('\n', from) + 1 || text.length
    const comment = text.slice(from, end)
    if (!/^[ \t]*#/.test(comment) || comment.indexOf('#') <= indent) break
    from = end
  }
  const lines = blockText(sheet, { tree, indent, depth })
  return { from, to: from, text: endsLine(text, from) ? lines : `${eol}${lines}` }
}

function insertIntoBraces(text: string, map: YAMLMap, tree: Tree): Splice {
  const inner = flowText(tree).slice(2, -2)
  const last = map.items.at(-1)
  const end = last && endOf(last)
  if (end !== undefined) return { from: end, to: end, text: `, ${inner}` }
  const from = (rangeOf(map)?.[0] ?? 0) + 1
  return { from, to: from, text: ` ${inner}${text[from] === '}' ? ' ' : ''}` }
}

function append({ text, eol }: Sheet, lines: string): Splice {
  const from = text.length
  const gap = text.trim() === '' ? '' : eol
  return { from, to: from, text: `${text === '' || text.endsWith('\n') ? '' : eol}${gap}${lines}` }
}

function blockText(sheet: Sheet, { tree, indent, depth }: { tree: Tree; indent: number; depth: number }): string {
  const { eol, step } = sheet
  let out = ''
  for (const [name, value] of Object.entries(tree)) {
    if (value === undefined) continue
    const key = `${' '.repeat(indent)}${keyText(name)}:`
    const isBlock = isTree(value) && depth < BLOCK_DEPTH && Object.keys(value).length > 0
    if (!isBlock) out += `${key} ${isTree(value) ? flowText(value) : leafText(value)}${eol}`
    else out += `${key}${eol}${blockText(sheet, { tree: value, indent: indent + step, depth: depth + 1 })}`
  }
  return out
}

function flowText(tree: Tree): string {
  const members = Object.entries(tree).filter(([, value]) => value !== undefined)
  if (members.length === 0) return '{}'
  const texts = members.map(
    ([name, value]) => `${keyText(name)}: ${isTree(value) ? flowText(value) : leafText(value ?? '')}`,
  )
  return `{ ${texts.join(', ')} }`
}

/** Words that some YAML readers do not parse as text. */
const YAML_KEYWORD = /^(true|false|null|yes|no|on|off|y|n)$/i
const keyText = (name: string): string => (isPlain(name) ? name : JSON.stringify(name))
function leafText(value: Leaf): string {
  if (typeof value === 'object')
    return `[${value.map((entry) => (typeof entry === 'object' ? flowText({ ...entry }) : leafText(entry))).join(', ')}]`
  return typeof value !== 'string' || isPlain(value) ? String(value) : JSON.stringify(value)
}
const isPlain = (text: string): boolean => /^[A-Za-z][\w./@+-]*$/.test(text) && !YAML_KEYWORD.test(text)

/** Applies splices from last to first, so that offsets stay valid; at one offset, in the given order. */
function applySplices(text: string, splices: Splice[]): string {
  let out = text
  const ordered = splices.map((splice, index) => ({ ...splice, index }))
  for (const one of ordered.sort((a, b) => b.from - a.from || b.index - a.index)) {
    const isLines = one.text === LINE_REMOVED
    const from = isLines ? lineStart(text, one.from) : one.from
    const to = isLines ? lineAfter(text, one.to) : one.to
    out = `${out.slice(0, from)}${isLines ? '' : one.text}${out.slice(to)}`
  }
  return out
}

/** The end of a member without its trailing comment; undefined for one without a plain key. */
function endOf({ key, value }: Pair): number | undefined {
  return isBlank(value) && rangeOf(value)?.[0] === rangeOf(value)?.[1] ? rangeOf(key)?.[1] : contentEnd(value)
}

function contentEnd(node: unknown): number | undefined {
  if (isCollection(node) && !node.flow) {
    const last = node.items.at(-1)
    if (isMap(node) && last) return endOf(last as Pair)
    if (isSeq(node) && last) return contentEnd(last)
  }
  return rangeOf(node)?.[1]
}

function rangeOf(node: unknown): [number, number] | undefined {
  const range = (node as { range?: [number, number, number] | null } | null)?.range
  return range ? [range[0], range[1]] : undefined
}

/** The indentation of nested mappings in this file; 2 if there are none. */
function stepOf(text: string, root: unknown): number {
  const nested = isMap(root)
    ? root.items.map(({ value }) => value).find((value) => isMap(value) && !value.flow)
    : undefined
  const first = isMap(nested) ? rangeOf(nested.items[0]?.key)?.[0] : undefined
  return first === undefined ? 2 : Math.max(1, columnOf(text, first))
}

function merge(into: Tree, tree: Tree): void {
  for (const [name, value] of Object.entries(tree)) {
    if (value === undefined) delete into[name]
    else if (!isTree(value)) into[name] = value
    else {
      const inner = into[name]
      const own = isTree(inner) ? inner : {}
      into[name] = own
      merge(own, value)
    }
  }
}

const memberOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined

const isBlank = (node: unknown): boolean => node === null || (isScalar(node) && node.value === null)
const isTree = (value: Tree[string]): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const lineStart = (text: string, at: number): number => text.lastIndexOf('\n', at - 1) + 1
const columnOf = (text: string, at: number): number => at - lineStart(text, at)
const endsLine = (text: string, at: number): boolean => at === 0 || text[at - 1] === '\n'

/** The start of the next line; `at` itself if a line starts there. */
function lineAfter(text: string, at: number): number {
  if (at > 0 && text[at - 1] === '\n') return at
  const end = text.indexOf('\n', at)
  return end === -1 ? text.length : end + 1
}
