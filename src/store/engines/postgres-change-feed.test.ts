/** Cuts the connection that listens for changed tasks off from PostgreSQL, without an end that would tell it. */
import { expect, it } from 'bun:test'
import { Kysely, PostgresDialect, sql } from 'kysely'
import { Client, Pool } from 'pg'
import { startPostgres } from '../../../test/kit/postgres.ts'
import { listenForRelay } from '../../../test/kit/relay.ts'
import type { Tables } from '../tables.ts'
import { createChangeFeed } from './postgres-change-feed.ts'

it.each([
  ['after it listened', 'a statement'],
  ['before it listens', '`listen`'],
])('is lost when it is cut off %s and %s is not answered in time; another one brings what changes', async (when) => {
  const postgres = await startPostgres()
  const url = await postgres.createDatabase()
  const relay = listenForRelay('127.0.0.1', Number(new URL(url).port))
  const through = new URL(url)
  through.port = String(relay.port)
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: new Pool({ connectionString: url }) }) })
  const clients: Client[] = []
  const connect = () => {
    const client = new Client({ connectionString: clients.length === 0 ? through.href : url })
    clients.push(client)
    const connected = client.connect.bind(client)
    if (when === 'before it listens' && clients.length === 1)
      client.connect = async () => {
        const known = await connected()
        relay.cut()
        return known
      }
    return client
  }
  const feed = createChangeFeed({ db, connect, pulse_ms: 300 })
  const seen = new Set<string>()
  feed.watch(({ task_id }) => void seen.add(task_id))
  /** Repeats it until it arrives: nothing is told before the connection listens. */
  const arrives = async (task_id: string) => {
    while (!seen.has(task_id))
      await sql`select pg_notify('gatehouse_tasks', ${`another SUCCESS ${task_id}`})`.execute(db)
  }
  try {
    if (when === 'after it listened') {
      await arrives('task_before')
      relay.cut()
    }
    await arrives('task_after')
    expect(clients.length).toBeGreaterThan(1)
  } finally {
    await feed.close()
    await db.destroy()
    relay.mend()
    relay.stop(true)
    await postgres.dropDatabase(url)
  }
})
