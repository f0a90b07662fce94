/** Pages of rows in an order that does not change: where the next one starts. */
import { sql } from 'kysely'
import { invalidValue } from '../spec/error.ts'

/** A page of rows, and where the next one starts; undefined: this is the last. */
export type StorePage<Row> = { rows: Row[]; next: string[] | undefined }

/** `rows`: one more than the limit where there are more. `keyOf`: the place of a row in the order. */
export function pageOf<R, T>(
  rows: R[],
  { limit, fromRow, keyOf }: { limit: number; fromRow(row: R): T; keyOf(row: R): (string | number)[] },
): StorePage<T> {
  const last = rows.length > limit ? rows[limit - 1] : undefined
  return { rows: rows.slice(0, limit).map(fromRow), next: last && keyOf(last).map(String) }
}

/** Rows after a place in the order of a number and an id; `after`: that place, as `pageOf` returned it. Throws invalid_value. */
export const beyond = ([number, id]: [string, string], comparison: '<' | '>', after: string[] | undefined) =>
  sql<boolean>`(${sql.ref(number)}, ${sql.ref(id)}) ${sql.raw(comparison)} (${placeNumber(after?.[0])}, ${after?.[1] ?? ''})`

/** A number of the place where a page starts. Throws invalid_value for another text, since it comes from the client. */
export function placeNumber(text: string | undefined): number {
  if (text !== undefined && /^\d{1,15}$/.test(text)) return Number(text)
  throw invalidValue('cursor', '"cursor" must be the next_cursor of the page before, with the same filters.')
}
