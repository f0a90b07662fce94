/** Opens the store that an address names, up to date and ready. */
import { openSqlite } from './engines/sqlite.ts'
import { modelStore } from './models.ts'
import type { Store } from './store.ts'
import { StoreError } from './store-error.ts'
import type { Database } from './tables.ts'
import { tokenStore } from './tokens.ts'
import { usageStore } from './usage.ts'

/** `url` is `sqlite:<path>` or `sqlite::memory:`. Throws StoreError with words for the operator. */
export async function openStore({ url }: { url: string }): Promise<Store> {
  const [scheme = ''] = url.split(':', 1)
  const rest = url.slice(scheme.length + 1)
  if (scheme !== 'sqlite' || rest === '') {
    // Only the scheme is repeated: an address may hold a password.
    const found = url.includes(':') ? `"${scheme}:${scheme === 'sqlite' ? '' : '...'}"` : 'something else'
    throw new StoreError(`The store's address must be "sqlite:<path>" or "sqlite::memory:"; it is ${found}.`)
  }
  return storeOf('sqlite', await openSqlite(rest))
}

function storeOf(engine: string, db: Database): Store {
  const tokens = tokenStore(db)
  let closed: Promise<void> | undefined
  return {
    engine,
    tokens,
    usage: usageStore(db),
    models: modelStore(db),
    async ping() {
      await tokens.revision()
    },
    close() {
      closed ??= db.destroy()
      return closed
    },
  }
}
