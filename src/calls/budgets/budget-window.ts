/** The windows of budgets: days, weeks and months of a time zone, or all time. */
import type { Budget } from '../../spec/rate-limit.ts'

/** Unix milliseconds; `end_ms` is undefined where the window never ends. */
type BudgetSpan = { start_ms: number; end_ms: number | undefined }

const MONDAY = 1

/** The window of a budget that contains this time, or one that starts later where the budget does. Throws RangeError for an unknown time zone. */
export function spanAt({ window, time_zone = 'UTC', starts_at = 0 }: Budget, now_ms: number): BudgetSpan {
  const first_ms = starts_at * 1000
  if (window === 'total') return { start_ms: first_ms, end_ms: undefined }
  const today = Temporal.Instant.fromEpochMilliseconds(now_ms).toZonedDateTimeISO(time_zone).startOfDay()
  const start = startOf(window, today)
  // startOfDay again: where a day starts later than at midnight, adding days to it does not give the start of another.
  const end = start.add({ [`${window}s`]: 1 }).startOfDay()
  return { start_ms: Math.max(first_ms, start.epochMilliseconds), end_ms: end.epochMilliseconds }
}

function startOf(window: Exclude<Budget['window'], 'total'>, today: Temporal.ZonedDateTime): Temporal.ZonedDateTime {
  if (window === 'day') return today
  const start = window === 'month' ? today.with({ day: 1 }) : today.subtract({ days: today.dayOfWeek - MONDAY })
  return start.startOfDay()
}
