/** Where a budget will stand at the end of its window, if it goes on as it has so far. */
import type { AdminBudget } from '../../api/types.ts'

export type Forecast = {
  budget: AdminBudget
  /** What may be used in the window, with credit. */
  limit: number
  /** At the end of the window. */
  expected: number
  /** Unix seconds, when it will be used up; undefined: not in this window. */
  used_up_at: number | undefined
}

/** Too little of a window has passed to say anything. */
const MIN_PART = 0.02

/** Undefined: it has no amount or no end, or too little of its window has passed. */
export function forecastOf(budget: AdminBudget, now: number): Forecast | undefined {
  const { amount, credit, used, window_start, window_end } = budget
  if (amount === null || window_end === null) return undefined
  const passed = now - window_start
  if (passed < (window_end - window_start) * MIN_PART) return undefined
  const limit = amount + credit
  const a_second = used / passed
  const left = limit - used
  const used_up_at = left <= 0 ? now : a_second > 0 ? now + left / a_second : undefined
  return {
    budget,
    limit,
    expected: a_second * (window_end - window_start),
    used_up_at: used_up_at !== undefined && used_up_at < window_end ? Math.floor(used_up_at) : undefined,
  }
}

/** Those that come closest to their limit, first. */
export const byRisk = (forecasts: Forecast[]): Forecast[] =>
  [...forecasts].sort((one, other) => shareOf(other) - shareOf(one))

const shareOf = ({ expected, limit }: Forecast): number => (limit > 0 ? expected / limit : Number.POSITIVE_INFINITY)
