/** The engines over which the store's suite runs; one more engine is one more line here. */
import { Database } from 'bun:sqlite'
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
  /** Runs statements on the data of the last `open`, past the store. */
  run?(statements: string): Promise<void>
  /** Closes what was opened and removes its data. */
  cleanup(): Promise<void>
}

export const ENGINES: Engine[] = [sqliteInMemory(), sqliteFile(), postgres()]

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
      directories.push(await mkdtemp(join(tmpdir(), 'gatehouse-store-')))
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
  const url = () => databases.at(-1) ?? ''
  return {
    name: 'postgres',
    url,
    async run(statements) {
      const client = new Client({ connectionString: url() })
      await client.connect()
      await client.query(statements).finally(() => client.end())
    },
    async open() {
      databases.push(await (await startPostgres()).createDatabase())
      return keep(openStore({ url: url() }))
    },
    openAgain: () => keep(openStore({ url: url() })),
    async cleanup() {
      await closeAll()
      for (const database of databases.splice(0)) await (await startPostgres()).dropDatabase(database)
    },
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
