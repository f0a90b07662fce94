/** The guards of one call: they check its request before it is sent, and its answer before the client gets it. */
import type { GuardSide } from '../../config/schema/guard-schema.ts'
import { GatewayError } from '../../spec/error.ts'
import type { GuardedText } from './content.ts'
import { checksSide, GUARD_OUTCOMES, type Guard, type GuardOutcome, type GuardResult, restores } from './guard.ts'
import { Placeholders } from './placeholders.ts'
import { Blocked, FilterChain, RulesFilter, type TextFilter } from './text-filter.ts'

export class CallGuards {
  readonly #guards: readonly Guard[]
  readonly #input: readonly Guard[]
  readonly #output: readonly Guard[]
  readonly #restores: boolean
  readonly #placeholders = new Placeholders()
  /** What each of them has decided, for the request log. */
  readonly results: GuardResult[]
  /** Called where an answer is blocked. */
  onBlocked: (() => void) | undefined

  /** `results`: those of the call so far, which may have been at another model. */
  constructor(guards: readonly Guard[], results: GuardResult[] = []) {
    this.#input = guards.filter((guard) => checksSide(guard, 'input'))
    this.#output = guards.filter((guard) => checksSide(guard, 'output'))
    this.#restores = guards.some(restores)
    this.results = results
    this.#guards = guards
  }

  /** Changes with their settings. */
  get fingerprint(): string {
    return JSON.stringify(this.#guards.map(({ name, config }) => [name, config]))
  }

  /** Whether an answer must be read before the client gets it. */
  get readsAnswer(): boolean {
    return this.#output.length > 0 || (this.#restores && !this.#placeholders.isEmpty)
  }

  /** Checks and changes the texts of a request. Throws GatewayError where a guard blocks it. */
  checkInput(texts: readonly GuardedText[]): void {
    this.#placeholders.avoid(texts.map(({ text }) => text))
    try {
      for (const guard of this.#input) this.#check(guard, 'input', texts)
    } catch (thrown) {
      throw thrown instanceof Blocked ? blocked(thrown.guard) : thrown
    }
  }

  /** The same of a whole answer. False: a guard blocks it. */
  checkOutput(texts: readonly GuardedText[]): boolean {
    try {
      for (const guard of this.#output) this.#check(guard, 'output', texts)
    } catch (thrown) {
      if (thrown instanceof Blocked) {
        this.onBlocked?.()
        return false
      }
      throw thrown
    }
    if (this.#restores && !this.#placeholders.isEmpty)
      for (const one of texts) one.text = this.#placeholders.restored(one.text, one.is_json ?? false)
    return true
  }

  /** For one text of a streamed answer. */
  outputFilter(isJson: boolean): TextFilter {
    const filters: TextFilter[] = this.#output.map((guard) => {
      this.#note(guard, 'output', 'passed')
      return this.#filter(guard, 'output', isJson)
    })
    if (this.#restores && !this.#placeholders.isEmpty) filters.push(this.#placeholders.restorer(isJson))
    return new FilterChain(filters)
  }

  /** What was decided by a filter that has thrown. */
  blockedBy({ guard }: Blocked): void {
    this.#note(guard, 'output', 'blocked')
    this.onBlocked?.()
  }

  #check(guard: Guard, side: GuardSide, texts: readonly GuardedText[]): void {
    this.#note(guard, side, 'passed')
    for (const one of texts) {
      const filter = this.#filter(guard, side, one.is_json ?? false)
      try {
        const { text } = one
        const checked = filter.push(text) + filter.end()
        if (checked !== text) one.text = checked
      } catch (thrown) {
        if (thrown instanceof Blocked) this.#note(guard, side, 'blocked')
        throw thrown
      }
    }
  }

  #filter(guard: Guard, side: GuardSide, isJson: boolean): TextFilter {
    return new RulesFilter({ guard, side, isJson, placeholders: this.#placeholders, note: this.#note })
  }

  readonly #note = ({ name }: Guard, on: GuardSide, outcome: GuardOutcome): void => {
    const known = this.results.find((one) => one.name === name && one.on === on)
    if (!known) this.results.push({ name, on, outcome })
    else if (GUARD_OUTCOMES.indexOf(outcome) > GUARD_OUTCOMES.indexOf(known.outcome)) known.outcome = outcome
  }
}

/** What was found is not repeated. */
const blocked = ({ name }: Guard): GatewayError =>
  new GatewayError('content_blocked', `The guard "${name}" blocked the content of the request.`, { accepted: 'no' })
