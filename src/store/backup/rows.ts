/** Rows of tables in a form that does not depend on the engine. */

/** `type`: as the migrations declare it, such as `bigint`. */
type Column = { name: string; type: string }
export type Table = { name: string; columns: Column[] }

export type Value = string | number | bigint | null
export type RowBatch = { table: string; rows: Value[][] }

export type RowSource = {
  engine: string
  /** The last migration of the database. */
  migration: string
  tables: Table[]
  /** The rows of each table, one table after the other. */
  batches(): AsyncIterable<RowBatch>
}

/** Both engines return a `bigint` as text, since a number of JavaScript holds 53 bits. */
export function readValue(value: unknown, { type }: Column): Value {
  if (value === null || value === undefined) return null
  if (type !== 'bigint') return value as string | number
  const number = Number(value)
  return Number.isSafeInteger(number) || !/^-?\d+$/.test(String(value)) ? number : BigInt(String(value))
}

/** A row as a line of JSON; an integer beyond 53 bits as `{"int":"..."}`. */
export const encodeRow = (row: readonly Value[]): string =>
  JSON.stringify(row, (_, value: unknown) => (typeof value === 'bigint' ? { int: String(value) } : value))

export function decodeRow(line: string): Value[] {
  const row = JSON.parse(line) as (Value | { int: string })[]
  return row.map((value) => (typeof value === 'object' && value !== null ? BigInt(value.int) : value))
}
