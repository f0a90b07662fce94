/** The range of time of a command: `--from` and `--to`, as dates in UTC or times. */
import { systemClock, unixSeconds } from '../kit/clock.ts'
import { type Arguments, UsageError } from './arguments.ts'

const DAY_SECONDS = 86_400
const DATE = /^\d{4}-\d{2}-\d{2}$/
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2})?(Z|[+-]\d{2}:\d{2})$/
const DAYS_AGO = /^(\d{1,4})d$/

/** Unix seconds: `from` inclusive, `to` exclusive. Default: the last `days` days to the end of today, UTC. */
export function readTimeRange(command: string, given: Arguments, days: number): { from: number; to: number } {
  const tomorrow = (Math.floor(unixSeconds(systemClock) / DAY_SECONDS) + 1) * DAY_SECONDS
  const to = readTime(command, given, { flag: 'to', tomorrow }) ?? tomorrow
  const from = readTime(command, given, { flag: 'from', tomorrow }) ?? Math.max(0, tomorrow - days * DAY_SECONDS)
  if (from < to) return { from, to }
  throw new UsageError(command, '--from must be before --to')
}

/** A date as `--to` includes that day. */
function readTime(
  command: string,
  given: Arguments,
  { flag, tomorrow }: { flag: 'from' | 'to'; tomorrow: number },
): number | undefined {
  const text = given.text(flag)
  if (text === undefined) return undefined
  const [, ago] = DAYS_AGO.exec(text) ?? []
  if (ago !== undefined) return tomorrow - Number(ago) * DAY_SECONDS
  const isDate = DATE.test(text)
  const at = isDate || TIME.test(text) ? Date.parse(text) : Number.NaN
  if (!Number.isNaN(at) && (!isDate || new Date(at).toISOString().startsWith(text))) {
    return Math.floor(at / 1000) + (isDate && flag === 'to' ? DAY_SECONDS : 0)
  }
  throw new UsageError(
    command,
    `--${flag}: found ${JSON.stringify(text)}, must be like 2026-01-31, 2026-01-31T18:00Z, or 7d (7 days ago)`,
  )
}
