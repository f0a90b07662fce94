/** Writes numbers, money, times and durations for people, in the viewer's language and zone. */
const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 })
const short = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 })
const percent = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 })
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' })
const date_time = new Intl.DateTimeFormat(undefined, {
  year: 'numeric',
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
})
const clock_only = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const day_time = new Intl.DateTimeFormat(undefined, {
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
})
const date_only = new Intl.DateTimeFormat(undefined, { year: 'numeric', month: 'short', day: 'numeric' })

export const count = (value: number): string => whole.format(value)
/** `1 call`, `12 calls`. */
export const callCount = (value: number, format = count): string => `${format(value)} ${value === 1 ? 'call' : 'calls'}`
/** `12.3K`. */
export const shortCount = (value: number): string =>
  Math.abs(value) < 10_000 ? whole.format(value) : short.format(value)
export const share = (value: number): string => percent.format(Number.isFinite(value) ? value : 0)

let shown_currency = 'USD'
/** In which the gateway counts. */
export function setCurrency(currency: string): void {
  shown_currency = currency
}

/** An amount; small ones keep two digits that say something. */
export function money(value: number, currency = shown_currency): string {
  const size = Math.abs(value)
  const digits = size === 0 || size >= 0.995 ? 2 : Math.min(6, Math.max(2, 1 - Math.floor(Math.log10(size))))
  return new Intl.NumberFormat(undefined, {
    style: 'currency',
    currency,
    minimumFractionDigits: 2,
    maximumFractionDigits: digits,
  }).format(value)
}

/** `$12.3K`: for figures and axes. */
export const shortMoney = (value: number, currency = shown_currency): string =>
  Math.abs(value) < 1_000
    ? money(value, currency)
    : new Intl.NumberFormat(undefined, {
        style: 'currency',
        currency,
        notation: 'compact',
        maximumFractionDigits: 1,
      }).format(value)

export function duration(milliseconds: number): string {
  if (milliseconds < 1) return `${milliseconds === 0 ? 0 : '<1'} ms`
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`
  const seconds = milliseconds / 1_000
  if (seconds < 10) return `${seconds.toFixed(2)} s`
  if (seconds < 60) return `${seconds.toFixed(1)} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ${Math.round((seconds % 3_600) / 60)} min`
  return `${Math.floor(seconds / 86_400)} d ${Math.round((seconds % 86_400) / 3_600)} h`
}

export function bytes(value: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  const power = value < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(value) / 3))
  const scaled = value / 1000 ** power
  return `${power === 0 ? scaled : scaled.toFixed(scaled < 10 ? 1 : 0)} ${units[power]}`
}

/** Unix seconds in the viewer's zone. */
export const time = (seconds: number): string => date_time.format(seconds * 1000)
export const day = (seconds: number): string => date_only.format(seconds * 1000)
/** `14:03:27`. */
export const clock = (seconds: number): string => clock_only.format(seconds * 1000)
/** Without what is the same as now: the date of today, and the year. */
export function shortTime(seconds: number, now = Date.now() / 1000): string {
  const [then, today] = [new Date(seconds * 1000), new Date(now * 1000)]
  if (then.toDateString() === today.toDateString()) return clock(seconds)
  return then.getFullYear() === today.getFullYear() ? day_time.format(then) : date_time.format(then)
}
export const utc = (seconds: number): string =>
  `${new Date(seconds * 1000)
    .toISOString()
    .replace('T', ' ')
    .replace(/\.\d+Z$/, '')} UTC`

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['second', 1],
  ['minute', 60],
  ['hour', 3_600],
  ['day', 86_400],
  ['month', 2_629_800],
  ['year', 31_557_600],
]

const JUST_SECONDS = 15

/** `3 min. ago`, `in 2 days`, `now`. */
export function ago(seconds: number, now = Date.now() / 1000): string {
  const ahead = seconds - now
  // What has just happened is not in the future: the clock of a page goes on every some seconds.
  const distance = ahead > 0 && ahead < JUST_SECONDS ? 0 : ahead
  const [unit, size] = STEPS.findLast(([, length]) => Math.abs(distance) >= length) ?? ['second', 1]
  return relative.format(Math.trunc(distance / size), unit)
}
