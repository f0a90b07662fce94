/** Reads the source of an import, within limits: a configuration in YAML or JSON, a database dump, or a file of SQLite. */
import { Database } from 'bun:sqlite'
import { closeSync, existsSync, openSync, readFileSync, readSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseYamlPlainly } from '../../config/load/read-yaml.ts'
import { isRecord, isTooDeep } from '../../kit/json.ts'
import { whyUnreadable } from '../../kit/why-unreadable.ts'
import { readCsv } from '../csv.ts'
import { type Row, readSqlDump, type Tables } from './sql-dump.ts'

/** `others`: members and tables that are not read. `isDatabase`: a whole one, where a table that is not there is missing. */
type Source = { tree: Record<string, unknown> } | { tables: Tables; others?: string[]; isDatabase?: boolean }

/** A configuration of ten thousand models has a tenth of it. */
const MAX_CONFIG_BYTES = 20 * 1024 * 1024
/** A dump that has the logs too is greater. */
const MAX_DUMP_BYTES = 256 * 1024 * 1024
const MOST_ROWS = 1_000_000
const SQLITE_HEAD = 'SQLite format 3\0'

/** `names`: the tables to read; others are not. Throws an Error that names the file and says what would be right. */
export function readSource(from: string, { cwd, names }: { cwd: string; names: readonly string[] }): Source {
  const path = resolve(cwd, from)
  try {
    const { size } = statOf(path)
    if (statSync(path).isDirectory()) return { tables: readDirectory(path, names) }
    if (headOf(path) === SQLITE_HEAD) return { ...readSqlite(path, names), isDatabase: true }
    const isDump = names.length > 0 && /\.(sql|dump)$/i.test(path)
    const limit = isDump ? MAX_DUMP_BYTES : MAX_CONFIG_BYTES
    if (size > limit) {
      const advice = isDump ? `; dump only the tables ${names.join(', ')}` : ''
      throw new Error(`it has ${size} bytes; the limit is ${limit}${advice}`)
    }
    const text = textOf(path)
    if (text.startsWith('PGDMP')) {
      throw new Error('it is a dump of pg_dump in its own format; write it in SQL, with pg_dump --format=plain')
    }
    if (isDump) return { ...readSqlDump(text, names), isDatabase: true }
    return sourceOf(/\.json$/i.test(path) || /^\s*[{[]/.test(text) ? parsedJson(text) : parsedYaml(text), names)
  } catch (error) {
    throw new Error(`${from} cannot be read: ${(error as Error).message}`)
  }
}

function textOf(path: string): string {
  const text = readFileSync(path, 'utf8').replace(/^\uFEFF/, '')
  if (text.slice(0, 1_000).includes('\0')) throw new Error('it is UTF-16, or no text; write it in UTF-8')
  return text
}

function statOf(path: string): { size: number } {
  try {
    return statSync(path)
  } catch (error) {
    throw new Error(whyUnreadable(error))
  }
}

function headOf(path: string): string {
  const file = openSync(path, 'r')
  try {
    const bytes = Buffer.alloc(SQLITE_HEAD.length)
    return bytes.toString('latin1', 0, readSync(file, bytes, 0, bytes.length, 0))
  } finally {
    closeSync(file)
  }
}

/** Members with the names of tables are their rows; anything else is a configuration. */
function sourceOf(value: unknown, names: readonly string[]): Source {
  if (!isRecord(value)) throw new Error('it must be an object of settings, or one of tables with their rows')
  const found = names.filter((name) => Array.isArray(listed(value[name])))
  if (found.length === 0) return { tree: value }
  return {
    tables: new Map(found.map((name) => [name, rowsIn(value[name], name)])),
    others: Object.keys(value).filter((name) => !found.includes(name)),
  }
}

/** The list in the response of an admin API: `{ "data": [...] }`. */
const listed = (value: unknown): unknown => (isRecord(value) && Array.isArray(value.data) ? value.data : value)

function rowsIn(given: unknown, name: string): Row[] {
  const value = listed(given)
  if (!Array.isArray(value) || !value.every(isRecord)) throw new Error(`${name} must be a list of rows`)
  if (value.length > MOST_ROWS) throw new Error(`${name} has more than ${MOST_ROWS} rows`)
  return value
}

function parsedJson(text: string): unknown {
  if (isTooDeep(text)) throw new Error('it is nested too deeply')
  try {
    return JSON.parse(text)
  } catch {
    // The message of the parser repeats what it has found, which may be a secret.
    throw new Error('it is not JSON')
  }
}

function parsedYaml(text: string): unknown {
  const { value, trouble } = parseYamlPlainly(text)
  if (trouble !== undefined) throw new Error(trouble)
  return value
}

/** `<table>.json` or `<table>.csv` of each table. */
function readDirectory(path: string, names: readonly string[]): Tables {
  const tables: Tables = new Map()
  for (const name of names) {
    const [json, csv] = [join(path, `${name}.json`), join(path, `${name}.csv`)]
    const file = existsSync(json) ? json : existsSync(csv) ? csv : undefined
    if (file === undefined) continue
    if (statSync(file).size > MAX_DUMP_BYTES) throw new Error(`${name} has more than ${MAX_DUMP_BYTES} bytes`)
    const text = textOf(file)
    if (file === json) tables.set(name, rowsIn(parsedJson(text), name))
    else {
      const [head = [], ...rows] = readCsv(text)
      tables.set(
        name,
        rowsIn(
          rows.map((row) => Object.fromEntries(head.map((one, at) => [one, row[at]]))),
          name,
        ),
      )
    }
  }
  if (tables.size === 0) {
    throw new Error(`the directory has none of ${names.map((name) => `${name}.csv`).join(', ')}, nor as .json`)
  }
  return tables
}

/** Nothing is written, and no other file is read. */
function readSqlite(path: string, names: readonly string[]): { tables: Tables; others: string[] } {
  if (names.length === 0) throw new Error('it is a database; this import reads a configuration')
  const file = new Database(path, { readonly: true })
  try {
    const known = new Map(
      (
        file
          .query(
            "select name from sqlite_master where type = 'table' and name not like 'sqlite~_%' escape '~' and sql not like 'create virtual%'",
          )
          .all() as { name: string }[]
      ).map(({ name }) => [name.toLowerCase(), name]),
    )
    const tables: Tables = new Map()
    for (const name of names) {
      const found = known.get(name.toLowerCase())
      if (found === undefined) continue
      const rows = file.query(`select * from "${found.replaceAll('"', '""')}" limit ${MOST_ROWS + 1}`).all() as Row[]
      tables.set(name, rowsIn(rows, name))
    }
    if (tables.size === 0) throw new Error(`the database has none of the tables ${names.join(', ')}`)
    const others = [...known.values()].filter(
      (name) =>
        !names.some((one) => one.toLowerCase() === name.toLowerCase()) &&
        file.query(`select 1 from "${name.replaceAll('"', '""')}" limit 1`).get() !== null,
    )
    return { tables, others }
  } finally {
    file.close()
  }
}
