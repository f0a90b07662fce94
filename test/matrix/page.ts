/** The tables of docs/manual/how-to/clients.md: the tested clients, and the calls that each of them passed. */

/** A client as the page shows it. */
export type PageRow = {
  /** The package and the way it is used, as the manual names it. */
  name: string
  /** As they are called in our own lists of packages, which have their versions. */
  packages: readonly string[]
  /** What follows the gateway's address in the base address that the client is given. */
  base: '' | '/v1' | '/v1beta' | '/v2'
  /** The family of the specification that it speaks. */
  dialect: string
}
/** A call as the page shows it; the calls of one group are one table. */
export type PageColumn = { name: string; group: string }

/** Clients, their calls, and what these are made to. */
export type Section = {
  rows: readonly PageRow[]
  columns: readonly PageColumn[]
  targets: readonly string[]
  has(row: string, column: string): boolean
}

/** Which cells have held: by client, call and target. */
export type Seen = {
  note(row: PageRow, column: PageColumn, target: string): void
  /** The targets before which this call of this client held. */
  of(row: PageRow, column: PageColumn): readonly string[]
}

export function createSeen(): Seen {
  const held = new Map<string, string[]>()
  const key = (row: PageRow, column: PageColumn) => `${row.name} > ${column.name}`
  return {
    note(row, column, target) {
      held.set(key(row, column), [...(held.get(key(row, column)) ?? []), target])
    },
    of: (row, column) => held.get(key(row, column)) ?? [],
  }
}

type Parts = {
  sections: readonly Section[]
  seen: Seen
  /** Our own lists of packages. */
  versions: Record<string, string>
}

const START = '<!-- Made by test/matrix.test.ts; see there. -->'
const END = '<!-- End of what is made. -->'

/** The page with its tables put in anew. */
export function withTables(page: string, parts: Parts): string {
  const start = page.indexOf(START)
  const end = page.indexOf(END)
  if (start === -1 || end === -1) throw new Error(`The page needs the lines ${START} and ${END}.`)
  return `${page.slice(0, start)}${START}\n\n${tablesOf(parts).join('\n\n')}\n\n${page.slice(end)}`
}

function tablesOf({ sections, seen, versions }: Parts): string[] {
  const rows = sections.flatMap((section) => section.rows)
  return [clientsOf(rows, versions), ...sections.flatMap((section) => groupsOf(section, seen))]
}

function groupsOf(section: Section, seen: Seen): string[] {
  const groups = [...new Set(section.columns.map(({ group }) => group))]
  return groups.map((group) => `### ${group}\n\n${callsOf(section, group, seen)}`)
}

function clientsOf(rows: PageRow[], versions: Parts['versions']): string {
  const lines = rows.map(({ name, packages, dialect, base }) => {
    const version = packages.map((one) => versionOf(versions, one)).join(', ')
    return [name, version, `\`${dialect}\``, `\`http://127.0.0.1:8787${base}\``]
  })
  return tableOf(['client', 'tested with', 'family', 'base address'], lines)
}

/** An older major is listed under another name, as `npm:<name>@<version>`. */
function versionOf(versions: Parts['versions'], name: string): string {
  const version = versions[name]
  if (version === undefined) throw new Error(`There is no package ${name} among ours.`)
  return version.slice(version.lastIndexOf('@') + 1)
}

/** The calls of a group, then only the exceptions: a matrix is too wide for a narrow screen. */
function callsOf(section: Section, group: string, seen: Seen): string {
  const columns = section.columns.filter((column) => column.group === group)
  const calls = `Calls: ${columns.map(({ name }) => name).join('; ')}.`
  const byException = Map.groupBy(section.rows, (row) => exceptionsOf(section, { row, columns, seen }))
  const passing = byException.get(NO_EXCEPTION)?.length ?? 0
  byException.delete(NO_EXCEPTION)
  if (byException.size === 0) return `${calls}\n\nAll of these clients pass all calls.`
  const lines = [...byException].map(([exception, rows]) => [rows.map(({ name }) => name).join('; '), exception])
  const rest = passing === 0 ? '' : '\n\nThe other clients pass all calls.'
  return `${calls}\n\n${tableOf(['client', 'exceptions'], lines)}${rest}`
}

const NO_EXCEPTION = ''

type Cells = { row: PageRow; columns: PageColumn[]; seen: Seen }

/** The calls that the client lacks, and those that failed before a target. */
function exceptionsOf({ targets, has }: Section, { row, columns, seen }: Cells): string {
  const absent = columns.filter((column) => !has(row.name, column.name)).map(({ name }) => name)
  const failed = columns.flatMap((column) => {
    if (absent.includes(column.name)) return []
    const missing = targets.filter((target) => !seen.of(row, column).includes(target))
    return missing.length === 0 ? [] : [`${column.name} (${missing.join(', ')})`]
  })
  const parts = [
    ...(absent.length === 0 ? [] : [`not available: ${absent.join('; ')}`]),
    ...(failed.length === 0 ? [] : [`failed: ${failed.join('; ')}`]),
  ]
  return parts.length === 0 ? NO_EXCEPTION : parts.join('. ')
}

const tableOf = (head: string[], lines: string[][]): string =>
  [head, head.map(() => '---'), ...lines]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n')
    .replaceAll('| --- ', '|---')
    .replaceAll('--- |', '---|')
