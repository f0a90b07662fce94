/** With `store.migrate: manual`, a start waits until the operator has migrated the database, and says so at `/readyz`. */
import type { Config } from '../../config/config.ts'
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { schemaProblem } from '../../store/schema-state.ts'
import { schemaOf } from '../../store/store-schema.ts'

const LOOK_MILLISECONDS = 1_000

/** The process was asked to stop while it waited. */
export class StoppedEarly extends Error {}

type WaitParts = {
  config: Pick<Config, 'store' | 'store_url'>
  clock: Clock
  log: Log
  /** The first signal to stop. */
  stopped: Promise<unknown>
  /** Called with the reason whenever it changes. */
  onWait(reason: string): void
}

/** Throws StoppedEarly, or StoreError where the database cannot be read. */
export async function awaitSchema({ config, clock, log, stopped, onWait }: WaitParts): Promise<void> {
  if (config.store.migrate === 'auto' || config.store_url === 'sqlite::memory:') return
  let last: string | undefined
  for (;;) {
    const reason = schemaProblem(await schemaOf(config.store_url))
    if (reason === undefined) return
    if (reason !== last) {
      log.warn('waiting for the schema of the database', { reason })
      onWait(reason)
      last = reason
    }
    const isStopped = await new Promise<boolean>((resolve) => {
      clock.after(LOOK_MILLISECONDS, () => resolve(false))
      void stopped.then(() => resolve(true))
    })
    if (isStopped) throw new StoppedEarly()
  }
}
