/** The forecast of budgets. */
import { describe, expect, test } from 'bun:test'
import type { AdminBudget } from '../../console/src/api/types.ts'
import { byRisk, forecastOf } from '../../console/src/pages/usage/forecast.ts'

const budget = (fields: Partial<AdminBudget>): AdminBudget => ({
  budget: 'project:a/day/UTC/0',
  scope: 'project:a',
  owner: 'the project "a"',
  project_id: 'a',
  window: 'day',
  amount: 100,
  soft: false,
  used: 0,
  credit: 0,
  held: 0,
  window_start: 1_000,
  window_end: 2_000,
  ...fields,
})

describe('the forecast of a budget', () => {
  test('goes on as it has so far, and says when the budget will be used up', () => {
    expect(forecastOf(budget({ used: 80 }), 1_500)).toMatchObject({ expected: 160, limit: 100, used_up_at: 1_625 })
    expect(forecastOf(budget({ used: 40 }), 1_500)).toMatchObject({ expected: 80, used_up_at: undefined })
    expect(forecastOf(budget({ used: 80, credit: 100 }), 1_500)).toMatchObject({ limit: 200, used_up_at: undefined })
  })

  test('of a budget that is used up is that it is now', () => {
    expect(forecastOf(budget({ used: 120 }), 1_500)?.used_up_at).toBe(1_500)
  })

  test('is none early in the window, without an end, or without an amount', () => {
    expect(forecastOf(budget({ used: 5 }), 1_019)).toBeUndefined()
    expect(forecastOf(budget({ used: 5 }), 1_020)).toBeDefined()
    expect(forecastOf(budget({ window_end: null }), 1_500)).toBeUndefined()
    expect(forecastOf(budget({ amount: null }), 1_500)).toBeUndefined()
  })

  test('sorts by the share of the limit', () => {
    const some = [10, 90, 50].map((used) => forecastOf(budget({ used }), 1_500)).filter((one) => one !== undefined)
    expect(byRisk(some).map(({ expected }) => expected)).toEqual([180, 100, 20])
  })
})
