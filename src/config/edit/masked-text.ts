/** The text of the configuration file for an editor: what may be a secret is a numbered mask, which a later text may keep. */
import { isDeepStrictEqual } from 'node:util'
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Scalar } from 'yaml'
import { isListed, valueAt } from '../check/path-pattern.ts'
import { DESTINATIONS } from '../check/proposal-limits.ts'
import { parseBounded } from '../load/parse-yaml.ts'
import { readYaml } from '../load/read-yaml.ts'
import { isMarked } from '../schema/schema-at.ts'
import { MASKED, shownValue } from './masking.ts'

type Path = (string | number)[]
/** `identity`: the path with names instead of positions in lists; undefined below an item without a name of its own. */
type Leaf = { path: Path; identity: string | undefined; node: Scalar; from: number; to: number }
type Splice = { from: number; to: number; text: string }

/** `***` and a number: which of the masked values of the present file it stands for, in their order. */
const MASK = /^\*\*\*([1-9]\d{0,4})$/
/** A mask of an earlier text whose value is not in the present file. */
const LOST = 99_999
/** A path of these may be a secret of the receiver. */
const HIDDEN_PATHS = ['alerts.webhook.url', 'guards.*.url']
/** Can be written at any place as it is. */
const SIMPLE = /^(?:[A-Za-z0-9][\w.+/=-]*|"[^"\\\n]*"|'[^'\n]*')$/

/** A value as it is written in the file, and its place: positions in lists may change, names may not. */
type MaskedValue = { path: Path; text: string; identity?: string | undefined }

/** The text with masks, and what each stands for. Undefined: the text is not YAML. */
export function maskText(text: string): { text: string; values: MaskedValue[] } | undefined {
  const leaves = leavesOf(text)
  if (!leaves) return undefined
  const hidden = leaves.filter(isHidden)
  const values = hidden.map(({ path, identity, node, from, to }) => ({
    path,
    identity,
    text: writtenValue(node, text.slice(from, to)),
  }))
  const splices = hidden.map(({ from, to }, index) => ({ from, to, text: `'${MASKED}${index + 1}'` }))
  return { text: splice(text, splices), values }
}

export const hasMasks = (text: string): boolean =>
  text.includes(MASKED) && (leavesOf(text)?.some(({ node }) => maskOf(node) !== undefined) ?? false)

/**
 * A text made of an earlier file, whose masks have the numbers of the present values with the same names on their paths.
 * As it is where it is not YAML.
 */
export function renumberMasks(text: string, values: readonly MaskedValue[]): string {
  const numbers = new Map(values.map(({ identity }, index) => [identity, index + 1]))
  numbers.delete(undefined)
  const masks = (leavesOf(text) ?? []).filter(({ node }) => maskOf(node) !== undefined)
  return splice(
    text,
    masks.map(({ identity, from, to }) => ({ from, to, text: `'${MASKED}${numbers.get(identity) ?? LOST}'` })),
  )
}

/**
 * The text with the values instead of the masks. Throws an Error that names a mask that stands for nothing, or is at another
 * place: a secret that the editor does not see must not get where it is shown or sent elsewhere.
 */
export function unmaskText(
  text: string,
  { text: file, values }: { text: string; values: readonly MaskedValue[] },
): string {
  const splices: Splice[] = []
  const destinations = { before: destinationsOf(file), after: destinationsOf(text) }
  for (const { path, node, from, to } of leavesOf(text) ?? []) {
    const number = maskOf(node)
    if (number === undefined) continue
    const value = values[number - 1]
    if (number === LOST) {
      const lost = `${MASKED}${LOST} at ${placeOf(path)} is a secret of the earlier text`
      throw new Error(`${lost} that is not in the present file: write it anew`)
    }
    if (!value) throw new Error(`${MASKED}${number} stands for no value of the present file`)
    const place = placeOf(value.path)
    if (place !== placeOf(path)) {
      throw new Error(`${MASKED}${number} stands for the value at ${place} and may be kept only there`)
    }
    const moved = DESTINATIONS.find((row) => isMoved(row, { before: value.path, after: path }, destinations))
    if (moved) {
      const members = moved.members.join(', ')
      throw new Error(
        `${MASKED}${number} at ${place} is a secret that would be sent elsewhere: write it anew, or leave ${members} of its section as in the file`,
      )
    }
    splices.push({ from, to, text: value.text })
  }
  return splice(text, splices)
}

