/**
 * How many bytes a call and a task leave in the store, with indexes, on SQLite and on PostgreSQL: `npm run bench:rows`.
 * The calls and tasks are made by a gateway with its defaults; sums have one row for many calls. PostgreSQL does not wait
 * for a disk here.
 */
import { Database } from 'bun:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { systemClock } from '../src/kit/clock.ts'
import { startGateway, type TestGateway } from '../test/kit/gateway.ts'
import { startPostgres } from '../test/kit/postgres.ts'
import { secondsOfPostgres } from './postgres-time.ts'

const CALLS = Number(process.env.BENCH_CALLS ?? 4_000)
const TASKS = Number(process.env.BENCH_TASKS ?? 1_000)
const AT_ONCE = 32

type Table = { name: string; bytes: number; rows: number }

const messages = [{ role: 'user', content: 'How do I add a provider?' }]

async function inTurns(count: number, work: () => Promise<unknown>): Promise<void> {
  let left = count
  const turn = async () => {
    while (left-- > 0) await work()
  }
  await Promise.all(Array.from({ length: AT_ONCE }, turn))
}

const chat = (gateway: TestGateway) => async () => {
  const response = await gateway.chat({ model: 'sandbox/compact', messages })
  if (response.status !== 200) throw new Error(`A call ended with ${response.status}: ${await response.text()}`)
  await response.text()
}

const task = (gateway: TestGateway) => async () => {
  const json = { model: 'sandbox/image', prompt: 'A lighthouse', size: '256x256', async: true }
  const created = (await (await gateway.call('/v1/images/generations', { json })).json()) as {
    data: { task_id: string }
  }
  const { task_id } = created.data
  for (;;) {
    const response = await gateway.call(`/v1/images/generations/${task_id}?wait=30`)
    const { data } = (await response.json()) as { data: { status: string } }
    if (data.status === 'SUCCESS') return
    if (data.status === 'FAILURE') throw new Error(`The task ${task_id} failed.`)
  }
}

function tablesOfSqlite(path: string): Table[] {
  const db = new Database(path)
  const sizes = db
    .query<{ name: string; bytes: number }, []>(
      `select s.tbl_name as name, sum(d.pgsize) as bytes from dbstat d join sqlite_schema s on s.name = d.name group by 1`,
    )
    .all()
  const rows = (name: string) => db.query<{ n: number }, []>(`select count(*) as n from "${name}"`).get()?.n ?? 0
  const tables = sizes.map((one) => ({ ...one, rows: rows(one.name) }))
  db.close()
  return tables
}

async function tablesOfPostgres(url: string): Promise<Table[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query<{ name: string; bytes: string }>(
    `select relname as name, pg_total_relation_size(oid) as bytes from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
  )
  const tables: Table[] = []
  for (const { name, bytes } of rows) {
    const { rows: counted } = await client.query<{ n: string }>(`select count(*) as n from "${name}"`)
    tables.push({ name, bytes: Number(bytes), rows: Number(counted[0]?.n ?? 0) })
  }
  await client.end()
  return tables
}

/** What each of `count` pieces of work has added, table by table. */
function show(title: string, { before, after, count }: { before: Table[]; after: Table[]; count: number }): void {
  process.stdout.write(`\n${title}, bytes for each of ${count}, with indexes\n`)
  let sum = 0
  for (const { name, bytes, rows } of after.sort((a, b) => b.bytes - a.bytes)) {
    const first = before.find((one) => one.name === name)
    const [added, more] = [bytes - (first?.bytes ?? 0), rows - (first?.rows ?? 0)]
    if (added <= 0 || more <= 0) continue
    sum += added
    const each = `${(added / count).toFixed(0).padStart(7)}  ${name}`
    process.stdout.write(`${each}${more < count / 2 ? ` (${more} rows)` : ''}\n`)
  }
  process.stdout.write(`${(sum / count).toFixed(0).padStart(7)}  in all\n`)
}

type Measured = {
  engine: string
  store_url: string
  tables(): Promise<Table[]> | Table[]
  /** Seconds of processor time of the server so far; absent: it has no process of its own. */
  seconds?(): Promise<number>
}

/** The tables once the ledger has so many entries: they are appended together, after the responses. */
async function tablesWith(entries: number, { tables }: Pick<Measured, 'tables'>): Promise<Table[]> {
  for (;;) {
    const all = await tables()
    if ((all.find(({ name }) => name === 'ledger_entries')?.rows ?? 0) >= entries) return all
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

async function measure(measured: Measured): Promise<void> {
  const { engine, store_url, tables } = measured
  const gateway = await startGateway({}, { store_url, clock: systemClock })
  const before = await tables()
  const start = (await measured.seconds?.()) ?? 0
  await inTurns(CALLS, chat(gateway))
  const called = await tablesWith(CALLS, measured)
  show(`${engine}: a chat call`, { before, after: called, count: CALLS })
  const seconds = ((await measured.seconds?.()) ?? 0) - start
  if (seconds > 0)
    process.stdout.write(`${((seconds / CALLS) * 1e6).toFixed(0).padStart(7)}  us of processor time of the server\n`)
  await inTurns(TASKS, task(gateway))
  const done = await tablesWith(CALLS + TASKS, measured)
  show(`${engine}: a task with one image`, { before: called, after: done, count: TASKS })
  await gateway[Symbol.asyncDispose]()
}

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-rows-'))
try {
  const path = join(directory, 'gatehouse.db')
  await measure({ engine: 'SQLite', store_url: `sqlite:${path}`, tables: () => tablesOfSqlite(path) })
  const postgres = await startPostgres()
  const url = await postgres.createDatabase()
  await measure({
    engine: 'PostgreSQL',
    store_url: url,
    tables: () => tablesOfPostgres(url),
    seconds: () => secondsOfPostgres(url),
  })
} finally {
  rmSync(directory, { recursive: true, force: true })
}
process.exit()
