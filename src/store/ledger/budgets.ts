/**
 * Budgets in the database. Locks are taken in one order, so that no two transactions wait for each other: the row of
 * `revisions`, then the accounts by key, then what belongs to them.
 */
import { sql } from 'kysely'
import { addAlerts } from '../admin/alerts.ts'
import type { Engine } from '../engine.ts'
import { addToRevision } from '../revisions.ts'
import { hasRowLocks } from '../row-locks.ts'
import type { Tables, Write } from '../tables.ts'
import { assertMoves } from '../tasks/due-times.ts'
import type { BudgetHold, BudgetLease, BudgetName, BudgetStore, LeaseOutcome } from './budget-store.ts'
import { chargedIn } from './budget-sums.ts'
import { idValues } from './ledger-append.ts'

type Account = Tables['budget_accounts']
type AccountId = Pick<Account, 'account_key' | 'start_ms'>

/** The row of `revisions` that orders the creation of budgets against the charges that run meanwhile. */
const NOUN = 'budgets'
/** Of what remains, this part at most is leased ahead: other processes need it as well, the more the less is left. */
const SHARE_AHEAD = 8
/** Dead leases that one transaction ends. */
const DEAD_AT_ONCE = 200

const idOf = ({ account_key, start_ms }: AccountId): string => `${account_key} ${start_ms}`

export function budgetStore({ db, write }: Engine): BudgetStore {
  return {
    lease: (process_id, leases, { now_ms, expires_ms, moves, keeps_dead }) =>
      write(async (rows) => {
        await assertMoves(rows, moves)
        const dead = keeps_dead ? [] : await deadLeases(rows, process_id, now_ms)
        const names = leases.map(({ budget }) => budget)
        await createMissing(rows, names)
        const accounts = await lockAccounts(rows, [...names, ...dead])
        await endLeases(rows, dead, accounts)
        const outcomes: LeaseOutcome[] = []
        for (const lease of leases) {
          const account = accounts.get(idOf(lease.budget))
          if (!account) throw new Error(`the budget ${lease.budget.account_key} was not created`)
          outcomes.push(await leaseOne(rows, { process_id, lease, account, expires_ms }))
        }
        return outcomes
      }),

    renew: (process_id, kept, { now_ms, expires_ms, moves, keeps_dead }) =>
      write(async (rows) => {
        await assertMoves(rows, moves)
        const dead = keeps_dead ? [] : await deadLeases(rows, process_id, now_ms)
        const accounts = await lockAccounts(rows, [...kept, ...dead])
        await endLeases(rows, dead, accounts)
        for (const hold of kept) await keepAmount(rows, process_id, hold)
        return rows
          .updateTable('budget_leases')
          .set({ expires_ms: sql`case when amount > 0 then cast(${expires_ms} as bigint) else expires_ms end` })
          .where('process_id', '=', process_id)
          .returning(['account_key', 'start_ms'])
          .execute()
      }),

    release: (process_id) =>
      write(async (rows) => {
        const mine = await rows.selectFrom('budget_leases').selectAll().where('process_id', '=', process_id).execute()
        await endLeases(rows, mine, await lockAccounts(rows, mine))
      }),

    list({ now_ms, scope_keys, limit }) {
      let query = db
        .selectFrom('budget_accounts')
        .selectAll()
        .where('start_ms', '<=', now_ms)
        .where('end_ms', '>', now_ms)
      if (scope_keys) query = query.where('scope_key', 'in', [...scope_keys])
      return query.orderBy('account_key').limit(limit).execute()
    },

    notify: ({ account_key, start_ms }, { threshold, alerts }) =>
      write(async (rows) => {
        const changed = await rows
          .updateTable('budget_accounts')
          .set({ notified: threshold })
          .where((row) => row.and({ account_key, start_ms }))
          .where('notified', '<', threshold)
          .returning('account_key')
          .executeTakeFirst()
        if (changed) await addAlerts(rows, alerts)
        return changed !== undefined
      }),
  }
}

/** Locks these accounts in the order of their keys; those that do not exist are absent. */
async function lockAccounts(rows: Write, ids: readonly AccountId[]): Promise<Map<string, Account>> {
  if (ids.length === 0) return new Map()
  const keys = sql.join([...new Map(ids.map((id) => [idOf(id), id])).values()].map(idValues))
  const found = await sql<Account>`
    select * from budget_accounts where (account_key, start_ms) in (values ${keys})
    order by account_key, start_ms ${hasRowLocks(rows) ? FOR_UPDATE : NO_LOCK}`.execute(rows)
  return new Map(found.rows.map((account) => [idOf(account), account]))
}

