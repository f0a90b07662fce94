/** Times as inputs of the type `datetime-local` have them, in the zone of the viewer, and Unix seconds. */

export function localText(seconds: number): string {
  const date = new Date(seconds * 1000)
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

/** Undefined: the text is no time. */
export function secondsOf(text: string): number | undefined {
  const milliseconds = new Date(text).getTime()
  return Number.isNaN(milliseconds) ? undefined : Math.floor(milliseconds / 1000)
}

/** The week before this one, from Monday to Monday, in the zone of the viewer. */
export function lastWeek(now: number): { start: number; end: number } {
  const date = new Date(now * 1000)
  const sinceMonday = (date.getDay() + 6) % 7
  const monday = (weeks: number) =>
    Math.floor(new Date(date.getFullYear(), date.getMonth(), date.getDate() - sinceMonday + 7 * weeks).getTime() / 1000)
  return { start: monday(-1), end: monday(0) }
}
