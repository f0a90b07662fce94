/** The connections to PostgreSQL: bounded in number and in time, so that a server that does not respond delays no call for long. */
import type { PostgresPool, PostgresPoolClient } from 'kysely'
import { Pool, type PoolClient, type PoolConfig } from 'pg'

/** Every statement of the gateway is short. After this time the connection is closed and the call fails. */
const QUERY_MILLISECONDS = 5_000
/** The wait for a new connection while the server is down: the system repeats a lost packet later and later. */
const TRIAL_MILLISECONDS = 500

/** A lost connection makes the calls that use it fail; without these listeners it would end the process. */
export function poolOf(config: PoolConfig): Pool {
  const pool = new Pool(config)
  pool.on('error', () => undefined)
  pool.on('connect', (client) => void client.on('error', () => undefined))
  return pool
}

/**
 * A statement that takes too long closes its connection: pg's own `query_timeout` would leave it in the pool, where the
 * next statement waits behind the one that hangs. The server then counts as down until a statement succeeds: meanwhile
 * one call at a time tries it, and the others fail at once.
 */
export function createTimedPool(config: PoolConfig): PostgresPool {
  const pool = poolOf(config)
  let is_down = false
  let is_tried = false

  async function connect(): Promise<PostgresPoolClient> {
    const is_trial = is_down
    if (is_trial && is_tried) throw new Error('PostgreSQL does not respond.')
    is_tried = is_trial
    try {
      return timed(await (is_trial ? tryToConnect() : pool.connect()), is_trial)
    } catch (error) {
      if (is_trial) is_tried = false
      throw error
    }
  }

  /** An attempt that takes longer goes on, and leaves its connection to the next one. */
  async function tryToConnect(): Promise<PoolClient> {
    const late = Promise.withResolvers<never>()
    const connected = pool.connect()
    const timer = setTimeout(() => {
      late.reject(new Error('PostgreSQL does not respond.'))
      connected.then(
        (client) => client.release(),
        () => undefined,
      )
    }, TRIAL_MILLISECONDS)
    return Promise.race([connected, late.promise]).finally(() => clearTimeout(timer))
  }

  function timed(client: PoolClient, is_trial: boolean): PostgresPoolClient {
    let is_lost = false
    const lose = (reject: (error: Error) => void) => {
      is_lost = true
      is_down = true
      void client.end().catch(() => undefined) // with a statement under way it closes the socket
      reject(new Error(`PostgreSQL did not respond within ${QUERY_MILLISECONDS / 1000} s.`))
    }
    const query = async (text: string, values: readonly unknown[]) => {
      const late = Promise.withResolvers<never>()
      const timer = setTimeout(lose, QUERY_MILLISECONDS, late.reject)
      try {
        const result = await Promise.race([client.query(text, [...values]), late.promise])
        is_down = false
        return result
      } finally {
        clearTimeout(timer)
      }
    }
    const release = () => {
      if (is_trial) is_tried = false
      client.release(is_lost)
    }
    return { query, release } as unknown as PostgresPoolClient
  }

  return { connect, end: () => pool.end(), options: pool.options }
}
