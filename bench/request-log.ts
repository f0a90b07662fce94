/**
 * How long a search of a million rows of the request log takes by each filter and by pairs of conditions, on SQLite and
 * on PostgreSQL, before and after ANALYZE, and what adding a row costs. Ends with status 1 where a search takes more than the bound.
 */
import { Database } from 'bun:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { openStore } from '../src/store/open-store.ts'
import type { Store } from '../src/store/store.ts'
import { startPostgres } from '../test/kit/postgres.ts'
import { measureSearches, rowOf, type Span } from './request-searches.ts'

const ROWS = Number(process.env.BENCH_ROWS ?? 1_000_000)
const ROWS_PER_BATCH = 500
const SPAN: Span = { rows: ROWS, start_ms: Date.UTC(2026, 0, 1), span_ms: 7 * 86_400_000 }
const SEARCHED = { ...SPAN, request_id: rowOf(0, SPAN).request_id }
const print = (line: string) => void process.stdout.write(`${line}\n`)

async function fill(store: Store): Promise<number> {
  let spent = 0
  for (let at = 0; at < ROWS; at += ROWS_PER_BATCH) {
    const rows = Array.from({ length: Math.min(ROWS_PER_BATCH, ROWS - at) }, (_, one) => rowOf(at + one, SPAN))
    const cpu = process.cpuUsage()
    await store.requestLog.append(rows)
    const used = process.cpuUsage(cpu)
    spent += used.user + used.system
  }
  return spent / ROWS
}

async function add(name: string, store: Store): Promise<void> {
  const started = performance.now()
  const cpu = await fill(store)
  const wall = ((performance.now() - started) * 1000) / ROWS
  print(
    `${name}: ${ROWS} rows; adding one: ${cpu.toFixed(1)} us of processor time of the gateway, ${wall.toFixed(1)} us in all`,
  )
}

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-request-log-'))
const results: boolean[] = []
try {
  const path = join(directory, 'gatehouse.db')
  const sqlite = await openStore({ url: `sqlite:${path}` })
  await add('SQLite', sqlite)
  const size = new Database(path, { readonly: true })
    .query<{ bytes: number }, []>('select page_count * page_size as bytes from pragma_page_count(), pragma_page_size()')
    .get()
  print(`  ${((size?.bytes ?? 0) / ROWS).toFixed(0)} bytes a row`)
  results.push(await measureSearches('SQLite', sqlite, SEARCHED))
  await sqlite.close()
  const server = await startPostgres()
  const url = await server.createDatabase()
  const postgres = await openStore({ url })
  await add('PostgreSQL', postgres)
  const client = new Client(url)
  await client.connect()
  const { rows } = await client.query("select pg_total_relation_size('request_log') as bytes")
  print(`  ${(Number(rows[0]?.bytes) / ROWS).toFixed(0)} bytes a row`)
  results.push(await measureSearches('PostgreSQL, without statistics of the tables', postgres, SEARCHED))
  await client.query('vacuum analyze request_log')
  await client.query('vacuum analyze request_tags')
  await client.end()
  results.push(await measureSearches('PostgreSQL, after VACUUM ANALYZE', postgres, SEARCHED))
  await postgres.close()
} finally {
  rmSync(directory, { recursive: true, force: true })
}
process.exit(results.every(Boolean) ? 0 : 1)
