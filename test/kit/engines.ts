/** The engines over which the store's suite runs; one more engine is one more line here. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore } from '../../src/store/open-store.ts'
import type { Store } from '../../src/store/store.ts'

export type Engine = {
  name: string
  /** A new, empty store. */
  open(): Promise<Store>
  /** Opens the data of the last `open` once more, as another process would; absent where nobody else can. */
  openAgain?(): Promise<Store>
  /** Closes what was opened and removes its data. */
  cleanup(): Promise<void>
}

export const ENGINES: Engine[] = [sqliteInMemory(), sqliteFile()]

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
