/**
 * Reads the rows of some tables from a dump in SQL: of `pg_dump` (COPY or INSERT), `mysqldump`, or `.dump` of SQLite. Every
 * statement is read from its start to its end, so that a text within a row is never taken for a statement.
 */
export type Row = Record<string, unknown>
export type Tables = Map<string, Row[]>

type Cursor = { readonly text: string; at: number; readonly hasEscapes: boolean }

const MOST_ROWS = 1_000_000
/** Where the tools name themselves. */
const HEAD = 20_000

/** Throws an Error that says where the dump cannot be read. */
export function readSqlDump(text: string, names: readonly string[]): { tables: Tables; others: string[] } {
  const { tables, others } = tablesIn(text, names)
  if (tables.size === 0) throw new Error(`the dump has none of the tables ${names.join(', ')}`)
  // What ends between two statements can be read to its end, and has lost the tables behind it.
  if (HEADS.test(text.slice(0, HEAD)) && !/dump complete|^(COMMIT|ROLLBACK)\b/im.test(text.slice(-1_000)))
    throw new Error('the dump was cut off: it has the first line of its tool and not the last; dump it again')
  return { tables, others: [...others] }
}

/** Of pg_dump, mysqldump, and `.dump` of SQLite, which write their last line then too. */
const HEADS = /^-- (PostgreSQL database|MySQL|MariaDB) dump|^PRAGMA foreign_keys=OFF;\s+BEGIN TRANSACTION;/m

