/** Opens the store at an address and migrates it. */

import type { Engine } from './engine.ts'
import { openSqlite } from './engines/sqlite.ts'
import { responseRunStore } from './response-runs.ts'
import { responseStore } from './responses.ts'
import { type Store, StoreError } from './store.ts'
import { taskStore } from './tasks.ts'
import { tokenStore } from './tokens.ts'
import { usageStore } from './usage.ts'
import { webhookStore } from './webhooks.ts'
import { modelStore, secretStore } from './write-once.ts'

const ADDRESSES = '"sqlite:<path>", "sqlite::memory:" or "postgres://<user>:<password>@<host>:<port>/<database>"'

/** `url` is one of ADDRESSES. Throws StoreError with a message for the operator. */
export async function openStore({ url }: { url: string }): Promise<Store> {
  const [scheme = ''] = url.split(':', 1)
  const rest = url.slice(scheme.length + 1)
  if (scheme === 'sqlite' && rest !== '') return storeOf(await openSqlite(rest))
  if ((scheme === 'postgres' || scheme === 'postgresql') && rest.startsWith('//')) {
    // Imported only here: a start on SQLite should not load the driver of another engine.
    const { openPostgres } = await import('./engines/postgres.ts')
    return storeOf(await openPostgres(url))
  }
  // Only the scheme is repeated: an address may hold a password.
  const found = url.includes(':') ? `"${scheme}:${scheme === 'sqlite' ? '' : '...'}"` : 'something else'
  throw new StoreError(`The store's address must be ${ADDRESSES}; it is ${found}.`)
}

function storeOf(engine: Engine): Store {
  const { db } = engine
  const tokens = tokenStore(db)
  let closed: Promise<void> | undefined
  return {
    engine: engine.name,
    tokens,
    usage: usageStore(db),
    models: modelStore(db),
    tasks: taskStore(engine),
    webhooks: webhookStore(engine),
    secrets: secretStore(engine),
    responses: responseStore(engine),
    responseRuns: responseRunStore(engine),
    async ping() {
      await tokens.revision()
    },
    close() {
      closed ??= engine.close()
      return closed
    },
  }
}
