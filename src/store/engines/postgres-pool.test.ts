/** A server that is cut off while an attempt to connect to it waits for the system, which repeats a lost packet later and later. */
import { expect, it } from 'bun:test'
import { startPostgres } from '../../../test/kit/postgres.ts'
import { listenForRelay } from '../../../test/kit/relay.ts'
import { createTimedPool } from './postgres-pool.ts'

it('does not wait long for one connection before it tries another one, while the server is down', async () => {
  const postgres = await startPostgres()
  const url = await postgres.createDatabase()
  const relay = listenForRelay('127.0.0.1', Number(new URL(url).port))
  const through = Object.assign(new URL(url), { port: String(relay.port) }).href
  // Longer than this test: without a shorter limit it ends by its own.
  const pool = createTimedPool({ connectionString: through, connectionTimeoutMillis: 600_000 })
  const ask = async () => {
    const client = await pool.connect()
    try {
      await client.query('select 1', [])
    } finally {
      client.release()
    }
  }
  try {
    await ask()
    relay.cut()
    await expect(ask()).rejects.toThrow('did not respond within 5 s')
    await expect(ask()).rejects.toThrow('PostgreSQL does not respond.')
    await expect(ask()).rejects.toThrow('PostgreSQL does not respond.')
    relay.mend()
    await ask()
  } finally {
    relay.mend()
    await pool.end?.()
    relay.stop(true)
    await postgres.dropDatabase(url)
  }
}, 60_000)
