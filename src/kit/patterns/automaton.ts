/**
 * Many patterns in RE2 syntax as one automaton that reads a text character by character. Its states are made when they are
 * first reached, and it never backtracks.
 */

/** Instructions of a compiled pattern, as RE2's compiler writes them. */
const [ALT, ALT_MATCH, CAPTURE, EMPTY_WIDTH, MATCH, NOP] = [1, 2, 3, 4, 6, 7]
const [FIRST_RUNE, LAST_RUNE] = [8, 11]
const [RUNE_ANY, RUNE_ANY_NOT_NL] = [10, 11]

type Instruction = { op: number; out: number; arg: number; matchRune(code: number): boolean }
type Program = { inst: Instruction[]; start: number }

/** Assertions: what must hold between two characters. */
const [BEGIN_LINE, END_LINE, BEGIN_TEXT, END_TEXT, WORD_BOUNDARY, NO_WORD_BOUNDARY] = [1, 2, 4, 8, 16, 32]

const ASCII = 128

/** What assertions need to know of the character before. */
const [AT_BEGIN, WORD, NEWLINE, OTHER] = [0, 1, 2, 3] as const

/** All states are dropped after so many edges, so that no text can fill the memory. */
const MAX_EDGES = 500_000
/** Of all patterns together: some 100 bytes each. */
const MAX_INSTRUCTIONS = 100_000

export type Pattern = { source: string; ignores_case?: boolean }

/** `accepts`: the patterns that match up to before the character. `to`: the state after it; undefined: none can match any more. */
type Edge = { readonly accepts: readonly number[]; readonly to: State | undefined }

const NOTHING: readonly number[] = []

/** The positions in all programs that have been reached, and the kind of the last character. */
export class State {
  readonly #automaton: Automaton
  readonly pcs: readonly number[]
  readonly kind: number
  readonly #edges: (Edge | undefined)[] = []
  #far: Map<number, Edge> | undefined

  constructor(automaton: Automaton, pcs: readonly number[], kind: number) {
    this.#automaton = automaton
    this.pcs = pcs
    this.kind = kind
  }

  edge(code: number): Edge {
    if (code < ASCII) {
      const known = this.#edges[code]
      if (known) return known
      const edge = this.#automaton.step(this, code)
      this.#edges[code] = edge
      return edge
    }
    this.#far ??= new Map()
    const known = this.#far.get(code)
    if (known) return known
    const edge = this.#automaton.step(this, code)
    this.#far.set(code, edge)
    return edge
  }

  end(): Edge {
    return this.#automaton.step(this, undefined)
  }
}

/** Throws Error, with RE2's reason, for a source that is no pattern or that is too large. */
export function parsePattern({ source, ignores_case = false }: Pattern): Program {
  // Loaded only where there are patterns.
  const { RE2JS } = require('re2js') as typeof import('re2js')
  const parsed = RE2JS.compile(source, ignores_case ? RE2JS.CASE_INSENSITIVE : 0)
  const program = (parsed.re2() as unknown as { prog: Program }).prog
  if (program.inst.length > MAX_INSTRUCTIONS) throw new Error('the pattern is too large')
  return program
}

export class Automaton {
  readonly #code: Instruction[] = []
  readonly #pattern: number[] = []
  readonly #starts: number[] = []
  #states = new Map<string, State>()
  #first: (State | undefined)[] = []
  #edges = 0

  /** Throws as `parsePattern` does. */
  constructor(patterns: readonly Pattern[]) {
    for (const [at, pattern] of patterns.entries()) {
      const { inst, start } = parsePattern(pattern)
      const base = this.#code.length
      if (base + inst.length > MAX_INSTRUCTIONS) throw new Error('the patterns are too large together')
      for (const one of inst) {
        const { op } = one
        this.#code.push({
          op,
          out: one.out + base,
          arg: op === ALT || op === ALT_MATCH ? one.arg + base : one.arg,
          matchRune: (code) => one.matchRune(code),
        })
        this.#pattern.push(at)
      }
      this.#starts.push(start + base)
    }
  }

  /** Before the first character of a match; `before`: the code point before it, undefined at the begin of the text. */
  start(before: number | undefined): State {
    const kind = before === undefined ? AT_BEGIN : kindOf(before)
    const known = this.#first[kind]
    if (known) return known
    const state = new State(this, this.#starts, kind)
    this.#first[kind] = state
    return state
  }

  /** `code` undefined: the text ends. */
  step({ pcs, kind }: State, code: number | undefined): Edge {
    if (++this.#edges > MAX_EDGES) this.#forget()
    const holds = assertionsBetween(kind, code)
    const seen = new Set<number>()
    const accepts = new Set<number>()
    const next = new Set<number>()
    const open = [...pcs]
    for (let pc = open.pop(); pc !== undefined; pc = open.pop()) {
      if (seen.has(pc)) continue
      seen.add(pc)
      const one = this.#code[pc] as Instruction
      const { op, out, arg } = one
      if (op === ALT || op === ALT_MATCH) open.push(out, arg)
      else if (op === CAPTURE || op === NOP) open.push(out)
      else if (op === EMPTY_WIDTH) {
        if ((arg & ~holds) === 0) open.push(out)
      } else if (op === MATCH) accepts.add(this.#pattern[pc] as number)
      else if (op >= FIRST_RUNE && op <= LAST_RUNE && code !== undefined && takes(one, code)) next.add(out)
    }
    const to = next.size === 0 || code === undefined ? undefined : this.#state([...next], kindOf(code))
    return { accepts: accepts.size === 0 ? NOTHING : [...accepts], to }
  }

  #state(pcs: number[], kind: number): State {
    pcs.sort((one, other) => one - other)
    const key = `${kind}:${pcs.join()}`
    const known = this.#states.get(key)
    if (known) return known
    const state = new State(this, pcs, kind)
    this.#states.set(key, state)
    return state
  }

  /** States in use go on: each refers to those after it only. */
  #forget(): void {
    this.#states = new Map()
    this.#first = []
    this.#edges = 0
  }
}

function takes(one: Instruction, code: number): boolean {
  if (one.op === RUNE_ANY) return true
  if (one.op === RUNE_ANY_NOT_NL) return code !== 10
  return one.matchRune(code)
}

/** As RE2's `\w`: ASCII only. */
const isWord = (code: number): boolean =>
  (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || (code >= 48 && code <= 57) || code === 95

const kindOf = (code: number): number => (code === 10 ? NEWLINE : isWord(code) ? WORD : OTHER)

function assertionsBetween(kind: number, code: number | undefined): number {
  let holds = 0
  if (kind === AT_BEGIN) holds |= BEGIN_TEXT
  if (kind === AT_BEGIN || kind === NEWLINE) holds |= BEGIN_LINE
  if (code === undefined) holds |= END_TEXT
  if (code === undefined || code === 10) holds |= END_LINE
  const isBoundary = (kind === WORD) !== (code !== undefined && isWord(code))
  return holds | (isBoundary ? WORD_BOUNDARY : NO_WORD_BOUNDARY)
}
