/** Guards of each kind, made of their settings. */
import { describe, expect, it } from 'bun:test'
import { checkGuards } from '../../config/check/guard-checks.ts'
import { violationsOf } from '../../config/check/problem.ts'
import { checkValues } from '../../config/check/value-checks.ts'
import { type GuardConfig, LANGUAGES } from '../../config/schema/guard-schema.ts'
import { asks, checksSide, createGuard } from './guard.ts'

function problemsOf(guard: GuardConfig): string[] {
  const config = { guards: { g: guard } }
  const problems = violationsOf((report) => {
    checkValues({ config, vendors: undefined, discover: true, now: 0 }, report)
    checkGuards(config, report)
  })
  return problems.map(({ path, message }) => `${path.join('.')} ${message}`)
}

/** How a guard checks: by rules, by a schema, or by asking. */
const KINDS: [GuardConfig, 'rules' | 'schema' | 'asks', string][] = [
  [{ kind: 'patterns', words: ['falcon'] }, 'rules', 'input output'],
  [{ kind: 'redact' }, 'rules', 'input'],
  [{ kind: 'limits', max_characters: 10 }, 'rules', 'input output'],
  [{ kind: 'limits', languages: ['de'] }, 'rules', 'input output'],
  [{ kind: 'schema', schema: { type: 'object' } }, 'schema', 'output'],
  [{ kind: 'moderation', model: 'm' }, 'asks', 'input output'],
  [{ kind: 'classifier', model: 'm' }, 'asks', 'input output'],
  [{ kind: 'webhook', url: 'https://checks.example' }, 'asks', 'input output'],
]

describe('a guard', () => {
  it.each(KINDS)('is made of %j', (config, how, sides) => {
    expect(problemsOf(config)).toEqual([])
    const guard = createGuard('g', config)
    const found = { rules: guard.rules !== undefined, schema: guard.misfit !== undefined, asks: asks(guard) }
    expect(found).toEqual({ rules: how === 'rules', schema: how === 'schema', asks: how === 'asks' })
    expect((['input', 'output'] as const).filter((side) => checksSide(guard, side)).join(' ')).toBe(sides)
    expect(createGuard('g', { ...config, mode: 'observe' }).isObserving).toBe(true)
  })

  const WRONG: [GuardConfig, string][] = [
    [{ kind: 'patterns' }, 'guards.g needs `patterns`, `words` or `sets`: without them nothing can match'],
    [
      { kind: 'limits' },
      'guards.g needs `max_characters`, `languages` or `link_hosts`: without them nothing is limited',
    ],
    [
      { kind: 'limits', languages: ['de', 'tlh'] },
      `guards.g.languages.1 found "tlh", which is no known language; known: ${LANGUAGES.join(', ')}`,
    ],
    [{ kind: 'moderation' }, 'guards.g needs `model`: without it nothing can be asked'],
    [{ kind: 'classifier' }, 'guards.g needs `model`: without it nothing can be asked'],
    [{ kind: 'webhook' }, 'guards.g needs `url`: without it nothing can be asked'],
    [{ kind: 'webhook', url: 'ftp://x' }, 'guards.g.url must be an address that begins with https:// or http://'],
    [{ kind: 'redact', action: 'block' }, 'guards.g.action is a setting of kind patterns and webhook, not of redact'],
  ]
  it.each(WRONG)('is refused where it is %j', (config, problem) => {
    expect(problemsOf(config)).toEqual([problem])
  })

  it('names the pattern that is none, which is not compiled either', () => {
    const config: GuardConfig = { kind: 'patterns', patterns: ['fine', '('] }
    expect(problemsOf(config)).toEqual([
      expect.stringMatching(/^guards\.g\.patterns\.1 is no regular expression in RE2/),
    ])
    expect(() => createGuard('g', config)).toThrow()
    expect(() => createGuard('g', { kind: 'schema', schema: { type: 'text' } })).toThrow()
  })
})