/** References are left as they are written: with another default they may lead elsewhere. */
const destinationsOf = (text: string): unknown => readYaml(text.replaceAll('${', '$@{'), {}).value

/** Whether a secret below the section of this row would be sent elsewhere than the file on disk sends it. */
function isMoved(
  { section, members }: (typeof DESTINATIONS)[number],
  paths: { before: Path; after: Path },
  destinations: { before: unknown; after: unknown },
): boolean {
  const { length } = section.split('.')
  if (!isListed([section], paths.after.slice(0, length))) return false
  const before = valueAt(destinations.before, paths.before.slice(0, length))
  const after = valueAt(destinations.after, paths.after.slice(0, length))
  return members.some((name) => !isDeepStrictEqual(valueAt(before, [name]), valueAt(after, [name])))
}

const placeOf = (path: Path): string => path.map((step) => (typeof step === 'number' ? '*' : step)).join('.')

function maskOf({ value }: Scalar): number | undefined {
  const [, number] = typeof value === 'string' ? (MASK.exec(value) ?? []) : []
  return number === undefined ? undefined : Number(number)
}

function isHidden({ path, node: { value } }: Leaf): boolean {
  if (value === null) return false
  const source = typeof value === 'string' && value.includes('${') ? value : undefined
  if (isMarked('origin', path) && !isListed(HIDDEN_PATHS, path)) return isSecretAddress(value)
  return shownValue(path, value, source) !== value
}

/** The editor is an owner's: the path of an address is no secret to it, a password or a query may be one. */
function isSecretAddress(value: unknown): boolean {
  if (typeof value !== 'string') return true
  const url = URL.parse(value)
  return url !== null && (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
}

/** As it was written where that holds at any place, else in quotes. */
function writtenValue({ value }: Scalar, source: string): string {
  if (SIMPLE.test(source) || typeof value !== 'string') return source
  return JSON.stringify(value)
}

function leavesOf(text: string): Leaf[] | undefined {
  const parsed = parseBounded(text, new LineCounter())
  if (!('document' in parsed) || parsed.document.errors.length > 0) return undefined
  const leaves: Leaf[] = []
  collect(parsed.document.contents, { path: [], names: [] }, leaves)
  // That of a block contains the end of its last line.
  return leaves.map((leaf) => ({ ...leaf, to: leaf.from + text.slice(leaf.from, leaf.to).trimEnd().length }))
}

type Place = { path: Path; names: unknown[] | undefined }

/** An alias is written as its name; what it stands for is a leaf where its anchor is. */
function collect(node: Document.Parsed['contents'] | unknown, { path, names }: Place, leaves: Leaf[]): void {
  if (isAlias(node)) return
  if (isScalar(node) && node.range) {
    leaves.push({ path, identity: names && JSON.stringify(names), node, from: node.range[0], to: node.range[1] })
  } else if (isSeq(node)) {
    const own = node.items.map(nameOf)
    for (const [index, item] of node.items.entries()) {
      const name = own[index]
      const isUnique = name !== undefined && own.indexOf(name) === own.lastIndexOf(name)
      collect(item, { path: [...path, index], names: names && isUnique ? [...names, [name]] : undefined }, leaves)
    }
  } else if (isMap(node)) {
    for (const { key, value } of node.items) {
      if (!isScalar(key)) continue
      const step = String(key.value)
      collect(value, { path: [...path, step], names: names && [...names, step] }, leaves)
    }
  }
}

function nameOf(item: unknown): string | undefined {
  if (!isMap(item)) return undefined
  const name = item.get('name') ?? item.get('id')
  return typeof name === 'string' || typeof name === 'number' ? String(name) : undefined
}

function splice(text: string, splices: readonly Splice[]): string {
  let out = ''
  let at = 0
  for (const { from, to, text: part } of splices.toSorted((a, b) => a.from - b.from)) {
    out += text.slice(at, from) + part
    at = to
  }
  return out + text.slice(at)
}
