/** Adds entries to the ledger, once each, with all sums that depend on them; they count towards budgets in the same transaction. */
import { sql } from 'kysely'
import { createInsert, createStatement } from '../fixed-statements.ts'
import { addCharges } from '../requests/minute-sums.ts'
import { hasRowLocks } from '../row-locks.ts'
import type { LedgerEntriesTable, Tables, Write } from '../tables.ts'
import { type BudgetChange, type BudgetHold, type Charged, NEVER, scopesOf, type TaskBudget } from './budget-store.ts'
import { type LedgerEntry, reversalOf } from './ledger-entry.ts'
import type { AppendOptions } from './ledger-store.ts'
import { addToSums } from './ledger-sums.ts'

/** A row has 20 values. */
const ROWS_PER_STATEMENT = 50
const COLUMNS = [
  'entry_id',
  'kind',
  'at_ms',
  'call_id',
  'token_id',
  'project_id',
  'end_user',
  'family',
  'model',
  'provider',
  'upstream_model',
  'requests',
  'errors',
  'estimated',
  'amount',
  'cost',
  'price',
  'units',
  'input_tokens',
  'output_tokens',
] as const satisfies readonly (keyof LedgerEntriesTable)[]
const insertRows = createInsert({
  table: 'ledger_entries',
  columns: COLUMNS,
  after: 'on conflict (entry_id) do nothing returning entry_id',
})

/** Exactly the condition of the index: SQLite does not use it where the kinds are parameters. */
export const OF_TASK = sql<boolean>`kind in ('task', 'reversal')`

/** What a row of the request log does not contain. */
const LATER_KINDS: ReadonlySet<LedgerEntry['kind']> = new Set(['task', 'reversal', 'adjustment'])

/** For a transaction that records entries together with other writes. Returns the entries that were new. */
export async function appendEntries(
  write: Write,
  entries: readonly LedgerEntry[],
  { process_id = '', onBudgets, alsoInTransaction }: AppendOptions = {},
): Promise<LedgerEntry[]> {
  const fresh = await insertNew(write, entries)
  if (fresh.length === 0) return fresh
  await addToSums(write, fresh)
  const later = fresh.filter(({ kind }) => LATER_KINDS.has(kind))
  if (later.length > 0) await addCharges(write, later)
  const changes = await chargeBudgets(write, fresh, process_id)
  onBudgets?.(changes)
  await alsoInTransaction?.(write, fresh)
  return fresh
}

/** In the order of their ids: two transactions with the same entries wait for each other, and do not deadlock. */
async function insertNew(write: Write, entries: readonly LedgerEntry[]): Promise<LedgerEntry[]> {
  const byId = new Map<string, LedgerEntry>()
  for (const entry of entries) byId.set(entry.entry_id, entry)
  const unique = [...byId.values()].sort((a, b) => (a.entry_id < b.entry_id ? -1 : 1))
  const fresh: LedgerEntry[] = []
  for (let at = 0; at < unique.length; at += ROWS_PER_STATEMENT) {
    const some = unique.slice(at, at + ROWS_PER_STATEMENT)
    const { rows: added } = await insertRows<Pick<LedgerEntriesTable, 'entry_id'>>(write, valuesOf(some))
    for (const { entry_id } of added) {
      const entry = byId.get(entry_id)
      if (entry) fresh.push(entry)
    }
  }
  return fresh
}

/**
 * Takes back the last entry of a task, which has ended before; false if it has none. An entry that was taken back is
 * not taken back again. It counts for the time of that entry, as the next end of the task does.
 */
export async function reverseTask(write: Write, task_id: string): Promise<boolean> {
  const rows = await write
    .selectFrom('ledger_entries')
    .selectAll()
    .where('call_id', '=', task_id)
    .where(OF_TASK)
    .execute()
  const reversed = new Set(rows.filter(({ kind }) => kind === 'reversal').map(({ entry_id }) => entry_id))
  const open = rows.filter(({ kind, entry_id }) => kind === 'task' && !reversed.has(`${entry_id}:reversal`))
  await appendEntries(
    write,
    open.map((row) => reversalOf(entryOfRow(row), row.at_ms)),
  )
  return rows.length > 0
}

