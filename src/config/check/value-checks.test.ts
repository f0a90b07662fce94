import { expect, it } from 'bun:test'
import { budgetProblems } from './budget-checks.ts'

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
