/** Checks a list of budgets beyond their schema. */
import type { Budget } from '../../spec/rate-limit.ts'

type BudgetProblem = { index: number; field?: 'time_zone'; message: string }

export function budgetProblems(budgets: readonly Budget[]): BudgetProblem[] {
  const problems: BudgetProblem[] = []
  const seen = new Set<string>()
  for (const [index, budget] of budgets.entries()) {
    if (budget === undefined) continue // it failed the schema
    const { window, time_zone = 'UTC', starts_at = 0 } = budget
    if (!isTimeZone(time_zone)) {
      problems.push({ index, field: 'time_zone', message: 'is not a time zone; use a name such as Europe/Berlin' })
    }
    const name = `${window} ${time_zone} ${starts_at}`
    if (seen.has(name)) {
      problems.push({ index, message: 'has the same window, time zone and start as another budget of this list' })
    }
    seen.add(name)
  }
  return problems
}

function isTimeZone(name: string): boolean {
  try {
    Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(name)
    return true
  } catch {
    return false
  }
}
