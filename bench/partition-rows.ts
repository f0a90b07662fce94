/** Fills PostgreSQL with rows like those that a gateway has written, made by the server itself, and reads what they take. */
import { Client } from 'pg'

export const DAY_MS = 86_400_000

/** The same distributions as those of `rowOf` in `request-searches.ts`. */
const REQUEST_VALUES = {
  row_id: 'n',
  at_ms: 'g.at_ms',
  request_id: `'req_' || left(lpad(to_hex(n), 9, '0') || md5(n::text), length(request_id) - 4)`,
  token_id: `'tok_' || lpad(token::text, 16, '0')`,
  project_id: `case when r1 < 0.7 then 'proj_' || lpad(project::text, 16, '0') end`,
  end_user: `case when r2 < 0.5 then 'user-' || floor(r1 ^ 3 * 20000) end`,
  session: `case when r3 < 0.3 then 'session-' || floor(r2 ^ 3 * 100000) end`,
  trace_id: `case when r2 > 0.9 then lpad(to_hex(n), 32, '0') end`,
  model: `'vendor-' || vendor || '/model-' || model_number`,
  provider: `'vendor-' || vendor`,
  target: `'vendor-' || vendor || '/model-' || model_number`,
  status: 'case when is_failed then 502 else 200 end',
  error: `case when is_failed then case when r1 < 0.01 then 'upstream_cut' else 'upstream_error' end end`,
  total_ms: 'case when is_slow then 90000 else round(r1 * 20000) / 10 end',
  cost: 'case when is_slow then 5000000000 else floor(r2 * 1000000) end',
  tags: `case when r3 > 0.8 then '["team:' || floor(r1 ^ 3 * 20) || '","' || case when n % 100000 = 0 then 'rare' else 'usual' end || '"]' end`,
}

const ENTRY_VALUES = {
  entry_id: `left(md5(n::text) || md5(token::text), length(entry_id))`,
  at_ms: 'g.at_ms',
  call_id: `left('req_' || lpad(to_hex(n), 9, '0') || md5(n::text), length(call_id))`,
  token_id: `'tok_' || lpad(token::text, 16, '0')`,
  project_id: `'proj_' || lpad(project::text, 16, '0')`,
  model: `'vendor-' || vendor || '/model-' || model_number`,
  provider: `'vendor-' || vendor`,
  upstream_model: `'model-' || model_number`,
  amount: 'floor(r2 * 1000000)',
  cost: 'floor(r3 * 1000000)',
}

const TASK_VALUES = {
  task_id: `'task_' || left(lpad(to_hex(n), 9, '0') || md5(n::text), length(task_id) - 5)`,
  token_id: `'tok_' || lpad(token::text, 16, '0')`,
  submit_time: 'g.at_ms / 1000',
  start_time: 'g.at_ms / 1000',
  finish_time: 'g.at_ms / 1000 + 5',
  outputs_expire_at: 'g.at_ms / 1000 + 9999999',
}

const VALUES: Record<string, Record<string, string>> = {
  request_log: REQUEST_VALUES,
  ledger_entries: ENTRY_VALUES,
  tasks: TASK_VALUES,
}

export type Fill = { table: string; first: number; rows: number; start_ms: number; span_ms: number }

export async function withClient<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** Keeps some of the rows that a gateway has written as samples, whose other columns each new row has. */
export async function keepSamples(client: Client, table: string): Promise<void> {
  await client.query('create schema if not exists samples')
  await client.query(
    `create table samples.${table} as select (row_number() over () - 1)::int as sample, * from (select * from ${table} limit 50) as first`,
  )
}

/** Takes the indexes from an empty table, so that its rows are added faster; the result makes them again. */
async function withoutIndexes(client: Client, table: string): Promise<() => Promise<void>> {
  const { rows } = await client.query<{ name: string; definition: string; is_primary: boolean }>(
    `select relname as name, pg_get_indexdef(indexrelid) as definition, indisprimary as is_primary
     from pg_index join pg_class on pg_class.oid = indexrelid where indrelid = $1::regclass`,
    [table],
  )
  for (const { name, is_primary } of rows)
    await client.query(is_primary ? `alter table ${table} drop constraint ${name}` : `drop index ${name}`)
  return async () => {
    for (const { name, definition, is_primary } of rows) {
      await client.query(definition)
      if (is_primary) await client.query(`alter table ${table} add primary key using index ${name}`)
    }
  }
}

