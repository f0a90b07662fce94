/** Compares the entries of the ledger with everything that is derived from them. */
import { type RawBuilder, sql } from 'kysely'
import type { Database } from '../tables.ts'
import { budgetDifferences } from './budget-reconcile.ts'
import { entryOfRow } from './ledger-append.ts'
import { LEDGER_COUNTS, type LedgerCounts, type LedgerEntry } from './ledger-entry.ts'
import { type LedgerDifference, SUM_PERIODS, type VendorDay } from './ledger-store.ts'
import { exactSum, readSum, sumStarts } from './ledger-usage.ts'

/** Of each comparison: more would not be read by anybody. */
const MAX_DIFFERENCES = 1_000

const PERIOD_NAMES: Record<number, string> = { 60: 'minute', 3600: 'hour', 86400: 'day' }
const OF_CALL = ['token_id', 'project_id', 'family', 'model', 'provider', 'upstream_model'] as const

/** `from`, `to`: unix seconds. Each comparison is one statement, so that calls that are recorded meanwhile do not matter. */
export async function differencesOf(db: Database, range: { from: number; to: number }): Promise<LedgerDifference[]> {
  const starts = await sumStarts(db)
  const from = Math.max(range.from, starts.get('entries') ?? 0)
  const found: LedgerDifference[] = []
  for (const period of SUM_PERIODS) {
    const since = Math.max(from, starts.get(String(period)) ?? 0)
    const sums = sql`ledger_sums where period = ${sql.lit(period)} and`
    found.push(...(await compare(db, { what: PERIOD_NAMES[period] ?? '', period, sums, from: since, to: range.to })))
  }
  found.push(
    ...(await compare(db, {
      what: 'end_users',
      period: 86_400,
      sums: sql`ledger_end_users where`,
      from,
      to: range.to,
    })),
    ...(await taskDifferences(db, { from: Math.max(from, starts.get('tasks') ?? 0), to: range.to })),
    ...(await budgetDifferences(db, { ...range, entries_from: starts.get('entries') ?? 0 })),
  )
  return found
}

type Comparison = { what: string; period: number; sums: RawBuilder<unknown>; from: number; to: number }
type SumRow = { start: number } & Record<(typeof OF_CALL)[number], string> & Record<keyof LedgerCounts, string>

/** The entries less the sums, by the key of the sums: everything is 0 where they agree. */
async function compare(db: Database, { what, period, sums, from, to }: Comparison): Promise<LedgerDifference[]> {
  const size = sql.lit(period)
  const [first, end] = [Math.ceil(from / period) * period, Math.ceil(to / period) * period]
  const keys = sql.join(OF_CALL.map((name) => sql.ref(name)))
  const plain = LEDGER_COUNTS.filter(
    (name) => !['entries', 'amount', 'cost', 'unknown_amounts', 'unknown_costs'].includes(name),
  )
  const unknown = (name: string) =>
    sql`case when ${sql.ref(name)} is null then case requests when 0 then 1 else requests end else 0 end`
  const { rows } = await sql<SumRow>`
    select start, ${keys}, ${sql.join(LEDGER_COUNTS.map((name) => sql`cast(sum(${sql.ref(name)}) as text) as ${sql.ref(name)}`))}
    from (
      select at_ms / 1000 / ${size} * ${size} as start, token_id, coalesce(project_id, '') as project_id, family, model, provider,
        upstream_model, 1 as entries, ${sql.join(plain.map((name) => sql.ref(name)))}, coalesce(amount, 0) as amount,
        coalesce(cost, 0) as cost, ${unknown('amount')} as unknown_amounts, ${unknown('cost')} as unknown_costs
      from ledger_entries where at_ms >= ${first * 1000} and at_ms < ${end * 1000}
      union all
      select start, ${keys}, -entries, ${sql.join(plain.map((name) => sql`-${sql.ref(name)}`))}, -amount, -cost,
        -unknown_amounts, -unknown_costs
      from ${sums} start >= ${first} and start < ${end}
    ) as both_sides
    group by start, ${keys}
    having ${sql.join(
      LEDGER_COUNTS.map((name) => sql`sum(${sql.ref(name)}) <> 0`),
      sql` or `,
    )}
    order by start limit ${MAX_DIFFERENCES}`.execute(db)
  return rows.flatMap(({ start, ...row }) =>
    LEDGER_COUNTS.filter((count) => row[count] !== '0').map((count) => ({
      what,
      at: start,
      of: OF_CALL.map((name) => row[name]).filter((text) => text !== ''),
      count,
      difference: row[count],
    })),
  )
}

