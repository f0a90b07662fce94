/** Reads what the ledger already has of a new budget: from the sums of days and hours, and entries at their edges. */
import { type RawBuilder, sql } from 'kysely'
import type { Write } from '../tables.ts'
import type { BudgetName } from './budget-store.ts'

const DAY = 86_400
const HOUR = 3_600

export async function chargedIn(rows: Write, budget: BudgetName): Promise<{ settled: number; credit: number }> {
  const { scope_key, start_ms, end_ms } = budget
  const of = conditionsOf(scope_key)
  const start = start_ms / 1000
  const end = Math.min(end_ms / 1000, 2 ** 40)
  // End users have sums of days only.
  const period = of.table === 'ledger_end_users' ? DAY : HOUR
  const [first_day, last_day] = [roundUp(start, DAY), roundDown(end, DAY)]
  const [first, last] = [roundUp(start, period), roundDown(end, period)]
  const days = await sumsOf(rows, of, { period: DAY, from: first_day, to: last_day })
  let settled = days
  if (period === HOUR) {
    settled += await sumsOf(rows, of, { period: HOUR, from: first, to: Math.min(first_day, last) })
    settled += await sumsOf(rows, of, { period: HOUR, from: Math.max(last_day, first_day, first), to: last })
  }
  settled += await entriesOf(rows, of, start_ms, Math.min(first * 1000, end_ms))
  if (last >= first) settled += await entriesOf(rows, of, Math.max(last * 1000, start_ms), end_ms)
  const credit = await creditsOf(rows, of, start_ms, end_ms)
  return { settled: settled - credit.all, credit: -credit.own }
}

const roundUp = (seconds: number, period: number): number => Math.ceil(seconds / period) * period
const roundDown = (seconds: number, period: number): number => Math.floor(seconds / period) * period

type Conditions = {
  table: 'ledger_sums' | 'ledger_end_users'
  sums: RawBuilder<unknown>
  entries: RawBuilder<unknown>
  /** Which credits were given to exactly this scope. */
  own_credits: RawBuilder<unknown>
}

function conditionsOf(scope_key: string): Conditions {
  const [kind, id = ''] = splitAt(scope_key, ':')
  const column = (name: string) => sql.ref(name)
  if (kind === 'installation') {
    const own_credits = sql`token_id = '' and project_id is null`
    return { table: 'ledger_sums', sums: sql`1 = 1`, entries: sql`1 = 1`, own_credits }
  }
  if (kind !== 'user') {
    const is = sql`${column(`${kind}_id`)} = ${id}`
    const own_credits =
      kind === 'token' ? sql`${is} and end_user is null` : sql`${is} and token_id = '' and end_user is null`
    return { table: 'ledger_sums', sums: is, entries: is, own_credits }
  }
  const [owner, end_user = ''] = splitAt(id, '/')
  const is = sql`${column(owner.startsWith('tok_') ? 'token_id' : 'project_id')} = ${owner} and end_user = ${end_user}`
  return { table: 'ledger_end_users', sums: is, entries: is, own_credits: is }
}

export function splitAt(text: string, separator: string): [string, string?] {
  const at = text.indexOf(separator)
  return at === -1 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}

async function sumsOf(
  rows: Write,
  { table, sums }: Conditions,
  { period, from, to }: { period: number; from: number; to: number },
): Promise<number> {
  if (to <= from) return 0
  const of_period = table === 'ledger_sums' ? sql`period = ${period} and` : sql``
  const { rows: found } = await sql<{ amount: number | string | null }>`
    select sum(amount) as amount from ${sql.table(table)} where ${of_period} start >= ${from} and start < ${to} and ${sums}`.execute(
    rows,
  )
  return Number(found[0]?.amount ?? 0)
}

async function entriesOf(rows: Write, { entries }: Conditions, from_ms: number, to_ms: number): Promise<number> {
  if (to_ms <= from_ms) return 0
  const { rows: found } = await sql<{ amount: number | string | null }>`
    select sum(amount) as amount from ledger_entries where at_ms >= ${from_ms} and at_ms < ${to_ms} and ${entries}`.execute(
    rows,
  )
  return Number(found[0]?.amount ?? 0)
}

/** Credits are few, and have an index. They are contained in the sums of every scope, and count for their own alone. */
async function creditsOf(
  rows: Write,
  { entries, own_credits }: Conditions,
  from_ms: number,
  to_ms: number,
): Promise<{ all: number; own: number }> {
  const { rows: found } = await sql<{ all_of_them: number | string | null; own: number | string | null }>`
    select sum(amount) as all_of_them, sum(case when ${own_credits} then amount else 0 end) as own
    from ledger_entries where kind = 'credit' and at_ms >= ${from_ms} and at_ms < ${to_ms} and ${entries}`.execute(rows)
  return { all: Number(found[0]?.all_of_them ?? 0), own: Number(found[0]?.own ?? 0) }
}
