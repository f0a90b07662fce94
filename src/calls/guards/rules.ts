/** The rules of one guard: what counts as a match in a text. */
import { type GuardConfig, PERSONAL_DATA, type RuleSetName } from '../../config/schema/guard-schema.ts'
import { matchesGlob } from '../../kit/glob.ts'
import { Automaton } from '../../kit/patterns/automaton.ts'
import { findMatches, Scanner, type Span } from '../../kit/patterns/scanner.ts'
import { PERSONAL_RULES } from './personal-rules.ts'
import type { Rule } from './rule.ts'
import { SECRET_RULES } from './secret-rules.ts'

export class Rules {
  readonly #rules: readonly Rule[]
  readonly #automaton: Automaton
  readonly #allowed: ReadonlySet<string>

  /** Throws Error for a pattern that is none. */
  constructor(rules: readonly Rule[], allow: readonly string[] = []) {
    this.#rules = rules
    this.#automaton = new Automaton(rules)
    this.#allowed = new Set(allow.map((text) => text.toLowerCase()))
  }

  find(text: string): Span[] {
    return findMatches(this.#automaton, text, this.#accepts)
  }

  scanner(): Scanner {
    return new Scanner(this.#automaton, this.#accepts)
  }

  labelOf(pattern: number): string {
    return this.#rules[pattern]?.label ?? 'TEXT'
  }

  readonly #accepts = (pattern: number, text: string): boolean =>
    (this.#rules[pattern]?.isValid?.(text) ?? true) && !this.#allowed.has(text.toLowerCase())
}

export function rulesOf(config: GuardConfig): Rules {
  const { patterns = [], words = [], case_sensitive = false, allow } = config
  const sets =
    config.sets ?? (config.kind === 'redact' && patterns.length + words.length === 0 ? ['personal_data'] : [])
  const ignores_case = !case_sensitive
  const own: Rule[] = [
    ...(config.link_hosts ? [linkRule(config.link_hosts)] : []),
    ...patterns.map((source) => ({ name: 'pattern', label: 'TEXT', source, ignores_case })),
    ...words.map((word) => ({ name: 'word', label: 'TEXT', source: sourceOfWord(word), ignores_case })),
  ]
  const builtIn = [...new Set(sets as RuleSetName[])].flatMap(rulesOfSet)
  return new Rules([...own, ...new Map(builtIn.map((rule) => [rule.name, rule])).values()], allow)
}

function rulesOfSet(set: RuleSetName): Rule[] {
  if (set === 'secrets') return [...SECRET_RULES]
  if (set !== 'personal_data') return [{ name: set, ...PERSONAL_RULES[set] }]
  return PERSONAL_DATA.filter((name) => !PERSONAL_RULES[name].is_separate).map((name) => ({
    name,
    ...PERSONAL_RULES[name],
  }))
}

/** A boundary beside a letter or digit of the word; beside other characters there is none. */
function sourceOfWord(word: string): string {
  const escaped = word.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&').replace(/\s+/g, '\\s+')
  return `${/^\w/.test(word) ? '\\b' : ''}${escaped}${/\w$/.test(word) ? '\\b' : ''}`
}

/** Links to other hosts than these, up to the end of the host; one with a user name hides its host. */
const linkRule = (hosts: readonly string[]): Rule => ({
  name: 'link',
  label: 'LINK',
  source: String.raw`\bhttps?:[/\\]{2}[^\s/?#@\\<>"'()\[\]{}|^\x60]+(?:[\s/?#@\\<>"'()\[\]{}|^\x60]|$)`,
  ignores_case: true,
  isValid(link) {
    const host = link.endsWith('@') ? undefined : URL.parse(link.replace(/[^A-Za-z0-9]$/, ''))?.hostname
    return host === undefined || !hosts.some((pattern) => matchesGlob(pattern.toLowerCase(), host))
  },
})
