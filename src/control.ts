/** What operators do to a running gateway: the overrides of its routing. */
import type { Clock } from './kit/clock.ts'
import type { Log } from './kit/log.ts'
import type { Catalogue } from './models/catalogue.ts'
import { createLiveOverrides, type LiveOverrides } from './routing/live-overrides.ts'
import type { Router } from './routing/router.ts'
import type { Store } from './store/store.ts'

type ControlParts = {
  store: Pick<Store, 'overrides'>
  router: Router
  catalogue: Catalogue
  clock: Clock
  log: Log
}

type Control = {
  overrides: LiveOverrides
  /** Resolves when the overrides of the store are in force. */
  start(): Promise<void>
  close(): Promise<void>
}

export function createControl({ store, router, catalogue, clock, log }: ControlParts): Control {
  const overrides = createLiveOverrides({
    store: store.overrides,
    apply(next) {
      router.override(next)
      catalogue.disable(next.disabledModels())
    },
    clock,
    log,
  })
  return { overrides, start: overrides.start, close: overrides.close }
}
