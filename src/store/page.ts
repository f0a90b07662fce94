/** Pages of rows in an order that does not change: where the next one starts. */
import { type SelectQueryBuilder, sql } from 'kysely'
import { invalidValue } from '../spec/error.ts'

/** A page of rows, and where the next one starts; undefined: this is the last. */
export type StorePage<Row> = { rows: Row[]; next: string[] | undefined }

type PageParts<Row, Result> = {
  limit: number
  /** Where the page starts, as the one before has returned it. */
  after?: string[] | undefined
  /** The columns of the order: a number, and an id where numbers may be equal. */
  by: readonly (keyof Row & string)[]
  /** Default `desc`. */
  order?: 'asc' | 'desc'
  fromRow(row: Row): Result
}

/** Rejects with invalid_value. */
export async function readPage<Tables, Table extends keyof Tables, Row, Result>(
  query: SelectQueryBuilder<Tables, Table, Row>,
  { limit, after, by, order = 'desc', fromRow }: PageParts<Row, Result>,
): Promise<StorePage<Result>> {
  const names = sql.join(by.map((name) => sql.ref(name)))
  const start = after && sql.join([placeNumber(after[0]), after[1] ?? ''].slice(0, by.length))
  const comparison = sql.raw(order === 'desc' ? '<' : '>')
  let page = start ? query.where(sql<boolean>`(${names}) ${comparison} (${start})`) : query
  for (const name of by) page = page.orderBy(sql.ref(name), order)
  const rows = await page.limit(limit + 1).execute()
  const last = rows.length > limit ? rows[limit - 1] : undefined
  return { rows: rows.slice(0, limit).map(fromRow), next: last && by.map((name) => String(last[name])) }
}

/** A number of the place where a page starts. Throws invalid_value for another text, since it comes from the client. */
export function placeNumber(text: string | undefined): number {
  if (text !== undefined && /^\d{1,15}$/.test(text)) return Number(text)
  throw invalidValue('cursor', '"cursor" must be the next_cursor of the page before, with the same filters.')
}
