/** Whether the gateway can do its work: for /readyz. */
import type { Clock } from './kit/clock.ts'
import type { Log } from './kit/log.ts'
import { createProbe } from './kit/probe.ts'
import type { FileStore } from './outputs/outputs.ts'
import { GatewayError } from './spec/error.ts'
import type { Store } from './store/store.ts'

/** With the time that a busy gateway takes to answer, less than the 2 seconds within which `/readyz` answers. */
const READY_MILLISECONDS = 1_500

type ReadinessParts = { store: Pick<Store, 'ping'>; files: FileStore; clock: Clock; log: Log }

/** The result rejects with `storage_unavailable`, which says what cannot be written; the cause is only logged. */
export function createReadiness({ store, files, clock, log }: ReadinessParts): () => Promise<void> {
  const probes = [
    { check: store.ping, reason: 'the database cannot be written' },
    { check: async () => files.ping?.(), reason: 'the directory of outputs cannot be written' },
  ].map(({ check, reason }) => ({ reason, probe: createProbe({ check, limit_ms: READY_MILLISECONDS, clock }) }))
  return async () => {
    const failures = probes.map(async ({ probe, reason }) => {
      await probe().catch((cause: unknown) => {
        log.error('not ready', { reason }, cause)
        throw new GatewayError('storage_unavailable', reason, { cause })
      })
    })
    await Promise.all(failures)
  }
}
