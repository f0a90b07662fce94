/**
 * A useful subset of regular expressions, for `pattern` of JSON Schema: generates a matching text and tests a text.
 * Both take bounded time for every expression: clients' expressions never reach the engine's backtracking matcher.
 */
import type { Random } from './random.ts'

type Node =
  | { kind: 'set'; ranges: [number, number][]; negated: boolean }
  | { kind: 'sequence'; items: Node[] }
  | { kind: 'choice'; items: Node[] }
  | { kind: 'repeat'; item: Node; minimum: number; maximum: number }
  | { kind: 'start' }
  | { kind: 'end' }

export type Pattern = {
  matches(text: string): boolean
  /** A matching text of `minimum` to `maximum` characters, or undefined when none was found. */
  sample(random: Random, minimum: number, maximum: number): string | undefined
}

/** Longer expressions than people write by hand. */
const MAX_SOURCE = 2000
const MAX_NESTING = 40
/** Longer texts are not generated. */
const MAX_TEXT = 10_000
/** Positions tested in a microsecond, which is one step of the budget. */
const POSITIONS_PER_STEP = 10

/** Ranges of code points: the first and the last of each, in a flat list. */
const pairs = (...ends: number[]) =>
  ends.flatMap((low, at): [number, number][] => (at % 2 === 0 ? [[low, ends[at + 1] ?? low]] : []))

/** JavaScript's \d, \w, \s, and its line ends, which `.` does not match. */
const DIGIT = pairs(48, 57)
const WORD = pairs(48, 57, 65, 90, 95, 95, 97, 122)
const LINE_ENDS = pairs(10, 10, 13, 13, 0x2028, 0x2029)
const SPACE = pairs(9, 13, 32, 32, 160, 160, 0x1680, 0x1680, 0x2000, 0x200a).concat(
  pairs(0x2028, 0x2029, 0x202f, 0x202f, 0x205f, 0x205f, 0x3000, 0x3000, 0xfeff, 0xfeff),
)
const CONTROLS: Record<string, number> = { t: 9, n: 10, v: 11, f: 12, r: 13, '0': 0 }

/** How many steps matching may take; when none are left, nothing matches. */
type Budget = { steps: number }

/** Undefined when the expression uses an unsupported feature: look-around, back references, `\b`, `\p{...}`. */
export function compilePattern(source: string, budget: Budget): Pattern | undefined {
  if (source.length > MAX_SOURCE) return undefined
  const root = parse(source)
  if (!root) return undefined
  const matches = (text: string) => fits(root, text, budget)
  return {
    matches,
    sample(random, minimum, maximum) {
      // How many more repetitions than required to generate, tried in this order: few first, then as many as the length needs.
      for (const extra of [3, 0, 1, minimum, Math.ceil(minimum / 2), 2, Math.min(maximum, 8), 0, 3]) {
        const candidate = generate(root, random, { extra, budget })
        if (candidate === undefined) continue
        for (const text of [candidate, candidate.padEnd(minimum, 'a'), candidate.padStart(minimum, 'a')]) {
          const length = [...text].length
          if (length >= minimum && length <= maximum && matches(text)) return text
        }
      }
      return undefined
    },
  }
}

