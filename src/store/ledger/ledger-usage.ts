/** Sums of the ledger, grouped. */
import { sql } from 'kysely'
import { NANO } from '../../spec/price.ts'
import type { Database } from '../tables.ts'
import { LEDGER_COUNTS } from './ledger-entry.ts'
import { SUM_PERIODS, USAGE_MEMBERS, type UsageQuery, type UsageResult, type UsageSum } from './ledger-store.ts'

const DAY_SECONDS = 86_400

/** Amounts and costs are summed up exactly. */
const COUNTS = LEDGER_COUNTS.filter((name) => name !== 'entries' && name !== 'amount' && name !== 'cost')

/** Credits are sums of no model: nothing was used. */
const CREDIT = sql`family = '' and model = '' and requests = 0`

/** The sums from which the range and its groups can be read with the fewest rows. */
export async function usageSums(db: Database, query: UsageQuery): Promise<UsageResult> {
  const period = await periodFor(db, query)
  const from = Math.floor(query.from / period) * period
  const to = Math.ceil(query.to / period) * period
  const by_end_user = query.by.includes('end_user')
  const columns = [...new Set(query.by.map((dimension) => USAGE_MEMBERS[dimension]))]
  const table = by_end_user ? sql.table('ledger_end_users') : sql.table('ledger_sums')
  const names = columns.length === 0 ? sql`` : sql`${sql.join(columns.map((name) => sql.ref(name)))}, `
  const group = columns.length === 0 ? sql`` : sql`group by ${sql.join(columns.map((name) => sql.ref(name)))}`
  const counts = COUNTS.map((name) => sql`cast(coalesce(sum(${sql.ref(name)}), 0) as bigint) as ${sql.ref(name)}`)
  const { rows } = await sql<SumRow>`
    select ${names} ${sql.join(counts)}, ${exactSum('amount')} as amount, ${exactSum('cost')} as cost
    from ${table}
    where start >= ${from} and start < ${to} and not (${CREDIT})
      ${by_end_user ? sql`` : sql`and period = ${period}`}
      ${query.token_id === undefined ? sql`` : sql`and token_id = ${query.token_id}`}
      ${query.project_id === undefined ? sql`` : sql`and project_id = ${query.project_id}`}
    ${group}
    ${query.limit === undefined ? sql`` : sql`limit ${query.limit}`}`.execute(db)
  return { from, to, period, rows: rows.map(sumOf) }
}

type SumRow = Omit<UsageSum, 'amount' | 'cost'> & { amount: string; cost: string }

const sumOf = (row: SumRow): UsageSum => ({ ...row, amount: readSum(row.amount), cost: readSum(row.cost) })

/**
 * Whole units and nano-units apart, as text: a sum of sums may exceed 64 bits, which SQLite rejects, and what a number can
 * hold exactly. `readSum` puts them together.
 */
export const exactSum = (column: 'amount' | 'cost') => {
  const [name, unit] = [sql.ref(column), sql.lit(NANO)]
  return sql<string>`cast(coalesce(sum(${name} / ${unit}), 0) as text) || ' ' || cast(coalesce(sum(${name} % ${unit}), 0) as text)`
}

export function readSum(text: string): bigint {
  const [units = '0', nano = '0'] = text.split(' ')
  return BigInt(units) * BigInt(NANO) + BigInt(nano)
}

/** The longest period that the range and the groups allow; a longer one where the shorter sums were deleted. */
async function periodFor(db: Database, { by, from, to }: UsageQuery): Promise<number> {
  if (by.includes('end_user')) return DAY_SECONDS
  const [minute, hour, day] = SUM_PERIODS
  const isAligned = (period: number) => from % period === 0 && to % period === 0
  const longest = by.includes('minute') ? minute : by.includes('hour') ? hour : day
  const shortest = isAligned(longest) ? longest : isAligned(hour) && longest >= hour ? hour : minute
  const starts = await sumStarts(db)
  return SUM_PERIODS.find((period) => period >= shortest && (starts.get(String(period)) ?? 0) <= from) ?? day
}

/** From when on there are sums of each period, and entries: unix seconds. Absent: from the beginning. */
export async function sumStarts(db: Database): Promise<Map<string, number>> {
  const rows = await db.selectFrom('ledger_starts').selectAll().execute()
  return new Map(rows.map(({ noun, start }) => [noun, start]))
}
