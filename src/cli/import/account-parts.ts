/** Unique names of accounts, and points in time, for readers of several sources. */
import type { Draft } from './imported.ts'

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