/** A recursive descent parser; `undefined` means that the expression is not supported. */
function parse(source: string): Node | undefined {
  const characters = [...source]
  let at = 0
  let failed = false
  const fail = (): Node => {
    failed = true
    return { kind: 'sequence', items: [] }
  }
  const codeAt = (index: number) => characters[index]?.codePointAt(0) ?? 0

  function alternatives(depth: number): Node {
    if (depth > MAX_NESTING) return fail()
    const items = [sequence(depth)]
    while (characters[at] === '|' && !failed) {
      at++
      items.push(sequence(depth))
    }
    return items.length === 1 ? (items[0] ?? fail()) : { kind: 'choice', items }
  }

  function sequence(depth: number): Node {
    const items: Node[] = []
    while (at < characters.length && characters[at] !== '|' && characters[at] !== ')' && !failed) {
      items.push(repeated(atom(depth)))
    }
    return { kind: 'sequence', items }
  }

  function repeated(item: Node): Node {
    const bounds = quantifier()
    if (!bounds) return item
    if (item.kind === 'start' || item.kind === 'end' || bounds[0] > bounds[1]) return fail()
    if (characters[at] === '?') at++ // A lazy quantifier matches the same texts.
    return { kind: 'repeat', item, minimum: bounds[0], maximum: bounds[1] }
  }

  function quantifier(): [number, number] | undefined {
    const mark = characters[at]
    if (mark === '*' || mark === '+' || mark === '?') {
      at++
      return mark === '?' ? [0, 1] : [mark === '*' ? 0 : 1, Number.POSITIVE_INFINITY]
    }
    if (mark !== '{') return undefined
    // {n}, {n,} or {n,m}
    const found = /^\{(\d{1,6})(,(\d{1,6})?)?\}/.exec(characters.slice(at, at + 16).join(''))
    if (!found) {
      fail()
      return undefined
    }
    at += found[0].length
    const minimum = Number(found[1])
    if (!found[2]) return [minimum, minimum]
    return [minimum, found[3] === undefined ? Number.POSITIVE_INFINITY : Number(found[3])]
  }

  function atom(depth: number): Node {
    const character = characters[at++]
    if (character === '^') return { kind: 'start' }
    if (character === '$') return { kind: 'end' }
    if (character === '.') return { kind: 'set', ranges: LINE_ENDS, negated: true }
    if (character === '(') return group(depth)
    if (character === '[') return classSet()
    if (character === '\\') return escaped()
    if (character === undefined || '*+?{}])'.includes(character)) return fail()
    return single(codeAt(at - 1))
  }

  function group(depth: number): Node {
    if (characters[at] === '?') {
      // (?:...) and (?<name>...) only group; everything else after a question mark is look-around or sets flags.
      const opening = /^\?(:|<[A-Za-z_$][\w$]*>)/.exec(characters.slice(at, at + 64).join(''))
      if (!opening) return fail()
      at += opening[0].length
    }
    const inner = alternatives(depth + 1)
    return characters[at++] === ')' ? inner : fail()
  }

  function escaped(): Node {
    const letter = characters[at++]
    if (letter === undefined) return fail()
    const shorthand = shorthandOf(letter)
    if (shorthand) return shorthand
    const code = escapedCode(letter)
    return code === undefined ? fail() : single(code)
  }

  function escapedCode(letter: string): number | undefined {
    if (letter === '0' && /\d/.test(characters[at] ?? '')) return undefined
    const control = CONTROLS[letter]
    if (control !== undefined) return control
    if (letter === 'x' || letter === 'u') {
      // \xHH, \uHHHH or \u{H...}
      const shape = letter === 'x' ? /^([0-9a-f]{2})/i : /^(?:([0-9a-f]{4})|\{([0-9a-f]{1,6})\})/i
      const found = shape.exec(characters.slice(at, at + 9).join(''))
      if (!found) return undefined
      at += found[0].length
      const code = Number.parseInt(found[1] ?? found[2] ?? '', 16)
      return code <= 0x10ffff ? code : undefined
    }
    // Escaped punctuation stands for itself; other escaped letters and digits are not supported.
    return /[A-Za-z0-9]/.test(letter) ? undefined : letter.codePointAt(0)
  }

  function classSet(): Node {
    const negated = characters[at] === '^'
    if (negated) at++
    const ranges: [number, number][] = []
    while (characters[at] !== ']') {
      const low = classItem(ranges)
      if (low === undefined) {
        if (failed) return fail()
        continue
      }
      if (characters[at] === '-' && characters[at + 1] !== ']') {
        at++
        const high = classItem(ranges)
        if (high === undefined || high < low) return fail()
        ranges.push([low, high])
      } else ranges.push([low, low])
    }
    at++
    return ranges.length || negated ? { kind: 'set', ranges, negated } : fail()
  }

  /** One character of a class; undefined after a shorthand (which adds its ranges) or a failure. */
  function classItem(ranges: [number, number][]): number | undefined {
    const character = characters[at++]
    if (character === undefined) {
      fail()
      return undefined
    }
    if (character !== '\\') return codeAt(at - 1)
    const letter = characters[at++] ?? ''
    if (letter === 'b') return 8
    const shorthand = shorthandOf(letter)
    if (shorthand?.kind === 'set' && !shorthand.negated) {
      ranges.push(...shorthand.ranges)
      return undefined
    }
    const code = shorthand ? undefined : escapedCode(letter)
    if (code === undefined) fail()
    return code
  }

  const root = alternatives(0)
  return failed || at < characters.length ? undefined : root
}

