/** The sums of the ledger by minute, hour and day: changed in the transaction that adds the entries, so that they never differ. */
import { NANO } from '../../spec/price.ts'
import { createInsert } from '../fixed-statements.ts'
import type { LedgerEndUsersTable, LedgerSumsTable, OfCall, Write } from '../tables.ts'
import { chunks } from '../tasks/task-sql.ts'
import { LEDGER_COUNTS, type LedgerCounts, type LedgerEntry } from './ledger-entry.ts'
import { END_USERS_PER_DAY, OTHER_END_USERS, SUM_PERIODS } from './ledger-store.ts'

/** Values in one statement are bounded on every engine (SQLite 32,766, PostgreSQL 65,535); a row has 18. */
const ROWS_PER_STATEMENT = 50
const MINUTE_SECONDS = 60
const DAY_SECONDS = 86_400
/**
 * Nano-units. Twice that would not fit into 64 bits, where PostgreSQL fails, and SQLite goes on with a floating-point
 * number.
 */
const MAX_SUM = 4_600_000_000_000_000_000

const OF_CALL = ['project_id', 'family', 'model', 'provider', 'upstream_model'] as const satisfies (keyof OfCall)[]
/** The keys of both tables, as they are declared. */
const SUM_COLUMNS = ['period', 'start', 'token_id', ...OF_CALL] as const
const END_USER_COLUMNS = ['start', 'token_id', 'end_user', ...OF_CALL] as const
const addSums = insertOrAdd('ledger_sums', SUM_COLUMNS)
const addEndUsers = insertOrAdd('ledger_end_users', END_USER_COLUMNS)

/** Adds to the sums of a row that exists, unless one of them would not fit: it is missing in the answer then. */
function insertOrAdd(table: 'ledger_sums' | 'ledger_end_users', key: readonly string[]) {
  const sets = LEDGER_COUNTS.map((count) => `${count} = ${table}.${count} + excluded.${count}`)
  const fits = ['amount', 'cost'].map((sum) => `abs(${table}.${sum} + excluded.${sum}) <= ${MAX_SUM}`)
  const update = `do update set ${sets.join(', ')} where ${fits.join(' and ')}`
  return createInsert({
    table,
    columns: [...key, ...LEDGER_COUNTS],
    after: `on conflict (${key.join(', ')}) ${update} returning start`,
  })
}

/** `entries` must be new: an entry that exists was counted before. */
export async function addToSums(write: Write, entries: readonly LedgerEntry[]): Promise<void> {
  const sums = createSums<LedgerSumsTable>()
  const days = createSums<LedgerEndUsersTable>()
  const others = await surplusEndUsers(write, entries)
  for (const group of groupsOf(entries)) {
    const { minute, end_user: named, of_call, counts } = group
    const key = JSON.stringify(of_call)
    for (const period of SUM_PERIODS) {
      const start = startOf(minute, period)
      sums.add(`${period} ${start} ${key}`, { period, start, ...of_call, ...counts })
    }
    const start = startOf(minute, DAY_SECONDS)
    const end_user = others.has(nameOf(start, of_call.token_id, named)) ? OTHER_END_USERS : named
    days.add(`${start} ${JSON.stringify(end_user)} ${key}`, { start, end_user, ...of_call, ...counts })
  }
  for (const rows of sums.statements()) assertAdded(rows, await addSums(write, valuesOf(rows, SUM_COLUMNS)))
  for (const rows of days.statements()) assertAdded(rows, await addEndUsers(write, valuesOf(rows, END_USER_COLUMNS)))
}

function valuesOf<Row extends LedgerCounts>(rows: readonly Row[], key: readonly (keyof Row)[]): unknown[] {
  const values: unknown[] = []
  for (const row of rows) {
    for (const column of key) values.push(row[column])
    for (const count of LEDGER_COUNTS) values.push(row[count])
  }
  return values
}

/** Entries that all sums count alike; a period begins with a minute. */
type Group = { minute: number; end_user: string; of_call: OfCall; counts: LedgerCounts }

/** Most entries of a batch are of few groups: each is counted once here, and each group once in every sum. */
function groupsOf(entries: readonly LedgerEntry[]): Group[] {
  const groups = new Map<string, Group>()
  /** Those that would not be exact any more. */
  const full: Group[] = []
  let last: Group | undefined
  for (const entry of entries) {
    const { token_id, project_id, family, model, provider, upstream_model, end_user } = entry
    const minute = startOf(Math.floor(entry.at_ms / 1000), MINUTE_SECONDS)
    // Mostly it is that of the entry before, and no key is made.
    if (last && isOfGroup(entry, minute, last) && isExact(last.counts, entry)) {
      addEntry(last.counts, entry)
      continue
    }
    // None of them can hold NUL: PostgreSQL could not store it.
    const key = [minute, token_id, project_id, family, provider, model, upstream_model, end_user ?? ''].join('\0')
    const group = groups.get(key)
    if (group && isExact(group.counts, entry)) {
      addEntry(group.counts, entry)
      last = group
      continue
    }
    if (group) full.push(group)
    const of_call = { token_id, project_id: project_id ?? '', family, model, provider, upstream_model }
    const counts = { ...NO_COUNTS }
    addEntry(counts, entry)
    last = { minute, end_user: end_user ?? '', of_call, counts }
    groups.set(key, last)
  }
  return [...groups.values(), ...full]
}

