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