/** `others`: tables with rows that are not read. */
function tablesIn(text: string, names: readonly string[]): { tables: Tables; others: Set<string> } {
  const hasEscapes = /MySQL dump|MariaDB dump|ENGINE=\w|CREATE TABLE( IF NOT EXISTS)? `/i.test(text.slice(0, HEAD))
  const cursor: Cursor = { text, at: 0, hasEscapes }
  const tables: Tables = new Map()
  const columns = new Map<string, string[]>()
  const known = new Map(names.map((name) => [name.toLowerCase(), name]))
  const rowsOf = (name: string) => tables.get(name) ?? tables.set(name, []).get(name) ?? []
  const others = new Set<string>()
  let count = 0
  for (;;) {
    skipSpace(cursor)
    if (cursor.at >= text.length) return { tables, others }
    const verb = wordAt(cursor).toUpperCase()
    const isInsert = verb === 'INSERT' || verb === 'REPLACE'
    if (!isInsert && verb !== 'CREATE' && verb !== 'COPY') {
      skipStatement(cursor)
      continue
    }
    while (/^(INTO|IGNORE|OR|TABLE|IF|NOT|EXISTS|UNLOGGED)$/i.test(peekWord(cursor))) wordAt(cursor)
    const name = nameAt(cursor)
    const table = known.get(name.toLowerCase())
    if (verb === 'COPY') {
      const head = listAt(cursor, nameAt)
      skipStatement(cursor)
      const copied = copyRows(cursor, head, table === undefined ? undefined : rowsOf(table))
      if (table !== undefined) count += copied
      else if (copied > 0) others.add(name)
    } else if (table === undefined) {
      if (isInsert) others.add(name)
      skipStatement(cursor)
    } else if (verb === 'CREATE') {
      columns.set(table, columnsAt(cursor))
      rowsOf(table)
      skipStatement(cursor)
    } else {
      const head = peek(cursor) === '(' ? listAt(cursor, nameAt) : (columns.get(table) ?? [])
      if (head.length === 0) throw faultAt(cursor, `the columns of ${table} are not known`)
      count += insertRows(cursor, head, rowsOf(table))
    }
    if (count > MOST_ROWS) throw new Error(`the dump has more than ${MOST_ROWS} rows of the tables to read`)
  }
}

/** The lines after COPY; without `rows` they are skipped. */
function copyRows(cursor: Cursor, head: string[], rows: Row[] | undefined): number {
  const { text } = cursor
  let count = 0
  cursor.at = lineEnd(text, cursor.at)
  while (cursor.at < text.length) {
    const end = text.indexOf('\n', cursor.at) === -1 ? text.length : text.indexOf('\n', cursor.at)
    const line = text.slice(cursor.at, end).replace(/\r$/, '')
    cursor.at = end + 1
    if (line === '\\.') return count
    count++
    if (!rows) continue
    const cells = line.split('\t')
    if (cells.length !== head.length)
      throw faultAt(cursor, `a row has ${cells.length} values for ${head.length} columns`)
    rows.push(rowOf(head, cells.map(copiedText)))
  }
  throw faultAt(cursor, 'the end of the rows of COPY, a line with \\., is missing')
}

const COPIED: Record<string, string> = { t: '\t', n: '\n', r: '\r', b: '\b', f: '\f', v: '\v' }
const copiedText = (cell: string): string | null =>
  cell === '\\N' ? null : cell.replaceAll(/\\(.)/g, (_, sign: string) => COPIED[sign] ?? sign)

function insertRows(cursor: Cursor, head: string[], rows: Row[]): number {
  if (wordAt(cursor).toUpperCase() !== 'VALUES') throw faultAt(cursor, 'VALUES is missing')
  let count = 0
  for (;;) {
    const values = listAt(cursor, valueAt)
    if (values.length !== head.length) {
      throw faultAt(cursor, `a row has ${values.length} values for ${head.length} columns`)
    }
    rows.push(rowOf(head, values))
    count++
    if (peek(cursor) !== ',') break
    cursor.at++
  }
  skipStatement(cursor)
  return count
}

const rowOf = (head: readonly string[], values: readonly unknown[]): Row =>
  Object.fromEntries(head.map((name, index) => [name, values[index]]))

function valueAt(cursor: Cursor): unknown {
  if (peek(cursor) === "'") return stringAt(cursor)
  const start = cursor.at
  while (cursor.at < cursor.text.length && !/[,()';]/.test(cursor.text[cursor.at] ?? '')) cursor.at++
  const written = cursor.text.slice(start, cursor.at).trim()
  const sign = cursor.text[cursor.at]
  // E'...' of PostgreSQL, and X'...' or _binary '...' of the others.
  if (sign === "'") return stringAt(cursor, /^e$/i.test(written))
  if (sign === '(') throw faultAt(cursor, `a value is the expression ${written.slice(0, 40)}(...)`)
  if (/^null$/i.test(written)) return null
  if (/^(true|false)$/i.test(written)) return /^true$/i.test(written)
  const cast = written.replace(/::.*$/s, '')
  return /^-?\d{1,15}(\.\d+)?$/.test(cast) ? Number(cast) : cast
}

const ESCAPED: Record<string, string> = { n: '\n', r: '\r', t: '\t', b: '\b', 0: '\0', Z: '\x1a' }

function stringAt(cursor: Cursor, isEscaped = cursor.hasEscapes): string {
  const { text } = cursor
  let out = ''
  let from = ++cursor.at
  for (; ; cursor.at++) {
    if (cursor.at >= text.length) throw faultAt(cursor, 'a text has no end')
    const sign = text[cursor.at]
    if (isEscaped && sign === '\\') {
      const next = text[++cursor.at] ?? ''
      out += text.slice(from, cursor.at - 1) + (ESCAPED[next] ?? next)
      from = cursor.at + 1
    } else if (sign === "'") {
      out += text.slice(from, cursor.at)
      if (text[cursor.at + 1] !== "'") break
      from = ++cursor.at
    }
  }
  cursor.at++
  // A cast, such as '{}'::jsonb
  const cast = /^::[\w". ]+(\[\])?/.exec(text.slice(cursor.at, cursor.at + 100))
  if (cast) cursor.at += cast[0].length
  return out
}

/** In parentheses, with commas between. */
function listAt<Item>(cursor: Cursor, itemAt: (cursor: Cursor) => Item): Item[] {
  expect(cursor, '(')
  const items: Item[] = []
  for (;;) {
    items.push(itemAt(cursor))
    if (peek(cursor) === ')') break
    expect(cursor, ',')
  }
  cursor.at++
  return items
}

const NO_COLUMN = /^(PRIMARY|KEY|UNIQUE|CONSTRAINT|INDEX|FOREIGN|CHECK|FULLTEXT|SPATIAL)$/i

/** The columns of CREATE TABLE, of each the name alone. */
function columnsAt(cursor: Cursor): string[] {
  const names: string[] = []
  expect(cursor, '(')
  for (let depth = 1; depth > 0; ) {
    const isQuoted = /["`[]/.test(peek(cursor))
    const name = nameAt(cursor)
    if (isQuoted || !NO_COLUMN.test(name)) names.push(name)
    while (depth > 0 && cursor.at < cursor.text.length) {
      const sign = peek(cursor)
      if (sign === "'") {
        stringAt(cursor)
        continue
      }
      cursor.at++
      if (sign === '(') depth++
      else if (sign === ')') depth--
      else if (sign === ',' && depth === 1) break
    }
    if (cursor.at >= cursor.text.length) break
  }
  return names
}