const isOfGroup = (entry: LedgerEntry, minute: number, { minute: start, end_user, of_call }: Group): boolean =>
  minute === start &&
  entry.token_id === of_call.token_id &&
  (entry.project_id ?? '') === of_call.project_id &&
  (entry.end_user ?? '') === end_user &&
  entry.model === of_call.model &&
  entry.provider === of_call.provider &&
  entry.upstream_model === of_call.upstream_model &&
  entry.family === of_call.family

const isExact = (sum: LedgerCounts, added: Pick<LedgerEntry, 'amount' | 'cost'>): boolean =>
  Number.isSafeInteger(sum.amount + (added.amount ?? 0)) && Number.isSafeInteger(sum.cost + (added.cost ?? 0))

const startOf = (seconds: number, period: number): number => Math.floor(seconds / period) * period

const nameOf = (start: number, token_id: string, end_user: string): string =>
  JSON.stringify([start, token_id, end_user])

const NO_COUNTS: LedgerCounts = {
  entries: 0,
  requests: 0,
  errors: 0,
  estimated: 0,
  input_tokens: 0,
  output_tokens: 0,
  amount: 0,
  cost: 0,
  unknown_amounts: 0,
  unknown_costs: 0,
}

function addEntry(counts: LedgerCounts, { requests, errors, estimated, units, amount, cost }: LedgerEntry): void {
  counts.entries++
  counts.requests += requests
  counts.errors += errors
  counts.estimated += estimated
  counts.input_tokens += units.input_tokens
  counts.output_tokens += units.output_tokens
  counts.amount += amount ?? 0
  counts.cost += cost ?? 0
  if (amount === null) counts.unknown_amounts += requests || 1
  if (cost === null) counts.unknown_costs += requests || 1
}

/** The transaction is rolled back: the entries are refused, and no sum is wrong. */
function assertAdded(rows: readonly unknown[], added: { rows: readonly unknown[] }): void {
  if (added.rows.length === rows.length) return
  throw new Error(
    `The amounts or costs of one token, model and day would exceed ${MAX_SUM / NANO} units of the ledger's currency: they could not be summed up.`,
  )
}

/** One row for each key in a statement: PostgreSQL rejects one that updates the same row twice. */
function createSums<Row extends LedgerCounts>() {
  const sums = new Map<string, Row>()
  /** Those that would not be exact any more: each in a statement of its own. */
  const full: Row[] = []
  return {
    add(key: string, row: Row): void {
      const sum = sums.get(key)
      if (sum && isExact(sum, row)) {
        for (const count of LEDGER_COUNTS) sum[count] += row[count]
        return
      }
      if (sum) full.push(sum)
      sums.set(key, row)
    },
    *statements(): Generator<Row[]> {
      yield* chunks(inOrder(sums), ROWS_PER_STATEMENT)
      for (const row of full) yield [row]
    },
  }
}

/** In key order, to avoid deadlocks. */
const inOrder = <Row>(sums: Map<string, Row>): Row[] =>
  [...sums].sort(([left], [right]) => (left < right ? -1 : 1)).map(([, sum]) => sum)

/**
 * The end users that have no row of their own on their day, since their token has named too many others: the client
 * chooses these names. Returns their `nameOf`.
 */
async function surplusEndUsers(write: Write, entries: readonly LedgerEntry[]): Promise<Set<string>> {
  const named = new Map<string, { start: number; token_id: string; end_users: Set<string> }>()
  for (const { at_ms, token_id, end_user } of entries) {
    if (end_user === null || end_user === '') continue
    const start = startOf(Math.floor(at_ms / 1000), DAY_SECONDS)
    const key = nameOf(start, token_id, '')
    const group = named.get(key) ?? { start, token_id, end_users: new Set() }
    group.end_users.add(end_user)
    named.set(key, group)
  }
  const surplus = new Set<string>()
  for (const { start, token_id, end_users } of inOrder(named)) {
    const known = await write
      .selectFrom('ledger_end_users')
      .select('end_user')
      .distinct()
      .where((row) => row.and({ start, token_id }))
      .where('end_user', 'in', [...end_users])
      .execute()
    for (const { end_user } of known) end_users.delete(end_user)
    if (end_users.size === 0) continue
    const { end_users: count } = await write
      .insertInto('ledger_end_user_counts')
      .values({ start, token_id, end_users: end_users.size })
      .onConflict((conflict) =>
        conflict.columns(['start', 'token_id']).doUpdateSet((row) => ({
          end_users: row('ledger_end_user_counts.end_users', '+', row.ref('excluded.end_users')),
        })),
      )
      .returning('end_users')
      .executeTakeFirstOrThrow()
    const over = Math.min(end_users.size, count - END_USERS_PER_DAY)
    if (over <= 0) continue
    for (const end_user of [...end_users].slice(end_users.size - over)) surplus.add(nameOf(start, token_id, end_user))
    await write
      .updateTable('ledger_end_user_counts')
      .set((row) => ({ end_users: row('end_users', '-', over) }))
      .where((row) => row.and({ start, token_id }))
      .execute()
  }
  return surplus
}