/** SQLite has one writer, and no locks of rows. */
const [FOR_UPDATE, NO_LOCK] = [sql`for update`, sql``]

/** Waits until charges that run meanwhile are committed: those that start later find the new budgets. */
async function createMissing(rows: Write, names: readonly BudgetName[]): Promise<void> {
  if (names.length === 0) return
  const keys = sql.join(names.map(idValues))
  const found = await sql<AccountId>`
    select account_key, start_ms from budget_accounts where (account_key, start_ms) in (values ${keys})`.execute(rows)
  const existing = new Set(found.rows.map(idOf))
  const missing = names.filter((name) => !existing.has(idOf(name)))
  if (missing.length === 0) return
  await addToRevision(rows, NOUN, 1)
  for (const name of missing) {
    const { account_key, scope_key, start_ms, end_ms } = name
    const charged = await chargedIn(rows, name)
    await rows
      .insertInto('budget_accounts')
      .values({ account_key, scope_key, start_ms, end_ms, ...charged, held: 0, notified: 0 })
      .onConflict((conflict) => conflict.columns(['account_key', 'start_ms']).doNothing())
      .execute()
  }
}

type Leasing = { process_id: string; lease: BudgetLease; account: Account; expires_ms: number }

async function leaseOne(rows: Write, { process_id, lease, account, expires_ms }: Leasing): Promise<LeaseOutcome> {
  const { limit, need, want } = lease
  const { account_key, start_ms, settled, credit, held } = account
  const available = Math.max(0, limit + credit - settled - held)
  const needed = Math.min(need, available)
  const granted = needed + Math.min(Math.max(0, want), Math.floor((available - needed) / SHARE_AHEAD))
  const renewed = await leaseRow(rows, process_id, account)
    .set((row) => ({ amount: row('amount', '+', granted), expires_ms }))
    .returning('amount')
    .executeTakeFirst()
  if (!renewed) {
    const row = { process_id, account_key, start_ms, amount: granted, expires_ms }
    await rows.insertInto('budget_leases').values(row).execute()
  }
  await addHeld(rows, account, granted)
  account.held += granted
  return { settled, credit, held: account.held, granted, lapsed: !renewed }
}

const leaseRow = (rows: Write, process_id: string, { account_key, start_ms }: AccountId) =>
  rows.updateTable('budget_leases').where((row) => row.and({ process_id, account_key, start_ms }))

async function addHeld(rows: Write, { account_key, start_ms }: AccountId, amount: number): Promise<void> {
  if (amount === 0) return
  await rows
    .updateTable('budget_accounts')
    .set((row) => ({ held: row('held', '+', amount) }))
    .where((row) => row.and({ account_key, start_ms }))
    .execute()
}

/** Repeated, it changes nothing more. */
async function keepAmount(
  rows: Write,
  process_id: string,
  { account_key, start_ms, amount }: BudgetHold,
): Promise<void> {
  const lease = await rows
    .selectFrom('budget_leases')
    .select('amount')
    .where((row) => row.and({ process_id, account_key, start_ms }))
    .executeTakeFirst()
  if (!lease || lease.amount <= amount) return
  await leaseRow(rows, process_id, { account_key, start_ms }).set({ amount }).execute()
  await addHeld(rows, { account_key, start_ms }, amount - lease.amount)
}

/**
 * Those of other processes, but not of processes with open calls: what these hold stays until they are recorded as
 * interrupted, and charged. And all of which nothing is left, so that no row stays for each budget that ever was leased.
 */
const deadLeases = (rows: Write, process_id: string, now_ms: number) =>
  rows
    .selectFrom('budget_leases')
    .selectAll()
    .where('expires_ms', '<=', now_ms)
    .where((row) => row.or([row('process_id', '!=', process_id), row('amount', '=', 0)]))
    .where('process_id', 'not in', (query) => query.selectFrom('open_calls').select('process'))
    .limit(DEAD_AT_ONCE)
    .execute()

async function endLeases(
  rows: Write,
  leases: readonly Pick<Tables['budget_leases'], 'process_id' | 'account_key' | 'start_ms' | 'expires_ms'>[],
  accounts: Map<string, Account>,
): Promise<void> {
  for (const { process_id, account_key, start_ms, expires_ms } of leases) {
    const ended = await rows
      .deleteFrom('budget_leases')
      .where((row) => row.and({ process_id, account_key, start_ms }))
      .where('expires_ms', '=', expires_ms) // its process has not renewed it meanwhile
      .returning('amount')
      .executeTakeFirst()
    if (!ended) continue
    await addHeld(rows, { account_key, start_ms }, -ended.amount)
    const account = accounts.get(idOf({ account_key, start_ms }))
    if (account) account.held -= ended.amount
  }
}