/** In the order of the columns. */
function valuesOf(entries: readonly LedgerEntry[]): unknown[] {
  const values: unknown[] = []
  for (const entry of entries) {
    const { units } = entry
    values.push(
      entry.entry_id,
      entry.kind,
      entry.at_ms,
      entry.call_id,
      entry.token_id,
      entry.project_id,
      entry.end_user,
      entry.family,
      entry.model,
      entry.provider,
      entry.upstream_model,
      entry.requests,
      entry.errors,
      entry.estimated,
      entry.amount,
      entry.cost,
      entry.price,
      JSON.stringify(units),
      units.input_tokens,
      units.output_tokens,
    )
  }
  return values
}

export const entryOfRow = ({ input_tokens: _, output_tokens: __, units, ...row }: LedgerEntriesTable): LedgerEntry => ({
  ...row,
  units: JSON.parse(units) as LedgerEntry['units'],
})

type Account = Tables['budget_accounts']

/** Of one statement that is made once; batches have a few. */
const MOST_SCOPES = 50

/**
 * Adds charges to every budget that they count towards, and reduces what was held for them. `process_id`: whose leases
 * are reduced; empty: nobody's.
 */
export async function chargeBudgets(
  rows: Write,
  charges: readonly Charged[],
  process_id: string,
): Promise<BudgetChange[]> {
  if (charges.length === 0) return []
  // Before the accounts are read: a budget that is created meanwhile waits until these charges are committed.
  if (hasRowLocks(rows)) await sql`select 1 from revisions where noun = 'budgets' for share`.execute(rows)
  const holds = await taskHolds(rows, charges)
  const scopes = chargesByScope(charges)
  const accounts = await accountsOf(rows, { scopes: [...scopes.keys()], charges, holds })
  if (accounts.length === 0) return []
  const freed = await releaseHolds(rows, holds)
  const changes: BudgetChange[] = []
  for (const account of accounts) {
    const mine = (scopes.get(account.scope_key) ?? []).filter((charge) => isWithin(charge, account))
    const amount = sumOf(mine.filter(({ kind }) => kind !== 'credit'))
    const credit = account.end_ms === NEVER ? -sumOf(mine.filter(({ kind }) => kind === 'credit')) : 0
    const from_tasks = freed.get(`${account.account_key} ${account.start_ms}`) ?? 0
    const of_calls = sumOf(mine.filter(isOfCall))
    const from_lease = of_calls > 0 ? await reduceLease(rows, process_id, { ...account, amount: of_calls }) : 0
    if (amount === 0 && credit === 0 && from_tasks === 0) continue
    const held = account.held - from_lease - from_tasks
    const state = { settled: account.settled + amount, credit: account.credit + credit, held }
    const { account_key, start_ms } = account
    await updateAccount(rows, [state.settled, state.credit, state.held, account_key, start_ms])
    changes.push({ account_key, start_ms, ...state })
  }
  return changes
}

const updateAccount = createStatement(
  () => 'update budget_accounts set settled = ?, credit = ?, held = ? where account_key = ? and start_ms = ?',
)

/** With a type, since PostgreSQL takes a parameter of unknown type for text. */
export const idValues = ({ account_key, start_ms }: Pick<Account, 'account_key' | 'start_ms'>) =>
  sql`(${account_key}, cast(${start_ms} as bigint))`

const sumOf = (charges: readonly Charged[]): number => charges.reduce((sum, { amount }) => sum + (amount ?? 0), 0)

const isWithin = ({ at_ms }: Charged, { start_ms, end_ms }: Account): boolean => at_ms >= start_ms && at_ms < end_ms

/** Most charges of a batch have the scopes of the one before. */
function chargesByScope(charges: readonly Charged[]): Map<string, Charged[]> {
  const byScope = new Map<string, Charged[]>()
  let last: Charged | undefined
  let lists: Charged[][] = []
  for (const charge of charges) {
    if (!last || !isOfSameScopes(charge, last)) lists = scopesOf(charge).map((scope) => listOf(byScope, scope))
    for (const list of lists) list.push(charge)
    last = charge
  }
  return byScope
}

function listOf(byScope: Map<string, Charged[]>, scope: string): Charged[] {
  const list = byScope.get(scope) ?? []
  byScope.set(scope, list)
  return list
}

type TaskHold = Tables['budget_holds']

/** `count` scopes. Locked, in the order of their keys. */
const findAccounts = createStatement(
  (count, isLocking) => `select * from budget_accounts
    where scope_key in (${Array.from({ length: count }, () => '?').join(', ')}) and end_ms > ?
    order by account_key, start_ms ${isLocking ? 'for update' : ''}`,
)

