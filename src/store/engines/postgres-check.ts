/** Checks of a PostgreSQL database what any user may read: its indexes, and the pages that the server has found damaged. */
import type { Client } from 'pg'
import { type StoreCheck, StoreError } from '../store.ts'
import { cannotUse, createClient, parseAddress } from './postgres.ts'

/** Null: the server keeps no checksums. */
const DAMAGED_PAGES = `select checksum_failures as failures from pg_stat_database where datname = current_database()`
/** A build that was interrupted leaves an index that is not used. */
const INVALID_INDEXES = `
  select indexrelid::regclass::text as name from pg_index
  where indrelid in (select oid from pg_class where relnamespace = current_schema()::regnamespace)
    and not (indisvalid and indisready) order by 1`

export async function checkPostgres(url: string): Promise<StoreCheck> {
  const address = parseAddress(url)
  const client = createClient(address.config)
  client.on('error', () => undefined)
  try {
    await client.connect()
    return await check(client)
  } catch (cause) {
    throw new StoreError(cannotUse(address, cause), cause)
  } finally {
    await client.end()
  }
}

async function check(client: Client): Promise<StoreCheck> {
  const pages = await client.query<{ failures: number | null }>(DAMAGED_PAGES)
  const indexes = await client.query<{ name: string }>(INVALID_INDEXES)
  const failures = pages.rows[0]?.failures ?? null
  return {
    engine: 'postgres',
    checked: ['indexes', ...(failures === null ? [] : ['checksums'])],
    problems: [
      ...indexes.rows.map(({ name }) => `the index ${name} is not valid; rebuild it with: reindex index ${name}`),
      ...(failures === null || failures === 0 ? [] : [`the server has found ${failures} pages with a wrong checksum`]),
    ],
  }
}
