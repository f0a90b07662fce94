/** The guards of one call: they check its request before it is sent, and its answer before the client gets it. */
import type { GuardSide } from '../../config/schema/guard-schema.ts'
import { GatewayError } from '../../spec/error.ts'
import type { GuardedText } from './content.ts'
import {
  type Answered,
  type AskGuard,
  asks,
  checksSide,
  GUARD_OUTCOMES,
  type Guard,
  type GuardedCall,
  type GuardOutcome,
  type GuardResult,
  restores,
  type Verdict,
} from './guard.ts'
import { LanguageFilter } from './language-filter.ts'
import { loadDetector } from './languages.ts'
import { Placeholders } from './placeholders.ts'
import type { Rules } from './rules.ts'
import { Blocked, FilterChain, PieceFilter, RulesFilter, type TextFilter } from './text-filter.ts'

type Ruled = Guard & { rules: Rules }
const hasRules = (guard: Guard): guard is Ruled => guard.rules !== undefined

/** Of a streamed answer: the rules of guards, or values in place of their placeholders. */
export type GuardSteps = 'all' | 'rules' | 'restore'

/** Characters so far of one request or answer. */
type Lengths = Map<Guard, number>
type Filtering = { side: GuardSide; isJson: boolean; lengths: Lengths; isWhole?: true }

type CallGuardParts = {
  call: GuardedCall
  ask: AskGuard
  onBlocked?: ((guard: string) => void) | undefined
  /** Those of the call so far, which may have been at another model. */
  results: GuardResult[]
}

/** A text that is longer fits no schema. */
export const MAX_FITTED_CHARACTERS = 1_000_000

export class CallGuards {
  readonly #guards: readonly Guard[]
  readonly #input: readonly Guard[]
  readonly #output: readonly Guard[]
  readonly #schemas: readonly Guard[]
  readonly #restores: boolean
  readonly #parts: CallGuardParts
  readonly #placeholders = new Placeholders()
  /** Called where an answer is blocked. */
  onBlocked: (() => void) | undefined

  constructor(guards: readonly Guard[], parts: CallGuardParts) {
    this.#input = guards.filter((guard) => checksSide(guard, 'input'))
    this.#output = guards.filter((guard) => !guard.misfit && checksSide(guard, 'output'))
    this.#schemas = guards.filter(({ misfit }) => misfit)
    this.#restores = guards.some(restores)
    this.#parts = parts
    this.#guards = guards
  }

  /** What each of them has decided, for the request log. */
  get results(): GuardResult[] {
    return this.#parts.results
  }

  /** Whether none of them is for this call, such as where each is for a tag that it has not. */
  get areNone(): boolean {
    return this.#guards.length === 0
  }

