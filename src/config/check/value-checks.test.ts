import { expect, it } from 'bun:test'
import { loadConfig } from '../load/load.ts'
import { budgetProblems } from './budget-checks.ts'
import { ConfigError } from './problem.ts'

it('reports an unknown time zone and a repeated window', () => {
  expect(budgetProblems([{ amount: 1, window: 'day', time_zone: 'Berlin' }])).toEqual([
    { index: 0, field: 'time_zone', message: 'is not a time zone; use a name such as Europe/Berlin' },
  ])
  const [day, other] = [
    { amount: 1, window: 'day' as const },
    { amount: 2, window: 'day' as const },
  ]
  expect(budgetProblems([day, { ...other, time_zone: 'Europe/Berlin' }, { ...other, starts_at: 5 }])).toEqual([])
  expect(budgetProblems([day, other])).toEqual([
    { index: 1, message: 'has the same window, time zone and start as another budget of this list' },
  ])
})

const KEYS = 'providers: { openai: { preset: openai, keys: [a] } }'

it.each([
  'budgets: [a]',
  'tokens: { budgets: [a] }',
  `${KEYS}\nmodels: { m: { targets: [{ provider: openai, model: m }] } }`,
  'request_log: { contents: { patterns: [a] } }',
])('an entry of another type is a problem of its own: %s', (text) => {
  const load = () => loadConfig({ environment: {}, cwd: '/nowhere', readFile: () => text })
  expect(load).toThrow(ConfigError)
  expect(load).toThrow('found "a" (string)')
})
