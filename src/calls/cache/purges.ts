/** Purges of the response cache: counted in the store, and seen by every process within a second. */
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { AuditDraft } from '../../spec/audit.ts'
import type { CachedAnswerStore } from '../../store/requests/cache-store.ts'
import { createStoreWatch } from '../../store/store-watch.ts'

type Parts = {
  store: Pick<CachedAnswerStore, 'purges'>
  /** The name of a model, or the id of a project. Undefined: of all. */
  onPurge(name: string | undefined): void
  clock: Clock
  log: Log
}

/** What the names of the entries of a model or project have; of all: the empty text. */
export const partOf = (name: string | undefined): string => (name === undefined ? '' : `|${name}|`)

const DELETE_AT_ONCE = 500

/** Counts a purge, and deletes what the database holds; returns how many answers that were. */
export async function purgeStore(
  store: Pick<CachedAnswerStore, 'countPurge' | 'deleteWith'>,
  name: string | undefined,
  audit?: AuditDraft,
): Promise<number> {
  await store.countPurge(name, audit)
  for (let deleted = 0; ; ) {
    const count = await store.deleteWith(partOf(name), DELETE_AT_ONCE)
    deleted += count
    if (count < DELETE_AT_ONCE) return deleted
  }
}

export function createPurges({ store, onPurge, clock, log }: Parts) {
  let counts = new Map<string, number>()

  async function compare(): Promise<void> {
    const now = await store.purges()
    const before = counts
    counts = now
    for (const [name, count] of now) if (count !== before.get(name)) onPurge(name || undefined)
  }

  const watch = createStoreWatch(compare, 'purges of the response cache could not be read', { clock, log })

  return {
    /** Changes with each purge that concerns the model or project: part of the keys of its entries, so that older ones are not found. */
    generationOf: (name: string) => `${counts.get('') ?? 0}.${counts.get(name) ?? 0}`,
    /** Reads the counts: what was purged since the last time is given to `onPurge`. Rejects where the store does. */
    read: watch.readNow,
    start: watch.start,
    close: watch.close,
  }
}