/**
 * Every ended task has one entry more than reversals; one that has not ended has as many. Tasks that hold the files of a
 * synchronous call have none: the call has it.
 */
async function taskDifferences(db: Database, { from, to }: { from: number; to: number }): Promise<LedgerDifference[]> {
  const { rows } = await sql<{ task_id: string; finish_time: number; surplus: number }>`
    select task_id, finish_time, surplus from (
      select tasks.task_id, tasks.finish_time,
        cast(coalesce(sum(case ledger_entries.kind when 'task' then 1 when 'reversal' then -1 else 0 end), 0) as bigint)
          - case when tasks.status in ('SUCCESS', 'FAILURE') then 1 else 0 end as surplus
      from tasks left join ledger_entries
        on ledger_entries.call_id = tasks.task_id and ledger_entries.kind in ('task', 'reversal')
      where tasks.finish_time >= ${from} and tasks.finish_time < ${to}
        and not (tasks.status = 'SUCCESS' and tasks.operation is null)
      group by tasks.task_id, tasks.finish_time, tasks.status
    ) as counted where surplus <> 0 order by finish_time limit ${MAX_DIFFERENCES}`.execute(db)
  return rows.map(({ task_id, finish_time, surplus }) => ({
    what: 'tasks',
    at: finish_time,
    of: [task_id],
    count: 'entries',
    difference: String(surplus),
  }))
}

/** What providers were asked for, by day and upstream model: to compare with the export of one. */
export async function vendorDays(
  db: Database,
  { from, to, provider }: { from: number; to: number; provider?: string | undefined },
): Promise<VendorDay[]> {
  const { rows } = await sql<Omit<VendorDay, 'cost'> & { cost: string }>`
    select at_ms / 86400000 * 86400 as day, upstream_model,
      cast(sum(case when kind in ('lost_hedge', 'lost_attempt') then 1 when errors <> 0 and input_tokens = 0 and output_tokens = 0 then 0
        else requests end) as bigint) as requests,
      cast(sum(input_tokens) as bigint) as input_tokens, cast(sum(output_tokens) as bigint) as output_tokens,
      ${exactSum('cost')} as cost,
      cast(sum(estimated) as bigint) as estimated,
      cast(sum(case when kind = 'interrupted' then 1 when kind in ('reversal', 'adjustment') and entry_id like '%:interrupted:%' then -1
        else 0 end) as bigint) as interrupted
    from ledger_entries
    where at_ms >= ${from * 1000} and at_ms < ${to * 1000} and provider <> ''
      ${provider === undefined ? sql`` : sql`and provider = ${provider}`}
    group by at_ms / 86400000, upstream_model
    order by 1, 2`.execute(db)
  return rows.map((row) => ({ ...row, cost: readSum(row.cost) }))
}

const MAX_INTERRUPTED = 10_000

export async function interruptedEntries(
  db: Database,
  { from, to, provider }: { from: number; to: number; provider: string },
): Promise<LedgerEntry[]> {
  const changed = (ending: string) => sql<string>`ledger_entries.entry_id || ${sql.lit(ending)}`
  const rows = await db
    .selectFrom('ledger_entries')
    .selectAll()
    .where('kind', '=', 'interrupted')
    .where('at_ms', '>=', from * 1000)
    .where('at_ms', '<', to * 1000)
    .where('provider', '=', provider)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('ledger_entries as later')
            .select('later.entry_id')
            .where('later.entry_id', 'in', [changed(':reversal'), changed(':adjustment')]),
        ),
      ),
    )
    .orderBy('at_ms')
    .orderBy('entry_id')
    .limit(MAX_INTERRUPTED)
    .execute()
  return rows.map(entryOfRow)
}
