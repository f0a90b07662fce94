/** Inserts of many rows at once, on the hot path of every call: the text of each statement is built once. */
import { CompiledQuery } from 'kysely'
import { hasRowLocks } from './budget-charges.ts'
import type { Tables, Write } from './tables.ts'

type InsertParts = { table: keyof Tables; columns: readonly string[]; after: string }

/** `after`: what follows the values. The function's `values` are those of all rows, each in the order of the columns. */
export function createInsert({ table, columns, after }: InsertParts) {
  /** By the number of rows, SQLite's and PostgreSQL's. */
  const texts = [new Map<number, CompiledQuery>(), new Map<number, CompiledQuery>()]

  function templateOf(rows: number, isNumbered: boolean): CompiledQuery {
    const known = texts[Number(isNumbered)]
    let template = known?.get(rows)
    if (!template) {
      const value = (row: number, column: number) => (isNumbered ? `$${row * columns.length + column + 1}` : '?')
      const values = Array.from({ length: rows }, (_, row) => `(${columns.map((_, at) => value(row, at)).join(', ')})`)
      const text = `insert into ${table} (${columns.join(', ')}) values ${values.join(', ')} ${after}`
      template = CompiledQuery.raw(text)
      known?.set(rows, template)
    }
    return template
  }

  return <Row = unknown>(write: Write, values: readonly unknown[]) => {
    const { query, queryId, sql } = templateOf(values.length / columns.length, hasRowLocks(write))
    // `CompiledQuery.raw` freezes its parameters: reading a thousand frozen ones takes longer than inserting them.
    return write.executeQuery<Row>({ query, queryId, sql, parameters: values } as CompiledQuery<Row>)
  }
}