type Searched = { scopes: readonly string[]; charges: readonly Charged[]; holds: readonly TaskHold[] }

/** Of the scopes of charges, and those that hold something for their tasks. Locked in the same order. */
async function accountsOf(rows: Write, { scopes, charges, holds }: Searched): Promise<Account[]> {
  const earliest = charges.reduce((least, { at_ms }) => Math.min(least, at_ms), Number.POSITIVE_INFINITY)
  if (holds.length === 0 && scopes.length <= MOST_SCOPES) {
    const { rows: found } = await findAccounts<Account>(rows, [...scopes, earliest], scopes.length)
    return found
  }
  const held = holds.map(
    ({ account_key, start_ms }) => sql` or (account_key = ${account_key} and start_ms = ${start_ms})`,
  )
  const { rows: found } = await sql<Account>`
    select * from budget_accounts
    where (scope_key in (${sql.join(scopes)}) and end_ms > ${earliest}) ${sql.join(held, sql``)}
    order by account_key, start_ms ${hasRowLocks(rows) ? sql`for update` : sql``}`.execute(rows)
  return found
}

async function taskHolds(rows: Write, charges: readonly Charged[]): Promise<TaskHold[]> {
  const task_ids = charges.filter(({ kind }) => kind === 'task').map(({ call_id }) => call_id)
  if (task_ids.length === 0) return []
  return rows.selectFrom('budget_holds').selectAll().where('call_id', 'in', task_ids).execute()
}

/** By the key and start of their budgets: what each no longer has to hold. Another transaction may have released some. */
async function releaseHolds(rows: Write, holds: readonly TaskHold[]): Promise<Map<string, number>> {
  const freed = new Map<string, number>()
  for (const { call_id, account_key, start_ms } of holds) {
    const released = await rows
      .deleteFrom('budget_holds')
      .where((row) => row.and({ call_id, account_key, start_ms }))
      .returning('amount')
      .executeTakeFirst()
    const key = `${account_key} ${start_ms}`
    if (released) freed.set(key, (freed.get(key) ?? 0) + released.amount)
  }
  return freed
}

const takeFromLease = createStatement(
  () => `update budget_leases set amount = amount - ?
    where process_id = ? and account_key = ? and start_ms = ? and amount >= ? returning amount`,
)

/** By at most what the process has leased; returns by how much. */
async function reduceLease(
  rows: Write,
  process_id: string,
  { account_key, start_ms, amount }: BudgetHold,
): Promise<number> {
  const name = [process_id, account_key, start_ms]
  const reduced = await takeFromLease(rows, [amount, ...name, amount])
  if (reduced.rows.length > 0) return amount
  const rest = await rows
    .selectFrom('budget_leases')
    .select('amount')
    .where((row) => row.and({ process_id, account_key, start_ms }))
    .executeTakeFirst()
  if (rest) await takeFromLease(rows, [rest.amount, ...name, rest.amount])
  return rest?.amount ?? 0
}

/** What a process has leased becomes the hold of a task, in the transaction that adds the task. */
export async function holdForTask(rows: Write, call_id: string, { process_id, holds }: TaskBudget): Promise<void> {
  // Whoever changes a lease has locked its budget: otherwise a renewal at the same time returns what this takes, too.
  if (hasRowLocks(rows) && holds.length > 0)
    await sql`
      select 1 from budget_accounts where (account_key, start_ms) in (values ${sql.join(holds.map(idValues))})
      order by account_key, start_ms for update`.execute(rows)
  for (const hold of holds) {
    const { account_key, start_ms } = hold
    const amount = await reduceLease(rows, process_id, hold)
    if (amount > 0) await rows.insertInto('budget_holds').values({ call_id, account_key, start_ms, amount }).execute()
  }
}

/** Whether `scopesOf` returns the same for both. */
export const isOfSameScopes = (one: Charged, other: Charged): boolean =>
  one.token_id === other.token_id &&
  one.project_id === other.project_id &&
  one.end_user === other.end_user &&
  (one.kind === 'credit') === (other.kind === 'credit')

/** Whether the process that appends an entry has held the amount before. */
export const isOfCall = ({ kind }: Pick<Charged, 'kind'>): boolean =>
  kind === 'call' || kind === 'lost_hedge' || kind === 'lost_attempt' || kind === 'interrupted'
