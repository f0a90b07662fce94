/**
 * What many rows cost on PostgreSQL with the settings of a server: `npm run bench:partitions`. First a request log that is
 * not partitioned: what a row costs to delete, a backup, and `migrate partition` while rows are written. Then one of 30
 * days with partitions, beside as many entries of the ledger: sizes, searches, usage, closing an hour, dropping a day.
 * BENCH_ROWS: rows of either (30,000,000 need 40 GB of disk and an hour); BENCH_ENTRIES, BENCH_TASKS: others.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Client } from 'pg'
import { DEFAULT_REQUEST_LOG } from '../src/config/config.ts'
import { systemClock } from '../src/kit/clock.ts'
import { writeBackup } from '../src/store/backup/write-backup.ts'
import { openPostgres } from '../src/store/engines/postgres.ts'
import { partitionRequests } from '../src/store/engines/postgres-partition.ts'
import { openStore } from '../src/store/open-store.ts'
import { keepPartitions } from '../src/store/requests/request-partitions.ts'
import type { Store } from '../src/store/store.ts'
import { startAdminGateway } from '../test/kit/admin.ts'
import { startPostgres } from '../test/kit/postgres.ts'
import {
  CONVERTED,
  closeHour,
  DAYS,
  during,
  ENTRIES,
  KEPT,
  measureConsole,
  measureRetention,
  PER_DAY,
  print,
  ROWS,
  START,
  seconds,
  TASKS,
  TODAY,
  timed,
  writeBeside,
} from './partition-measures.ts'
import {
  DAY_MS,
  fillDays,
  fillRows,
  fillTable,
  keepSamples,
  scannedRows,
  sizesOf,
  withClient,
} from './partition-rows.ts'
import { secondsOfPostgres } from './postgres-time.ts'
import { measureSearches } from './request-searches.ts'

const SETTINGS = [
  'shared_buffers=512MB',
  'effective_cache_size=4GB',
  'maintenance_work_mem=256MB',
  'work_mem=16MB',
  'max_wal_size=2GB',
  'checkpoint_timeout=15min',
  'max_connections=100',
  'wal_level=minimal',
  'max_wal_senders=0',
]

/** Rows and entries of some calls of a gateway become samples of all others. */
async function sample(url: string): Promise<void> {
  const gateway = await startAdminGateway({}, { store_url: url, clock: systemClock })
  for (let at = 0; at < 50; at++) {
    const messages = [{ role: 'user', content: 'How do I add a provider?' }]
    await (await gateway.chat({ model: 'sandbox/compact', messages })).text()
  }
  for (let at = 0; at < 5; at++) {
    const json = { model: 'sandbox/image', prompt: 'A lighthouse', size: '256x256', async: true }
    const created = await (await gateway.call('/v1/images/generations', { json })).json()
    await (await gateway.call(`/v1/images/generations/${created.data.task_id}?wait=30`)).text()
  }
  await gateway[Symbol.asyncDispose]()
  await withClient(url, async (client) => {
    for (const table of ['request_log', 'ledger_entries', 'tasks']) {
      await keepSamples(client, table)
      await client.query(`truncate ${table}`)
    }
    for (const table of ['request_tags', 'request_minutes', 'request_sums', 'ledger_sums'])
      await client.query(`truncate ${table}`)
  })
}

async function measureConversion(directory: string): Promise<void> {
  const server = await startPostgres()
  const url = await server.createDatabase()
  await (await openStore({ url })).close()
  await sample(url)
  const store = await openStore({ url })
  const first = await store.requestLog.reserve(CONVERTED)
  const empty = await writeBeside(store, url, during(10_000))
  print(`recorder, empty table: ${empty}`)
  const per_day = Math.round(CONVERTED / 5)
  const days = Array.from({ length: 5 }, (_, day) => {
    const start_ms = TODAY - (5 - day) * DAY_MS
    return { table: 'request_log', first: first + day * per_day, rows: per_day, start_ms, span_ms: DAY_MS }
  })
  await withClient(url, (client) => client.query('truncate request_log, request_tags'))
  const filled = await timed(() => fillTable(url, 'request_log', days))
  print(`not partitioned: ${CONVERTED} rows filled in ${seconds(filled)}`)
  const full = await writeBeside(store, url, during(10_000))
  print(`recorder beside ${CONVERTED} rows, not partitioned: ${full}`)
  let deleted = 0
  const used = await secondsOfPostgres(url)
  const start = performance.now()
  while (performance.now() - start < 15_000 && (await store.requestLog.prune(TODAY - 4 * DAY_MS))) deleted += 500
  const each = (performance.now() - start) / deleted
  const spent = (((await secondsOfPostgres(url)) - used) / deleted) * 1e6
  print(
    `retention row by row: ${Math.round(1000 / each)} rows/s, ${spent.toFixed(0)} us of PostgreSQL a row; a day of ${PER_DAY} in ${seconds(each * PER_DAY)}`,
  )
  const path = join(directory, 'backup.tar')
  const backup = await timed(() =>
    writeBackup({ url, path, version: '0', made_at: new Date().toISOString(), outputs: { bucket: 'none' } }),
  )
  print(`backup of some ${CONVERTED - deleted} rows: ${seconds(backup)}, ${Math.round(statSync(path).size / 1e6)} MB`)
  let step = performance.now()
  let name = 'plan'
  const end = () => print(`migrate partition, ${name}: ${seconds(performance.now() - step)}`)
  const converted = partitionRequests(url, {
    now_ms: Date.now(),
    onStep(next) {
      end()
      name = next
      step = performance.now()
    },
  }).finally(end)
  const beside = await writeBeside(store, url, converted)
  print(`writers meanwhile: ${beside}`)
  await store.close()
  await server.dropDatabase(url)
}

