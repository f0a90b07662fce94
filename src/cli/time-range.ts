/** The range of time of a command: `--from` and `--to`, as dates in UTC, times, or words such as last-week. */
import { systemClock, unixSeconds } from '../kit/clock.ts'
import { type Arguments, UsageError } from './arguments.ts'
import { readDate } from './expiry.ts'

const DAY_SECONDS = 86_400
const DAYS_AGO = /^(\d{1,4})d$/
/** 1970-01-01 was a Thursday; a week begins on Monday. */
const FIRST_MONDAY_DAYS = 4

/** Unix seconds: `from` inclusive, `to` exclusive. Default: the last `days` days to the end of today, UTC. */
export function readTimeRange(command: string, given: Arguments, days: number): { from: number; to: number } {
  const now = unixSeconds(systemClock)
  const read = (flag: 'from' | 'to'): number | undefined => {
    const text = given.text(flag)
    if (text === undefined) return undefined
    const at = timeOf(text, flag, now)
    if (at !== undefined) return at
    const found = `--${flag}: found ${JSON.stringify(text)}`
    const forms =
      '2026-01-31, 2026-01-31T18:00Z, 7d (7 days ago), today, yesterday, this-week, last-week, this-month or last-month'
    throw new UsageError(command, `${found}, must be like ${forms}`)
  }
  const tomorrow = startOfDay(now) + DAY_SECONDS
  const to = read('to') ?? tomorrow
  const from = read('from') ?? Math.max(0, tomorrow - days * DAY_SECONDS)
  if (from < to) return { from, to }
  throw new UsageError(command, '--from must be before --to')
}

/** In unix seconds. A date or a word is its beginning as `from`, and its end as `to`. Undefined: the text is no time. */
export function timeOf(text: string, flag: 'from' | 'to', now: number): number | undefined {
  const [, ago] = DAYS_AGO.exec(text) ?? []
  if (ago !== undefined) return startOfDay(now) + DAY_SECONDS - Number(ago) * DAY_SECONDS
  const period = periodOf(text, startOfDay(now))
  return period ? period[flag] : readDate(text, flag === 'to')
}

const startOfDay = (seconds: number): number => Math.floor(seconds / DAY_SECONDS) * DAY_SECONDS

function periodOf(word: string, today: number): { from: number; to: number } | undefined {
  const days = (from: number, count: number) => ({ from, to: from + count * DAY_SECONDS })
  const week = (weeks: number) => {
    const weekday = (today / DAY_SECONDS - FIRST_MONDAY_DAYS) % 7
    return days(today + (7 * weeks - weekday) * DAY_SECONDS, 7)
  }
  const month = (months: number) => {
    const at = new Date(today * 1000)
    const start = (offset: number) => Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + offset) / 1000
    return { from: start(months), to: start(months + 1) }
  }
  const periods = new Map([
    ['today', () => days(today, 1)],
    ['yesterday', () => days(today - DAY_SECONDS, 1)],
    ['this-week', () => week(0)],
    ['last-week', () => week(-1)],
    ['this-month', () => month(0)],
    ['last-month', () => month(-1)],
  ])
  return periods.get(word)?.()
}
