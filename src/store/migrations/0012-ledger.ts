/** The ledger, its sums by minute, hour and day, and its open calls. The sums of earlier versions become entries. */
import { type Kysely, SqliteAdapter, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

const COUNTS = ['requests', 'errors', 'estimated', 'input_tokens', 'output_tokens'] as const
const SUMS = ['entries', ...COUNTS, 'amount', 'cost', 'unknown_amounts', 'unknown_costs'] as const
const OF_CALL = ['token_id', 'project_id', 'family', 'model', 'provider', 'upstream_model'] as const

export const ledger: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await createEntries(db)
    await createSums(db, 'ledger_sums', ['period', 'start', ...OF_CALL])
    await createSums(db, 'ledger_end_users', ['start', 'token_id', 'end_user', ...OF_CALL.slice(1)])
    await db.schema
      .createTable('ledger_end_user_counts')
      .addColumn('start', 'bigint', (column) => column.notNull())
      .addColumn('token_id', 'text', (column) => column.notNull())
      .addColumn('end_users', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('ledger_end_user_counts_key', ['start', 'token_id'])
      .execute()
    await db.schema
      .createTable('open_calls')
      .addColumn('entry_id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('entry', 'text', (column) => column.notNull())
      .addColumn('process', 'text', (column) => column.notNull())
      .execute()
    await db.schema.createIndex('open_calls_of_process').on('open_calls').column('process').execute()
    await db.schema
      .createTable('ledger_processes')
      .addColumn('process', 'text', (column) => column.primaryKey().notNull())
      .addColumn('until_ms', 'bigint', (column) => column.notNull())
      .execute()
    await db.schema
      .createTable('ledger_starts')
      .addColumn('noun', 'text', (column) => column.primaryKey().notNull())
      .addColumn('start', 'bigint', (column) => column.notNull())
      .execute()
    for (const column of ['project_id', 'end_user'])
      await db.schema.alterTable('tasks').addColumn(column, 'text').execute()
    await copyUsage(db)
  },
}

async function createEntries(db: Kysely<unknown>): Promise<void> {
  const texts = ['kind', 'call_id', 'token_id', 'family', 'model', 'provider', 'upstream_model', 'units'] as const
  let table = db.schema
    .createTable('ledger_entries')
    .addColumn('entry_id', 'text', (column) => column.primaryKey().notNull())
    .addColumn('at_ms', 'bigint', (column) => column.notNull())
    .addColumn('project_id', 'text')
    .addColumn('end_user', 'text')
    .addColumn('amount', 'bigint')
    .addColumn('cost', 'bigint')
    .addColumn('price', 'text')
  for (const name of texts) table = table.addColumn(name, 'text', (column) => column.notNull())
  for (const name of COUNTS) table = table.addColumn(name, 'bigint', (column) => column.notNull())
  await table.execute()
  await db.schema.createIndex('ledger_entries_by_time').on('ledger_entries').column('at_ms').execute()
  // Only tasks are looked up: their last entry is reversed when they are resumed.
  await sql`create index ledger_entries_of_task on ledger_entries (call_id, kind) where kind in ('task', 'reversal')`.execute(
    db,
  )
}

/** The rows are stored in the order of the key on SQLite, so that a range of time is one contiguous read. */
async function createSums(db: Kysely<unknown>, name: string, key: readonly string[]): Promise<void> {
  const isSqlite = db.getExecutor().adapter instanceof SqliteAdapter
  let table = db.schema.createTable(name)
  for (const column of key)
    table = table.addColumn(column, column === 'start' || column === 'period' ? 'bigint' : 'text', (of) => of.notNull())
  for (const column of SUMS) table = table.addColumn(column, 'bigint', (of) => of.notNull())
  table = table.addPrimaryKeyConstraint(`${name}_key`, [...key] as never)
  await (isSqlite ? table.modifyEnd(sql`without rowid`) : table).execute()
}

/** One entry for each row: a token, a model and an hour. Their prices are unknown. */
async function copyUsage(db: Kysely<unknown>): Promise<void> {
  await sql`
    insert into ledger_entries (entry_id, kind, at_ms, call_id, token_id, family, model, provider, upstream_model, units,
      requests, errors, estimated, input_tokens, output_tokens)
    select 'usage_' || hour || '_' || token_id || '_' || model, 'adjustment', hour * 1000, '', token_id, '', model, '', '',
      '{"input_tokens":' || input_tokens || ',"output_tokens":' || output_tokens || '}',
      requests, errors, estimated, input_tokens, output_tokens
    from usage`.execute(db)
  for (const period of [60, 3_600, 86_400])
    await sql`
      insert into ledger_sums
      select ${sql.lit(period)}, hour / ${sql.lit(period)} * ${sql.lit(period)}, token_id, '', '', model, '', '', count(*), sum(requests),
        sum(errors), sum(estimated), sum(input_tokens), sum(output_tokens), 0, 0, sum(requests), sum(requests)
      from usage group by token_id, model, hour / ${sql.lit(period)} * ${sql.lit(period)}`.execute(db)
  await sql`
    insert into ledger_end_users
    select hour / 86400 * 86400, token_id, '', '', '', model, '', '', count(*), sum(requests),
      sum(errors), sum(estimated), sum(input_tokens), sum(output_tokens), 0, 0, sum(requests), sum(requests)
    from usage group by token_id, model, hour / 86400 * 86400`.execute(db)
  await sql`insert into ledger_starts values ('tasks', ${sql.lit(Math.ceil(Date.now() / 1000))})`.execute(db)
  await db.schema.dropTable('usage').execute()
}