/** Days before today have partitions as well, made as the gateway makes them. */
async function partitionedDatabase(): Promise<string> {
  const url = await (await startPostgres()).createDatabase()
  await (await openStore({ url })).close()
  await sample(url)
  await partitionRequests(url, { now_ms: START - 8 * DAY_MS })
  const engine = await openPostgres(url)
  for (let now_ms = START; now_ms <= TODAY; now_ms += DAY_MS) await keepPartitions(engine.db, { now_ms, before_ms: 0 })
  await engine.close()
  return url
}

async function fillAll(url: string, store: Store): Promise<number> {
  const first = await store.requestLog.reserve(ROWS)
  const days = Array.from({ length: DAYS }, (_, day) => {
    const start_ms = START + day * DAY_MS
    return { table: 'request_log', first: first + day * PER_DAY, rows: PER_DAY, start_ms, span_ms: DAY_MS }
  })
  let filled = 0
  const ms = await timed(() => fillDays(url, days, () => ++filled % 5 === 0 && print(`${filled} days filled`)))
  print(`${ROWS} rows of the request log filled in ${seconds(ms)}`)
  const entries = days.map((day) => ({ ...day, rows: Math.round(ENTRIES / DAYS) }))
  print(
    `${ENTRIES} entries of the ledger filled in ${seconds(await timed(() => fillTable(url, 'ledger_entries', entries)))}`,
  )
  await withClient(url, async (client) => {
    const span = { start_ms: START, span_ms: DAYS * DAY_MS }
    await fillRows(client, { table: 'tasks', first, rows: TASKS, ...span })
    await client.query('vacuum (analyze) tasks')
    await client.query('vacuum (analyze) request_tags')
  })
  return first
}

async function showSizes(client: Client): Promise<void> {
  const sizes = await sizesOf(client)
  const rows: Record<string, number> = { request_log: ROWS, request_tags: ROWS, ledger_entries: ENTRIES, tasks: TASKS }
  for (const [name, count] of Object.entries(rows)) {
    const { bytes = 0, indexes = 0 } = sizes.get(name) ?? {}
    const of = (part: number) => (part / count).toFixed(0)
    print(`${name}: ${(bytes / 1e9).toFixed(2)} GB; ${of(bytes)} bytes a row, of which indexes ${of(indexes)}`)
  }
}

async function measurePartitioned(): Promise<boolean> {
  const url = await partitionedDatabase()
  const store = await openStore({ url })
  const first = await fillAll(url, store)
  return withClient(url, async (client) => {
    await showSizes(client)
    await closeHour(client, store)
    const beside = await writeBeside(store, url, during(10_000))
    print(`recorder beside ${ROWS} rows in ${DAYS} days: ${beside}`)
    while (await store.requestSums.upkeep(Math.floor(Date.now() / 1000) + 180, KEPT));
    const before = await scannedRows(client)
    const request_log = { ...DEFAULT_REQUEST_LOG, keep_days: DAYS + 10 }
    const gateway = await startAdminGateway({ request_log }, { store_url: url, clock: systemClock })
    await measureConsole(gateway, url)
    await gateway[Symbol.asyncDispose]()
    const { rows } = await client.query('select request_id from request_log where row_id = $1', [first + ROWS / 2])
    const request_id = String(rows[0].request_id)
    const span = { rows: ROWS, start_ms: START, span_ms: DAYS * DAY_MS }
    const isFast = await measureSearches('searches', store, { ...span, request_id }, { has_pairs: false })
    for (const [name, count] of await scannedRows(client)) {
      const more = count - (before.get(name) ?? 0)
      if (more > 10_000) print(`  read by sequential scans: ${more} rows of ${name}`)
    }
    await measureRetention(client, store, url)
    await store.close()
    return isFast
  })
}

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-partitions-'))
let isFast = false
try {
  await startPostgres(SETTINGS)
  await measureConversion(directory)
  isFast = await measurePartitioned()
} finally {
  rmSync(directory, { recursive: true, force: true })
}
process.exit(isFast ? 0 : 1)
