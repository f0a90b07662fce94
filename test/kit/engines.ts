/** The engines over which the store's suite runs; one more engine is one more line here. */
import { Database } from 'bun:sqlite'
import { accessSync, constants } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { openStore } from '../../src/store/open-store.ts'
import type { Store } from '../../src/store/store.ts'
import { startPostgres } from './postgres.ts'

export type Engine = {
  name: string
  /** A new, empty store. */
  open(): Promise<Store>
  /** Opens the data of the last `open` once more, as another process would; absent where nobody else can. */
  openAgain?(): Promise<Store>
  /** The address of the last `open`; absent where nobody else can use it. */
  url?(): string
  /** Runs statements on the data of the last `open`, bypassing the store. */
  run?(statements: string): Promise<void>
  /** Closes what was opened and removes its data. */
  cleanup(): Promise<void>
}

/**
 * A directory in memory, where the system has one: otherwise each commit waits for the disk, and these tests never
 * crash the whole system.
 */
const MEMORY_DIRECTORY = isWritable('/dev/shm') ? '/dev/shm' : tmpdir()

export const ENGINES: Engine[] = [sqliteInMemory(), sqliteFile(), postgres()]

function isWritable(directory: string): boolean {
  try {
    accessSync(directory, constants.W_OK)
    return true
  } catch {
    return false
  }
}

function sqliteInMemory(): Engine {
  const { keep, closeAll } = keeper()
  return {
    name: 'sqlite in memory',
    open: () => keep(openStore({ url: 'sqlite::memory:' })),
    cleanup: closeAll,
  }
}

function sqliteFile(): Engine {
  const { keep, closeAll } = keeper()
  const directories: string[] = []
  const url = () => `sqlite:${join(directories.at(-1) ?? '', 'gatehouse.db')}`
  return {
    name: 'sqlite file',
    url,
    async run(statements) {
      const file = new Database(url().slice('sqlite:'.length))
      file.run(statements)
      file.close()
    },
    async open() {
      directories.push(await mkdtemp(join(MEMORY_DIRECTORY, 'gatehouse-store-')))
      return keep(openStore({ url: url() }))
    },
    openAgain: () => keep(openStore({ url: url() })),
    async cleanup() {
      await closeAll()
      for (const directory of directories.splice(0)) await rm(directory, { recursive: true, force: true })
    },
  }
}

function postgres(): Engine {
  const { keep, closeAll } = keeper()
  const databases: string[] = []
  /** Emptied databases for reuse: creating, migrating and dropping one takes some 20 times as long as emptying it. */
  const empty: string[] = []
  /** Databases whose tables may have been changed, not only their rows. */
  const altered = new Set<string>()
  let initial_rows: Rows | undefined
  const url = () => databases.at(-1) ?? ''
  return {
    name: 'postgres',
    url,
    async run(statements) {
      altered.add(url())
      await withClient(url(), (client) => client.query(statements))
    },
    async open() {
      const used = empty.pop()
      databases.push(used ?? (await (await startPostgres()).createDatabase()))
      const store = await keep(openStore({ url: url() }))
      initial_rows ??= await withClient(url(), rowsOf)
      return store
    },
    openAgain: () => keep(openStore({ url: url() })),
    async cleanup() {
      await closeAll()
      for (const database of databases.splice(0)) {
        if (initial_rows && !altered.has(database)) {
          const rows = initial_rows
          await withClient(database, (client) => restore(client, rows))
          empty.push(database)
        } else await (await startPostgres()).dropDatabase(database)
      }
    },
  }
}

/** The rows of each table, as JSON. */
type Rows = Map<string, string>

async function withClient<T>(connectionString: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** Except the tables in which the migrator keeps its own records. */
const TABLES = `select quote_ident(tablename) as name from pg_tables
  where schemaname = 'public' and tablename not like 'kysely%' order by 1`

async function rowsOf(client: Client): Promise<Rows> {
  const rows: Rows = new Map()
  for (const { name } of (await client.query(TABLES)).rows) {
    const found = await client.query(`select coalesce(jsonb_agg(t), '[]')::text as rows from ${name} t`)
    rows.set(name, found.rows[0].rows)
  }
  return rows
}

/**
 * Ends other connections, as dropping the database would, and restores exactly these rows. With `delete`, since a
 * `truncate` creates new files for every table and index, which took 800 times as long.
 */
async function restore(client: Client, rows: Rows): Promise<void> {
  await client.query(`
    select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid();
    set session_replication_role = replica; -- in any order, despite foreign keys
    ${[...rows.keys()].map((name) => `delete from ${name}`).join(';')};
    select setval(oid::regclass, 1, false) from pg_class where relkind = 'S' and relnamespace = 'public'::regnamespace`)
  for (const [name, json] of rows) {
    if (json === '[]') continue
    await client.query(`insert into ${name} select * from jsonb_populate_recordset(null::${name}, $1)`, [json])
  }
}

function keeper() {
  const stores: Store[] = []
  return {
    async keep(opening: Promise<Store>): Promise<Store> {
      const store = await opening
      stores.push(store)
      return store
    },
    async closeAll(): Promise<void> {
      for (const store of stores.splice(0)) await store.close()
    },
  }
}
