/** Writes docs/manual/reference/tested-clients.md: the tested clients, and the calls that each of them passed. */

/** A client as the page shows it. */
export type PageRow = {
  /** The package and the way it is used, as the manual names it. */
  name: string
  /** Their names in our package files, which hold the versions. */
  packages: readonly string[]
  /** The path of the base URL that the client needs. */
  base: '' | '/v1' | '/v1beta' | '/v2'
  /** The endpoint family that it uses. */
  dialect: string
}
/** A call as the page shows it. The calls of one group form one table. */
export type PageColumn = { name: string; group: string }

/** Clients, their calls, and the targets of these. */
export type Section = {
  rows: readonly PageRow[]
  columns: readonly PageColumn[]
  targets: readonly string[]
  has(row: string, column: string): boolean
}

/** The cells that passed: by client, call and target. */
export type Seen = {
  note(row: PageRow, column: PageColumn, target: string): void
  /** The targets with which this call of this client passed. */
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
  /** The versions in our package files. */
  versions: Record<string, string>
}

const START = '<!-- Generated: test/matrix.test.ts -->'
const END = '<!-- End. -->'

/** The page with new tables. */
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

/** One row for each client and address: with the versions of its majors, and the families that it uses. */
function clientsOf(rows: PageRow[], versions: Parts['versions']): string {
  const groups = Map.groupBy(rows, ({ name, base }) => `${packagesIn(name)} ${base}`)
  const lines = [...groups.values()].map((own) => {
    const [{ name, base } = { name: '', base: '' }] = own
    const tested = own.map(({ packages }) => packages.map((one) => versionOf(versions, one)).join(' with '))
    const families = own.map(({ dialect }) => `\`${dialect}\``)
    return [packagesIn(name), [...new Set(tested)].join(', '), [...new Set(families)].join(', '), base && `\`${base}\``]
  })
  return tableOf(['client', 'versions', 'families', 'path'], lines)
}

/** Without the majors and what the client is used for. */
const packagesIn = (name: string): string => [...name.matchAll(/`[^`]+`/g)].join(', ')

/** The majors of one client are one name, such as `openai` 7, 6, 5, chat. */
function namesOf(rows: readonly PageRow[]): string {
  const majors = Map.groupBy(rows, ({ name }) => name.replace(/ \d+/, ' *'))
  return [...majors]
    .map(([name, own]) => name.replace(' *', ` ${own.map((row) => / (\d+)/.exec(row.name)?.[1] ?? '').join('/')}`))
    .join('; ')
}

/** An older major is listed under another name, as `npm:<name>@<version>`. */
function versionOf(versions: Parts['versions'], name: string): string {
  const version = versions[name]
  if (version === undefined) throw new Error(`There is no package ${name} among ours.`)
  return version.slice(version.lastIndexOf('@') + 1)
}

/** The calls of a group, and those that failed. What a client does not have is no matter of the gateway. */
function callsOf(section: Section, group: string, seen: Seen): string {
  const columns = section.columns.filter((column) => column.group === group)
  const byFailure = Map.groupBy(section.rows, (row) => failuresOf(section, { row, columns, seen }))
  const lines = [...byFailure]
    .filter(([failure]) => failure !== NO_FAILURE)
    .map(([failure, rows]) => `- ${namesOf(rows)}: failed: ${failure}`)
  return [namesOfCalls(columns), ...(lines.length > 0 ? [lines.join('\n')] : [])].join('\n\n')
}

/** Calls that get an error are named by their statuses, once. */
function namesOfCalls(columns: readonly PageColumn[]): string {
  const statuses = columns.flatMap(({ name }) => /^4\d\d/.exec(name)?.[0] ?? [])
  const others = columns.filter(({ name }) => !/^4\d\d/.test(name)).map(({ name }) => name)
  return [...others, ...(statuses.length > 0 ? [`errors ${[...new Set(statuses)].sort().join(', ')}`] : [])].join('; ')
}

const NO_FAILURE = ''

type Cells = { row: PageRow; columns: PageColumn[]; seen: Seen }

/** The calls of the client that failed with a target. */
const failuresOf = ({ targets, has }: Section, { row, columns, seen }: Cells): string =>
  columns
    .filter((column) => has(row.name, column.name))
    .flatMap((column) => {
      const missing = targets.filter((target) => !seen.of(row, column).includes(target))
      return missing.length === 0 ? [] : [`${column.name} (${missing.join(', ')})`]
    })
    .join('; ')

const tableOf = (head: string[], lines: string[][]): string =>
  [head, head.map(() => '---'), ...lines]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n')
    .replaceAll('| --- ', '|---')
    .replaceAll('--- |', '---|')
    .replaceAll('|  |', '| |')