  /** Changes with their settings. */
  get fingerprint(): string {
    return JSON.stringify(this.#guards.map(({ name, config }) => [name, config]))
  }

  /** Whether an answer must be read before the client gets it. */
  get readsAnswer(): boolean {
    return this.#output.length > 0 || (this.#restores && !this.#placeholders.isEmpty)
  }

  /** Whether a model or a service decides of the answer. */
  get asksAboutAnswer(): boolean {
    return this.#output.some(asks)
  }

  /** The same of an answer of chat, which schemas are for. */
  get readsChat(): boolean {
    return this.readsAnswer || this.hasSchemas
  }

  get hasSchemas(): boolean {
    return this.#schemas.length > 0
  }

  /** Whether a streamed answer is held back until it is known to fit. */
  get holdsAnswer(): boolean {
    return this.#schemas.some(({ isObserving }) => !isObserving)
  }

  /**
   * Checks and changes the texts of a request. Rejects with GatewayError where a guard blocks it. `isAnswered`: the provider has
   * answered it already, so that nobody is asked again whether it may be sent.
   */
  async checkInput(texts: readonly GuardedText[], isAnswered = false): Promise<void> {
    this.#placeholders.avoid(texts.map(({ text }) => text))
    try {
      await this.#checkAll(isAnswered ? this.#input.filter(hasRules) : this.#input, 'input', texts)
    } catch (thrown) {
      throw thrown instanceof Blocked ? blocked(thrown.guard) : thrown
    }
  }

  /** The same of a whole answer. False: a guard blocks it. `fit` makes it fit schemas, and returns its texts. */
  async checkOutput(texts: readonly GuardedText[], fit?: () => Promise<readonly GuardedText[]>): Promise<boolean> {
    let checked = texts
    try {
      await this.#checkAll(this.#output, 'output', texts)
      if (fit && this.hasSchemas) checked = await fit()
    } catch (thrown) {
      if (!(thrown instanceof Blocked)) throw thrown
      this.blockedBy(thrown)
      return false
    }
    if (this.#restores && !this.#placeholders.isEmpty)
      for (const one of checked) one.text = this.#placeholders.restored(one.text, one.is_json ?? false)
    return true
  }

  /**
   * Makes the filters of one streamed answer, one for each text. What others are asked about has passed the rules, and is
   * not yet restored.
   */
  outputFilters(steps: GuardSteps = 'all'): (isJson: boolean) => TextFilter {
    const lengths: Lengths = new Map()
    return (isJson) => {
      const filters: TextFilter[] = (steps === 'restore' ? [] : this.#output.filter(hasRules)).flatMap((guard) => {
        this.#note(guard, 'output', 'passed')
        return this.#filters(guard, { side: 'output', isJson, lengths })
      })
      if (steps !== 'rules' && this.#restores && !this.#placeholders.isEmpty)
        filters.push(this.#placeholders.restorer(isJson))
      return new FilterChain(filters)
    }
  }

  /** Asks about a part of a streamed answer. Rejects with Blocked; a text that is to be replaced is blocked. */
  async askAboutPart(texts: readonly string[]): Promise<void> {
    for (const guard of this.#output.filter(asks)) {
      this.#note(guard, 'output', 'passed')
      await this.#decide(guard, 'output', texts, (replaced) => {
        if (replaced.some((text, at) => text !== texts[at])) throw new Blocked(guard)
      })
    }
  }

  /**
   * The text of an answer, as it fits the schemas. What is checked has values in place of placeholders; what the model is
   * asked to repair has not. Rejects with Blocked. `answered` absent: nobody is asked.
   */
  async fitted(given: string, answered?: Answered): Promise<string> {
    const text = unfenced(given)
    const misfit = this.#misfit(text, text !== given)
    if (!misfit) return this.holdsAnswer ? text : given
    if (!misfit.config.repair || !answered || text.length > MAX_FITTED_CHARACTERS) throw new Blocked(misfit)
    const problem = problemOf(misfit, text) ?? 'a value does not fit'
    let repaired: string | undefined
    await this.#decide(misfit, 'output', [text, problem], ([first]) => (repaired = first), answered)
    if (repaired === undefined) throw new Blocked(misfit)
    const one = { text: unfenced(repaired) }
    await this.#checkAll(this.#output, 'output', [one])
    const again = this.#misfit(one.text, false)
    if (again) throw new Blocked(again)
    this.#note(misfit, 'output', 'replaced')
    return one.text
  }

  /** The guard whose schema a text does not fit. Those that observe are noted. */
  #misfit(text: string, isChanged: boolean): Guard | undefined {
    const restored = this.#placeholders.restored(text, false)
    return this.#schemas.find((guard) => {
      const { isObserving } = guard
      const changed = isObserving ? 'would_replace' : 'replaced'
      const isMisfit = problemOf(guard, restored) !== undefined
      this.#note(guard, 'output', isMisfit && isObserving ? 'would_block' : isChanged ? changed : 'passed')
      return isMisfit && !isObserving
    })
  }

  blockedBy({ guard }: Blocked): void {
    this.#note(guard, 'output', 'blocked')
    this.onBlocked?.()
  }

  /** Others are asked last, about what is left. */
  async #checkAll(guards: readonly Guard[], side: GuardSide, texts: readonly GuardedText[]): Promise<void> {
    if (this.#guards.some(({ isForeign }) => isForeign)) await loadDetector()
    for (const guard of guards.filter(hasRules)) this.#check(guard, side, texts)
    for (const guard of guards.filter(asks)) {
      this.#note(guard, side, 'passed')
      const asked = texts.filter(({ text }) => text !== '')
      if (asked.length === 0) continue
      try {
        await this.#decide(
          guard,
          side,
          asked.map(({ text }) => text),
          (replaced) => replaceAll(asked, replaced),
        )
      } catch (thrown) {
        if (thrown instanceof Blocked) this.#note(guard, side, 'blocked')
        throw thrown
      }
    }
  }

  /** Rejects with Blocked. */
  async #decide(
    guard: Guard,
    on: GuardSide,
    texts: readonly string[],
    replace: (texts: readonly string[]) => void,
    answered?: Answered,
  ): Promise<void> {
    const { call, ask } = this.#parts
    const { name, config, isObserving } = guard
    let verdict: Verdict
    try {
      verdict = await ask({ name, config, on, texts, call, ...(answered && { answered }) })
      if (verdict.action === 'replace' && !isObserving) replace(verdict.texts)
    } catch (thrown) {
      if (thrown instanceof Blocked) throw thrown
      call.signal.throwIfAborted()
      this.#note(guard, on, 'failed')
      if (isObserving || config.on_error === 'open') return
      throw new Blocked(guard)
    }
    if (verdict.action === 'replace') this.#note(guard, on, isObserving ? 'would_replace' : 'replaced')
    if (verdict.action !== 'block') return
    if (!isObserving) throw new Blocked(guard)
    this.#note(guard, on, 'would_block')
  }

  #check(guard: Ruled, side: GuardSide, texts: readonly GuardedText[]): void {
    this.#note(guard, side, 'passed')
    const lengths: Lengths = new Map()
    for (const one of texts) {
      const filter = new FilterChain(
        this.#filters(guard, { side, isJson: one.is_json ?? false, lengths, isWhole: true }),
      )
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

  #filters(guard: Ruled, { side, isJson, lengths, isWhole }: Filtering): TextFilter[] {
    const { isForeign, isObserving } = guard
    const { max_characters, link_hosts, kind } = guard.config
    const block = () => {
      if (!isObserving) throw new Blocked(guard)
      this.#note(guard, side, 'would_block')
    }
    const count = ({ length }: string) => {
      const total = (lengths.get(guard) ?? 0) + length
      lengths.set(guard, total)
      if (max_characters !== undefined && total > max_characters) block()
    }
    const judge = (text: string, isCode?: boolean) => void (isForeign?.(text, isCode) && block())
    const limits: TextFilter[] = max_characters === undefined ? [] : [new PieceFilter(count)]
    if (isForeign && !isJson) limits.push(isWhole ? new PieceFilter(judge) : new LanguageFilter(judge, !isObserving))
    if (kind === 'limits' && !link_hosts) return limits
    return [...limits, new RulesFilter({ guard, side, isJson, placeholders: this.#placeholders, note: this.#note })]
  }

  readonly #note = ({ name }: Guard, on: GuardSide, outcome: GuardOutcome): void => {
    const { results } = this
    const known = results.find((one) => one.name === name && one.on === on)
    if (outcome === 'blocked' && known?.outcome !== 'blocked') this.#parts.onBlocked?.(name)
    if (!known) results.push({ name, on, outcome })
    else if (GUARD_OUTCOMES.indexOf(outcome) > GUARD_OUTCOMES.indexOf(known.outcome)) known.outcome = outcome
  }
}

/** Throws SyntaxError where a JSON text would be none any more, before anything is changed. */
function replaceAll(texts: readonly GuardedText[], replaced: readonly string[]): void {
  for (const [at, { is_json }] of texts.entries()) if (is_json) JSON.parse(replaced[at] ?? '')
  for (const [at, one] of texts.entries()) if (replaced[at] !== one.text) one.text = replaced[at] ?? ''
}

/** A block of code that is all of an answer is read as what it contains; models write JSON so. */
const unfenced = (text: string): string => /^\s*```[\w-]*\n(.*?)\n?```\s*$/s.exec(text)?.[1] ?? text

/** How a text does not fit; undefined: it fits. */
function problemOf({ misfit }: Guard, text: string): string | undefined {
  if (text.length > MAX_FITTED_CHARACTERS) return 'it is too long'
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return 'it is not JSON'
  }
  return misfit?.(value)
}

/** What was found is not repeated. */
const blocked = ({ name }: Guard): GatewayError =>
  new GatewayError('content_blocked', `The guard "${name}" blocked the content of the request.`, { accepted: 'no' })