/** The partitions of these days stand alone until they are filled, so that several connections fill some at a time. */
export async function fillDays(url: string, days: readonly Fill[], onDay: () => void): Promise<void> {
  const rest = days.map((fill) => {
    const table = `request_log_${new Date(fill.start_ms).toISOString().slice(0, 10).replaceAll('-', '')}`
    return { ...fill, table }
  })
  await withClient(url, async (client) => {
    for (const { table } of rest) await client.query(`alter table request_log detach partition ${table}`)
  })
  const work = () =>
    withClient(url, async (client) => {
      for (let day = rest.shift(); day; day = rest.shift()) {
        await client.query('begin')
        await client.query(`truncate ${day.table}`) // its rows are not logged then
        const makeIndexes = await withoutIndexes(client, day.table)
        await fillRows(client, day)
        await makeIndexes()
        await client.query('commit')
        await client.query(
          `alter table request_log attach partition ${day.table} for values from (${day.start_ms}) to (${day.start_ms + DAY_MS})`,
        )
        await client.query(`vacuum (analyze) ${day.table}`)
        onDay()
      }
    })
  await Promise.all([work(), work()])
}

/** An empty table, in steps of a day. */
export async function fillTable(url: string, table: string, days: readonly Fill[]): Promise<void> {
  await withClient(url, async (client) => {
    const makeIndexes = await withoutIndexes(client, table)
    for (const day of days) await fillRows(client, { ...day, table })
    await makeIndexes()
    await client.query(`vacuum (analyze) ${table}`)
  })
}

/** Adds rows in order of time from `start_ms` on; their numbers begin with `first`. */
export async function fillRows(client: Client, { table, first, rows, start_ms, span_ms }: Fill): Promise<void> {
  const { rows: columns } = await client.query<{ name: string; type: string }>(
    `select attname as name, format_type(atttypid, atttypmod) as type from pg_attribute
     where attrelid = $1::regclass and attnum > 0 and not attisdropped order by attnum`,
    [table],
  )
  const kind = table.replace(/_\d{8}$/, '')
  const values = VALUES[kind] ?? {}
  const selected = columns.map(({ name, type }) => (values[name] ? `(${values[name]})::${type}` : `s.${name}`))
  await client.query(
    `insert into ${table} (${columns.map(({ name }) => name).join(', ')})
     select ${selected.join(', ')} from (
       select *, floor(r4 ^ 3 * 6)::int as vendor, floor(r5 ^ 3 * 60)::int as model_number, floor(r6 ^ 3 * 200)::int as token,
         floor(r7 ^ 3 * 30)::int as project, r8 < 0.02 as is_failed, r8 > 0.9999 as is_slow from (
         select n, $2::bigint + ((n - $1::bigint) * $3::float8 / $4)::bigint as at_ms, random() as r1, random() as r2, random() as r3,
           random() as r4, random() as r5, random() as r6, random() as r7, random() as r8
         from generate_series($1::bigint, $1::bigint + $4 - 1) as n offset 0) as drawn) as g
     join samples.${kind} as s on s.sample = g.n % (select count(*) from samples.${kind})`,
    [first, start_ms, span_ms, rows],
  )
  if (kind === 'request_log')
    await client.query(
      `insert into request_tags (tag, at_ms, row_id)
       select tag, at_ms, row_id from ${table}, json_array_elements_text(tags::json) as tag
       where at_ms >= $1 and at_ms < $2 and tags is not null and row_id >= $3`,
      [start_ms, start_ms + span_ms, first],
    )
}

/** Bytes with indexes, partitions under the name of their table; and those of the indexes alone. */
export async function sizesOf(client: Client): Promise<Map<string, { bytes: number; indexes: number }>> {
  const { rows } = await client.query<{ name: string; bytes: string; indexes: string }>(
    `select coalesce(parent.relname, c.relname) as name, sum(pg_total_relation_size(c.oid)) as bytes,
       sum(pg_indexes_size(c.oid)) as indexes
     from pg_class c left join pg_inherits on inhrelid = c.oid left join pg_class parent on parent.oid = inhparent
     where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace group by 1`,
  )
  return new Map(rows.map(({ name, bytes, indexes }) => [name, { bytes: Number(bytes), indexes: Number(indexes) }]))
}

/** Rows that were read by sequential scans so far, by table. */
export async function scannedRows(client: Client): Promise<Map<string, number>> {
  await Bun.sleep(2_000) // a server counts what its sessions report once a second
  await client.query('select pg_stat_clear_snapshot()')
  const { rows } = await client.query<{ name: string; rows: string }>(
    `select relname as name, seq_tup_read as rows from pg_stat_user_tables where schemaname = 'public'`,
  )
  return new Map(rows.map(({ name, rows }) => [name, Number(rows)]))
}
