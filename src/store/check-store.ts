/** Checks whether the database at an address is damaged, without opening it as a store, which would migrate it. */
import { checkSqlite } from './engines/sqlite-check.ts'
import type { StoreCheck } from './store.ts'

/** `url` is one that `openStore` takes, of a database that exists. Throws where it cannot be checked. */
export async function checkStore(url: string, options: { is_quick: boolean }): Promise<StoreCheck> {
  if (url.startsWith('sqlite:')) return checkSqlite(url.slice('sqlite:'.length), options)
  // Imported only here, like the driver of a store.
  const { checkPostgres } = await import('./engines/postgres-check.ts')
  return checkPostgres(url)
}
