/** Parses the expiry of a token: `30d`, `12h`, `2026-12-31`, a full time, or `never`. */

const UNIT_SECONDS: Record<string, number> = { m: 60, h: 3600, d: 86_400, w: 604_800, y: 31_536_000 }

/** A number and a unit: `90d`. */
const DURATION = /^(\d{1,6})([mhdwy])$/
/** A date, optionally with a time and its zone. */
const DATE = /^\d{4}-\d{2}-\d{2}$/
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2})?(Z|[+-]\d{2}:\d{2})$/

/** Seconds of a time such as `24h`; undefined for anything else. */
export function readDuration(text: string): number | undefined {
  const [, count, unit = ''] = DURATION.exec(text) ?? []
  return count === undefined ? undefined : Number(count) * (UNIT_SECONDS[unit] ?? 0)
}

/** Unix seconds; null for never; a string is an error message. A date means the end of that day, in UTC. */
export function readExpiry(text: string, now: number): number | null | string {
  if (text === 'never') return null
  const duration = readDuration(text)
  const seconds = duration === undefined ? readDate(text, true) : now + duration
  if (seconds === undefined) {
    return `found ${JSON.stringify(text)}, must be like 30d, 12h, 2026-12-31, 2026-12-31T18:00Z, or never`
  }
  return seconds > now ? seconds : `found ${JSON.stringify(text)}, which has already passed`
}

/** Unix seconds; of a date its beginning or its end, in UTC. Undefined: the text is neither a date nor a time. */
export function readDate(text: string, isEnd: boolean): number | undefined {
  const isDate = DATE.test(text)
  if (!isDate && !TIME.test(text)) return undefined
  const at = Date.parse(text)
  // Some runtimes roll the 31st of a short month over; an invalid date is rejected.
  if (Number.isNaN(at) || (isDate && new Date(at).toISOString().slice(0, 10) !== text)) return undefined
  return Math.floor(at / 1000) + (isDate && isEnd ? 86_400 : 0)
}
