/** Statements on the path of every call: the text of each is made once, not each time as a query builder does. */
import { CompiledQuery, type DialectAdapter } from 'kysely'
import { hasRowLocks } from './row-locks.ts'
import type { Database, Tables, Write } from './tables.ts'

/**
 * Of the adapter of an engine with one connection, whose statements block: the transaction that has the connection executes
 * them at once, without the dozens of promises and functions with which a query builder passes one on. So does everybody while
 * nobody has it.
 */
export type ImmediateStatements = {
  isFree(): boolean
  executeNow(sql: string, values: readonly unknown[]): unknown[]
}

const isImmediate = (adapter: DialectAdapter): adapter is DialectAdapter & ImmediateStatements =>
  'executeNow' in adapter

type Rows<Row> = { rows: Row[] }

type InsertParts = { table: keyof Tables; columns: readonly string[]; after: string }

/** `after`: what follows the values. The function's `values` are those of all rows, each in the order of the columns. */
export function createInsert({ table, columns, after }: InsertParts) {
  const row = `(${columns.map(() => '?').join(', ')})`
  const inserting = createStatement((rows) => {
    const values = row + `, ${row}`.repeat(rows - 1)
    return `insert into ${table} (${columns.join(', ')}) values ${values} ${after}`
  })
  return <Row = unknown>(write: Write, values: readonly unknown[]) =>
    inserting<Row>(write, values, values.length / columns.length)
}

/**
 * A statement whose text depends on nothing but a small number, for example that of its rows. `?` stands for a value; it
 * may stand for nothing else. `isLocking`: the engine locks rows, and `for update` is part of its language.
 */
export function createStatement(textOf: (count: number, isLocking: boolean) => string) {
  /** By that number, SQLite's and PostgreSQL's. */
  const templates = [new Map<number, CompiledQuery>(), new Map<number, CompiledQuery>()] as const

  function templateOf(count: number, isLocking: boolean): CompiledQuery {
    const known = templates[isLocking ? 1 : 0]
    let template = known.get(count)
    if (!template) {
      const text = textOf(count, isLocking)
      let values = 0
      template = CompiledQuery.raw(isLocking ? text.replaceAll('?', () => `$${++values}`) : text)
      known.set(count, template)
    }
    return template
  }

  return <Row = unknown>(write: Database, values: readonly unknown[], count = 1): Rows<Row> | Promise<Rows<Row>> => {
    const { adapter } = write.getExecutor()
    if (isImmediate(adapter) && (write.isTransaction || adapter.isFree())) {
      return { rows: adapter.executeNow(templateOf(count, false).sql, values) as Row[] }
    }
    const { query, queryId, sql } = templateOf(count, hasRowLocks(write))
    // `CompiledQuery.raw` freezes its parameters: reading a thousand frozen ones takes longer than inserting them.
    return write.executeQuery<Row>({ query, queryId, sql, parameters: values } as CompiledQuery<Row>)
  }
}
