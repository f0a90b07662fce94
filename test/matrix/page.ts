/** The tables of docs/manual/clients.md: which clients there are, and which calls were seen to work. */
import type { Column } from './columns.ts'
import type { Row } from './words.ts'

/** Which cells have held: by client, call and target. */
export type Seen = {
  note(row: Row, column: Column, target: string): void
  /** The targets before which this call of this client held. */
  of(row: Row, column: Column): readonly string[]
}

export function createSeen(): Seen {
  const held = new Map<string, string[]>()
  const key = (row: Row, column: Column) => `${row.name} > ${column.name}`
  return {
    note(row, column, target) {
      held.set(key(row, column), [...(held.get(key(row, column)) ?? []), target])
    },
    of: (row, column) => held.get(key(row, column)) ?? [],
  }
}

type Parts = {
  rows: Row[]
  columns: Column[]
  targets: readonly string[]
  has(row: Row, column: Column): boolean
  seen: Seen
  /** Our own list of packages. */
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

function tablesOf(parts: Parts): string[] {
  const groups = [...new Set(parts.columns.map(({ group }) => group))]
  return [clientsOf(parts), ...groups.map((group) => `### ${group}\n\n${callsOf(parts, group)}`)]
}

function clientsOf({ rows, versions }: Parts): string {
  const lines = rows.map(({ name, packages, dialect, base }) => {
    const version = packages.map((one) => versionOf(versions, one)).join(', ')
    return [name, version, `\`${dialect}\``, `\`http://127.0.0.1:8787${base}\``]
  })
  return tableOf(['client', 'tested with', 'dialect', 'base address'], lines)
}

/** An older major is listed under another name, as `npm:<name>@<version>`. */
function versionOf(versions: Parts['versions'], name: string): string {
  const version = versions[name]
  if (version === undefined) throw new Error(`There is no package ${name} among ours.`)
  return version.slice(version.lastIndexOf('@') + 1)
}

function callsOf(parts: Parts, group: Column['group']): string {
  const columns = parts.columns.filter((column) => column.group === group)
  const lines = parts.rows.map((row) => [row.name, ...columns.map((column) => cellOf(parts, row, column))])
  return tableOf(['client', ...columns.map(({ name }) => name)], lines)
}

function cellOf({ targets, has, seen }: Parts, row: Row, column: Column): string {
  if (!has(row, column)) return 'has none'
  const held = seen.of(row, column)
  const missing = targets.filter((target) => !held.includes(target))
  return missing.length === 0 ? 'yes' : `no: ${missing.join(', ')}`
}

const tableOf = (head: string[], lines: string[][]): string =>
  [head, head.map(() => '---'), ...lines]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n')
    .replaceAll('| --- ', '|---')
    .replaceAll('--- |', '---|')
