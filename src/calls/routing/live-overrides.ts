/** The overrides in force: read from the store, seen by every process within a second, and applied off the path of calls. */
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type {
  Override,
  OverrideChange,
  OverrideGuard,
  OverrideStates,
  OverrideStore,
} from '../../store/admin/override-store.ts'
import { createStoreWatch } from '../../store/store-watch.ts'
import { createOverrides, NO_OVERRIDES, type Overrides } from './overrides.ts'

export type LiveOverrides = {
  current(): Overrides
  list(): readonly Override[]
  /** Takes effect in this process before it resolves. Returns what the override was and is; undefined: there is none. `with_it`: as for the store. */
  set(
    of: Pick<Override, 'kind' | 'name'>,
    change: OverrideChange,
    set_by: string,
    with_it?: OverrideGuard,
  ): Promise<OverrideStates>
  /** Reads them, and starts polling. An unreachable store is logged, and asked again. */
  start(): Promise<void>
  close(): Promise<void>
}

type Parts = {
  store: OverrideStore
  /** Called with each change. */
  apply(overrides: Overrides): void
  clock: Clock
  log: Log
}

export function createLiveOverrides({ store, apply, clock, log }: Parts): LiveOverrides {
  let rows: readonly Override[] = []
  let overrides = NO_OVERRIDES
  let revision: number | undefined

  /** The revision is read first: a change that comes between is read again the next time. */
  async function read(): Promise<void> {
    const now = await store.revision()
    if (now === revision) return
    rows = await store.list()
    revision = now
    overrides = createOverrides(rows)
    apply(overrides)
  }

  const unread = 'routing overrides could not be read; those that are known stay'
  const watch = createStoreWatch(read, unread, { clock, log })

  return {
    current: () => overrides,
    list: () => rows,
    async set(of, change, set_by, with_it) {
      const changed = await store.set(of, change, { set_by, set_at: unixSeconds(clock) }, with_it)
      await watch.readNow()
      log.info('routing override', { ...of, set_by, ...settingsOf(changed.after) })
      return changed
    },
    start: watch.start,
    close: watch.close,
  }
}

const settingsOf = (override: Override | undefined) =>
  override ? { weight: override.weight, state: override.state } : { removed: true }
