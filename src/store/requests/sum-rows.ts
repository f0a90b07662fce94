/** Sums of the request log by hour and day as they are stored: a row for each scope and period. */
import { createInsert } from '../fixed-statements.ts'
import type { Write } from '../tables.ts'
import { decodeSum, encodeSum, type StoredSum } from './request-sum.ts'
import { PARTS_OF, partColumn, SUM_DIMENSIONS, type SumsRow } from './sum-row.ts'
import { decodeParts, encodeParts, type ScopeSums, type SumsByScope, scopeOf } from './sum-scopes.ts'

export const HOUR_SECONDS = 3_600
export const DAY_SECONDS = 86_400

const COLUMNS = ['period', 'kind', 'scope', 'start', 'total', ...SUM_DIMENSIONS.map(partColumn)] as const
const VALUES = ['total', ...SUM_DIMENSIONS.map(partColumn)]
/** A row has 11 values, and may have some kilobytes. */
const ROWS_PER_STATEMENT = 50

/** Replaces what is there, so that a summing up that was interrupted can be repeated. */
const putRows = createInsert({
  table: 'request_sums',
  columns: COLUMNS,
  after: `on conflict (period, kind, scope, start) do update set ${VALUES.map((name) => `${name} = excluded.${name}`).join(', ')}`,
})

/** Writes all scopes of one period, some rows a transaction: on SQLite a longer one would block the event loop. */
export async function putScopes(
  write: <T>(work: (write: Write) => Promise<T>) => Promise<T>,
  { period, start }: Pick<SumsRow, 'period' | 'start'>,
  scopes: SumsByScope,
): Promise<void> {
  let values: unknown[] = []
  const put = async () => {
    const some = values
    values = []
    if (some.length > 0) await write(async (rows) => putRows(rows, some))
  }
  // In the order of their keys: two processes that write the same rows do not deadlock.
  for (const id of [...scopes.keys()].sort()) {
    const scope = scopes.get(id) as ScopeSums
    const { kind, key } = scopeOf(id)
    values.push(period, kind, key, start, JSON.stringify(encodeSum(scope.total)))
    for (const name of SUM_DIMENSIONS) values.push(encodeParts(scope, kind, name))
    if (values.length >= ROWS_PER_STATEMENT * COLUMNS.length) await put()
  }
  await put()
}

export function toScopeSums(row: SumsRow): ScopeSums {
  const total = JSON.parse(row.total) as StoredSum
  const parts: ScopeSums['parts'] = new Map()
  for (const name of PARTS_OF[row.kind]) {
    const stored = row[partColumn(name)]
    if (stored !== null) parts.set(name, decodeParts(stored, { total, kind: row.kind }).parts)
  }
  return { total: decodeSum(total), parts }
}
