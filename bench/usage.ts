/**
 * How long a grouped month of usage takes over a million rows of sums, on SQLite and PostgreSQL, and how many entries a second
 * are committed. Ends with status 1 where a grouped month takes more than the bound.
 */
import { Database } from 'bun:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import type { LedgerEntry } from '../src/store/ledger/ledger-entry.ts'
import type { UsageDimension } from '../src/store/ledger/ledger-store.ts'
import { openStore } from '../src/store/open-store.ts'
import { entry } from '../test/kit/ledger.ts'
import { startPostgres } from '../test/kit/postgres.ts'

const MOST_MILLISECONDS = 200
const DAY = 86_400
const START = Date.UTC(2026, 0, 1) / 1000
/** A month of 30 days: 100 tokens with 20 models each, in every hour and on every day: 1.5 million rows of sums. */
const [TOKENS, MODELS, DAYS] = [100, 20, 30]
const ROUNDS = 5
const COMMITS = 40
const ENTRIES_PER_COMMIT = 500

const QUERIES: UsageDimension[][] = [
  [],
  ['token'],
  ['project', 'model'],
  ['day', 'model'],
  ['token', 'model', 'provider'],
  ['hour'],
]

/** As the ledger would have added them up: inserted directly, since a million commits take too long. */
const FILL = `
  with recursive t(n) as (select 0 union all select n + 1 from t where n < ${TOKENS - 1}),
    m(n) as (select 0 union all select n + 1 from m where n < ${MODELS - 1}),
    p(period, n) as (select 3600, 0 union all select 3600, n + 1 from p where n < ${DAYS * 24 - 1}),
    d(period, n) as (select 86400, 0 union all select 86400, n + 1 from d where n < ${DAYS - 1}),
    s(period, start) as (select period, ${START} + n * 3600 from p union all select period, ${START} + n * 86400 from d)
  insert into ledger_sums
  select s.period, s.start, 'tok_' || t.n, 'proj_' || (t.n % 10), 'chatcompat', 'vendor/model-' || m.n, 'vendor-' || (m.n % 4),
    'model-' || m.n, 12, 12, 1, 2, 12000, 6000, 123456789, 100000000, 0, 0
  from s cross join t cross join m`

/** With connections of their own: a statement of the store may not take so long. Returns how many rows there are. */
function fillFile(path: string): number {
  const database = new Database(path)
  database.run(FILL)
  const found = database.query<{ count: number }, []>('select count(*) as count from ledger_sums').get()
  database.close()
  return found?.count ?? 0
}

async function fillServer(url: string): Promise<number> {
  const client = new Client(url)
  await client.connect()
  await client.query(FILL)
  await client.query('vacuum analyze ledger_sums') // as autovacuum does soon after so many rows
  const { rows } = await client.query('select count(*) as count from ledger_sums')
  await client.end()
  return Number(rows[0].count)
}

async function measure(name: string, url: string): Promise<boolean> {
  await (await openStore({ url })).close() // creates the tables
  const filled = url.startsWith('sqlite:') ? fillFile(url.slice('sqlite:'.length)) : await fillServer(url)
  const store = await openStore({ url })
  let isFast = true
  for (const by of QUERIES) {
    const times: number[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const begun = performance.now()
      await store.ledger.usage({ by, from: START, to: START + DAYS * DAY })
      times.push(performance.now() - begun)
    }
    const median = times.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? 0
    // By hour, the answer itself has a row for each hour: only groups of days have the bound.
    if (!by.includes('hour') && median > MOST_MILLISECONDS) isFast = false
    process.stdout.write(
      `${name}  ${String(filled).padStart(8)} rows  by ${(by.join(',') || 'nothing').padEnd(22)} ${median.toFixed(1).padStart(8)} ms\n`,
    )
  }
  const batches = Array.from({ length: COMMITS }, (_, batch) =>
    Array.from(
      { length: ENTRIES_PER_COMMIT },
      (_, index): LedgerEntry => entry({ at_ms: (START + batch) * 1000, token_id: `tok_${index % 10}` }),
    ),
  )
  const begun = performance.now()
  for (const batch of batches) await store.ledger.append(batch)
  const seconds = (performance.now() - begun) / 1000
  process.stdout.write(
    `${name}  ${Math.round((COMMITS * ENTRIES_PER_COMMIT) / seconds)} entries/s committed, ${((seconds * 1000) / COMMITS).toFixed(1)} ms for ${ENTRIES_PER_COMMIT}\n`,
  )
  await store.close()
  return isFast
}

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-bench-usage-'))
const results = [
  await measure('sqlite  ', `sqlite:${join(directory, 'gatehouse.db')}`),
  await measure('postgres', await (await startPostgres()).createDatabase()),
]
rmSync(directory, { recursive: true, force: true })
process.exit(results.every(Boolean) ? 0 : 1)
