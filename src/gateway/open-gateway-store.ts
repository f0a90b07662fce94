/** Opens the store of a gateway, and warns where a newer build has migrated it. */
import { openStore } from '../store/open-store.ts'
import type { Store } from '../store/store.ts'
import type { GatewayParts } from './parts.ts'

type OpenParts = Pick<GatewayParts, 'config' | 'store_url' | 'log'> & Pick<Parameters<typeof openStore>[0], 'onCall'>

/** During a rolling upgrade, and after a return to the version before, a build runs on the schema of a newer one. */
export async function openGatewayStore({ config, store_url, log, onCall }: OpenParts): Promise<Store> {
  const store = await openStore({ url: store_url ?? config.store_url, mode: config.store.migrate, onCall })
  const { status, database, build, oldest } = await store.schema()
  if (status === 'newer') log.warn('a newer build has migrated the database', { database, build, oldest })
  return store
}
