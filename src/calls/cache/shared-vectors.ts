/** Whether semantic caches keep their vectors in the database, and what the log says where they cannot. */
import type { Config } from '../../config/config.ts'
import type { Log } from '../../kit/log.ts'
import type { CachedVectors } from '../../store/requests/cache-store.ts'
import { type Store, StoreError } from '../../store/store.ts'

/**
 * Undefined: the vectors are in memory, because no model has a semantic cache, responses are not in the database, or it
 * has no vectors. Checked at the start only: the extension of a database does not come and go.
 */
export async function openSharedVectors(
  { openCachedVectors }: Pick<Store, 'openCachedVectors'>,
  { cache, models }: Pick<Config, 'cache' | 'models'>,
  log: Log,
): Promise<CachedVectors | undefined> {
  if (cache.storage !== 'database' || !openCachedVectors) return undefined
  if (!Object.values(models).some((model) => model.cache?.semantic)) return undefined
  try {
    return await openCachedVectors()
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    log.warn('semantic cache without pgvector', { reason: error.message })
    return undefined
  }
}