const single = (code: number): Node => ({ kind: 'set', ranges: [[code, code]], negated: false })

function shorthandOf(letter: string): Node | undefined {
  const ranges = { d: DIGIT, w: WORD, s: SPACE }[letter.toLowerCase()]
  return ranges && { kind: 'set', ranges, negated: letter !== letter.toLowerCase() }
}

const inSet = (set: { ranges: [number, number][]; negated: boolean }, code: number): boolean =>
  set.ranges.some(([low, high]) => code >= low && code <= high) !== set.negated

/** Computes the possible ends of a match for all starts at once, so nothing is tried twice. */
function fits(root: Node, text: string, budget: Budget): boolean {
  budget.steps -= text.length / POSITIONS_PER_STEP
  const codes = Array.from(text, (character) => character.codePointAt(0) ?? 0)
  const ends = (node: Node, starts: Set<number>): Set<number> => {
    budget.steps -= (starts.size + 1) / POSITIONS_PER_STEP
    if (starts.size === 0 || budget.steps < 0) return new Set()
    switch (node.kind) {
      case 'start':
        return new Set(starts.has(0) ? [0] : [])
      case 'end':
        return new Set(starts.has(codes.length) ? [codes.length] : [])
      case 'set':
        return new Set([...starts].filter((at) => at < codes.length && inSet(node, codes[at] ?? 0)).map((at) => at + 1))
      case 'sequence':
        return node.items.reduce((positions, item) => ends(item, positions), starts)
      case 'choice':
        return new Set(node.items.flatMap((item) => [...ends(item, starts)]))
      case 'repeat':
        return repeatEnds(node, starts, ends)
    }
  }
  return ends(root, new Set(codes.map((_, at) => at).concat(codes.length))).size > 0
}

function repeatEnds(
  node: { item: Node; minimum: number; maximum: number },
  starts: Set<number>,
  ends: (node: Node, starts: Set<number>) => Set<number>,
): Set<number> {
  let positions = starts
  for (let count = 0; count < node.minimum; count++) {
    const next = ends(node.item, positions)
    if (next.size === 0) return next
    // If a round changes nothing, no later one will.
    if (next.size === positions.size && [...next].every((at) => positions.has(at))) break
    positions = next
  }
  const reached = new Set(positions)
  for (let count = node.minimum; count < node.maximum && positions.size > 0; count++) {
    positions = new Set([...ends(node.item, positions)].filter((at) => !reached.has(at)))
    for (const at of positions) reached.add(at)
  }
  return reached
}

/** A text along one path through the expression; undefined when it becomes too long. */
function generate(
  root: Node,
  random: Random,
  { extra, budget }: { extra: number; budget: Budget },
): string | undefined {
  let text = ''
  let steps = 0
  const append = (node: Node): boolean => {
    budget.steps--
    if (++steps > MAX_TEXT * 4 || text.length > MAX_TEXT || budget.steps < 0) return false
    switch (node.kind) {
      case 'set':
        text += oneOf(node, random)
        return true
      case 'sequence':
        return node.items.every(append)
      case 'choice':
        return append(random.pick(node.items))
      case 'repeat': {
        const maximum = Math.min(node.maximum, node.minimum + extra)
        // A large extra is meant to reach a length, so it is used in full.
        const times = extra > 3 ? maximum : node.minimum + random.below(maximum - node.minimum + 1)
        for (let count = 0; count < times; count++) if (!append(node.item)) return false
        return true
      }
      default:
        return true
    }
  }
  return append(root) ? text : undefined
}

const READABLE = [...'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789']
const PRINTABLE = Array.from({ length: 95 }, (_, at) => String.fromCharCode(32 + at))

/** A character of the set: a letter or digit if there is one, else a printable one, else one of its first range. */
function oneOf(set: { ranges: [number, number][]; negated: boolean }, random: Random): string {
  for (const alphabet of [READABLE, PRINTABLE]) {
    const allowed = alphabet.filter((character) => inSet(set, character.charCodeAt(0)))
    if (allowed.length) return random.pick(allowed)
  }
  const [low, high] = set.ranges[0] ?? [0, 0]
  if (!set.negated) return String.fromCodePoint(low + random.below(high - low + 1))
  return String.fromCodePoint(0xe9)
}