/** The last part of a name such as public."LiteLLM_TeamTable". */
function nameAt(cursor: Cursor): string {
  for (;;) {
    const sign = peek(cursor)
    const close = { '"': '"', '`': '`', '[': ']' }[sign]
    let name: string
    if (close === undefined) {
      name = wordAt(cursor)
      if (name === '') throw faultAt(cursor, 'a name is missing')
    } else {
      const end = cursor.text.indexOf(close, cursor.at + 1)
      if (end === -1) throw faultAt(cursor, 'a name has no end')
      name = cursor.text.slice(cursor.at + 1, end)
      cursor.at = end + 1
    }
    if (cursor.text[cursor.at] !== '.') return name
    cursor.at++
  }
}

/** To behind its semicolon. */
function skipStatement(cursor: Cursor): void {
  const { text } = cursor
  while (cursor.at < text.length) {
    skipSpace(cursor)
    const sign = text[cursor.at]
    const tag = sign === '$' ? /^\$\w*\$/.exec(text.slice(cursor.at, cursor.at + 80))?.[0] : undefined
    if (sign === "'") stringAt(cursor, cursor.hasEscapes || /e/i.test(text[cursor.at - 1] ?? ''))
    else if (sign === '"' || sign === '`') skipTo(cursor, sign)
    else if (tag !== undefined) skipTo(cursor, tag)
    else {
      cursor.at++
      if (sign === ';') return
    }
  }
}

function skipTo(cursor: Cursor, close: string): void {
  const end = cursor.text.indexOf(close, cursor.at + close.length)
  if (end === -1) throw faultAt(cursor, `${close} has no end`)
  cursor.at = end + close.length
}

/** White space, comments, and the commands of psql. */
function skipSpace(cursor: Cursor): void {
  const { text } = cursor
  for (; cursor.at < text.length; ) {
    const sign = text[cursor.at] ?? ''
    const two = text.slice(cursor.at, cursor.at + 2)
    const startsLine = cursor.at === 0 || text[cursor.at - 1] === '\n'
    if (sign <= ' ') cursor.at++
    else if (two === '--' || (sign === '\\' && startsLine) || (sign === '#' && cursor.hasEscapes)) {
      cursor.at = lineEnd(text, cursor.at)
    } else if (two === '/*') {
      const end = text.indexOf('*/', cursor.at + 2)
      cursor.at = end === -1 ? text.length : end + 2
    } else return
  }
}

const lineEnd = (text: string, at: number): number => text.indexOf('\n', at) + 1 || text.length

function peek(cursor: Cursor): string {
  skipSpace(cursor)
  return cursor.text[cursor.at] ?? ''
}

const WORD = /[\w$]+/y

function peekWord(cursor: Cursor): string {
  skipSpace(cursor)
  WORD.lastIndex = cursor.at
  return WORD.exec(cursor.text)?.[0] ?? ''
}

function wordAt(cursor: Cursor): string {
  const word = peekWord(cursor)
  cursor.at += word.length
  return word
}

function expect(cursor: Cursor, sign: string): void {
  if (peek(cursor) !== sign) throw faultAt(cursor, `"${sign}" is missing`)
  cursor.at++
}

/** Without the text itself, which may be a secret. */
const faultAt = ({ text, at }: Cursor, what: string): Error =>
  new Error(`line ${text.slice(0, at).split('\n').length} of the dump: ${what}`)
