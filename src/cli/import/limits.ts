/** Budgets, windows, times and names of accounts of other gateways as those here. */
import { MAX_AMOUNT } from '../../spec/price.ts'
import {
  type Budget,
  type BudgetWindow,
  MAX_RATE_LIMIT,
  type RateLimitKey,
  type RateUnit,
  type RateWindow,
} from '../../spec/rate-limit.ts'
import type { Draft, Members } from './imported.ts'

const UNITS: Record<string, number> = {
  s: 1,
  m: 60,
  h: 3_600,
  d: 86_400,
  w: 604_800,
  mo: 2_592_000,
  M: 2_592_000,
  y: 31_536_000,
  Y: 31_536_000,
}
const DAY = 86_400

/** In seconds, of a text such as 30d, 24h or 1mo; undefined: it is none. */
function durationSeconds(text: string): number | undefined {
  const named = { daily: '1d', weekly: '7d', monthly: '30d', hourly: '1h' }[text] ?? text
  const [, count, unit = ''] = /^(\d{1,9})(s|mo|m|h|d|w|M|y|Y)$/.exec(named) ?? []
  return count === undefined ? undefined : Number(count) * (UNITS[unit] ?? 0)
}

const WINDOWS: readonly [BudgetWindow, number][] = [
  ['month', 30 * DAY],
  ['week', 7 * DAY],
  ['day', DAY],
]

type WindowOf = { window: BudgetWindow; share: number; isExact: boolean }

/** The longest window that is not longer, and the share of an amount that it has; a day at least. */
function windowOf(seconds: number | undefined): WindowOf {
  if (seconds === undefined) return { window: 'total', share: 1, isExact: true }
  if (seconds >= 28 * DAY && seconds <= 31 * DAY) return { window: 'month', share: 1, isExact: true }
  const [window, length] = WINDOWS.find(([, length]) => length <= seconds) ?? (['day', DAY] as const)
  return { window, share: length / seconds, isExact: length === seconds }
}

const RATE_WINDOWS: readonly [RateWindow, number][] = [
  ['day', DAY],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
]

type Rate = { key: RateLimitKey; value: number; isExact: boolean }

/** `most` in `duration` as a limit of the longest window that is not longer; undefined: it is no duration. */
export function rateOf(unit: RateUnit, most: number, duration: string): Rate | undefined {
  const seconds = durationSeconds(duration)
  if (seconds === undefined || seconds < 1) return undefined
  const [window, length] = RATE_WINDOWS.find(([, length]) => length <= seconds) ?? (['second', 1] as const)
  const value = Math.min(MAX_RATE_LIMIT, Math.floor((most * length) / seconds))
  return { key: `${unit}_per_${window}`, value, isExact: length === seconds }
}

type UsedPlace = { name: string; duration?: string | undefined; to: string }

/** What was spent of a budget of `duration`; of a window that is shorter here, its share of it, as of the amount. */
export function usedOf(draft: Draft, members: Members, { name, duration, to }: UsedPlace): number | undefined {
  const spent = members.number(name)
  if (spent === undefined) return undefined
  const { window, share } = windowOf(duration === undefined ? undefined : durationSeconds(duration))
  const used = Number((Math.max(0, spent) * Math.min(1, share)).toPrecision(12))
  const of = window === 'total' ? 'in total' : `in its ${window}`
  const why = share >= 1 ? undefined : `it is the share of ${spent} in ${duration}`
  if (used > 0) draft.mapped(members.at(name), `${to}: ${used} spent ${of}`, why)
  return used
}

type BudgetPlace = { max: string; duration: string; to: string; soft?: string }

/** The budget of the members `max` and `duration`. */
export function budgetOf(draft: Draft, members: Members, { max, duration, soft, to }: BudgetPlace): Budget | undefined {
  const given = members.number(max)
  const text = members.text(duration)
  const warn = soft === undefined ? undefined : members.number(soft)
  if (given === undefined && warn === undefined) return undefined
  const seconds = text === undefined ? undefined : durationSeconds(text)
  if (text !== undefined && seconds === undefined)
    draft.dropped(members.at(duration), 'it is no duration, so the budget has no end')
  const { window, share, isExact } = windowOf(seconds)
  const full = given ?? warn ?? 0
  const amount = Math.min(MAX_AMOUNT, Math.max(0, Number((full * share).toPrecision(12))))
  const at = members.at(given === undefined ? (soft ?? max) : max)
  const why = isExact ? undefined : `a budget has a day, a week or a month; ${text} has ${full}`
  draft.mapped(at, `${to}: ${amount} a ${window}`, why)
  const percent = given !== undefined && warn !== undefined && given > 0 ? (warn / given) * 100 : undefined
  return {
    amount,
    window,
    ...(given === undefined && { soft: true }),
    ...(percent !== undefined &&
      percent > 0 &&
      percent <= 100 && { thresholds: [Number(percent.toPrecision(6)), 100] }),
  }
}

/** Names of projects are unique. */
export function uniqueName(draft: Draft, name_there: string): string {
  const base =
    name_there
      .replaceAll(/\p{Cc}/gu, ' ')
      .trim()
      .slice(0, 90) || 'unnamed'
  let name = base
  for (let number = 2; draft.projects.some((one) => one.name === name); number++) name = `${base} ${number}`
  return name
}

/** In unix seconds; the dates of databases are UTC. */
export function timeOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  // PostgreSQL writes a zone as +00, and Go as " +0000 UTC".
  const iso = text.replace(' ', 'T').replace(/(:\d\d(?:\.\d+)?) ?([+-]\d\d)(?::?(\d\d))?(?: [A-Z]+)?$/, zoned)
  const at = Date.parse(/(Z|[+-]\d\d:\d\d)$/.test(iso) ? iso : `${iso}Z`)
  return Number.isNaN(at) ? undefined : Math.floor(at / 1000)
}

const zoned = (_: string, time: string, hours: string, minutes = '00') => `${time}${hours}:${minutes}`
