/** One text that passes guards piece by piece, such as the content of a streamed answer. */
import type { GuardSide } from '../../config/schema/guard-schema.ts'
import type { Scanner, Span } from '../../kit/patterns/scanner.ts'
import type { Guard, GuardOutcome } from './guard.ts'
import type { Placeholders } from './placeholders.ts'
import type { Rules } from './rules.ts'
import { createTextView, type TextView } from './text-view.ts'

/** Thrown where a guard blocks what was found. */
export class Blocked extends Error {
  readonly guard: Guard
  constructor(guard: Guard) {
    super(`blocked by ${guard.name}`)
    this.guard = guard
  }
}

export type TextFilter = {
  /** What may be sent of the text so far. Throws Blocked. */
  push(piece: string): string
  /** The rest. Throws Blocked. */
  end(): string
}

type FilterParts = {
  guard: Guard & { rules: Rules }
  side: GuardSide
  isJson: boolean
  placeholders: Placeholders
  note(guard: Guard, side: GuardSide, outcome: GuardOutcome): void
}

export class RulesFilter implements TextFilter {
  readonly #parts: FilterParts
  readonly #scanner: Scanner
  readonly #view: TextView

  constructor(parts: FilterParts) {
    this.#parts = parts
    this.#scanner = parts.guard.rules.scanner()
    this.#view = createTextView(parts.isJson)
  }

  push(piece: string): string {
    return this.#out(this.#scanner.push(this.#view.push(piece)))
  }

  end(): string {
    const last = this.#out(this.#scanner.push(this.#view.end()))
    return last + this.#out(this.#scanner.end())
  }

  #out(spans: readonly Span[]): string {
    let text = ''
    for (const { length, found } of spans) {
      const replacement = found && this.#replacementOf(found)
      if (replacement !== undefined) text += this.#view.encode(replacement)
      const taken = this.#view.take(length)
      if (replacement === undefined) text += taken
    }
    return text
  }

  /** Undefined: it stays. */
  #replacementOf({ pattern, text }: NonNullable<Span['found']>): string | undefined {
    const { guard, side, placeholders, note } = this.#parts
    const { kind, action = 'block', replacement = '[removed]' } = guard.config
    const isBlocked = kind === 'limits' || (kind === 'patterns' && action === 'block')
    if (guard.isObserving) {
      note(guard, side, isBlocked ? 'would_block' : 'would_replace')
      return undefined
    }
    if (isBlocked) throw new Blocked(guard)
    note(guard, side, 'replaced')
    return kind === 'redact' ? placeholders.of(guard.rules.labelOf(pattern), text) : replacement
  }
}

/** Checks each piece by itself, and lets it pass as it is. */
export class PieceFilter implements TextFilter {
  readonly #check: (piece: string) => void

  /** `check` throws Blocked. */
  constructor(check: (piece: string) => void) {
    this.#check = check
  }

  push(piece: string): string {
    this.#check(piece)
    return piece
  }

  end(): string {
    return ''
  }
}

/** Each filter gets what the one before lets through. */
export class FilterChain implements TextFilter {
  readonly #filters: readonly TextFilter[]

  constructor(filters: readonly TextFilter[]) {
    this.#filters = filters
  }

  push(piece: string): string {
    return this.#filters.reduce((text, filter) => (text === '' ? text : filter.push(text)), piece)
  }

  end(): string {
    return this.#filters.reduce((text, filter) => (text === '' ? '' : filter.push(text)) + filter.end(), '')
  }
}
